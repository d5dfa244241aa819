"""Keys that are the same in every run, and policies of them."""

from dataclasses import dataclass
from datetime import date
from functools import cache
from typing import Any

from cryptography.hazmat.primitives.asymmetric.ec import (
    ECDSA,
    SECP256R1,
    derive_private_key,
)
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.hashes import SHA256

from builder.keys.public import KeyType, PublicKey, public_key
from builder.trust.chain import Text, Versions
from builder.trust.names import FILE, PAYLOAD_TYPE
from builder.trust.signatures import added, signed

TODAY = date(2027, 6, 15)
NAMES = ("ada", "bob", "carol", "dan")


@dataclass(frozen=True)
class FixedSigner:
    """A :class:`builder.keys.signer.Signer` whose private key is a small number."""

    key: Any
    public: PublicKey

    def sign(self, message: bytes) -> bytes:
        if self.public.type is KeyType.ED25519:
            made: bytes = self.key.sign(message)
        else:
            made = self.key.sign(message, ECDSA(SHA256(), deterministic_signing=True))
        return made


@cache
def signer(name: str) -> FixedSigner:
    """The key of this name; Carol's is on Ed25519."""
    number = 1 + sum(ord(letter) << (8 * place) for place, letter in enumerate(name))
    key: Any
    if name == "carol":
        key = Ed25519PrivateKey.from_private_bytes(number.to_bytes(32, "big"))
    else:
        key = derive_private_key(number, SECP256R1())
    return FixedSigner(key, public_key(key.public_key(), at=name))


def public(name: str) -> PublicKey:
    return signer(name).public


def key_entry(name: str, *more: str, state: str = "active") -> str:
    lines = (f"public: {public(name).openssh.decode().strip()}", f"owner: {name}", *more)
    return f"  {name}:\n" + "".join(f"    {line}\n" for line in (*lines, f"state: {state}"))


def policy_text(
    *,
    version: int = 1,
    expires: str = "2027-12-31",
    keys: str | None = None,
    root: str = "{keys: [ada, bob], threshold: 2}",
    roles: str = "  image: {keys: [carol, dan], threshold: 1}\n",
    scopes: str = '  - {repositories: ["registry.example/acme/*"], role: image}\n',
    more: str = "",
) -> str:
    """A policy; Ada and Bob keep it, Carol and Dan sign images."""
    listed = "".join(map(key_entry, NAMES)) if keys is None else keys
    return (
        f"version: {version}\nexpires: {expires}\nkeys:\n{listed}roles:\n  root: {root}\n{roles}"
        f"scopes:\n{scopes}{more}"
    )


def signatures(raw: bytes, *names: str, kind: str = PAYLOAD_TYPE) -> bytes | None:
    """The file beside ``raw`` that these signed."""
    data: bytes | None = None
    for name in names:
        envelope = signed(raw, kind, signer(name))
        data = added(data, envelope, by=public(name), file="f", payloads=(raw,))
    return data


def text(raw: str | bytes, *names: str, file: str = FILE) -> Text:
    """A version that these signed."""
    data = raw.encode() if isinstance(raw, str) else raw
    return Text(file=file, raw=data, signatures=signatures(data, *names))


def versions(latest: Text | None, *history: Text) -> Versions:
    """Versions as a project has them; those of the history by their place, from 1 on."""
    return Versions(latest=latest, history=dict(enumerate(history, 1)))
