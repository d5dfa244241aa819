"""What a private key's file asks of whoever opens it: how its password is stretched, bounded before
that is begun. The file may be a stranger's, and its numbers are all that says how long it takes.

PKCS#8: ``EncryptedPrivateKeyInfo`` (RFC 5958, 3) with PBES2 over PBKDF2 (RFC 8018, A.2, A.4) or
scrypt (RFC 7914, 7.1), or with the older schemes (RFC 8018, A.3; RFC 7292, C), which count rounds
as PBKDF2 does. OpenSSH: PROTOCOL.key, 1 and 2. Numbers that are read here are at the only place
where they can be, so that no other reader finds others.
"""

from collections.abc import Iterator

from builder.errors import IntegrityError

ITERATIONS = 5_000_000
"""The most rounds of PBKDF2 and its like: a few seconds, and 8 with the slowest hash. OpenSSL makes
2048; who knows what he does asks for a million at most."""
SCRYPT_MEMORY = 256 << 20
"""The most bytes that scrypt may take, as with cosign's format. OpenSSL takes 16 MiB."""
SCRYPT_WORK = 1 << 23
"""The most ``N * r * p``: four times what the memory alone allows, about 5 seconds."""
BCRYPT_ROUNDS = 4_000
"""The most rounds of OpenSSH's bcrypt, each of some milliseconds. ``ssh-keygen`` makes 16 or 24."""

_OPENSSH = b"openssh-key-v1\0"
_SEQUENCE, _OCTETS, _INTEGER, _OBJECT = 0x30, 0x04, 0x02, 0x06
# Object identifiers as they are encoded.
_PBES2 = bytes.fromhex("2a864886f70d01050d")  # 1.2.840.113549.1.5.13
_PBKDF2 = bytes.fromhex("2a864886f70d01050c")  # 1.2.840.113549.1.5.12
_SCRYPT = bytes.fromhex("2b06010401da47040b")  # 1.3.6.1.4.1.11591.4.11
_PKCS5 = bytes.fromhex("2a864886f70d0105")  # 1.2.840.113549.1.5: PBES1 with 1, 3, 4, 6, 10 and 11
_PBES1 = frozenset(_PKCS5 + bytes([number]) for number in (1, 3, 4, 6, 10, 11))
_PKCS12 = bytes.fromhex("2a864886f70d010c01")  # 1.2.840.113549.1.12.1: pbeIds 1 to 6
_PBE_12 = frozenset(_PKCS12 + bytes([number]) for number in range(1, 7))


def check_pkcs8(data: bytes, *, at: str) -> None:
    """Refuse what would take too long or too much memory to open.

    Args:
        data: ``EncryptedPrivateKeyInfo``, DER.

    Raises:
        IntegrityError: It is none; or asks for more than the limits; or for what has no known cost.
    """
    outer = _sequence(data, at)
    scheme, parameters = _algorithm(next(outer, None), at)
    if scheme in _PBES1 | _PBE_12:
        _check_iterations("iterations", _numbers(parameters, at), at)
        return
    if scheme != _PBES2:
        raise _unknown("encryption", scheme, at)
    function, parameters = _algorithm(next(_sequence(parameters, at), None), at)
    if function == _PBKDF2:
        _check_iterations("iterations of PBKDF2", _numbers(parameters, at), at)
    elif function == _SCRYPT:
        _check_scrypt(_numbers(parameters, at), at)
    else:
        raise _unknown("key derivation", function, at)


def check_openssh(data: bytes, *, at: str) -> None:
    """As :func:`check_pkcs8`, for the bytes of OpenSSH's format."""
    if not data.startswith(_OPENSSH):
        raise IntegrityError(f"{at}: not a private key of OpenSSH")
    rest = data[len(_OPENSSH) :]
    _, rest = _string(rest, at)  # the cipher
    name, rest = _string(rest, at)
    options, _ = _string(rest, at)
    if name == b"none":
        return
    if name != b"bcrypt":
        raise IntegrityError(f"{at}: key derivation {name[:32]!r} is not known")
    _, rest = _string(options, at)  # the salt
    if len(rest) != 4:
        raise _malformed(at)
    rounds = int.from_bytes(rest, "big")
    if not 1 <= rounds <= BCRYPT_ROUNDS:
        raise IntegrityError(
            f"{at}: {rounds} rounds of bcrypt, allowed are 1 to {BCRYPT_ROUNDS}",
            hint="where the key is yours: ssh-keygen -p -a 100 -f FILE sets another number",
        )


def _check_iterations(what: str, numbers: list[int], at: str) -> None:
    """``[iterations]``, or ``[iterations, length of the derived key]``."""
    iterations = numbers[0] if numbers else 0
    if not 1 <= iterations <= ITERATIONS:
        raise IntegrityError(
            f"{at}: {iterations} {what}, allowed are 1 to {ITERATIONS}", hint=_anew("-iter 1000000")
        )
    _check_length(numbers[1:], at)


