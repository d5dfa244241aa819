"""``builder.layer.write``: the bytes of a layer, and what is said about them."""

import io
import tracemalloc
from dataclasses import dataclass
from typing import BinaryIO

import pytest

from builder.changes import Content, Inline, Put, Remove, Symlink
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.framing import framed_offset, framed_size
from builder.layer import Layer, LayerEntry, compose, write
from builder.tree import Entry, Kind
from tests.fakes import File, Link, TreeView
from tests.layer.worlds import MemoryWriter, made, unframed

BASE = TreeView({"a/old.py": b"1", "a/gone.py": b"2", "l": Link("a"), "a/tool": File(b"", 0o755)})
CHANGES = (
    Put(path="a/old.py", content=Inline(b"one")),
    Put(path="l/tool", content=Inline(b"#!/bin/sh\n")),
    Put(path="new/d/empty", content=Inline(b"")),
    Symlink(path="new/link", target="../a"),
    Remove(path="a/gone.py"),
)


@dataclass(frozen=True)
class Claimed:
    """Content that says one thing and holds another."""

    data: bytes
    size: int
    digest: Digest

    def open(self) -> BinaryIO:
        return io.BytesIO(self.data)


def test_the_bytes_of_a_layer_never_change() -> None:
    """Golden. A change here changes every published digest: raise ``builder.ASSEMBLY``."""
    layer, _ = made(CHANGES, BASE)
    assert (
        str(layer.diff_id)
        == "sha256:a94fcb78cae69675faaed618598a226fb394ca903632f2b87f7a7642ce3b7833"
    )
    assert (
        str(layer.digest)
        == "sha256:2cc88d37aa583f4358b00d7dbbcdc2d0f56b24a249dccd3ce263756a6c0d4074"
    )


def test_a_layer_knows_its_names_and_its_size() -> None:
    layer, blob = made(CHANGES, BASE)
    assert layer.digest == Digest.of(blob)
    assert layer.diff_id == Digest.of(unframed(blob))
    assert layer.size == len(blob)


def test_a_layer_has_its_own_index() -> None:
    layer, _ = made(CHANGES, BASE)
    assert layer.entries == tuple(
        item.entry for item in compose(CHANGES, BASE) if item.removes is None
    )
    assert [entry.path for entry in layer.entries] == [
        "a/old.py",
        "a/tool",
        "new",
        "new/d",
        "new/d/empty",
        "new/link",
    ]
    assert layer.whiteouts == ("a/gone.py",)


def test_the_offsets_find_every_file_in_the_tar_and_in_the_blob() -> None:
    layer, blob = made(CHANGES, BASE)
    tar = unframed(blob)
    sizes = {entry.path: entry.size for entry in layer.entries}
    assert {path: tar[at : at + sizes[path]] for path, at in layer.offsets} == {
        "a/old.py": b"one",
        "a/tool": b"#!/bin/sh\n",
        "new/d/empty": b"",
    }
    assert {
        path: blob[framed_offset(at) : framed_offset(at) + sizes[path]]
        for path, at in layer.offsets
    } == {"a/old.py": b"one", "a/tool": b"#!/bin/sh\n", "new/d/empty": b""}


def test_the_tar_ends_after_two_zero_blocks() -> None:
    _, blob = made(CHANGES[:1], BASE)
    assert unframed(blob)[512:] == b"one" + bytes(509) + bytes(1024)


@pytest.mark.parametrize(
    "content, message",
    [
        pytest.param(
            Claimed(b"ab", 3, Digest.of(b"ab")),
            "'f': expected 3 bytes of content, got 2",
            id="too short",
        ),
        pytest.param(
            Claimed(b"abcd", 3, Digest.of(b"abc")),
            "'f': expected 3 bytes of content, got more than 3",
            id="too long",
        ),
        pytest.param(
            Claimed(b"abc", 3, Digest.of(b"abd")),
            f"'f': expected content {Digest.of(b'abd')}, got {Digest.of(b'abc')}",
            id="other bytes",
        ),
    ],
)
def test_content_that_is_not_what_it_claims_commits_nothing(content: Content, message: str) -> None:
    writer = MemoryWriter()
    with pytest.raises(IntegrityError) as caught:
        write(compose([Put(path="f", content=content)], TreeView({})), writer)
    assert caught.value.message == message
    assert writer.committed is None


def test_a_blob_that_the_store_counts_otherwise_is_not_committed() -> None:
    class Lossy(MemoryWriter):
        def write(self, chunk: bytes | bytearray | memoryview) -> int:
            return super().write(chunk[:-1])

    writer = Lossy()
    with pytest.raises(IntegrityError):
        write(compose(CHANGES, BASE), writer)
    assert writer.committed is None


class Zeros(io.RawIOBase):
    """So many zeros, without holding them."""

    def __init__(self, size: int) -> None:
        self._left = size

    def read(self, size: int = -1, /) -> bytes:
        taken = min(size, self._left)
        self._left -= taken
        return bytes(taken)


@dataclass(frozen=True)
class Big:
    size: int
    digest: Digest

    def open(self) -> BinaryIO:
        return Zeros(self.size)  # type: ignore[return-value]  # a raw stream reads as well


class Nowhere:
    """A writer that keeps nothing but the count."""

    size = 0

    def write(self, chunk: bytes | bytearray | memoryview) -> int:
        self.size += len(chunk)
        return len(chunk)

    def commit(self, expected: Digest | None = None, *, size: int | None = None) -> Digest:
        assert size == self.size
        return Digest.of(b"")


def test_a_big_file_takes_constant_memory() -> None:
    size = 64 << 20
    big = Big(size, Digest.of(bytes(size)))
    writer = Nowhere()
    entries = compose([Put(path="big", content=big)], TreeView({}))
    tracemalloc.start()
    layer = write(entries, writer)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert layer.size == writer.size == framed_size(512 + size + 1024)
    assert peak < 8 << 20


def test_a_whiteout_is_written_as_an_empty_file() -> None:
    _, blob = made(CHANGES[-1:], BASE)
    tar = unframed(blob)
    assert len(tar) == 512 + 1024
    assert tar[:16] == b"a/.wh.gone.py\0\0\0"
    assert (tar[100:108], tar[124:136], tar[156:157]) == (b"0000644\0", b"00000000000\0", b"0")


def test_nothing_is_a_tar_of_nothing() -> None:
    writer = MemoryWriter()
    assert write((), writer) == Layer(
        diff_id=Digest.of(bytes(1024)),
        digest=Digest.of(writer.blob),
        size=framed_size(1024),
        entries=(),
        whiteouts=(),
        offsets=(),
    )


def test_a_directory_and_a_link_have_no_content() -> None:
    entries = (
        LayerEntry(entry=Entry(path="d", kind=Kind.DIRECTORY, mode=0o755)),
        LayerEntry(entry=Entry(path="d/l", kind=Kind.SYMLINK, mode=0o777, target="x")),
    )
    layer = write(entries, MemoryWriter())
    assert (layer.offsets, len(layer.entries)) == ((), 2)
