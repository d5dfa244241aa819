"""Inflating a layer as it streams: what it is packed with is read from its first bytes.

The media type in a manifest is a claim (tools mislabel zstd as gzip); the magic decides, and
:func:`check_media_type` compares the two.
"""

import sys
from collections.abc import Callable, Iterable, Iterator
from enum import StrEnum
from typing import BinaryIO, Protocol, TypeAlias, cast

from builder.errors import IntegrityError

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
_WINDOW_LOG = 27  # 128 MiB, as the zstd command allows without asking


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
    """
    source = _Source(chunks)
    compression = Compression.detect(source.head())
    if media_type is not None:
        check_media_type(media_type, compression, at=at)
    inflated = 0
    for piece in _pieces(source, compression, at=at):
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

    def read(self, size: int = -1) -> bytes:  # noqa: ARG002 - as files have it
        """The next chunk, whatever ``size`` says; empty at the end."""
        chunk, self._head = self._head, b""
        if not chunk:
            chunk = next(filter(None, self._chunks), b"")
        self.taken += len(chunk)
        return chunk


class _Decompressor(Protocol):
    """What isal and compression.zstd have in common, after bz2's."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /, max_length: int = ...) -> bytes: ...


def _pieces(source: _Source, compression: Compression, *, at: str) -> Iterator[bytes]:
    pieces, refusal = _INFLATERS[compression](source)
    try:
        yield from pieces
    except EOFError as error:
        raise IntegrityError(f"{at}: the {compression} stream is truncated") from error
    except refusal as error:
        raise IntegrityError(f"{at}: not a valid {compression} stream: {error}") from error


def _members(source: _Source, new: Callable[[], _Decompressor]) -> Iterator[bytes]:
    """Compressed members in a row. Zeros may pad the end, as the gzip command allows.

    Raises:
        EOFError: The last one is truncated.
    """
    data = source.read()
    while data:
        member = new()
        while not member.eof:
            if member.needs_input and not data:
                raise EOFError("truncated")
            if piece := member.decompress(data, CHUNK):
                yield piece
            data = source.read() if member.needs_input and not member.eof else b""
        data = member.unused_data
        while not data.strip(b"\0") and (data := source.read()):
            pass


# Each gives the pieces, and the error by which its library refuses what it reads.
_Inflated: TypeAlias = tuple[Iterator[bytes], type[Exception]]


def _plain(source: _Source) -> _Inflated:
    return iter(source.read, b""), EOFError


def _gunzip(source: _Source) -> _Inflated:
    """Gzip members (RFC 1952, 2.2), each with its checksum."""
    from isal import igzip_lib  # noqa: PLC0415 - only a build that streams needs it

    pieces = _members(source, lambda: igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP))
    return pieces, cast("type[Exception]", igzip_lib.error)  # the stub declares an instance


def _unzstd(source: _Source) -> _Inflated:
    """Zstandard frames, skippable ones too (RFC 8878, 3.1)."""
    if sys.version_info >= (3, 14):
        from compression import zstd  # noqa: PLC0415 - hardly any layer needs it

        options: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG}
        return _members(source, lambda: zstd.ZstdDecompressor(options=options)), zstd.ZstdError
    else:  # noqa: RET505 - mypy takes what follows an if of versions for unreachable
        import zstandard  # noqa: PLC0415 - as above

        # This one ends quietly where a frame is truncated: the archive inside tells.
        reader = zstandard.ZstdDecompressor(max_window_size=1 << _WINDOW_LOG).stream_reader(
            cast("BinaryIO", source), read_across_frames=True
        )
        return iter(lambda: reader.read(CHUNK), b""), zstandard.ZstdError


_INFLATERS = {Compression.NONE: _plain, Compression.GZIP: _gunzip, Compression.ZSTD: _unzstd}
