"""``builder.tar``: each field of a header, read back by Python's tarfile and by eye."""

import io
import tarfile

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder import tar
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.tree import EPOCH, Entry, Kind

FILE = Entry(path="usr/bin/tool", kind=Kind.FILE, mode=0o4755, uid=7, gid=8, size=3)


def read(entry: Entry) -> tarfile.TarInfo:
    """What tarfile makes of a header; the content is left out."""
    with tarfile.open(fileobj=io.BytesIO(tar.header(entry) + tar.END)) as archive:
        info = archive.next()
    assert info is not None
    return info


def test_a_plain_file_takes_one_ustar_block_with_every_field_set() -> None:
    fields = {
        "name": (b"usr/bin/tool" + bytes(88)),
        "mode": b"0004755\0",
        "uid": b"0000007\0",
        "gid": b"0000010\0",
        "size": b"00000000003\0",
        "mtime": b"02263523000\0",
        "chksum": b"011525\0 ",
        "typeflag": b"0",
        "linkname": bytes(100),
        "magic": b"ustar\0",
        "version": b"00",
        "uname": bytes(32),
        "gname": bytes(32),
        "devmajor": b"0000000\0",
        "devminor": b"0000000\0",
        "prefix": bytes(155),
        "pad": bytes(12),
    }
    assert tar.header(FILE) == b"".join(fields.values())


def test_a_directory_ends_in_a_slash_and_has_no_size() -> None:
    block = tar.header(Entry(path="opt/new", kind=Kind.DIRECTORY, mode=0o755, size=9))
    assert len(block) == 512
    assert block[:9] == b"opt/new/\0"
    assert block[124:136] == b"00000000000\0"
    assert block[156:157] == b"5"


def test_a_link_carries_its_target_in_the_block() -> None:
    block = tar.header(Entry(path="lib64", kind=Kind.SYMLINK, mode=0o777, target="usr/lib64"))
    assert len(block) == 512
    assert block[156:157] == b"2"
    assert block[157:167] == b"usr/lib64\0"


def test_a_header_never_changes() -> None:
    """Golden. A change here changes every published digest: raise ``builder.ASSEMBLY``."""
    everything = Entry(
        path="d/" * 60 + "\udcff",
        kind=Kind.FILE,
        mode=0o644,
        uid=0o10000000,
        gid=0o10000001,
        size=1 << 33,
        xattrs=(("security.capability", b"\x00\xff="), ("user.a", b"")),
    )
    assert (
        str(Digest.of(tar.header(FILE)))
        == "sha256:5b87de59f8e9829a78e5d3901e52d7b24d6aa8dd317c6ca1aecccd6e17620adb"
    )
    assert (
        str(Digest.of(tar.header(everything)))
        == "sha256:94fad249ebcd1e779d44fe735c6323720e62f8ada1a87f3641642daa5249356b"
    )


@pytest.mark.parametrize(
    "entry, records",
    [
        pytest.param(Entry(path="a" * 100, kind=Kind.FILE), b"", id="100 bytes fit"),
        pytest.param(
            Entry(path="a" * 101, kind=Kind.FILE),
            b"111 path=" + b"a" * 101 + b"\n",
            id="101 do not",
        ),
        pytest.param(
            Entry(path="d" * 100, kind=Kind.DIRECTORY),
            b"111 path=" + b"d" * 100 + b"/\n",
            id="the slash of a directory counts",
        ),
        pytest.param(
            Entry(path="ä", kind=Kind.FILE), b"11 path=\xc3\xa4\n", id="UTF-8 is not ASCII"
        ),
        pytest.param(
            Entry(path="\udce4", kind=Kind.FILE),
            b"21 hdrcharset=BINARY\n9 path=\xe4\n",
            id="the charset comes before a name that is not UTF-8",
        ),
        pytest.param(
            Entry(path="l", kind=Kind.SYMLINK, target="ö"),
            b"15 linkpath=\xc3\xb6\n",
            id="a target that is not ASCII",
        ),
        pytest.param(
            Entry(path="l", kind=Kind.SYMLINK, target="\udce4"),
            b"21 hdrcharset=BINARY\n14 linkpath=\xe4\n",
            id="the charset comes before a target that is not UTF-8",
        ),
        pytest.param(
            Entry(path="f", kind=Kind.FILE, size=(1 << 33) - 1), b"", id="8 GiB less one fit"
        ),
        pytest.param(
            Entry(path="f", kind=Kind.FILE, size=1 << 33),
            b"19 size=8589934592\n",
            id="8 GiB do not",
        ),
        pytest.param(
            Entry(path="f", kind=Kind.FILE, uid=0o7777777, gid=0o10000000),
            b"15 gid=2097152\n",
            id="ids of 22 bits",
        ),
        pytest.param(
            Entry(path="f", kind=Kind.FILE, xattrs=(("user.b", b"\0=\n\xff"), ("security.x", b""))),
            b"28 SCHILY.xattr.security.x=\n" + b"28 SCHILY.xattr.user.b=\0=\n\xff\n",
            id="xattrs are binary and sorted",
        ),
        pytest.param(
            Entry(path="f", kind=Kind.FILE, xattrs=(("user." + "x" * 73, b"ab"),)),
            b"98 SCHILY.xattr.user." + b"x" * 73 + b"=ab\n",
            id="98 bytes count two digits",
        ),
        pytest.param(
            Entry(path="f", kind=Kind.FILE, xattrs=(("user." + "x" * 73, b"abcd"),)),
            b"101 SCHILY.xattr.user." + b"x" * 73 + b"=abcd\n",
            id="and with two bytes more a third digit counts itself",
        ),
    ],
)
def test_an_extended_header_is_written_only_for_what_does_not_fit(
    entry: Entry, records: bytes
) -> None:
    data = tar.header(entry)
    if not records:
        assert len(data) == 512
        return
    assert data[:15] == b"././@PaxHeader\0"
    assert data[156:157] == b"x"
    assert int(data[124:135], 8) == len(records)
    assert data[512:-512] == records + tar.padding(len(records))


