"""The Dead Simple Signing Envelope (secure-systems-lab/dsse, protocol.md and envelope.md, v1)."""

import binascii
from base64 import b64decode, b64encode
from typing import Any

from builder import canonical
from builder.errors import IntegrityError
from builder.value import field, value

IN_TOTO = "application/vnd.in-toto+json"
"""The payload type of a Statement."""
ENVELOPE_LIMIT = 16 << 20
SIGNATURE_LIMIT = 32
"""How many signatures one envelope may have."""
_KEYS = {"payloadType", "payload", "signatures"}


@value
class Signature:
    """One signature. ``keyid`` is a hint that nobody vouches for, empty where there is none."""

    keyid: str
    sig: bytes


@value
class Envelope:
    """A payload that was signed, or is to be: the very bytes, of which nothing is parsed here."""

    payload_type: str
    payload: bytes = field(repr=False)
    signatures: tuple[Signature, ...] = ()

    @property
    def signed(self) -> bytes:
        """What the signatures are over."""
        return pae(self.payload_type, self.payload)


def pae(payload_type: str, payload: bytes) -> bytes:
    """The pre-authentication encoding: type and payload, each after its length in bytes."""
    kind = payload_type.encode()
    return b"DSSEv1 %d %b %d %b" % (len(kind), kind, len(payload), payload)


def record(envelope: Envelope) -> dict[str, Any]:
    """The envelope as JSON."""
    return {
        "payloadType": envelope.payload_type,
        "payload": b64encode(envelope.payload).decode(),
        "signatures": [
            {"keyid": item.keyid, "sig": b64encode(item.sig).decode()}
            for item in envelope.signatures
        ],
    }


def encode(envelope: Envelope) -> bytes:
    """The envelope's bytes: canonical JSON, the same for the same envelope."""
    return canonical.encode(record(envelope))


def parse(raw: bytes, *, at: str) -> Envelope:
    """The envelope in ``raw``.

    Raises:
        IntegrityError: It is none: a key twice or too many, another spelling of base64 than the
            standard one, no signature, too many, too large.
    """
    return from_json(canonical.decode(raw, at=at, limit=ENVELOPE_LIMIT), at=at)


def from_json(document: Any, *, at: str) -> Envelope:
    """As :func:`parse`, of an envelope inside another document."""
    if not isinstance(document, dict) or set(document) != _KEYS:
        raise IntegrityError(f"{at}: not a DSSE envelope: expected the keys {sorted(_KEYS)}")
    kind, listed = document["payloadType"], document["signatures"]
    if not isinstance(kind, str) or not kind:
        raise IntegrityError(f"{at}: payloadType: expected a text, got {kind!r}")
    if not isinstance(listed, list) or not listed:
        raise IntegrityError(f"{at}: an envelope without signatures")
    if len(listed) > SIGNATURE_LIMIT:
        raise IntegrityError(f"{at}: {len(listed)} signatures, the limit is {SIGNATURE_LIMIT}")
    return Envelope(
        payload_type=kind,
        payload=unbase64(document["payload"], at=f"{at}: payload"),
        signatures=tuple(
            _signature(item, at=f"{at}: signatures[{number}]") for number, item in enumerate(listed)
        ),
    )


def _signature(item: Any, *, at: str) -> Signature:
    if not isinstance(item, dict) or not {"sig"} <= set(item) <= {"sig", "keyid"}:
        raise IntegrityError(f"{at}: expected 'sig', and perhaps 'keyid'")
    keyid = item.get("keyid", "")
    if not isinstance(keyid, str):
        raise IntegrityError(f"{at}.keyid: expected a text, got {keyid!r}")
    return Signature(keyid=keyid, sig=unbase64(item["sig"], at=f"{at}.sig"))


def unbase64(text: Any, *, at: str) -> bytes:
    """Bytes of standard base64 (RFC 4648, section 4) in its one spelling: with padding, without
    line ends, its unused bits zero.

    Raises:
        IntegrityError: It is something else.
    """
    try:
        data = b64decode(text.encode("ascii"), validate=True)
    except (AttributeError, UnicodeEncodeError, binascii.Error) as error:
        raise IntegrityError(f"{at}: not base64") from error
    if b64encode(data).decode() != text:
        raise IntegrityError(f"{at}: not the usual spelling of its base64")
    return data
