"""Layers as others read them: GNU tar, bsdtar, Python's tarfile, umoci, skopeo."""

import io
import os
import subprocess
import tarfile
import zlib
from pathlib import Path

import pytest

from builder.changes import Change, Inline, Put, Remove, Symlink
from builder.digest import Digest
from builder.framing import StoredGzip
from builder.tree import EPOCH
from tests.fakes import File, Link, TreeView
from tests.layer.worlds import INTERPRETERS, extract, made, oci_layout, unframed

LONG = "d" * 90 + "/" + "f" * 90
RAW = "raw-\udcff\udc80"
XATTR = ("user.bin", b"\0\xff=\n")
BASE = TreeView(
    {
        "etc/conf": File(b"old", mode=0o640, uid=5, gid=6, xattrs=(XATTR,)),
        "lib": Link("usr/lib"),
        "usr/lib/m.py": b"X = 128\n",
        "usr/lib/n.py": b"gone",
        "usr/bin/su": File(b"old", mode=0o4755),
        "usr/lib/current": Link("n.py"),
    }
)
CHANGES: tuple[Change, ...] = (
    Put(path="etc/conf", content=Inline(b"new")),
    Put(path="lib/m.py", content=Inline(b"X = 640\n")),
    Put(path="usr/bin/su", content=Inline(b"new")),
    Put(path=LONG, content=Inline(b"long")),
    Put(path=RAW, content=Inline(b"raw")),
    Put(path="grün", content=Inline(b"green"), mode=0o755),
    Symlink(path="usr/lib/current", target="m.py"),
    Symlink(path="abs", target="/" + "t" * 120),
    Remove(path="usr/lib/n.py"),
)


def base_layer() -> bytes:
    """The base as another tool would have made it, compressed and all."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz", format=tarfile.PAX_FORMAT) as archive:
        for path in ("etc", "usr", "usr/bin", "usr/lib"):
            info = tarfile.TarInfo(path)
            info.type, info.mode = tarfile.DIRTYPE, 0o755
            archive.addfile(info)
        for path in BASE.tree:
            entry, info = BASE.stat(path), tarfile.TarInfo(path)
            assert entry is not None
            if entry.target is not None:
                info.type, info.linkname = tarfile.SYMTYPE, entry.target
            info.size, info.mode, info.uid, info.gid = entry.size, entry.mode, entry.uid, entry.gid
            archive.addfile(info, io.BytesIO(BASE.read(path) if entry.is_file else b""))
    return buffer.getvalue()


def seen(root: Path) -> dict[str, tuple[int, int, int, bytes]]:
    """Mode, owner and content (or target) of every file and link, whose mtimes are ours."""
    tree = {}
    for path in sorted(root.rglob("*")):
        status = path.lstat()
        if not path.is_dir() or path.is_symlink():
            assert path.is_symlink() or status.st_mtime in (EPOCH, 0)
            data = bytes(path.readlink()) if path.is_symlink() else path.read_bytes()
            mode = 0o777 if path.is_symlink() else status.st_mode & 0o7777
            name = str(path.relative_to(root))
            tree[name] = (mode, status.st_uid, status.st_gid, data)
    return tree


AFTER = {
    "abs": (0o777, 0, 0, b"/" + b"t" * 120),
    LONG: (0o644, 0, 0, b"long"),
    "etc/conf": (0o640, 5, 6, b"new"),
    "grün": (0o755, 0, 0, b"green"),
    "lib": (0o777, 0, 0, b"usr/lib"),
    RAW: (0o644, 0, 0, b"raw"),
    "usr/bin/su": (0o4755, 0, 0, b"new"),
    "usr/lib/current": (0o777, 0, 0, b"m.py"),
    "usr/lib/m.py": (0o644, 0, 0, b"X = 640\n"),
}

LISTING = r"""lrwxrwxrwx 0/0 0 1980-01-01 00:00 abs -> /...
drwxr-xr-x 0/0 0 1980-01-01 00:00 .../
-rw-r--r-- 0/0 4 1980-01-01 00:00 .../...
-rw-r-----* 5/6 3 1980-01-01 00:00 etc/conf
  x: 4 user.bin
