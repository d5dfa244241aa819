"""Inflating a layer as it streams: what it is packed with is read from its first bytes.

The media type in a manifest is a claim (tools mislabel zstd as gzip); the magic decides, and
:func:`check_media_type` compares the two.
"""

from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import BinaryIO, cast

from builder.errors import EnvironmentFault, IntegrityError

CHUNK = 1 << 20
"""The most bytes that are inflated at a time."""
INFLATED_LIMIT = 64 << 30
"""The most bytes that a layer may inflate to. The largest in use have about 20 GB."""
RATIO_LIMIT = 250
"""The most bytes for each compressed one, beyond ``RATIO_FREE``. Real layers have 2 to 10."""
RATIO_FREE = 256 << 20
"""How much may be inflated before the ratio counts: layers of zeros are odd, but they exist."""

_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"  # RFC 8878, 3.1.2: behind a byte from 0x50 to 0x5f
_WINDOW_LIMIT = 128 << 20


class Compression(StrEnum):
    """What a layer is packed with, in the words of the OCI media types."""

    NONE = "tar"
    GZIP = "gzip"
    ZSTD = "zstd"

    @classmethod
    def detect(cls, head: bytes) -> "Compression":
        """Tell from the first four bytes."""
        if head[:2] == _GZIP:
            return cls.GZIP
        if head[:4] == _ZSTD or (head[1:4] == _SKIPPABLE and head[0] & 0xF0 == 0x50):
            return cls.ZSTD
        return cls.NONE


def check_media_type(media_type: str, compression: Compression, *, at: str) -> None:
    """Compare what a descriptor says with what the bytes are.

    OCI image-spec, layer.md: the type ends in ``+gzip`` or ``+zstd``, or in ``tar``; Docker's
    write a dot for the plus.

    Raises:
        IntegrityError: They differ, or the type is none of a layer.
    """
    ending = media_type.replace("+", ".").rpartition(".")[2]
    if ending not in tuple(Compression):
        raise IntegrityError(f"{at}: {media_type!r} is not the media type of a layer")
    if ending != compression:
        raise IntegrityError(
            f"{at}: labelled {media_type!r}, but its bytes are {compression.value}",
            hint="the image was pushed with a wrong media type; push it again or mirror it",
        )


def inflate(chunks: Iterable[bytes], *, at: str, media_type: str | None = None) -> Iterator[bytes]:
    """The uncompressed bytes of a layer, in pieces of at most about ``CHUNK`` bytes.

    ``chunks`` is read to its end in any case, so that its own check of the digest comes to pass.

    Raises:
        IntegrityError: Broken or truncated compression, data after it, a bomb, another
            compression than ``media_type`` says.
        EnvironmentFault: A zstd layer, and no zstandard here.
    """
    source = _Source(chunks)
    compression = Compression.detect(source.head())
    if media_type is not None:
        check_media_type(media_type, compression, at=at)
    inflated = 0
    for piece in _INFLATERS[compression](source, at):
        inflated += len(piece)
        if inflated > INFLATED_LIMIT:
            raise IntegrityError(f"{at}: inflates to more than {INFLATED_LIMIT} bytes")
        if inflated > RATIO_FREE + RATIO_LIMIT * source.taken:
            raise IntegrityError(
                f"{at}: inflates {source.taken} bytes to more than {inflated},"
                f" the limit is a ratio of {RATIO_LIMIT}"
            )
        yield piece


class _Source:
    """The compressed chunks, with a look at the first bytes and a count of those taken."""

    def __init__(self, chunks: Iterable[bytes]) -> None:
        self._chunks = iter(chunks)
        self._head = b""
        self.taken = 0

    def head(self) -> bytes:
        """The first bytes, at least four where there are so many; they stay in place."""
        while len(self._head) < 4 and (chunk := next(self._chunks, None)) is not None:
            self._head += chunk
        return self._head

    def read(self, size: int = -1) -> bytes:
        """The next chunk, whatever ``size`` says; empty at the end."""
        chunk, self._head = self._head, b""
        if not chunk:
            chunk = next(filter(None, self._chunks), b"")
        self.taken += len(chunk)
        return chunk


def _plain(source: _Source, at: str) -> Iterator[bytes]:
    return iter(source.read, b"")


def _gunzip(source: _Source, at: str) -> Iterator[bytes]:
    """Members in a row (RFC 1952, 2.2), each with its checksum; zeros may pad the end."""
    from isal import igzip_lib  # here, because a build that streams nothing does not need it

    data = source.read()
    while data:
        member = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
        while not member.eof:
            if member.needs_input and not data:
                raise IntegrityError(f"{at}: the gzip stream is truncated")
            try:
                piece = member.decompress(data, CHUNK)
            except igzip_lib.error as error:  # type: ignore[misc]  # isal's stub: an instance
                raise IntegrityError(f"{at}: not a valid gzip stream: {error}") from error
            if piece:
                yield piece
            data = source.read() if member.needs_input and not member.eof else b""
        data = member.unused_data
        while not data.strip(b"\0") and (data := source.read()):
            pass


def _unzstd(source: _Source, at: str) -> Iterator[bytes]:
    """Frames in a row, skippable ones too (RFC 8878, 3.1)."""
    try:
        import zstandard
    except ImportError as error:
        raise EnvironmentFault(
            f"{at}: a zstd layer needs the Python package zstandard", hint="pip install zstandard"
        ) from error

    decompressor = zstandard.ZstdDecompressor(max_window_size=_WINDOW_LIMIT)
    reader = decompressor.stream_reader(cast("BinaryIO", source), read_across_frames=True)
    try:
        while piece := reader.read(CHUNK):
            yield piece
    except zstandard.ZstdError as error:
        raise IntegrityError(f"{at}: not a valid zstd stream: {error}") from error


_INFLATERS = {Compression.NONE: _plain, Compression.GZIP: _gunzip, Compression.ZSTD: _unzstd}
