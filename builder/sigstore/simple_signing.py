"""Simple signing: a few lines that tie a name to a manifest.

Sources: containers/image, docs/containers-signature.5.md ("JSON data format"); cosign,
specs/SIGNATURE_SPEC.md ("Simple Signing"). What is signed is the payload's very bytes.
"""

from typing import Any

from builder import canonical
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.value import value

TYPE = "cosign container image signature"
PAYLOAD_LIMIT = 1 << 20
_PARTS = {"identity": "docker-reference", "image": "docker-manifest-digest"}


@value
class SimpleSigning:
    """``digest`` may be called ``reference``: a name as in ``host/repository:tag``.

    Readers differ in what they do with the name: containers/image compares it with the name that
    the user asked for (and takes any tag of the repository for a digest); cosign does not.
    """

    reference: str
    digest: Digest

    def about(self, digest: Digest) -> bool:
        """Whether it is this manifest that is named."""
        return self.digest == digest


def encode(signing: SimpleSigning) -> bytes:
    """The bytes to sign: canonical JSON, the same for the same name and digest."""
    return canonical.encode(
        {
            "critical": {
                "identity": {"docker-reference": signing.reference},
                "image": {"docker-manifest-digest": str(signing.digest)},
                "type": TYPE,
            },
            "optional": None,
        }
    )


def parse(raw: bytes, *, at: str) -> SimpleSigning:
    """What a payload says. ``optional`` is for whoever wrote it: nothing is taken from it.

    Raises:
        IntegrityError: Another type; a key that is missing, unknown or there twice; too large.
    """
    document = canonical.decode(raw, at=at, limit=PAYLOAD_LIMIT)
    if not isinstance(document, dict) or not {"critical"} <= set(document) <= {
        "critical",
        "optional",
    }:
        raise IntegrityError(f"{at}: not a simple signing payload: expected 'critical'")
    if not isinstance(document.get("optional"), dict | None):
        raise IntegrityError(f"{at}: optional: expected an object or null")
    critical = document["critical"]
    if not isinstance(critical, dict) or set(critical) != {*_PARTS, "type"}:
        raise IntegrityError(f"{at}: critical: expected the keys {sorted({*_PARTS, 'type'})}")
    if critical["type"] != TYPE:
        raise IntegrityError(f"{at}: critical.type: expected {TYPE!r}, got {critical['type']!r}")
    digest = _text(critical, "image", at=at)
    return SimpleSigning(
        reference=_text(critical, "identity", at=at),
        digest=Digest.parse(digest, at=f"{at}: critical.image", refusal=IntegrityError),
    )


def _text(critical: dict[str, Any], part: str, *, at: str) -> str:
    """The one text in one part of ``critical``."""
    key, found = _PARTS[part], critical[part]
    if not isinstance(found, dict) or set(found) != {key} or not isinstance(found[key], str):
        raise IntegrityError(f"{at}: critical.{part}: expected {key!r}, a text, and nothing else")
    text: str = found[key]
    return text
