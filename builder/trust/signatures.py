"""Signatures beside a file: ``NAME.sig.jsonl``, one DSSE envelope a line, each with one signature.

Lines are added and never changed, so that two people can sign at once and git puts both together.
Each envelope holds the bytes that it signs. Whose signature it is, is found out by trying keys:
what a line says of that is a hint.
"""

from collections.abc import Iterable

from builder.attest.dsse import Envelope, Signature, encode, parse
from builder.errors import IntegrityError, SignatureError
from builder.keys.public import PublicKey
from builder.keys.signer import Signer

FILE_LIMIT = 4 << 20
LINE_LIMIT = 256


def read_signatures(data: bytes | None, *, file: str) -> tuple[Envelope, ...]:
    """The envelopes in ``data``; none, where there is no such file.

    Raises:
        SignatureError: A line is no envelope, has more than one signature, or there are too many.
    """
    if data is None:
        return ()
    if len(data) > FILE_LIMIT:
        raise SignatureError(f"{file}: {len(data)} bytes, the limit is {FILE_LIMIT}")
    lines = data.split(b"\n")
    written = [(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    if len(written) > LINE_LIMIT:
        raise SignatureError(f"{file}: {len(written)} signatures, the limit is {LINE_LIMIT}")
    return tuple(_envelope(line, at=f"{file}:{number}") for number, line in written)


def _envelope(line: bytes, *, at: str) -> Envelope:
    try:
        found = parse(line, at=at)
    except IntegrityError as error:
        raise SignatureError(error.message, hint="remove the line, and sign again") from error
    if len(found.signatures) != 1:
        raise SignatureError(
            f"{at}: {len(found.signatures)} signatures in one envelope, wanted 1",
            hint="each signature stands on a line of its own",
        )
    return found


def signed(payload: bytes, kind: str, signer: Signer) -> Envelope:
    """``payload`` in an envelope with the signature of one key.

    Raises:
        EnvironmentFault, IntegrityError: As the signer does; what it gives is verified.
    """
    envelope = Envelope(payload_type=kind, payload=payload)
    public = signer.public
    made = signer.sign(envelope.signed)
    if not public.verifies(made, envelope.signed):
        raise IntegrityError(
            f"{public.fingerprint}: what was made is no signature of this key",
            hint="ask whoever keeps the key",
        )
    return Envelope(
        payload_type=kind,
        payload=payload,
        signatures=(Signature(keyid=public.fingerprint, sig=made),),
    )


def signers(
    payload: bytes, kind: str, envelopes: Iterable[Envelope], keys: Iterable[PublicKey]
) -> frozenset[PublicKey]:
    """Which of ``keys`` signed exactly these bytes as this kind of thing. A key that signed twice
    is in it once."""
    ours = [one for one in envelopes if one.payload_type == kind and one.payload == payload]
    return frozenset(
        key
        for key in keys
        if any(key.verifies(made.sig, one.signed) for one in ours for made in one.signatures)
    )


def added(
    data: bytes | None, new: Envelope, *, by: PublicKey, file: str, payloads: Iterable[bytes]
) -> bytes:
    """The file with one signature more, unless that key has signed that already.

    Args:
        payloads: What is worth keeping signatures of: the others go, because what they stand for
            is gone.

    Raises:
        SignatureError: As for :func:`read_signatures`.
    """
    before = read_signatures(data, file=file)
    worth = {*payloads, new.payload}
    kept = [one for one in before if one.payload in worth]
    if by not in signers(new.payload, new.payload_type, kept, (by,)):
        kept.append(new)
    if tuple(kept) == before and data is not None:
        return data
    return b"".join(encode(one) + b"\n" for one in kept)
