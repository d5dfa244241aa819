"""``builder image-verifier`` where it is meant to run: containerd itself asks it, and pulls or not.

A project signs with a key of each type, its policy is exported for containerd, and the containerd 2
of Debian's newest suite has the exported program as the only verifier. Nothing of the policy was
accepted in the home that it runs in.
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.cli.start import start_project
from builder.oci import Manifest
from builder.reference import Reference
from builder.trust.export.containerd import DIRECTORY
from tests.claims import Claims
from tests.commands import Builder, CommandError, clean_environment
from tests.plugins.requires import missing
from tests.real.debian_tool import LATEST, debian_tool
from tests.registry.images import index_of
from tests.services import running_registry
from tests.services_containerd import RunningContainerd, running_containerd

_KEYS = ("ecdsa-p256", "ed25519")
_STRANGER = "stranger"


def prove(claims: Claims) -> None:
    """What the policy trusts is pulled; what it does not is blocked, and containerd says why."""
    claim = f"what containerd of {LATEST} pulls by builder image-verifier"
    if why := missing("docker-registry", "root"):
        claims.not_run(claim, why)
        return
    try:
        programs = debian_tool("containerd", LATEST, "usr/bin/containerd").parent
    except CommandError as error:
        claims.not_run(claim, error.said or str(error), wants=LATEST)
        return
    with claims.group(claim), TemporaryDirectory(prefix="builder-verifier-") as name:
        place = Path(name)
        (place / "registry").mkdir()
        with running_registry(place / "registry") as registry:
            _prove(_Signing(place, registry.host), programs, claims)


_BLOCKED = {
    "unsigned": (13, "nobody signed it"),
    "signed by another key": (11, "no signature of a key that is trusted"),
    "an index that nobody signed": (13, "nobody signed it"),
    "of no scope": (11, "no scope in trust.yaml has"),
}
"""What is not pulled, with our exit status and a part of our reason."""


class _Signing:
    """A project with a policy, and images of it that this one or that one signed."""

    def __init__(self, place: Path, host: str) -> None:
        self.place, self.host = place, host
        self.project = place / "project"
        start_project(self.project)
        (place / "home").mkdir()
        environment = clean_environment(
            HOME=str(place / "home"), BUILDER_KEYS=str(place / "keys"), BUILDER_KEY_PASSWORD="pw"
        )
        self.builder = Builder(store=place / "store", project=self.project, environment=environment)
        for key in (*_KEYS, _STRANGER):
            kind = ("--type", key) if key in _KEYS else ()
            self.builder.run("key", "generate", key, *kind)
        mine = [f"--key={key}" for key in _KEYS]
        self.builder.run("trust", "new", *mine, "--repository", f"{host}/team/*")
        self.builder.run("trust", "sign", "--key", _KEYS[0])
        self.builder.run("trust", "init", "--accept-first")

    def image(self, repository: str, *keys: str, index: bool = False) -> str:
        """The project's image in a repository, signed by these; its name by tag."""
        name = f"{self.host}/{repository}:t"
        self.builder.run("build", "hello", "--push", name)
        for key in keys:
            self.builder.run("sign", "hello", name, "--key", key)
        if index:
            self._listed(Reference.parse(name))
        return name

    def _listed(self, name: Reference) -> None:
        """Have the tag stand for an index of the image, which nobody signed."""
        with RegistryClient(RegistryConfiguration()) as client:
            image = client.tagged(name)
            assert isinstance(image, Manifest)
            client.push_manifest(name, index_of((image, "linux", "amd64")))

    def exported(self) -> Path:
        """What is exported for containerd, with the directory of its programs where it is here."""
        out = self.place / "exported"
        self.builder.run("trust", "export", "--format", "containerd", "--out", out)
        configuration = out / "config.toml"
        text = configuration.read_text()
        assert DIRECTORY in text
        configuration.write_text(text.replace(DIRECTORY, str(out / "bin")))
        return out

    def elsewhere(self) -> dict[str, str]:
        """The environment of the daemon: ``builder`` is on its path, and its home is empty."""
        home = self.place / "another-home"
        home.mkdir()
        path = f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin"
        return clean_environment(PATH=path, HOME=str(home))


def _prove(signing: _Signing, programs: Path, claims: Claims) -> None:
    names = {
        **{f"signed by {key}": signing.image(f"team/{key}", key) for key in _KEYS},
        "an index signed like its image": signing.image("team/index", index=True),
        "unsigned": signing.image("team/unsigned"),
        "signed by another key": signing.image("team/wrong", _STRANGER),
        "an index that nobody signed": signing.image("team/bare", _KEYS[0], index=True),
        "of no scope": signing.image("elsewhere/signed", _KEYS[0]),
    }
    signing.builder.run("sign", "hello", names["an index signed like its image"], "--key", _KEYS[1])
    exported = signing.exported()
    with running_containerd(programs, exported / "config.toml", signing.elsewhere()) as engine:
        for what, why in _BLOCKED.items():
            _blocked(engine, what, names[what], why, claims)
        claims.equal("containerd has none of them", engine.images(), [])
        for what in (*(f"signed by {key}" for key in _KEYS), "an index signed like its image"):
            engine.pull(names[what])
            claims.holds(f"containerd pulls {what}", names[what] in engine.images())
        policy = signing.project / "trust.yaml"
        policy.write_bytes(policy.read_bytes().replace(b"version: 1", b"version: 2"))
        good = f"signed by {_KEYS[0]}"
        why = (11, "trust.yaml: no version of it has the digest")
        _blocked(engine, "under a policy that nobody signed", names[good], why, claims)
        (exported / "bin/builder").unlink()
        engine.pull(names["unsigned"])
        claims.holds("with no program there, containerd pulls what is unsigned", True)


def _blocked(
    engine: RunningContainerd, what: str, image: str, why: tuple[int, str], claims: Claims
) -> None:
    claim, (status, reason) = f"containerd blocks {what}", why
    try:
        engine.pull(image)
    except CommandError as error:
        head, _, said = str(error).partition("for reason: ")
        ours = f"(exit code {status}): " in said and reason in said
        claims.holds(claim, f"blocked pull of {image} " in head and ours, said or error)
    else:
        claims.holds(claim, False, "it is pulled")
