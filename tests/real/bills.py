"""The SBOM by those who know its form: CycloneDX's own validator, and the reader of package URLs.

They are no dependency of this project: pip puts them into an environment of their own, among the
downloads that are kept.
"""

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from builder.statements import Kind, statement
from tests.claims import Claims
from tests.commands import (
    ROOT,
    CommandError,
    clean_environment,
    download_cache,
    run,
)
from tests.statements.rich import record

_PACKAGES = ("cyclonedx-python-lib[json-validation]==11.12.0", "packageurl-python==0.17.6")

_VALIDATOR = """\
import json, sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL

def purls(value):
    if isinstance(value, dict):
        if "purl" in value:
            yield value["purl"]
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from purls(item)

document = json.load(sys.stdin)
error = JsonStrictValidator(SchemaVersion.V1_6).validate_str(json.dumps(document["bill"]))
found = [*purls(document["bill"]), *document["purls"]]
odd = [text for text in found if PackageURL.from_string(text).to_string() != text]
print(json.dumps({"error": error and repr(error), "purls": len(found), "odd": odd}))
"""


def prove(claims: Claims) -> None:
    """Validate the SBOM of the demo, and that of a build which has one of everything."""
    try:
        python = _environment()
    except CommandError as error:
        claims.not_run("CycloneDX's validator on the SBOM", f"cannot be installed: {error.said}")
        return
    for name, bill, purls, count in (
        ("the demo", _of_the_demo(), [], 0),  # nothing in it is from an index
        ("one of everything", _rich(Kind.SBOM), _uris(_rich(Kind.PROVENANCE)), 8),
    ):
        given = json.dumps({"bill": bill, "purls": purls}).encode()
        said = json.loads(run((python, "-c", _VALIDATOR), given=given).text)
        claims.equal(f"CycloneDX 1.6, strict, on the SBOM of {name}", said["error"], None)
        claims.equal(f"package URLs of {name} in another spelling", said["odd"], [])
        claims.equal(f"package URLs of {name}", said["purls"], count)
    broken = json.dumps({"bill": _rich(Kind.SBOM) | {"stray": 1}, "purls": []}).encode()
    said = json.loads(run((python, "-c", _VALIDATOR), given=broken).text)
    claims.holds("the validator refuses a stray key", said["error"] is not None)


def _environment() -> Path:
    """A Python that has the packages."""
    place = download_cache() / "cyclonedx-11.12.0"
    python = place / "bin/python"
    if not (place / "complete").exists():
        run((sys.executable, "-m", "venv", "--clear", place))
        run((python, "-m", "pip", "install", "--quiet", *_PACKAGES))
        (place / "complete").touch()
    return python


def _rich(kind: Kind) -> dict[str, Any]:
    return dict(statement(record(), kind, name="x").predicate)


def _uris(provenance: dict[str, Any]) -> list[str]:
    found = provenance["buildDefinition"]["resolvedDependencies"]
    return [item["uri"] for item in found if item.get("uri", "").startswith("pkg:")]


def _of_the_demo() -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="builder-bill-") as name:
        command = (sys.executable, "-m", "builder", "-C", ROOT, "--store", Path(name) / "store")
        environment = clean_environment(PYTHONPATH=str(ROOT), HOME=name)
        run((*command, "build", "demo"), environment=environment)
        printed = run((*command, "manifest", "demo", "--type", "sbom"), environment=environment)
        predicate: dict[str, Any] = json.loads(printed.stdout)["predicate"]
        return predicate
