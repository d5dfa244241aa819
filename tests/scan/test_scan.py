"""One pass over a layer gives its index, its diff_id and the contents that are wanted."""

import gzip
import json
import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.digest import Digest
from builder.errors import IntegrityError, NetworkError
from builder.files import FileIndex
from builder.kept import KeptTable, python_text, unpack
from builder.oci import OCI_LAYER_GZIP, OCI_LAYER_TAR, Manifest
from builder.scan import Scan, scan
from builder.tree import Entry, Kind
from tests.scan import zstd
from tests.scan.archives import (
    END,
    MemoryWriter,
    archive,
    directory,
    everything,
    file,
    hardlink,
    header,
    in_pieces,
    pax,
    symlink,
)
from tests.scan.umoci import NEEDS_UMOCI, umoci, write_layout

MODULE = "usr/lib/python3/dist-packages/m.py"


def scanned(data: bytes) -> Scan:
    return scan(in_pieces(data, 1000), keep=everything, kept=MemoryWriter())


@pytest.mark.parametrize("pack", [bytes, gzip.compress, zstd.compress])
def test_a_layer_gives_the_same_scan_however_it_is_packed(pack: type[bytes]) -> None:
    data = archive([directory("usr"), file("usr/a", b"A" * 3_000_000), symlink("usr/l", "a")])
    writer = MemoryWriter()
    got = scan(
        in_pieces(pack(data), 70_000),
        keep=everything,
        kept=writer,
        expected_diff_id=Digest.of(data),
    )
    wanted = Entry(path="usr/a", kind=Kind.FILE, size=3_000_000, digest=Digest.of(b"A" * 3_000_000))
    assert got.diff_id == Digest.of(data)
    assert got.index == FileIndex.build(
        [
            Entry(path="usr", kind=Kind.DIRECTORY, mode=0o755),
            wanted,
            Entry(path="usr/l", kind=Kind.SYMLINK, mode=0o777, target="a"),
        ]
    )
    place = KeptTable(got.kept.table).find(Digest.of(b"A" * 3_000_000))
    assert place == (0, got.kept.size)
    assert unpack(bytes(writer.data), Digest.of(b"A" * 3_000_000)) == b"A" * 3_000_000


def test_only_what_is_wanted_is_kept() -> None:
    writer = MemoryWriter()
    asked: list[Entry] = []

    def keep(entry: Entry) -> bool:
        asked.append(entry)
        return python_text(entry) or entry.path == "bin/tool"

    data = archive([directory("bin"), file("bin/tool", b"t"), file("x", b"x"), file(MODULE, b"m")])
    table = KeptTable(scan([data], keep=keep, kept=writer).kept.table)
    found = [table.find(Digest.of(content)) is not None for content in (b"t", b"x", b"m")]
    assert found == [True, False, True]
    assert [(entry.path, entry.digest) for entry in asked] == [
        ("bin/tool", None),
        ("x", None),
        (MODULE, None),
    ]


def test_whiteouts_and_opaque_markers_are_marks_and_no_entries() -> None:
    index = scanned(
        archive(
            [
                directory("d"),
                file("d/.wh..wh..opq"),
                file("d/.wh.gone"),
                file("d/x.wh.y"),
                file(".wh.top"),
                file(".wh..wh..opq"),
                directory(".wh..wh.plnk"),
                file(".wh..wh.plnk/1234.5", b"aufs"),
                file(".wh..wh.aufs"),
            ]
        )
    ).index
    assert [entry.path for entry in index.entries()] == ["d", "d/x.wh.y"]
    assert (index.opaque("d"), index.opaque(""), index.opaque("e")) == (True, True, False)
    assert (index.whiteout("d/gone"), index.whiteout("top")) == (True, True)
    assert index.whiteouts("") == ("top",)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("d/.wh.", "layer: the whiteout 'd/.wh.' names '', wanted a file name"),
        (".wh..", "layer: the whiteout '.wh..' names '.', wanted a file name"),
        ("d/.wh...", "layer: the whiteout 'd/.wh...' names '..', wanted a file name"),
        (".wh.d/file", "layer: '.wh.d/file' lies below a whiteout"),
    ],
)
def test_whiteouts_of_nothing_are_refused(name: str, message: str) -> None:
    with pytest.raises(IntegrityError) as refused:
        scanned(archive([file(name)]))
    assert refused.value.message == message


def test_the_index_does_not_depend_on_the_order_in_the_archive() -> None:
    items = [directory("d"), file("d/a", b"1"), file("d/.wh..wh..opq"), hardlink("e", "d/a")]
    assert scanned(archive(items)).index == scanned(archive(items[::-1])).index


def test_xattrs_reach_the_index_as_the_bytes_that_they_are() -> None:
    value = b"\x00\x01\xff=\n"
    data = pax((b"SCHILY.xattr.security.capability", value)) + header(b"ping") + END
    entry = scanned(data).index.lookup("ping")
    assert entry is not None
    assert entry.xattrs == (("security.capability", value),)


