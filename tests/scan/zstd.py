"""Zstandard for the tests, from the standard library where it has it."""

import io
import sys


def compress(data: bytes) -> bytes:
    """One frame that tells its size."""
    if sys.version_info >= (3, 14):
        from compression import zstd

        return zstd.compress(data, level=1)
    else:  # noqa: RET505 - for mypy, as in builder.inflate
        import zstandard

        return zstandard.ZstdCompressor(level=1).compress(data)


def streamed(data: bytes) -> bytes:
    """One frame that does not tell its size."""
    if sys.version_info >= (3, 14):
        from compression import zstd

        compressor = zstd.ZstdCompressor()
        return compressor.compress(data) + compressor.flush()
    else:  # noqa: RET505 - for mypy, as in builder.inflate
        import zstandard

        out = io.BytesIO()
        with zstandard.ZstdCompressor().stream_writer(out, closefd=False) as writer:
            writer.write(data)
        return out.getvalue()
