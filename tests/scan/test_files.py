"""A file index is canonical text that is searched as it is."""

import mmap
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder import lines
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.files import FileIndex, Node
from builder.tree import Entry, Kind

EMPTY = Digest.of(b"")


def file(path: str, data: bytes = b"") -> Entry:
    return Entry(path=path, kind=Kind.FILE, size=len(data), digest=Digest.of(data))


def directory(path: str, *, mode: int = 0o755) -> Entry:
    return Entry(path=path, kind=Kind.DIRECTORY, mode=mode)


def symlink(path: str, target: str) -> Entry:
    return Entry(path=path, kind=Kind.SYMLINK, mode=0o777, target=target)


LAYER = (
    file("usr/bin/env", b"env"),
    Entry(
        path="usr/bin/ping",
        kind=Kind.FILE,
        mode=0o4755,
        uid=5,
        gid=6,
        size=0,
        digest=EMPTY,
        xattrs=(("security.capability", b"\x00\xff"), ("user.a=b c", b"")),
    ),
    symlink("usr/bin/sh", "da sh"),
    Entry(path="usr/bin/same", kind=Kind.HARDLINK, target="usr/bin/env"),
    Entry(path="dev/null", kind=Kind.CHARACTER, mode=0o666),
    directory("tmp", mode=0o1777),
    file("etc/a b!c~d\n\udcff"),
)


def test_the_bytes_of_an_index() -> None:
    """Indexes are pinned in locks by digest: a change here changes every one of them."""
    index = FileIndex.build(LAYER, whiteouts=["usr/lib/old", "tmp"], opaques=["var", ""])
    assert bytes(index.raw).splitlines() == [
        b" opaque",
        b"dev/null char 0666 0:0",
        f"etc/a!20b!21c~7ed!0a~ff file 0644 0:0 0 {EMPTY.hex}".encode(),
        b"tmp dir 1777 0:0",
        b"tmp whiteout",
        f"usr/bin/env file 0644 0:0 3 {Digest.of(b'env').hex}".encode(),
        f"usr/bin/ping file 4755 5:6 0 {EMPTY.hex}"
        " security.capability=00ff user.a!3db!20c=".encode(),
        b"usr/bin/same hardlink 0644 0:0 usr/bin/env",
        b"usr/bin/sh symlink 0777 0:0 da!20sh",
        b"usr/lib/old whiteout",
        b"var opaque",
    ]
    assert index.digest == Digest.of(bytes(index.raw))


def test_what_went_in_comes_out() -> None:
    index = FileIndex.build(LAYER, whiteouts=["usr/lib/old"], opaques=["tmp"])
    assert {entry.path: entry for entry in index.entries()} == {e.path: e for e in LAYER}
    assert [index.lookup(entry.path) for entry in LAYER] == list(LAYER)


def test_marks_stand_beside_entries_of_the_same_path() -> None:
    index = FileIndex.build([directory("d"), file("e")], whiteouts=["d", "f"], opaques=["d"])
    assert index.node("d") == Node(directory("d"), False, True, True)
    assert (index.whiteout("d"), index.opaque("d"), index.lookup("d")) == (
        True,
        True,
        directory("d"),
    )
    assert (index.whiteout("e"), index.opaque("e"), index.lookup("e")) == (
        False,
        False,
        file("e"),
    )
    assert index.node("f") == Node(None, False, True, False)
    assert index.node("g") == Node(None, False, False, False)


def test_directories_without_a_line_are_implied_by_what_is_below_them() -> None:
    index = FileIndex.build([file("a/b/c")], whiteouts=["w/x"], opaques=["o"])
    implied = {path: index.node(path) for path in ("a", "a/b", "w", "o")}
    assert implied == {
        "a": Node(directory("a"), True, False, False),
        "a/b": Node(directory("a/b"), True, False, False),
        "w": Node(directory("w"), True, False, False),
        "o": Node(directory("o"), True, False, True),
    }
    assert index.children("") == ("a", "o", "w")
    assert index.children("w") == ()
    assert index.lookup("") is None


def test_children_are_those_of_the_directory_and_of_no_neighbour() -> None:
    index = FileIndex.build(
        [
            directory("a"),
            file("a-b"),
            file("a.b"),
            file("a/x"),
            directory("a/y"),
            file("a/y-z"),
            file("a/y.z"),
            file("a/y/deep/er"),
            file("a/y0"),
            file("a0"),
        ],
        whiteouts=["a/gone", "a/y/gone", "a/x"],
    )
    assert index.children("") == ("a", "a-b", "a.b", "a0")
    assert index.children("a") == ("x", "y", "y-z", "y.z", "y0")
    assert index.whiteouts("a") == ("gone", "x")
    assert index.children("a/y/deep") == ("er",)
    assert index.children("a/x") == ()
    assert index.children("missing") == ()


