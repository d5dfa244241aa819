"""Content digests: the only module that hashes.

OCI image-spec, descriptor.md, "Digests": ``algorithm ":" encoded``. Of the registered algorithms
only sha256 is written in practice; sha512 is refused by name rather than carried half way.
"""

import hashlib
from collections.abc import Iterable, Mapping
from typing import BinaryIO, Self

from builder.errors import BuilderError, IntegrityError, ProjectError
from builder.value import value

_HEX = frozenset("0123456789abcdef")
CHUNK = 1 << 20
"""How many bytes are read at a time where a stream is copied or hashed."""


@value(kw_only=False, order=True)
class Digest:
    """The sha256 of some bytes, with one spelling: ``sha256:`` and 64 lower-case hex digits.

    >>> Digest.of(b"").hex[:12]
    'e3b0c44298fc'
    >>> Digest.parse(str(Digest.of(b""))) == Digest.of(b"")
    True
    """

    hex: str

    @classmethod
    def parse(
        cls, text: str, *, at: str = "digest", refusal: type[BuilderError] = ProjectError
    ) -> Self:
        """Read the one spelling.

        Args:
            text: The digest.
            at: The place, for the message.
            refusal: What to raise: a file of the user's is wrong in another way than bytes that a
                registry, an engine or the store gave.

        Raises:
            refusal: Another algorithm, another length, upper case, anything around it.
        """
        algorithm, colon, encoded = text.partition(":")
        if not colon or algorithm != "sha256":
            raise refusal(f"{at}: expected 'sha256:' and 64 hex digits, got {text!r}")
        if len(encoded) != 64:
            raise refusal(f"{at}: sha256 takes 64 hex digits, got {len(encoded)}: {encoded!r}")
        if not _HEX.issuperset(encoded):
            raise refusal(f"{at}: sha256 takes lower-case hex digits, got {encoded!r}")
        return cls(encoded)

    @classmethod
    def of(cls, data: bytes | memoryview) -> Self:
        """Hash bytes that are at hand."""
        return cls(hashlib.sha256(data).hexdigest())

    @classmethod
    def of_stream(cls, stream: BinaryIO) -> Self:
        """Hash a stream to its end, in constant memory."""
        hasher = Hasher()
        while chunk := stream.read(CHUNK):
            hasher.update(chunk)
        return cls(hasher.digest().hex)

    def check(self, data: bytes, *, at: str) -> bytes:
        """Return ``data`` if it is what this digest names.

        Raises:
            IntegrityError: It is not.
        """
        if (got := Digest.of(data)) != self:
            raise IntegrityError(f"{at}: expected {self}, got {got} ({len(data)} bytes)")
        return data

    @property
    def short(self) -> str:
        """Twelve hex digits, for people. Never parsed back."""
        return self.hex[:12]

    def __str__(self) -> str:
        return f"sha256:{self.hex}"


def directory_digest(files: Mapping[str, Digest]) -> Digest:
    """One digest of files with their paths, which in-toto calls ``dirHash``
    (in-toto/attestation, spec/v1/digest_set.md): of a line for each file, sorted by the bytes of
    its path, as sha256sum prints it. Go's dirhash ``h1`` is the same in base64."""
    paths = sorted(files, key=lambda path: path.encode())
    return Digest.of("".join(f"{files[path].hex}  {path}\n" for path in paths).encode())


class Hasher:
    """A sha256 under way, with the count of bytes it has seen."""

    __slots__ = ("_hash", "size")

    def __init__(self, data: Iterable[bytes] = ()) -> None:
        self._hash = hashlib.sha256()
        self.size = 0
        for chunk in data:
            self.update(chunk)

    def update(self, chunk: bytes | bytearray | memoryview) -> None:
        """Take the next bytes of the stream."""
        self._hash.update(chunk)
        self.size += len(chunk)

    def digest(self) -> Digest:
        """The digest of what was seen so far."""
        return Digest(self._hash.hexdigest())


@value(kw_only=False, order=True)
class ObjectId:
    """A git object id in full: 40 hex digits (sha1) or 64 (sha256). Never abbreviated."""

    hex: str

    @classmethod
    def parse(cls, text: str, *, at: str = "object id") -> Self:
        """Read a full id.

        Raises:
            ProjectError: A branch, a tag, an abbreviation, upper case.
        """
        if len(text) not in (40, 64) or not _HEX.issuperset(text):
            raise ProjectError(
                f"{at}: expected a full git object id of 40 or 64 hex digits, got {text!r}",
                hint="names and short ids can change their meaning; write the id in full",
            )
        return cls(text)

    @classmethod
    def of(cls, kind: str, data: bytes, *, like: "ObjectId") -> Self:
        """The id of an object, by the hash that ``like`` was made with.

        >>> str(ObjectId.of("blob", b"", like=ObjectId("0" * 40)))
        'e69de29bb2d1d6434b8b29ae775ad8c2e48c5391'
        """
        hasher = hashlib.new("sha1" if len(like.hex) == 40 else "sha256", usedforsecurity=False)
        hasher.update(f"{kind} {len(data)}\0".encode())
        hasher.update(data)
        return cls(hasher.hexdigest())

    @property
    def short(self) -> str:
        """Twelve hex digits, for people. Never parsed back."""
        return self.hex[:12]

    def __str__(self) -> str:
        return self.hex
