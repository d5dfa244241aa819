"""The policy for Kyverno, held to the schemas that Kyverno's releases bring.

They are read from a local copy of its repository that ``BUILDER_MIRRORS`` names. A cluster drops
fields that a schema does not know, or refuses them: here any of them is a failure.
"""

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from builder.trust.codec import read_policy
from builder.trust.export.kyverno import kyverno
from tests.claims import Claims
from tests.commands import CommandError, run
from tests.real.genesis_facts import copy
from tests.trust.keys import NAMES, TODAY, key_entry, policy_text

SOURCE = "https://github.com/kyverno/kyverno"
_FIRST = (1, 12)  # before it, a transparency log could not be left out
_FILE = "cmd/cli/kubectl-kyverno/data/crds/kyverno.io_clusterpolicies.yaml"
_RELEASE = re.compile(r"(?:.*/)?release-([0-9]+)\.([0-9]+)")


def prove(claims: Claims) -> None:
    """Check all claims on the real schemas, or say what is not checked."""
    if (repository := copy(SOURCE)) is None:
        why = f"BUILDER_MIRRORS has no copy of {SOURCE}"
        claims.not_run("the policy for Kyverno by its schemas", why, wants=SOURCE)
        return
    documents = [_exported(TODAY, reject=reject) for reject in (False, True)]
    wrong = _exported(TODAY, reject=False)
    wrong["spec"]["rules"][0]["verifyImages"][0]["imageReference"] = ["*"]
    fitting, noticed = [], []
    for release, schema in _schemas(repository):
        validator = jsonschema.Draft202012Validator(schema)
        if all(validator.is_valid(each) for each in documents):
            fitting.append(release)
        if not validator.is_valid(wrong):
            noticed.append(release)
    releases = [release for release, _ in _schemas(repository)]
    claims.holds("there are schemas of Kyverno", len(releases) > 1, f"{len(releases)} releases")
    claims.equal("releases of Kyverno whose schema the policy fits", fitting, releases)
    claims.equal("releases whose schema notices a misspelt field", noticed, releases)


def _exported(today: date, *, reject: bool) -> Any:
    policy = read_policy(
        policy_text(
            keys="".join(key_entry(name) for name in NAMES),
            roles=f"  image: {{keys: [{', '.join(NAMES)}], threshold: 2}}\n",
            scopes='  - {repositories: ["r.example/a/*", r.example/b], role: image}\n',
        ).encode()
    )
    return yaml.safe_load(kyverno(policy, today=today, reject=reject).files["clusterpolicy.yaml"])


def _schemas(repository: Path) -> Iterator[tuple[str, Any]]:
    """The schema of ``kyverno.io/v1`` of each release that the policy is for, the oldest first."""
    git = ("git", "--git-dir", repository)
    listed = run((*git, "for-each-ref", "--format=%(refname:short)", "--sort=version:refname")).text
    for reference in listed.split():
        numbers = _RELEASE.fullmatch(reference)
        if numbers is None or (int(numbers[1]), int(numbers[2])) < _FIRST:
            continue
        try:
            text = run((*git, "show", f"{reference}:{_FILE}")).stdout
        except CommandError:
            continue
        versions = yaml.load(text, Loader=yaml.CSafeLoader)["spec"]["versions"]
        (schema,) = (each["schema"] for each in versions if each["name"] == "v1")
        yield reference, _strict(schema["openAPIV3Schema"], top=True)


def _strict(schema: Any, *, top: bool = False) -> Any:
    """A structural schema as a cluster has it that refuses unknown fields. The name and the like of
    a document are not its schema's business."""
    if isinstance(schema, list):
        return [_strict(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    made = {key: _strict(each) for key, each in schema.items() if key != "format"}
    if top:
        made["properties"]["metadata"] = {"type": "object"}
    elif (
        isinstance(made.get("properties"), dict)
        and made.get("type") == "object"
        and not made.get("x-kubernetes-preserve-unknown-fields")
    ):
        made.setdefault("additionalProperties", False)
    return made
