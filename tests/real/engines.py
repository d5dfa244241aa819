"""What engines pull under a policy of ours, exported in their own words.

A project signs with a key of each type. The containerd 2 of Debian's newest suite has the exported
program, which asks ``builder image-verifier``, as its only verifier; nothing of the policy was
accepted in the home that it runs in. podman of a newer suite than this machine's has the exported
files in its /etc/containers.
"""

import sys
from collections.abc import Mapping
from contextlib import ExitStack
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
from tests.real.debian_tool import LATEST, STABLE, debian_tool
from tests.real.newer_podman import newer_podman
from tests.registry.images import index_of
from tests.services import running_registry
from tests.services_containerd import RunningContainerd, running_containerd

_KEYS = ("ecdsa-p256", "ed25519")
_STRANGER = "stranger"


def prove(claims: Claims) -> None:
    """What the policy trusts is pulled; what it does not is not, and the engine says why."""
    if why := missing("docker-registry", "root"):
        claims.not_run("what engines pull by a policy", why)
        return
    with TemporaryDirectory(prefix="builder-engines-") as name, ExitStack() as stack:
        place = Path(name)
        (place / "registry").mkdir()
        with claims.group("images for engines, and a policy"):
            registry = stack.enter_context(running_registry(place / "registry"))
            signing = _Signing(place, registry.host)
            names = _images(signing)
            _podman(signing, names, claims)
            _containerd(signing, names, claims)


def _containerd(signing: "_Signing", names: Mapping[str, str], claims: Claims) -> None:
    claim = f"what containerd of {LATEST} pulls by builder image-verifier"
    try:
        programs = debian_tool("containerd", LATEST, "usr/bin/containerd").parent
    except CommandError as error:
        claims.not_run(claim, error.said or str(error), wants=LATEST)
        return
    exported = signing.verifier()
    configuration = exported / "config.toml"
    with (
        claims.group(claim),
        running_containerd(programs, configuration, signing.elsewhere()) as engine,
    ):
        _asked(engine, exported, signing, names, claims)


def _podman(signing: "_Signing", names: Mapping[str, str], claims: Claims) -> None:
    claim = f"what podman of {STABLE} pulls by an exported policy"
    root = signing.place / "podman"
    root.mkdir()
    try:
        podman = newer_podman(root)
    except CommandError as error:
        claims.not_run(claim, error.said or str(error))
        return
    with claims.group(claim):
        podman.configure(signing.exported("containers", "--reject"))
        for what in ("unsigned", "signed by another key", "of no scope"):
            try:
                podman.pull(names[what])
            except CommandError as error:
                said = str(error).rpartition("Error: ")[2]
                claims.holds(f"podman refuses {what}", "Source image rejected: " in said, said)
            else:
                claims.holds(f"podman refuses {what}", False, "it is pulled")
        claims.equal("podman has none of them", podman.images(), [])
        podman.pull(names["an index that nobody signed"])
        claims.holds("podman holds what it takes of an index to the policy, not the index", True)
        wanted = signing.project / "overlays/greeting/files/limits.py"
        for key in _KEYS:
            name = names[f"signed by {key}"]
            podman.pull(name)
            (got,) = podman.files(name, "usr/local/lib/python3.12/dist-packages/hello/limits.py")
            same = got == wanted.read_bytes()
            claims.holds(
                f"podman pulls and unpacks signed by {key}", same and name in podman.images()
            )


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

    def exported(self, form: str, *options: str) -> Path:
        """What is exported in one form."""
        out = self.place / f"exported-{form}"
        self.builder.run("trust", "export", "--format", form, "--out", out, *options)
        return out

    def verifier(self) -> Path:
        """What is exported for containerd, with the directory of its programs where it is here.
        Another program is in that before it, which lets everything pass."""
        out = self.exported("containerd")
        other = out / "bin/a-program-of-others"
        other.write_text("#!/bin/sh\n")
        other.chmod(0o755)
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


def _images(signing: _Signing) -> dict[str, str]:
    """What engines are asked to pull."""
    listed = "an index signed like its image"
    names = {
        **{f"signed by {key}": signing.image(f"team/{key}", key) for key in _KEYS},
        listed: signing.image("team/index", index=True),
        "unsigned": signing.image("team/unsigned"),
        "signed by another key": signing.image("team/wrong", _STRANGER),
        "an index that nobody signed": signing.image("team/bare", _KEYS[0], index=True),
        "of no scope": signing.image("elsewhere/signed", _KEYS[0]),
    }
    signing.builder.run("sign", "hello", names[listed], "--key", _KEYS[1])
    return names


def _asked(
    engine: RunningContainerd,
    exported: Path,
    signing: _Signing,
    names: Mapping[str, str],
    claims: Claims,
) -> None:
    for what, why in _BLOCKED.items():
        _blocked(engine, what, names[what], why, claims)
    claims.equal("containerd has none of them", engine.images(), [])
    for what, name in names.items():
        if what not in _BLOCKED:
            engine.pull(name)
            claims.holds(f"containerd pulls {what}", name in engine.images())
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
