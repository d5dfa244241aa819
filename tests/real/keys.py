"""Keys and signatures between builder and cosign, as two suites of Debian have it: one that stands,
and one that moves."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from builder.keys.private import read_private_key
from builder.keys.public import read_public_key
from tests.claims import Claims
from tests.commands import Builder, CommandError, clean_environment, run
from tests.real.debian_tool import LATEST, STABLE, debian_tool

SUITES = (STABLE, LATEST)
PASSWORD = "na\u00efve \u2603 password"
_MESSAGE = b"what is signed\n"


def prove(claims: Claims) -> None:
    """Each reads what the other wrote, and verifies what the other signed."""
    for suite in SUITES:
        try:
            cosign = debian_tool("cosign", suite, "usr/bin/cosign")
        except CommandError as error:
            claims.not_run(f"keys of cosign of {suite}", error.said or str(error), wants=suite)
            continue
        claim = f"keys between builder and cosign of {suite}"
        with claims.group(claim), TemporaryDirectory(prefix="builder-keys-") as name:
            _prove(_Meeting(Path(name), cosign), suite, claims)


class _Meeting:
    """Both programs, in a directory of their own with one password."""

    def __init__(self, place: Path, cosign: Path) -> None:
        self.place = place
        self.keys = place / "keys"
        self._cosign = cosign
        self.environment = clean_environment(
            COSIGN_PASSWORD=PASSWORD, BUILDER_KEYS=str(self.keys), HOME=str(place)
        )
        self.builder = Builder(store=place / "store", environment=self.environment)
        (place / "message").write_bytes(_MESSAGE)

    def cosign(self, *arguments: str | Path, **more: str) -> str:
        environment = self.environment | more
        return run((self._cosign, *arguments), environment=environment, directory=self.place).text

    def shown(self, private: Path) -> str:
        """The fingerprint of the public half that cosign shows of a private key."""
        return _fingerprint(self.cosign("public-key", "--key", private).encode())

    def verified_by_cosign(self, public: Path, signature: bytes) -> bool:
        file = self.place / "signature"
        file.write_bytes(signature)
        options = ("--insecure-ignore-tlog=true", "--key", public, "--signature", file)
        with _failure() as failed:
            self.cosign("verify-blob", *options, self.place / "message")
        return not failed


@contextmanager
def _failure() -> Iterator[list[CommandError]]:
    """What a command in the block failed with."""
    failed: list[CommandError] = []
    try:
        yield failed
    except CommandError as error:
        failed.append(error)


def _prove(both: _Meeting, suite: str, claims: Claims) -> None:
    for kind in ("ecdsa-p256", "ed25519"):
        _ours(both, kind, f"cosign of {suite}", claims)
    _theirs(both, f"cosign of {suite}", claims)


def _ours(both: _Meeting, kind: str, who: str, claims: Claims) -> None:
    """Keys of ``builder key generate``."""
    both.builder.run("key", "generate", kind, "--type", kind)
    private, public = both.keys / f"{kind}.key", both.keys / f"{kind}.pub"
    wanted = _fingerprint(public.read_bytes())
    claims.equal(f"{who} opens a key of ours ({kind})", both.shown(private), wanted)
    with _failure() as failed:
        both.cosign("public-key", "--key", private, COSIGN_PASSWORD="another")
    claims.holds(f"{who} does not open it with another password", bool(failed))
    key = read_private_key(private.read_bytes(), at=str(private), password=PASSWORD.encode)
    signed = key.sign(_MESSAGE)
    claims.holds(f"{who} verifies what it signed here", both.verified_by_cosign(public, signed))
    refused = not both.verified_by_cosign(public, key.sign(b"another message"))
    claims.holds(f"{who} refuses what it signed of another message", refused)


def _theirs(both: _Meeting, who: str, claims: Claims) -> None:
    """Keys of ``cosign generate-key-pair``."""
    both.cosign("generate-key-pair", "--output-key-prefix", "theirs")
    private, public = both.place / "theirs.key", both.place / "theirs.pub"
    made, _ = both.builder.ask("key", "import", "theirs", private)
    wanted = _fingerprint(public.read_bytes())
    claims.equal(f"a key of {who} is imported", made["fingerprint"], wanted)
    exported = both.builder.run("key", "export", "theirs").stdout == public.read_bytes()
    claims.holds("its public half is exported as cosign wrote it", exported)
    key = read_private_key(private.read_bytes(), at=str(private), password=PASSWORD.encode)
    accepted = both.verified_by_cosign(public, key.sign(_MESSAGE))
    claims.holds(f"{who} verifies what it signs here", accepted)
    again = both.shown(both.keys / "theirs.key")
    claims.equal(f"{who} opens it where we keep it", again, wanted)


def _fingerprint(public: bytes) -> str:
    return read_public_key(public, at="a public key").fingerprint
