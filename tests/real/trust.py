"""Exported policies, held to what the programs that read them do: skopeo and cosign of Debian's
newer suites, with images that cosign signed.

skopeo wants a newer C library than this Debian's, and gets the one of its own suite.
"""

from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from builder.trust.codec import read_policy
from builder.trust.export.chosen import Export
from builder.trust.export.containers import containers
from builder.trust.export.cosign import cosign as cosign_script
from builder.trust.model import Policy
from tests.claims import Claims
from tests.commands import CommandError, clean_environment, run
from tests.plugins.requires import missing
from tests.real.debian_tool import LATEST, STABLE, debian_tool
from tests.services import running_registry

SUITES = (STABLE, LATEST)
_TODAY = date(2027, 1, 1)
_LIBRARIES = "usr/lib/x86_64-linux-gnu"
_KEYS = ("ada", "bob", "carol", "eve")
_LIBRARY_PACKAGES = {STABLE: (), LATEST: ("libgpgme45", "libassuan9", "libgpg-error0")}
"""What skopeo of a suite loads that this Debian does not have."""


def prove(claims: Claims) -> None:
    """What a policy trusts is copied, and what it does not is not."""
    if why := missing("docker-registry") or missing("skopeo") or missing("umoci"):
        claims.not_run("exported policies", why)
        return
    for suite in SUITES:
        claim = f"exported policies, by skopeo and cosign of {suite}"
        try:
            tools = _Tools(suite)
        except CommandError as error:
            claims.not_run(claim, error.said or str(error), wants=suite)
            continue
        with claims.group(claim), TemporaryDirectory(prefix="builder-trust-") as name:
            place = Path(name)
            (place / "registry").mkdir()
            with running_registry(place / "registry") as registry:
                _prove(_World(place, tools, registry.host), claims)


class _Tools:
    """The programs of one suite."""

    def __init__(self, suite: str) -> None:
        self.cosign = debian_tool("cosign", suite, "usr/bin/cosign")
        skopeo = debian_tool("skopeo", suite, "usr/bin/skopeo")
        loader = debian_tool("libc6", suite, f"{_LIBRARIES}/ld-linux-x86-64.so.2")
        places = [loader.parent, *(_libraries(name, suite) for name in _LIBRARY_PACKAGES[suite])]
        path = ":".join(map(str, (*places, f"/{_LIBRARIES}")))
        self.skopeo = (loader, "--library-path", path, skopeo)
        run((*self.skopeo, "--version"))
        # cosign 3 writes bundles alone, which skopeo does not read, unless it is told.
        told = run((self.cosign, "sign", "--help")).text
        form = ("--new-bundle-format=false", "--use-signing-config=false")
        self.older_form = form if "--use-signing-config" in told else ()


def _libraries(package: str, suite: str) -> Path:
    """The directory of a package's libraries."""
    return (
        debian_tool(package, suite, f"usr/share/doc/{package}/copyright").parents[3]
        / "lib"
        / (_LIBRARIES.rpartition("/")[2])
    )