def _check_scrypt(numbers: list[int], at: str) -> None:
    """``[N, r, p]``, or with the length of the derived key."""
    if len(numbers) < 3:
        raise _malformed(at)
    n, r, p = numbers[:3]
    told, hint = f"{at}: scrypt with N {n}, r {r}, p {p}", _anew("-scrypt")
    if n < 2 or n & (n - 1) or r < 1 or p < 1:
        raise IntegrityError(f"{told}: expected N a power of two, r and p positive", hint=hint)
    if (memory := 128 * r * max(n, p)) > SCRYPT_MEMORY:
        raise IntegrityError(
            f"{told} takes {memory} bytes of memory, allowed are {SCRYPT_MEMORY}", hint=hint
        )
    if (work := n * r * p) > SCRYPT_WORK:
        raise IntegrityError(f"{told}: N * r * p is {work}, allowed is {SCRYPT_WORK}", hint=hint)
    _check_length(numbers[3:], at)


def _check_length(numbers: list[int], at: str) -> None:
    """PBKDF2 costs as much again for each part of a long key; no cipher takes over 64 bytes."""
    if numbers and not 1 <= numbers[0] <= 64:
        raise IntegrityError(f"{at}: a derived key of {numbers[0]} bytes, allowed are 1 to 64")


def _anew(options: str) -> str:
    return f"where the key is yours: openssl pkcs8 -topk8 {options} writes it anew"


# --- DER, as much of it as these structures have ------------------------------------------------


def _numbers(parameters: bytes, at: str) -> list[int]:
    """The numbers that follow the salt."""
    found: list[int] = []
    for number, (tag, content) in enumerate(_elements(_content(parameters, _SEQUENCE, at), at)):
        if number == 0:
            if tag != _OCTETS:  # PBKDF2 may have a salt from elsewhere; nobody makes that
                raise _malformed(at)
        elif tag == _INTEGER:
            found.append(_integer(content, at))
        else:
            break  # the hash of PBKDF2
    return found


def _integer(content: bytes, at: str) -> int:
    if not 1 <= len(content) <= 8 or content[0] & 0x80:
        raise IntegrityError(
            f"{at}: a number of {len(content)} bytes in its key derivation, expected a positive one"
            " of at most 8"
        )
    return int.from_bytes(content, "big")


def _algorithm(element: bytes | None, at: str) -> tuple[bytes, bytes]:
    """``AlgorithmIdentifier``: its object identifier, and its parameters as they are encoded."""
    if element is None:
        raise _malformed(at)
    content = _content(element, _SEQUENCE, at)
    tag, name, rest = _element(content, at)
    if tag != _OBJECT:
        raise _malformed(at)
    return name, rest


def _sequence(data: bytes, at: str) -> Iterator[bytes]:
    """The members of a sequence, as they are encoded."""
    rest = _content(data, _SEQUENCE, at)
    while rest:
        _, _, after = _element(rest, at)
        yield rest[: len(rest) - len(after)]
        rest = after


def _elements(rest: bytes, at: str) -> Iterator[tuple[int, bytes]]:
    while rest:
        tag, content, rest = _element(rest, at)
        yield tag, content


def _content(data: bytes, wanted: int, at: str) -> bytes:
    """What is in the one element that ``data`` is."""
    tag, content, rest = _element(data, at)
    if tag != wanted or rest:
        raise _malformed(at)
    return content


def _element(data: bytes, at: str) -> tuple[int, bytes, bytes]:
    """The first element: tag and content, and what follows it (X.690, 8.1, 10.1)."""
    if len(data) < 2 or data[0] & 0x1F == 0x1F:
        raise _malformed(at)
    size, start = data[1], 2
    if size & 0x80:
        start += size & 0x7F
        encoded = data[2:start]
        if len(encoded) not in (1, 2) or len(encoded) != start - 2:
            raise _malformed(at)  # no end is told, or there is more than a key has
        size = int.from_bytes(encoded, "big")
        if size < 0x80 or encoded[0] == 0:
            raise _malformed(at)  # not the shortest form
    if len(data) < start + size:
        raise _malformed(at)
    return data[0], data[start : start + size], data[start + size :]


def _string(data: bytes, at: str) -> tuple[bytes, bytes]:
    """A string of OpenSSH's (RFC 4251, 5), and what follows it."""
    size = int.from_bytes(data[:4], "big")
    if len(data) < 4 + size:
        raise _malformed(at)
    return data[4 : 4 + size], data[4 + size :]


def _malformed(at: str) -> IntegrityError:
    return IntegrityError(f"{at}: not an encrypted private key, or damaged")


def _unknown(what: str, name: bytes, at: str) -> IntegrityError:
    return IntegrityError(
        f"{at}: its {what} is not known (object identifier {name[:32].hex()})",
        hint=_anew("-v2 aes-256-cbc"),
    )