-rwxr-xr-x 0/0 5 1980-01-01 00:00 gr\303\274n
-rw-r--r-- 0/0 3 1980-01-01 00:00 raw-\377\200
-rwsr-xr-x 0/0 3 1980-01-01 00:00 usr/bin/su
-rw-r--r-- 0/0 0 1980-01-01 00:00 usr/lib/.wh.n.py
lrwxrwxrwx 0/0 0 1980-01-01 00:00 usr/lib/current -> m.py
-rw-r--r-- 0/0 8 1980-01-01 00:00 usr/lib/m.py"""


@pytest.mark.requires("tar")
def test_gnu_tar_lists_what_we_wrote() -> None:
    _, blob = made(CHANGES, BASE)
    done = subprocess.run(
        ["tar", "--xattrs", "--xattrs-include=*", "--numeric-owner", "-tzvvf", "-"],
        input=blob,
        capture_output=True,
        check=True,
        env={"LC_ALL": "C", "TZ": "UTC0", "PATH": os.environ["PATH"]},
    )
    # GNU tar takes a name's bytes as they are, and says that it has no use for the record.
    assert done.stderr == b"tar: Ignoring unknown extended header keyword 'hdrcharset'\n"
    lines = [" ".join(line.split()) for line in done.stdout.decode().splitlines()]
    short = [line.replace("d" * 90, "...").replace("f" * 90, "...") for line in lines]
    wanted = [" ".join(line.split()) for line in LISTING.splitlines()]
    assert [line.replace("t" * 120, "...") for line in short] == wanted


@pytest.mark.requires("tar", "root")
def test_gnu_tar_extracts_what_we_wrote(tmp_path: Path) -> None:
    _, blob = made(CHANGES, BASE)
    subprocess.run(["tar", "-xzpf", "-", "-C", tmp_path], input=base_layer(), check=True)
    extract(blob, tmp_path)
    assert seen(tmp_path) == AFTER


@pytest.mark.requires("tar", "root")
def test_gnu_tar_restores_a_binary_xattr(tmp_path: Path) -> None:
    try:
        os.setxattr(tmp_path, XATTR[0], b"")
    except OSError as error:
        pytest.skip(f"the temporary directory takes no xattrs: {error}")
    _, blob = made(CHANGES[:1], BASE)
    extract(blob, tmp_path, "--xattrs", "--xattrs-include=*")
    assert os.getxattr(tmp_path / "etc/conf", XATTR[0]) == XATTR[1]


@pytest.mark.requires("bsdtar", "root")
def test_bsdtar_extracts_the_same(tmp_path: Path) -> None:
    _, blob = made(CHANGES, BASE)
    for data in (base_layer(), blob):
        subprocess.run(["bsdtar", "-xpf", "-", "-C", tmp_path], input=data, check=True)
    for whiteout in ("usr/lib/.wh.n.py", "usr/lib/n.py"):
        (tmp_path / whiteout).unlink()
    assert seen(tmp_path) == AFTER


@pytest.mark.requires("umoci", "root")
def test_umoci_unpacks_the_image(tmp_path: Path) -> None:
    image = oci_layout(tmp_path / "image", [base_layer(), made(CHANGES, BASE)[1]])
    bundle = tmp_path / "bundle"
    subprocess.run(["umoci", "unpack", "--image", f"{image}:it", bundle], check=True)
    assert seen(bundle / "rootfs") == AFTER


@pytest.mark.requires("skopeo")
def test_skopeo_copies_the_image_and_checks_its_names(tmp_path: Path) -> None:
    layer, blob = made(CHANGES, BASE)
    image = oci_layout(tmp_path / "image", [base_layer(), blob])
    copy = ["--insecure-policy", "copy", "-q", f"oci:{image}:it", f"dir:{tmp_path / 'copy'}"]
    subprocess.run(["skopeo", *copy], check=True)
    assert (tmp_path / "copy" / layer.digest.hex).read_bytes() == blob


@pytest.mark.requires("umoci", "root")
def test_a_file_that_becomes_a_directory_and_a_link_that_becomes_a_file(tmp_path: Path) -> None:
    changes = (
        Remove(path="etc/conf"),
        Put(path="etc/conf/d/x", content=Inline(b"x")),
        Remove(path="usr/lib/current"),
        Put(path="usr/lib/current", content=Inline(b"file")),
        Remove(path="lib"),
    )
    image = oci_layout(tmp_path / "image", [base_layer(), made(changes, BASE)[1]])
    bundle = tmp_path / "bundle"
    subprocess.run(["umoci", "unpack", "--image", f"{image}:it", bundle], check=True)
    assert seen(bundle / "rootfs") == {
        "etc/conf/d/x": (0o644, 0, 0, b"x"),
        "usr/bin/su": (0o4755, 0, 0, b"old"),
        "usr/lib/current": (0o644, 0, 0, b"file"),
        "usr/lib/m.py": (0o644, 0, 0, b"X = 128\n"),
        "usr/lib/n.py": (0o644, 0, 0, b"gone"),
    }


MEMBERS = [
    ("abs", b"2", "0o777", 0, 0, "", "", EPOCH, "/" + "t" * 120),
    ("d" * 90, b"5", "0o755", 0, 0, "", "", EPOCH, ""),
    (LONG, b"0", "0o644", 0, 0, "", "", EPOCH, b"long"),
    ("etc/conf", b"0", "0o640", 5, 6, "", "", EPOCH, b"new"),
    ("grün", b"0", "0o755", 0, 0, "", "", EPOCH, b"green"),
    (RAW, b"0", "0o644", 0, 0, "", "", EPOCH, b"raw"),
    ("usr/bin/su", b"0", "0o4755", 0, 0, "", "", EPOCH, b"new"),
    ("usr/lib/.wh.n.py", b"0", "0o644", 0, 0, "", "", EPOCH, b""),
    ("usr/lib/current", b"2", "0o777", 0, 0, "", "", EPOCH, "m.py"),
    ("usr/lib/m.py", b"0", "0o644", 0, 0, "", "", EPOCH, b"X = 640\n"),
]
LIST = """
import io, sys, tarfile
with tarfile.open(fileobj=io.BytesIO(sys.stdin.buffer.read()), mode="r:gz") as archive:
    for m in archive:
        data = archive.extractfile(m).read() if m.isreg() else m.linkname
        print(ascii((m.name, m.type, oct(m.mode), m.uid, m.gid, m.uname, m.gname, m.mtime, data)))
        print(ascii({k: v for k, v in m.pax_headers.items() if "xattr" in k}))
"""


@pytest.mark.parametrize("python", INTERPRETERS.values(), ids=INTERPRETERS)
def test_every_python_reads_the_same(python: str) -> None:
    _, blob = made(CHANGES, BASE)
    done = subprocess.run([python, "-c", LIST], input=blob, capture_output=True, check=True)
    lines = done.stdout.decode().splitlines()
    assert lines[::2] == [ascii(member) for member in MEMBERS]
    xattrs = {"etc/conf": {"SCHILY.xattr.user.bin": "\0\udcff=\n"}}
    assert lines[1::2] == [ascii(xattrs.get(member[0], {})) for member in MEMBERS]


def test_the_tar_may_be_framed_by_anyone_and_keeps_its_name() -> None:
    """The diff_id is the identity; another compressor changes the blob alone (case 19)."""
    layer, blob = made(CHANGES, BASE)
    again = io.BytesIO()
    frame = StoredGzip(again)
    frame.write(zlib.decompress(zlib.compress(unframed(blob), level=9)))
    frame.close()
    assert Digest.of(again.getvalue()) == layer.digest
