"""Archives that are hostile, broken, or read differently by different readers are refused."""

import pytest

from builder import untar
from builder.errors import IntegrityError
from tests.scan.archives import END, header, members, padded, pax

OK = header(b"ok")
GNU = b"ustar  \0"
CUT = "fetch it again; if it stays so, its maker did not finish it"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(
            OK + header(b"../x"), "t: a path that leaves the image: '../x'", id="dot-dot first"
        ),
        pytest.param(
            header(b"a/../../x"), "t: a path that leaves the image: 'a/../../x'", id="dot-dot"
        ),
        pytest.param(header(b".."), "t: a path that leaves the image: '..'", id="only dot-dot"),
        pytest.param(header(b"/.."), "t: a path that leaves the image: '/..'", id="/.."),
        pytest.param(
            pax((b"path", b"a\0b")) + header(b"x"),
            "t: byte 512: a pax path with a NUL byte: b'a\\x00b'",
            id="NUL in a pax path",
        ),
        pytest.param(header(b""), "t: an empty path: ''", id="no name"),
        pytest.param(
            header(b"./", flag=b"2", link=b"x"),
            "t: byte 0: the root itself is a symlink, wanted a directory",
            id="root as a link",
        ),
        pytest.param(
            header(b"l", flag=b"1", link=b"../../etc/shadow"),
            "t: link target of 'l': a path that leaves the image: '../../etc/shadow'",
            id="hard link out",
        ),
        pytest.param(
            header(b"l", flag=b"2"),
            "t: byte 0: 'l': a link target must have 1 to 4096 bytes, got b''",
            id="link to nothing",
        ),
        pytest.param(
            header(b"f", size=b"1000") + bytes(100),
            "t: the archive is truncated at byte 612, wanted 412 more bytes",
            id="cut in content",
        ),
        pytest.param(
            OK[:300], "t: the archive is truncated at byte 300, wanted 212 more bytes", id="cut"
        ),
        pytest.param(
            OK, "t: the archive is truncated at byte 512, wanted 512 more bytes", id="no end mark"
        ),
        pytest.param(
            b"", "t: the archive is truncated at byte 0, wanted 512 more bytes", id="no bytes"
        ),
        pytest.param(
            header(b"f", size=b"-10"),
            "t: byte 0: size: expected an octal number, got"
            " b'-10\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00'",
            id="negative size",
        ),
        pytest.param(
            header(b"f", size=b"\xff" * 12),
            "t: byte 0: size: expected an octal number, got b'" + "\\xff" * 12 + "'",
            id="negative base-256 size",
        ),
        pytest.param(
            header(b"f", size=b"\x80" + b"\x7f" * 11),
            "t: byte 0: b'f': size 154135671558081661678616447 or owner 0:0 is out of range",
            id="a size beyond everything",
        ),
        pytest.param(
            header(b"f", mode=b"0o644"),
            "t: byte 0: mode: expected an octal number, got b'0o644\\x00\\x00\\x00'",
            id="a mode as Python writes it",
        ),
        pytest.param(
            header(b"f", mode=b"6_4"),
            "t: byte 0: mode: expected an octal number, got b'6_4\\x00\\x00\\x00\\x00\\x00'",
            id="a mode with an underscore",
        ),
        pytest.param(
            header(b"f", mode=b"689"),
            "t: byte 0: mode: expected an octal number, got b'689\\x00\\x00\\x00\\x00\\x00'",
            id="a mode that is not octal",
        ),
        pytest.param(
            b"x" + OK[1:],
            "t: byte 0: not a tar header: its checksum is 1536, its field says 1527",
            id="a wrong checksum",
        ),
        pytest.param(
            OK + END + b"x", "t: data other than zeros after the end mark", id="data after the end"
        ),
        pytest.param(
            OK + bytes(512) + OK,
            "t: data other than zeros after the end mark",
            id="a member after one zero block",
        ),
        pytest.param(
            pax((b"path", b"x")) + END,
            "t: byte 1024: the archive ends after an extended header, wanted its member",
            id="a pax header at the end",
        ),
        pytest.param(
            pax((b"path", b"x")) * 2 + OK,
            "t: byte 1536: several extended headers for one member",
            id="two pax headers",
        ),
        pytest.param(
            pax((b"path", b"x")) + header(b"L", flag=b"L", size=b"2") + padded(b"y\0") + OK,
            "t: byte 1536: several extended headers for one member",
            id="pax and a long name",
        ),
        pytest.param(
            pax((b"path", b"x"), flag=b"g") + OK,
            "t: byte 512: the global pax record b'path', which unpackers disagree on",
            id="a global path",
        ),
        pytest.param(
            pax((b"hdrcharset", b"KOI8-R")) + OK,
            "t: byte 512: pax hdrcharset b'KOI8-R' is not supported",
            id="a charset",
        ),
        pytest.param(
            pax((b"size", b"-1")) + OK,
            "t: byte 512: pax size: expected digits, got b'-1'",
            id="a negative pax size",
        ),
        pytest.param(
            header(b"x", flag=b"x", size=b"15") + padded(b"99 path=abcd\n") + OK,
            "t: byte 512: a malformed pax record: b'99 path=abcd\\n'",
            id="a pax length that lies",
        ),
        pytest.param(
            header(b"x", flag=b"x", size=b"13") + padded(b"0 path=abcdef") + OK,
            "t: byte 512: a malformed pax record: b'0 path=abcd'",
            id="a pax length of nothing",
        ),
        pytest.param(
            header(b"x", flag=b"x", size=b"27") + padded(b"no-blank-in-20=letters\n") + OK,
            "t: byte 512: a malformed pax record: b'no-blank-in-20=letters\\n'",
            id="a pax record without a length",
        ),
        pytest.param(
            header(b"x", flag=b"x", size=b"41")
            + padded(b"7 a=bc\nno-blank-in-20=letters" + b"\n" * 4)
            + OK,
            "t: byte 512: a malformed pax record: b'no-blank-in-20=letters\\n\\n\\n\\n'",
            id="a second pax record without a length",
        ),
        pytest.param(
            header(b"x", flag=b"x", size=b"7777777"),
            "t: byte 0: an extended header of 2097151 bytes, the limit is 1048576",
            id="a pax bomb",
        ),
        pytest.param(
            header(b"L", flag=b"L", size=b"10002") + padded(b"n" * 4098) + OK,
            "t: byte 5120: a path of 4098 bytes, the limit is 4096",
            id="a path beyond PATH_MAX",
        ),
        pytest.param(
            header(b"f", size=b"\0" + b"5") + padded(b"12345"),
            "t: byte 0: size: expected an octal number, got"
            " b'\\x005\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00\\x00'",
            id="a size behind a NUL",
        ),
        pytest.param(
            header(b"d/"),
            "t: byte 0: b'd/': a file to some unpackers, and a directory to others",
            id="a file with a slash at its end",
        ),
        pytest.param(
            header(b"d/", flag=b"7"),
            "t: byte 0: b'd/': a file to some unpackers, and a directory to others",
            id="a contiguous file with a slash at its end",
        ),
        pytest.param(
            header(b"x", magic=GNU, prefix=b"etc"),
            "t: byte 0: time: expected an octal number, got b'etc" + "\\x00" * 9 + "'",
            id="a prefix in the place of a GNU atime",
        ),
        pytest.param(
            header(b"x", magic=GNU, prefix=b"0".ljust(12, b"\0") + b"etc"),
            "t: byte 0: time: expected an octal number, got b'etc" + "\\x00" * 9 + "'",
            id="a GNU ctime that is none",
        ),
        pytest.param(
            header(b"x", magic=GNU, prefix=b"0".ljust(12, b"\0") + b"\x80" + b"\xff" * 11),
            "t: byte 0: b'x': a time that is out of range",
            id="a GNU ctime beyond everything",
        ),
        pytest.param(
            header(b"x", flag=b"3", device=b"1".ljust(8, b"\0") + b"3", magic=b""),
            "t: byte 0: b'x' is the character device 0:0, which overlayfs takes as deleted",
            id="a device in v7, which has no numbers of them",
        ),
        pytest.param(
            header(b"x", flag=b"3", device=b"10000".ljust(8, b"\0") + b"4000000"),
            "t: byte 0: b'x' is the character device 0:0, which overlayfs takes as deleted",
            id="a device whose numbers are 0 to the kernel",
        ),
        pytest.param(
            pax((b"path", b"x")) + pax((b"comment", b"y"), flag=b"g") + OK,
            "t: byte 1024: a global header between an extended header and its member",
            id="a global header before the member of a pax header",
        ),
        pytest.param(
            pax((b"uid", b"4294967295")) + OK,
            "t: byte 1024: b'ok': size 0 or owner 4294967295:0 is out of range",
            id="a user that means none",
        ),
        pytest.param(
            pax((b"gid", b"4294967295")) + OK,
            "t: byte 1024: b'ok': size 0 or owner 0:4294967295 is out of range",
            id="a group that means none",
        ),
        pytest.param(
            pax((b"size", b"9" * 21)) + OK,
            "t: byte 512: pax size: expected digits, got b'999999999999999999999'",
            id="more digits than any number of bytes has",
        ),
        pytest.param(
            header(b"d/", flag=b"\0", magic=b"", size=b"1"),
            "t: byte 0: the directory b'd/' has 1 bytes of content",
            id="a directory of v7 with content",
        ),
        pytest.param(
            (header(b"L", flag=b"L", size=b"2") + padded(b"y\0")) * 2 + OK,
            "t: byte 1536: several extended headers for one member",
            id="two long names",
        ),
        pytest.param(
            pax((b"SCHILY.xattr.", b"x")) + OK,
            "t: byte 512: a pax record for an xattr named ''",
            id="an xattr without a name",
        ),
        pytest.param(
            pax((b"SCHILY.xattr.a\0b", b"x")) + OK,
            "t: byte 512: a pax record for an xattr named 'a\\x00b'",
            id="NUL in the name of an xattr",
        ),
        pytest.param(
            pax((b"SCHILY.xattr.x", b"y"), flag=b"g") + OK,
            "t: byte 512: the global pax record b'SCHILY.xattr.x', which unpackers disagree on",
            id="a global xattr",
        ),
        pytest.param(
            pax((b"GNU.sparse.major", b"1"), flag=b"g") + OK,
            "t: byte 512: the global pax record b'GNU.sparse.major', which unpackers disagree on",
            id="a global sparse record",
        ),
        pytest.param(
            pax((b"", b"x")) + OK,
            "t: byte 512: a malformed pax record: b'5 =x\\n'",
            id="a pax record without a key",
        ),
        pytest.param(
            header(b"V", flag=b"V"),
            "t: byte 0: a member of type b'V', which is unknown",
            id="a volume label",
        ),
    ],
)
@pytest.mark.parametrize("size", [7, 1 << 20])
def test_what_is_hostile_or_broken_is_refused(data: bytes, message: str, size: int) -> None:
    with pytest.raises(IntegrityError) as refused:
        members(data, size=size)
    assert refused.value.message == message


def test_a_truncated_archive_says_what_to_do() -> None:
    with pytest.raises(IntegrityError) as refused:
        members(OK)
    assert refused.value.hint == CUT


def test_a_link_target_beyond_path_max_is_refused() -> None:
    long = header(b"K", flag=b"K", size=b"10001") + padded(b"n" * 4097)
    with pytest.raises(IntegrityError, match="'l': a link target must have 1 to 4096 bytes, got"):
        members(long + header(b"l", flag=b"2") + END)


def test_global_records_that_change_nothing_pass() -> None:
    assert [
        entry.path for entry, _ in members(pax((b"comment", b"1234"), flag=b"g") + OK + END)
    ] == ["ok"]


def test_one_zero_block_ends_an_archive_and_zeros_may_follow() -> None:
    assert len(members(OK + bytes(512))) == 1
    assert len(members(OK + bytes(10240 + 7))) == 1


def test_too_many_members_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(untar, "ENTRY_LIMIT", 3)
    with pytest.raises(IntegrityError) as refused:
        members(OK * 4 + END)
    assert refused.value.message == "t: byte 1536: more than 3 members"
