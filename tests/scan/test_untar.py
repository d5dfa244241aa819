"""Archives of real tars are read as their makers meant them; what readers would see differently,
or what would leave the root, is refused."""

import io
import os
import subprocess
import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from builder import untar
from builder.errors import IntegrityError
from builder.tree import Entry, Kind
from tests.scan.archives import END, archive, directory, file, header, members, padded, pax

LONG = "/".join(["directory-" + "x" * 40] * 5) + "/" + "name-" + "y" * 90
MIDDLE = "/".join(["directory-" + "x" * 20] * 5) + "/name"


def entries(data: bytes) -> dict[str, Entry]:
    return {entry.path: entry for entry, _ in members(data)}


def gnu_tar(tree: Path, *options: str) -> bytes:
    command = ["tar", "-C", str(tree), "--sort=name", *options, "-cf", "-", "."]
    return subprocess.run(command, check=True, capture_output=True).stdout


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    (tmp_path / "bin").mkdir(mode=0o755)
    (tmp_path / "bin/tool").write_bytes(b"x" * 1000)
    (tmp_path / "bin/tool").chmod(0o4755)
    (tmp_path / "bin/link").symlink_to("/opt/tool")
    os.link(tmp_path / "bin/tool", tmp_path / "bin/same")
    os.mkfifo(tmp_path / "pipe", 0o600)
    (tmp_path / "empty").touch(mode=0o640)
    return tmp_path


@pytest.mark.parametrize("form", ["v7", "ustar", "oldgnu", "gnu", "pax"])
def test_every_format_of_gnu_tar_gives_the_same_entries(tree: Path, form: str) -> None:
    data = gnu_tar(tree, f"--format={form}", "--owner=5", "--group=6", "--exclude=pipe")
    got = {entry.path: (entry, content) for entry, content in members(data)}
    wanted = [
        (Entry(path="bin", kind=Kind.DIRECTORY, mode=0o755), b""),
        (Entry(path="bin/link", kind=Kind.SYMLINK, mode=0o777, target="/opt/tool"), b""),
        (Entry(path="bin/same", kind=Kind.FILE, mode=0o4755, size=1000), b"x" * 1000),
        (Entry(path="bin/tool", kind=Kind.HARDLINK, mode=0o4755, target="bin/same"), b""),
        (Entry(path="empty", kind=Kind.FILE, mode=0o640), b""),
    ]
    assert got == {entry.path: (replace(entry, uid=5, gid=6), content) for entry, content in wanted}


@pytest.mark.parametrize("form", ["ustar", "oldgnu", "gnu", "pax"])
def test_names_beyond_the_header_come_from_prefixes_long_names_and_pax(
    tmp_path: Path, form: str
) -> None:
    name = MIDDLE if form == "ustar" else LONG
    (tmp_path / name).parent.mkdir(parents=True)
    (tmp_path / name).write_bytes(b"content")
    if form != "ustar":
        (tmp_path / "link").symlink_to(LONG)
    got = entries(gnu_tar(tmp_path, f"--format={form}"))
    assert got[name].size == 7
    if form != "ustar":
        assert got["link"].target == LONG


def test_what_python_writes_is_read_back_in_chunks_of_any_size() -> None:
    items = [directory("d"), file(f"d/{LONG}", b"a" * 700), file("d/ümläut", b"b"), file("e")]
    data = archive(items)
    wanted = [(item.name, item.data) for item in items]
    for size in (1, 511, 512, 513, 100_000):
        got = [(entry.path, content) for entry, content in members(data, size=size)]
        assert got == wanted


def test_names_that_are_not_utf8_survive_as_surrogates() -> None:
    assert list(entries(header(b"a\xff\xfe") + END)) == ["a\udcff\udcfe"]


def test_xattrs_are_binary(tmp_path: Path) -> None:
    value = b"\x00\x01\xff\n=\x00end"
    path = tmp_path / "file"
    path.touch()
    os.setxattr(path, "user.capability", value)
    os.setxattr(path, "user.empty", b"")
    data = gnu_tar(tmp_path, "--format=pax", "--xattrs")
    assert entries(data)["file"].xattrs == (("user.capability", value), ("user.empty", b""))


def test_devices_keep_their_kind_and_a_character_device_0_0_is_refused() -> None:
    kinds = [
        (entry.path, entry.kind)
        for entry, _ in members(
            header(b"dev/null", flag=b"3", device=b"1".ljust(8, b"\0") + b"3")
            + header(b"dev/sda", flag=b"4", device=b"10")
            + header(b"dev/pipe", flag=b"6")
            + END
        )
    ]
    assert kinds == [
        ("dev/null", Kind.CHARACTER),
        ("dev/sda", Kind.BLOCK),
        ("dev/pipe", Kind.FIFO),
    ]
    with pytest.raises(IntegrityError) as refused:
        members(header(b"gone", flag=b"3") + END)
    assert refused.value.message == (
        "t: byte 0: b'gone' is the character device 0:0, which overlayfs takes as deleted"
    )


