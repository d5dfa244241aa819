"""Chunks on their way: as a file, whatever they are cut into."""

import io
import threading
from collections.abc import Iterator

import pytest

from builder.publish import several
from builder.streams import ChunkReader


def test_chunks_are_read_as_a_file_whatever_they_are_cut_into() -> None:
    chunks = [b"", b"abc", b"", b"", b"d", b"efghij", b""]
    assert ChunkReader(iter(chunks)).read() == b"abcdefghij"
    reader = ChunkReader(iter(chunks))
    assert [reader.read(2) for _ in range(8)] == [b"ab", b"c", b"d", b"ef", b"gh", b"ij", b"", b""]
    assert (reader.readable(), reader.seekable(), reader.writable()) == (True, False, False)


def test_what_chunks_raise_reading_raises() -> None:
    def chunks() -> Iterator[bytes]:
        yield b"abc"
        raise OSError("broken")

    with pytest.raises(OSError, match="broken"):
        io.BufferedReader(ChunkReader(chunks())).read()


def test_once_one_fails_what_has_not_begun_is_left() -> None:
    """What is under way is waited for: it holds connections that are closed after it."""
    begun: list[int] = []
    ended: list[int] = []
    go_on = threading.Event()

    def work(number: int) -> None:
        begun.append(number)
        if number == 0:
            raise ValueError("no")
        go_on.wait(10)
        ended.append(number)

    def run() -> None:
        with several() as pool:
            futures = [pool.submit(work, number) for number in range(50)]
            futures[0].result()

    threading.Timer(0.3, go_on.set).start()
    with pytest.raises(ValueError, match="no"):
        run()
    assert sorted(begun)[1:] == sorted(ended)
    assert len(begun) < 20