def test_setuid_devices_and_absolute_links_are_values_and_nothing_happens() -> None:
    index = scanned(
        header(b"su", mode=b"4755")
        + header(b"abs", flag=b"2", mode=b"777", link=b"/etc/passwd")
        + header(b"h", flag=b"1", link=b"/abs")
        + header(b"null", flag=b"3", device=b"1")
        + END
    ).index
    kinds = [(entry.path, entry.kind, entry.mode, entry.target) for entry in index.entries()]
    assert kinds == [
        ("abs", Kind.SYMLINK, 0o777, "/etc/passwd"),
        ("h", Kind.HARDLINK, 0o644, "abs"),
        ("null", Kind.CHARACTER, 0o644, None),
        ("su", Kind.FILE, 0o4755, None),
    ]


def test_another_diff_id_is_an_integrity_error() -> None:
    data = archive([file("a")])
    with pytest.raises(IntegrityError) as refused:
        scan(
            [data],
            keep=everything,
            kept=MemoryWriter(),
            expected_diff_id=Digest("0" * 64),
            at="layer 2",
        )
    assert refused.value.message == (
        f"layer 2: expected diff_id sha256:{'0' * 64}, got {Digest.of(data)}"
    )


def test_the_media_type_is_checked_where_it_is_given() -> None:
    data = archive([file("a")])
    scan([data], keep=everything, kept=MemoryWriter(), media_type=OCI_LAYER_TAR)
    with pytest.raises(IntegrityError) as refused:
        scan([data], keep=everything, kept=MemoryWriter(), media_type=OCI_LAYER_GZIP)
    assert refused.value.message == (
        "layer: labelled 'application/vnd.oci.image.layer.v1.tar+gzip', but its bytes are tar"
    )


def test_an_error_of_the_stream_comes_through_as_it_is_and_leaves_no_thread() -> None:
    data = archive([file(f"f{number}", bytes(5000)) for number in range(1000)])

    def broken() -> Iterator[bytes]:
        yield from in_pieces(data[:3_000_000], 1 << 20)
        raise NetworkError("the connection broke")

    before = threading.active_count()
    with pytest.raises(NetworkError, match="the connection broke"):
        scan(broken(), keep=everything, kept=MemoryWriter())
    assert threading.active_count() == before


def test_a_digest_error_at_the_end_of_the_stream_is_not_lost() -> None:
    """The blob iterator raises instead of ending when its bytes are not those of its digest."""

    def forged() -> Iterator[bytes]:
        yield gzip.compress(archive([file("a")]))
        raise IntegrityError("blob: expected sha256:1, got sha256:2")

    with pytest.raises(IntegrityError, match="blob: expected sha256:1, got sha256:2"):
        scan(forged(), keep=everything, kept=MemoryWriter())


def test_a_broken_archive_stops_the_stream_and_leaves_no_thread() -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 1
            yield b"no archive" * 100_000

    before = threading.active_count()
    with pytest.raises(IntegrityError, match="layer: byte 0: "):
        scan(endless(), keep=everything, kept=MemoryWriter())
    assert threading.active_count() == before
    assert taken < 50


def test_a_truncated_zstd_layer_is_noticed() -> None:
    packed = zstd.compress(archive([file("a", b"x" * 500_000)]))
    with pytest.raises(IntegrityError, match=r"^layer: the .* is truncated"):
        scanned(packed[:-20])


@NEEDS_UMOCI
def test_a_layer_that_an_image_tool_made_is_read_as_meant(tmp_path: Path) -> None:
    """Go's archive/tar and gzip, as behind docker and buildkit."""
    long = "d/" + "n" * 120
    write_layout(tmp_path / "image", [archive([directory("d"), file("d/old"), file("d/same")])])
    umoci("unpack", "--image", f"{tmp_path}/image:t", f"{tmp_path}/bundle")
    root = tmp_path / "bundle/rootfs"
    (root / "d/old").unlink()
    (root / long).write_bytes(b"new")
    os.setxattr(root / long, "user.binary", b"\0\xff\n")
    os.chown(root / long, 7, 8)
    (root / "link").symlink_to("/d/same")
    umoci("repack", "--image", f"{tmp_path}/image:u", f"{tmp_path}/bundle")
    blobs = tmp_path / "image/blobs/sha256"
    top = json.loads((tmp_path / "image/index.json").read_bytes())["manifests"][-1]
    manifest = Manifest.parse((blobs / Digest.parse(top["digest"]).hex).read_bytes())
    packed = manifest.layers[-1]
    config = json.loads((blobs / manifest.config.digest.hex).read_bytes())
    got = scan(
        in_pieces((blobs / packed.digest.hex).read_bytes(), 100),
        keep=everything,
        kept=MemoryWriter(),
        media_type=packed.media_type,
        expected_diff_id=Digest.parse(config["rootfs"]["diff_ids"][-1]),
    )
    new = got.index.lookup(long)
    assert new is not None
    assert (new.uid, new.gid, new.digest) == (7, 8, Digest.of(b"new"))
    assert new.xattrs == (("user.binary", b"\0\xff\n"),)
    link = got.index.lookup("link")
    assert link is not None
    assert link.target == "/d/same"
    assert got.index.whiteouts("d") == ("old",)
    assert got.index.lookup("d/same") is None
