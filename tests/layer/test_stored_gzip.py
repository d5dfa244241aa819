"""``builder.framing``: stored gzip, against zlib, gzip, isal and the RFCs' own words."""

import gzip
import io
import struct
import subprocess
import tracemalloc
import zlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from isal import igzip

from builder.digest import Digest
from builder.framing import BLOCK, StoredGzip, framed_offset, framed_size

EDGES = (0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 2 * BLOCK, 16 * BLOCK, 17 * BLOCK + 3, 40 * BLOCK + 7)


def stream(size: int) -> bytes:
    """Bytes of which none looks like a block header."""
    return (bytes(range(1, 252)) * (size // 251 + 1))[:size]


def framed(*chunks: bytes) -> bytes:
    sink = io.BytesIO()
    frame = StoredGzip(sink)
    for chunk in chunks:
        assert frame.write(chunk) == len(chunk)
    frame.close()
    return sink.getvalue()


def test_the_empty_stream_has_these_bytes() -> None:
    assert (
        framed().hex(" ") == "1f 8b 08 00 00 00 00 00 00 ff 01 00 00 ff ff 00 00 00 00 00 00 00 00"
    )


def test_three_bytes_have_these_bytes() -> None:
    head = "1f8b08000000000000ff" + "01" + "0300" + "fcff"
    assert framed(b"abc").hex() == head + b"abc".hex() + "c2412435" + "03000000"


def test_the_frame_of_a_fixed_stream_never_changes() -> None:
    """Golden. A change here changes every published digest: raise ``builder.ASSEMBLY``."""
    assert str(Digest.of(framed(stream(3 * BLOCK + 5)))) == (
        "sha256:64c1f7bafc94a715d474f471422400117ee119f962e3f4fa122651de356acc22"
    )


@pytest.mark.parametrize("size", EDGES)
def test_every_reader_gives_the_stream_back(size: int) -> None:
    data = stream(size)
    blob = framed(data)
    assert gzip.decompress(blob) == data
    assert zlib.decompress(blob, wbits=31) == data
    assert igzip.decompress(blob) == data  # type: ignore[no-untyped-call]  # no stubs
    by_gzip = subprocess.run(["gzip", "-dc"], input=blob, capture_output=True, check=True)
    assert by_gzip.stdout == data


@pytest.mark.parametrize("size", EDGES)
def test_the_size_is_known_before_a_byte_is_written(size: int) -> None:
    assert framed_size(size) == len(framed(stream(size)))


@pytest.mark.parametrize("size", [0, 5, BLOCK - 1, BLOCK, 3 * BLOCK + 5])
def test_every_block_but_the_last_is_full_and_only_the_last_is_final(size: int) -> None:
    blob, at, seen = framed(stream(size)), 10, []
    while at < len(blob) - 8:
        final, length, inverse = struct.unpack_from("<BHH", blob, at)
        assert length ^ inverse == 0xFFFF
        seen.append((final, length))
        at += 5 + length
    assert seen == [(0, BLOCK)] * (size // BLOCK) + [(1, size % BLOCK)]


@pytest.mark.parametrize("offset", [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 17 * BLOCK, 17 * BLOCK + 2])
def test_an_offset_names_the_byte_itself(offset: int) -> None:
    data = stream(17 * BLOCK + 3)
    assert framed(data)[framed_offset(offset)] == data[offset]


@settings(max_examples=25)
@given(st.lists(st.integers(0, 2 * BLOCK + 2), max_size=8))
def test_the_bytes_do_not_depend_on_how_the_writes_are_cut(cuts: list[int]) -> None:
    data = stream(sum(cuts))
    pieces, at = [], 0
    for cut in cuts:
        pieces.append(data[at : at + cut])
        at += cut
    assert framed(*pieces) == framed(data)


def test_any_buffer_is_taken_by_its_bytes() -> None:
    sink = io.BytesIO()
    frame = StoredGzip(sink)
    assert [frame.write(bytearray(b"ab")), frame.write(memoryview(b"cdef").cast("H"))] == [2, 4]
    frame.close()
    assert sink.getvalue() == framed(b"abcdef")


def test_a_closed_frame_takes_nothing_more_and_closes_once() -> None:
    sink = io.BytesIO()
    frame = StoredGzip(sink)
    frame.close()
    frame.close()
    assert len(sink.getvalue()) == framed_size(0)
    with pytest.raises(ValueError, match="write to a closed gzip frame"):
        frame.write(b"x")


def test_one_huge_write_takes_constant_memory() -> None:
    class Nowhere:
        def write(self, chunk: bytes) -> int:
            return len(chunk)

    data = bytes(64 << 20)
    tracemalloc.start()
    frame = StoredGzip(Nowhere())
    frame.write(data)
    frame.close()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 << 20


def test_the_length_in_the_trailer_is_modulo_4_gib() -> None:
    """RFC 1952, ISIZE. The count is set ahead: nobody wants to wait for the bytes."""
    sink = io.BytesIO()
    frame = StoredGzip(sink)
    frame._size = (1 << 32) - 1
    frame.write(b"abc")
    frame.close()
    assert sink.getvalue()[-4:] == b"\x02\0\0\0"
