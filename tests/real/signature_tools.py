"""The tools that others verify signatures with: cosign of two generations, skopeo, oras, and npm's
library; and crane, to whom signed images are images.

They come from newer Debians and run where they were unpacked, the library from npm. None of them
asks anybody but the registry: keys, and no transparency log.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.claims import Claims
from tests.commands import CommandError, clean_environment, run
from tests.real.bundle_oracle import BundleOracle, bundle_oracle
from tests.real.debian_tool import LATEST, STABLE, debian_packages, with_libraries
from tests.real.unavailable import NPM

BUNDLES_ONLY = "@sigstore/verify of npm"
"""The verifier that knows no older form."""
_OPEN = ("--allow-insecure-registry", "--allow-http-registry")
_UNLOGGED = ("--insecure-ignore-tlog=true", *_OPEN)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cosign:
    """One cosign, in a home directory of its own."""

    name: str
    program: Path
    home: Path

    def run(self, *arguments: str | Path) -> str:
        """Run it; returns what it prints.

        Raises:
            CommandError: It refuses.
        """
        environment = clean_environment(HOME=str(self.home), COSIGN_PASSWORD="of a test")
        return run((self.program, *arguments), environment=environment).text

    def verify(self, image: str, key: Path) -> None:
        """Raises CommandError where it does not take the image for signed by ``key``."""
        self.run("verify", "--key", key, *_UNLOGGED, image)

    def verify_attestation(self, image: str, key: Path) -> None:
        """Likewise for provenance by ``key``."""
        kind = ("--type", "slsaprovenance1")
        self.run("verify-attestation", "--key", key, *kind, *_UNLOGGED, image)

    def key_pair(self, prefix: Path) -> tuple[Path, Path]:
        """Make a key; returns its private and its public half."""
        self.run("generate-key-pair", "--output-key-prefix", prefix)
        return Path(f"{prefix}.key"), Path(f"{prefix}.pub")

    def sign(self, image: str, key: Path) -> None:
        """Sign as this generation does by itself."""
        self.run("sign", "--yes", "--key", key, *self._unlogged(), *_OPEN, image)

    def attest(self, image: str, key: Path, predicate: Path) -> None:
        """Attest provenance as this generation does by itself."""
        kind = ("--type", "slsaprovenance1", "--predicate", predicate)
        self.run("attest", "--yes", "--key", key, *kind, *self._unlogged(), *_OPEN, image)

    def _unlogged(self) -> Sequence[str | Path]:
        """How not to log: cosign 3 wants to be told in a file."""
        if self.name == "cosign 2":
            return ("--tlog-upload=false",)
        configuration = self.home / "signing-config.json"
        if not configuration.exists():
            self.run("signing-config", "create", "--out", configuration)
        return ("--signing-config", configuration)


@dataclass(frozen=True, slots=True, kw_only=True)
class Skopeo:
    """A skopeo that verifies signatures of this kind, which bookworm's does not."""

    command: Sequence[Path | str]
    home: Path

    def copy(self, *arguments: str | Path) -> None:
        """``skopeo copy``, with no policy."""
        run((*self.command, "--insecure-policy", "copy", "-q", *arguments))

    def verify(self, image: str, key: Path) -> None:
        """Raises CommandError where a policy that demands signatures by ``key`` does not let the
        image, and all of its platforms, through."""
        host = image.partition("/")[0]
        demand = {"type": "sigstoreSigned", "keyPath": str(key)}
        policy = self.home / "policy.json"
        policy.write_text(
            json.dumps(
                {
                    "default": [{"type": "reject"}],
                    "transports": {"docker": {host: [demand]}},
                }
            )
        )
        registries = self.home / "registries.d"
        registries.mkdir(exist_ok=True)
        attached = {"docker": {host: {"use-sigstore-attachments": True}}}
        (registries / "attached.yaml").write_text(json.dumps(attached))
        target = self.home / "copies"
        run(
            (
                *(*self.command, "--registries.d", registries, "--policy", policy),
                *("copy", "-q", "--all", "--remove-signatures", "--src-tls-verify=false"),
                *(f"docker://{image}", f"dir:{target}"),
            )
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Oras:
    """A client that lists what refers to an image."""

    program: Path

    def referrers(self, *arguments: str) -> int:
        """How many bundles it finds."""
        said = run((self.program, "discover", "--format", "json", *arguments)).stdout
        document = json.loads(said)
        found = document.get("referrers") or document.get("manifests") or []
        return len(found)


@dataclass(frozen=True, slots=True, kw_only=True)
class Crane:
    """A client that looks into images."""

    program: Path

    def validate(self, image: str) -> None:
        """Raises CommandError where a config, a layer, or a member of an index is not what it is
        said to be."""
        run((self.program, "validate", "--insecure", "--remote", image))

    def manifest(self, image: str) -> bytes:
        """The bytes of a manifest or of an index, as the registry has them."""
        return run((self.program, "manifest", "--insecure", image)).stdout


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools:
    """Those that are to be had on this machine."""

    cosigns: tuple[Cosign, ...]
    skopeo: Skopeo | None
    oras: Oras | None
    crane: Crane | None
    npm: BundleOracle | None

    def verifiers(self) -> dict[str, Callable[[str, Path], None]]:
        """Each way to ask whether an image is signed by a key, by its name."""
        asked: dict[str, Callable[[str, Path], None]] = {}
        for cosign in self.cosigns:
            asked[f"{cosign.name} verify"] = cosign.verify
            asked[f"{cosign.name} verify-attestation"] = cosign.verify_attestation
        if self.skopeo is not None:
            asked["skopeo policy"] = self.skopeo.verify
        if self.npm is not None:
            asked[BUNDLES_ONLY] = self.npm.verify
        return asked


def tools(claims: Claims, scratch: Path) -> Tools:
    """Get them; what cannot be had is announced and counted."""
    cosigns = []
    for name, suite in (("cosign 2", STABLE), ("cosign 3", LATEST)):
        unpacked = _unpacked(claims, name, ("cosign",), suite)
        if unpacked:
            home = scratch / name.replace(" ", "-")
            home.mkdir()
            program = unpacked["cosign"] / "usr/bin/cosign"
            cosigns.append(Cosign(name=name, program=program, home=home))
    skopeo = None
    wanted = ("skopeo", "libc6", "libgpgme11t64", "libassuan9", "libgpg-error0", "libsqlite3-0")
    if unpacked := _unpacked(claims, "skopeo", wanted, STABLE):
        home = scratch / "skopeo"
        home.mkdir()
        skopeo = Skopeo(command=with_libraries(unpacked, "skopeo", "usr/bin/skopeo"), home=home)
    oras = None
    if unpacked := _unpacked(claims, "oras", ("oras",), STABLE):
        oras = Oras(program=unpacked["oras"] / "usr/bin/oras")
    crane = None
    if unpacked := _unpacked(claims, "crane", ("crane",), LATEST):
        crane = Crane(program=unpacked["crane"] / "usr/bin/crane")
    npm = None
    try:
        npm = bundle_oracle()
    except CommandError as error:
        why = error.said or str(error)
        claims.not_run(f"what {BUNDLES_ONLY} makes of our bundles", why, wants=NPM)
    return Tools(cosigns=tuple(cosigns), skopeo=skopeo, oras=oras, crane=crane, npm=npm)


def _unpacked(
    claims: Claims, name: str, packages: Sequence[str], suite: str
) -> Mapping[str, Path] | None:
    try:
        return debian_packages(packages, suite)
    except CommandError as error:
        why = error.said or str(error)
        claims.not_run(f"what {name} makes of our signatures", why, wants=suite)
        return None