def test_sparse_files_are_refused_in_each_of_their_forms(tmp_path: Path) -> None:
    with (tmp_path / "sparse").open("wb") as hole:
        hole.seek(1 << 20)
        hole.write(b"end")
    messages = []
    for options in (
        ["--format=gnu"],
        ["--format=pax", "--sparse-version=0.0"],
        ["--format=pax", "--sparse-version=0.1"],
        ["--format=pax", "--sparse-version=1.0"],
    ):
        with pytest.raises(IntegrityError) as refused:
            members(gnu_tar(tmp_path, "--sparse", "--exclude=./.", *options))
        messages.append(refused.value.message.partition(": ")[2].partition(": ")[2])
    assert messages == [
        "a member of type b'S' (sparse), which is not supported",
        "a sparse member (b'GNU.sparse.size'), which is not supported",
        "a sparse member (b'GNU.sparse.size'), which is not supported",
        "a sparse member (b'GNU.sparse.major'), which is not supported",
    ]


def test_pax_numbers_override_the_header_and_an_empty_value_does_not() -> None:
    body = pax((b"uid", b"4000000000"), (b"gid", b""), (b"size", b"3"), (b"mtime", b"1.5"))
    (entry, content), *rest = members(body + header(b"f", size=b"7") + padded(b"abc") + END)
    assert (entry.uid, entry.gid, entry.size, content, rest) == (4_000_000_000, 0, 3, b"abc", [])


def test_of_a_mode_only_the_permission_bits_count() -> None:
    """Old writers put the kind of the file before them. The second time it comes from memory."""
    data = header(b"a", mode=b"0177644") + header(b"b", mode=b"0177644") + END
    assert [entry.mode for entry, _ in members(data)] == [0o7644, 0o7644]


def test_large_numbers_in_base_256() -> None:
    uid = bytes([0x80]) + (3_000_000_000).to_bytes(7, "big")
    assert entries(header(b"f", uid=uid) + END)["f"].uid == 3_000_000_000


def test_leading_dots_and_slashes_go_and_the_root_is_left_out() -> None:
    names = [b"./", b"/", b".", b"./a", b"/b", b".//c/./d", b".hidden", b"...", b"e/"]
    data = b"".join(
        header(name, flag=b"5" if name.endswith((b"/", b".")) else b"0") for name in names
    )
    assert list(entries(data + END)) == ["a", "b", "c/d", ".hidden", "...", "e"]


def test_a_name_with_a_slash_at_its_end_is_a_directory_in_v7() -> None:
    assert entries(header(b"d/", flag=b"\0", magic=b"") + END)["d"].kind is Kind.DIRECTORY


@pytest.mark.parametrize(
    "magic",
    [
        pytest.param(b"ustar\x0000", id="POSIX"),
        pytest.param(b"ustar\0\0\0", id="no version"),
        pytest.param(b"ustar\x0099", id="another version"),
    ],
)
def test_the_prefix_of_a_name_counts_whatever_the_version_is(magic: bytes) -> None:
    """Go's archive/tar, GNU tar and Python's tarfile do not look at the version."""
    assert list(entries(header(b"passwd", magic=magic, prefix=b"etc") + END)) == ["etc/passwd"]


@pytest.mark.parametrize(
    ("prefix", "magic"),
    [
        pytest.param(b"\0" * 12 + b"x", b"ustar\x0000", id="behind a NUL"),
        pytest.param(b"15000000000\x0015000000000\0", b"ustar  \0", id="atime and ctime of GNU"),
        pytest.param(b"\x80" + bytes(7) + b"\1\2\3\4", b"ustar  \0", id="an atime in base-256"),
        pytest.param(b"etc", b"", id="v7"),
    ],
)
def test_what_is_no_prefix_of_a_name_is_left_out(prefix: bytes, magic: bytes) -> None:
    assert list(entries(header(b"f", magic=magic, prefix=prefix) + END)) == ["f"]


def test_old_star_has_a_shorter_prefix() -> None:
    prefix = b"d" * 131 + b"times".ljust(32, b"0") + b"tar\0"
    assert list(entries(header(b"f", prefix=prefix) + END)) == ["d" * 131 + "/f"]


def test_content_that_nobody_takes_is_skipped_and_can_not_be_taken_later() -> None:
    reader = untar.read([archive([file("a", b"A" * 600), file("b", b"B")])], at="t")
    first = next(reader)
    second = next(reader)
    assert b"".join(second.chunks()) == b"B"
    with pytest.raises(RuntimeError, match="the content of 'a' has passed"):
        first.chunks()
    assert list(reader) == []
    with pytest.raises(RuntimeError, match="the content of 'b' has passed"):
        second.chunks()


def test_a_link_has_no_content_whatever_its_size_says() -> None:
    data = header(b"a", flag=b"1", link=b"f", size=b"1000") + header(b"b") + END
    assert [(path, entry.size) for path, entry in entries(data).items()] == [("a", 0), ("b", 0)]


def test_checksums_of_signed_bytes_are_accepted_as_readers_do() -> None:
    block = header(b"\xff\xfe")
    plain = block[:148] + b" " * 8 + block[156:]
    signed = sum(byte - 256 if byte > 127 else byte for byte in plain)
    assert len(members(block[:148] + b"%06o\0 " % signed + block[156:] + END)) == 1


def test_the_reader_agrees_with_tarfile_on_a_tree_of_the_system() -> None:
    data = gnu_tar(Path("/usr/lib/python3/dist-packages"), "--format=pax")
    wanted = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for info in tar:
            content = tar.extractfile(info) if info.isreg() else None
            wanted[os.path.normpath(info.name)] = (
                info.mode,
                info.linkname,
                content.read() if content else b"",
            )
    del wanted["."]
    got = {
        entry.path: (entry.mode, (entry.target or ""), content) for entry, content in members(data)
    }
    assert got == {
        path: (mode, target.removeprefix("./"), content)
        for path, (mode, target, content) in wanted.items()
    }
