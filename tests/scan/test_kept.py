"""Contents that are kept: which, where, and that they are what their digest says."""

import zlib

import pytest

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.kept import KeptTable, Pack, python_text, unpack
from builder.tree import Entry, Kind
from tests.scan.archives import MemoryWriter, in_pieces

PACKAGES = "usr/local/lib/python3.12/dist-packages"


def entry(path: str, *, size: int = 100, kind: Kind = Kind.FILE) -> Entry:
    return Entry(path=path, kind=kind, size=size)


@pytest.mark.parametrize(
    "path",
    [
        f"{PACKAGES}/vllm/envs.py",
        f"{PACKAGES}/vllm/py.typed",
        f"{PACKAGES}/vllm-0.22.0.dist-info/RECORD",
        f"{PACKAGES}/vllm-0.22.0.dist-info/METADATA",
        f"{PACKAGES}/vllm/templates/chat.jinja",
        f"{PACKAGES}/distutils-precedence.pth",
        "opt/venv/lib/python3.12/site-packages/a/b/c/d.json",
        "site-packages/x.toml",
        "etc/passwd",
    ],
)
def test_text_of_python_packages_and_of_etc_is_kept(path: str) -> None:
    assert python_text(entry(path))


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(entry(f"{PACKAGES}/vllm/_C.abi3.so"), id="native"),
        pytest.param(entry(f"{PACKAGES}/vllm/__pycache__/x.cpython-312.pyc"), id="compiled"),
        pytest.param(entry(f"{PACKAGES}/vllm/py"), id="a name that is a suffix"),
        pytest.param(entry(f"{PACKAGES}/big.json", size=(1 << 20) + 1), id="over 1 MiB"),
        pytest.param(entry("etc/big", size=(64 << 10) + 1), id="over 64 KiB in etc"),
        pytest.param(entry("usr/share/doc/readme.txt"), id="elsewhere"),
        pytest.param(entry("opt/my-packages/x.py"), id="other packages"),
        pytest.param(entry("opt/not-site-packages/x.py"), id="nearly the name"),
        pytest.param(entry(f"{PACKAGES}/link.py", kind=Kind.SYMLINK), id="a link"),
    ],
)
def test_everything_else_is_not_kept(other: Entry) -> None:
    assert not python_text(other)


def test_a_file_of_exactly_1_mib_is_kept() -> None:
    assert python_text(entry(f"{PACKAGES}/big.json", size=1 << 20))


def pack(*contents: bytes) -> tuple[bytes, KeptTable, list[Digest]]:
    writer = MemoryWriter()
    packed = Pack(writer)
    digests = [
        packed.keep((memoryview(p) for p in in_pieces(data, 1 << 20)), size=len(data))
        for data in contents
    ]
    kept = packed.finish()
    assert kept.size == len(writer.data)
    return bytes(writer.data), KeptTable(kept.table), digests


def test_contents_come_back_by_digest_and_equal_ones_are_packed_once() -> None:
    large = bytes(range(256)) * (20 << 10)
    contents = [b"", b"a", b"b" * 5000, b"a", large]
    data, table, digests = pack(*contents)
    assert len(table) == 4
    assert digests == [Digest.of(content) for content in contents]
    for content, digest in zip(contents, digests, strict=True):
        place = table.find(digest)
        assert place is not None
        assert unpack(data[place[0] : place[0] + place[1]], digest) == content
    assert len(data) < 100_000


def test_what_was_not_kept_is_not_found() -> None:
    _, table, _ = pack(b"a", b"b", b"c")
    assert [table.find(Digest(digit * 64)) for digit in "0f"] == [None, None]
    assert table.find(Digest.of(b"d")) is None
    assert KeptTable(b"").find(Digest.of(b"")) is None


def test_a_table_can_be_built_from_places_in_another_blob() -> None:
    places = {Digest.of(bytes([number])): (number, number + 1) for number in range(50)}
    table = KeptTable.build(places)
    assert {digest: table.find(digest) for digest in places} == places


def test_a_table_of_another_length_is_refused() -> None:
    with pytest.raises(IntegrityError) as refused:
        KeptTable(bytes(50))
    assert refused.value.message == "kept table: 50 bytes, wanted a multiple of 48"


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(
            zlib.compress(b"other"),
            "kept file ca978112ca1b: expected"
            " sha256:ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb, got"
            " sha256:d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa (5 bytes)",
            id="another content",
        ),
        pytest.param(
            b"nonsense",
            "kept file ca978112ca1b: Error -3 while decompressing data: incorrect header check",
            id="not deflated",
        ),
        pytest.param(
            zlib.compress(b"a")[:-1],
            "kept file ca978112ca1b: 8 bytes are not one zlib stream",
            id="cut",
        ),
        pytest.param(
            zlib.compress(b"a") + b"x",
            "kept file ca978112ca1b: 10 bytes are not one zlib stream",
            id="more than one file",
        ),
    ],
)
def test_a_damaged_pack_is_an_integrity_error(data: bytes, message: str) -> None:
    with pytest.raises(IntegrityError) as refused:
        unpack(data, Digest.of(b"a"))
    assert refused.value.message == message