def test_a_name_that_is_cut_off_does_not_look_like_a_directory() -> None:
    data = tar.header(Entry(path="a" * 99 + "/b", kind=Kind.FILE))
    assert data[-512:][:100] == b"a" * 99 + b"\0"


def test_old_readers_see_the_name_with_question_marks() -> None:
    assert tar.header(Entry(path="gr\u00fcn", kind=Kind.FILE))[-512:][:6] == b"gr??n\0"


NAMES = st.text(
    st.characters(exclude_characters="/\0", exclude_categories=["Cs"])
    | st.integers(0xDC80, 0xDCFF).map(chr),
    min_size=1,
    max_size=60,
).filter(lambda name: name not in (".", ".."))


@settings(max_examples=60)
@given(
    path=st.lists(NAMES, min_size=1, max_size=4).map("/".join),
    mode=st.integers(0, 0o7777),
    ids=st.tuples(st.integers(0, 1 << 32), st.integers(0, 1 << 32)),
    size=st.integers(0, 1 << 40),
    xattrs=st.dictionaries(
        NAMES.filter(lambda name: "=" not in name and name.isascii()), st.binary(max_size=40)
    ),
)
def test_any_entry_is_read_back_as_it_was(
    path: str, mode: int, ids: tuple[int, int], size: int, xattrs: dict[str, bytes]
) -> None:
    entry = Entry(
        path=path,
        kind=Kind.FILE,
        mode=mode,
        uid=ids[0],
        gid=ids[1],
        size=size,
        xattrs=tuple(sorted(xattrs.items())),
    )
    # The name may change its spelling: bytes that are UTF-8 together become text.
    same_name = tar.raw(path).decode("utf-8", "surrogateescape")
    info = read(entry)
    assert (info.name, info.mode, info.mtime) == (same_name, mode, EPOCH)
    assert (info.uid, info.gid, info.size) == (*ids, size)
    assert (info.uname, info.gname, info.type) == ("", "", tarfile.REGTYPE)
    assert {
        key.removeprefix("SCHILY.xattr."): tar.raw(value)
        for key, value in info.pax_headers.items()
        if key.startswith("SCHILY.")
    } == xattrs


@pytest.mark.parametrize("name", ["", "user.a=b", "user.\0"])
def test_an_xattr_name_that_no_record_can_hold_is_refused(name: str) -> None:
    with pytest.raises(IntegrityError) as caught:
        tar.header(Entry(path="f", kind=Kind.FILE, xattrs=((name, b"v"),)))
    assert caught.value.message == f"'f': the name of xattr {name!r} cannot be written to a layer"


@pytest.mark.parametrize(
    "entry, message",
    [
        (Entry(path="dev/x", kind=Kind.BLOCK), "'dev/x': a layer of ours has no block entries"),
        (
            Entry(path="f", kind=Kind.FILE, mode=0o100644),
            "'f': mode 0o100644 has more than permission bits",
        ),
        (Entry(path="f", kind=Kind.FILE, uid=-1), "uid -1 is negative"),
    ],
)
def test_an_entry_that_nobody_may_ask_for_is_a_bug(entry: Entry, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        tar.header(entry)


@pytest.mark.parametrize("size, zeros", [(0, 0), (1, 511), (512, 0), (513, 511)])
def test_content_is_filled_up_to_whole_blocks(size: int, zeros: int) -> None:
    assert tar.padding(size) == bytes(zeros)