def test_the_last_of_several_entries_counts() -> None:
    index = FileIndex.build([file("a", b"1"), symlink("a", "x"), file("a", b"2")])
    assert index == FileIndex.build([file("a", b"2")])
    assert index != FileIndex.build([file("a", b"1")])


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        pytest.param(
            [symlink("l", "x"), file("l/a/b")],
            "file index: 'l/a/b' lies below 'l', which is a symlink in the same layer",
            id="below a link",
        ),
        pytest.param(
            [file("f/x"), file("f")],
            "file index: 'f/x' lies below 'f', which is a file in the same layer",
            id="a file on top",
        ),
        pytest.param(
            [directory("d", mode=0o1777), file("d")],
            "file index: 'd' is a directory and then a file in one layer",
            id="a directory replaced",
        ),
    ],
)
def test_entries_that_unpackers_would_weigh_by_their_order_are_refused(
    entries: list[Entry], message: str
) -> None:
    with pytest.raises(IntegrityError) as refused:
        FileIndex.build(entries)
    assert refused.value.message == message


def test_an_index_that_would_fill_the_memory_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lines, "INDEX_LIMIT", 100)
    with pytest.raises(IntegrityError) as refused:
        FileIndex.build([], whiteouts=["w" * 50, "x" * 50])
    assert refused.value.message == "file index: the file index is over the limit of 100 bytes"


def test_a_broken_line_is_an_integrity_error() -> None:
    with pytest.raises(IntegrityError) as refused:
        FileIndex(b"a file 0644 0:0 12\n").lookup("a")
    assert refused.value.message == "file index: not a line of an index: b'a file 0644 0:0 12'"


def test_a_digest_in_a_line_is_read_as_every_other_digest() -> None:
    with pytest.raises(IntegrityError) as refused:
        FileIndex(b"a file 0644 0:0 12 beef\n").lookup("a")
    assert refused.value.message == "file index: sha256 takes 64 hex digits, got 4: 'beef'"


def test_an_index_may_be_a_memory_map(tmp_path: Path) -> None:
    index = FileIndex.build(LAYER)
    (tmp_path / "index").write_bytes(index.raw)
    with (
        (tmp_path / "index").open("rb") as stored,
        mmap.mmap(stored.fileno(), 0, access=mmap.ACCESS_READ) as mapped,
    ):
        again = FileIndex(mapped)
        assert again.lookup("usr/bin/sh") == index.lookup("usr/bin/sh")
        assert again.children("usr/bin") == ("env", "ping", "same", "sh")
        assert again == index


def test_sort_of_the_system_keeps_an_index_as_it_is() -> None:
    raw = bytes(FileIndex.build(LAYER, whiteouts=["usr"]).raw)
    done = subprocess.run(["sort"], input=raw, env={"LC_ALL": "C"}, check=True, capture_output=True)
    assert done.stdout == raw


NAMES = st.binary(min_size=1, max_size=3).map(
    lambda data: data.replace(b"/", b"-").replace(b"\0", b"~").decode("utf-8", "surrogateescape")
)
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)


@settings(max_examples=200)
@given(st.sets(PATHS, max_size=30), st.sets(PATHS, max_size=5), PATHS)
def test_any_paths_are_found_in_the_order_of_their_bytes(
    paths: set[str], gone: set[str], other: str
) -> None:
    files = {path for path in paths if not any(p.startswith(f"{path}/") for p in paths)}
    index = FileIndex.build([file(path) for path in files], whiteouts=gone)
    encoded = sorted(path.encode("utf-8", "surrogateescape") for path in files)
    assert [e.path.encode("utf-8", "surrogateescape") for e in index.entries()] == encoded
    for path in {*paths, *gone, other}:
        entry = index.lookup(path)
        assert (entry is not None and entry.is_file) == (path in files)
        assert index.whiteout(path) == (path in gone)
        below = {p[len(path) + 1 :] for p in files | gone if p.startswith(f"{path}/")}
        here = {p[len(path) + 1 :] for p in files if p.startswith(f"{path}/")}
        deep = {name.partition("/")[0] for name in below if "/" in name}
        assert set(index.children(path)) == {name for name in here if "/" not in name} | deep
        assert (entry is not None and entry.is_directory) == (path not in files and bool(below))


def test_a_lookup_among_100_000_files_takes_less_than_a_millisecond() -> None:
    """Ten to thirty microseconds on an idle machine; the limit only shows a linear search."""
    names = [f"usr/lib/package{n // 1000}/module{n % 1000}.py" for n in range(100_000)]
    index = FileIndex(
        b"".join(sorted(f"{n} file 0644 0:0 0 {EMPTY.hex}\n".encode() for n in names))
    )
    start = time.thread_time()
    for name in names[::1000]:
        assert index.lookup(name) == file(name)
    assert len(index.children("usr/lib")) == 100
    assert time.thread_time() - start < 0.1