class _World:
    """A registry, keys, and images that some of them signed."""

    def __init__(self, place: Path, tools: _Tools, host: str) -> None:
        self.place, self.tools, self.host = place, tools, host
        self.environment = clean_environment(COSIGN_PASSWORD="pw", HOME=str(place))
        for name in _KEYS:
            self.cosign("generate-key-pair", "--output-key-prefix", name)

    def cosign(self, *arguments: str | Path) -> None:
        run((self.tools.cosign, *arguments), environment=self.environment, directory=self.place)

    def image(self, repository: str, *signers: str) -> str:
        """An image of its own bytes in a repository, signed by these; its name by digest."""
        name = f"{self.host}/{repository}"
        layout = self.place / repository.replace("/", "-")
        layout.mkdir()
        (layout / "file").write_text(name)
        run(("umoci", "init", "--layout", layout / "oci"))
        run(("umoci", "new", "--image", f"{layout / 'oci'}:it"))
        run(("umoci", "config", "--image", f"{layout / 'oci'}:it", "--config.user", "1"))
        options = ("--insecure-policy", "copy", "--dest-tls-verify=false")
        run(("skopeo", *options, f"oci:{layout / 'oci'}:it", f"docker://{name}:it"))
        asked = ("inspect", "--tls-verify=false", "--format", "{{.Digest}}", f"docker://{name}:it")
        found = f"{name}@{run(('skopeo', *asked)).text}"
        for signer in signers:
            quiet = ("--tlog-upload=false", "--allow-insecure-registry", "--yes")
            self.cosign("sign", *self.tools.older_form, *quiet, "--key", f"{signer}.key", found)
        return found

    def copied(self, exported: Path, image: str) -> bool:
        """Whether skopeo takes an image under an exported policy."""
        target = self.place / f"copy-{len(list(self.place.glob('copy-*')))}"
        policy = ("--policy", exported / "policy.json")
        where = ("--registries.d", exported / "registries.d")
        source = ("copy", "--src-tls-verify=false", f"docker://{image}", f"dir:{target}")
        return _passes((*self.tools.skopeo, *policy, *where, *source), self.environment)

    def verified(self, exported: Path, image: str) -> bool:
        """Whether the exported script takes an image."""
        path = f"{self.tools.cosign.parent}:/usr/bin:/bin"
        flags = {"PATH": path, "COSIGN_FLAGS": "--allow-insecure-registry"}
        return _passes(("sh", exported / "verify.sh", image), self.environment | flags)

    def policy(self, keys: Sequence[str], threshold: int) -> Policy:
        """These keys sign everything below ``acme``; Eve, who was revoked, is in it, too."""
        listed = "".join(self._key(name) for name in keys)
        raw = (
            f"version: 1\nexpires: {_TODAY + timedelta(days=30)}\nkeys:\n{listed}roles:\n"
            f"  root: {{keys: [{keys[0]}], threshold: 1}}\n"
            f"  image: {{keys: [{', '.join(keys)}], threshold: {threshold}}}\n"
            f'scopes: [{{repositories: ["{self.host}/acme/*"], role: image}}]\n'
        )
        return read_policy(raw.encode())

    def _key(self, name: str) -> str:
        lines = (self.place / f"{name}.pub").read_text().replace("\n", "\n      ").rstrip(" ")
        state = "revoked" if name == "eve" else "active"
        return f"  {name}:\n    public: |\n      {lines}    owner: {name}\n    state: {state}\n"

    def exported(self, export: Export, name: str) -> Path:
        directory = self.place / name
        for file, data in export.files.items():
            path = directory / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return directory


def _passes(argv: Sequence[str | Path], environment: dict[str, str]) -> bool:
    try:
        run(argv, environment=environment)
    except CommandError:
        return False
    return True


def _prove(world: _World, claims: Claims) -> None:
    images = {
        "signed by Ada": world.image("acme/ada", "ada"),
        "signed by Bob": world.image("acme/team/bob", "bob"),
        "signed by both": world.image("acme/both", "ada", "bob"),
        "signed by the revoked Eve": world.image("acme/eve", "eve"),
        "signed by nobody": world.image("acme/nobody"),
        "of another place, signed by both": world.image("acme-evil/both", "ada", "bob"),
    }
    wanted = {
        1: {"signed by Ada", "signed by Bob", "signed by both"},
        2: {"signed by both"},
    }
    policies = {threshold: world.policy(_KEYS, threshold) for threshold in wanted}
    for threshold, passing in wanted.items():
        policy = policies[threshold]
        rules = containers(policy, today=_TODAY, reject=True)
        directory = world.exported(rules, f"containers-{threshold}")
        script = world.exported(cosign_script(policy, today=_TODAY), f"cosign-{threshold}")
        for name, image in images.items():
            told = "takes" if name in passing else "refuses"
            asked = f"an image {name}, where {threshold} have to sign"
            right = world.copied(directory, image) is (name in passing)
            claims.holds(f"skopeo {told} {asked}", right)
            right = world.verified(script, image) is (name in passing)
            claims.holds(f"cosign {told} {asked}", right)
        tagged = images["signed by both"].replace("@", ":it@")
        claims.holds(
            "the script refuses a tag beside the digest", not world.verified(script, tagged)
        )
    loose = world.exported(containers(policies[1], today=_TODAY, reject=False), "loose")
    elsewhere = images["of another place, signed by both"]
    claims.holds("without --reject skopeo takes what no scope has", world.copied(loose, elsewhere))
