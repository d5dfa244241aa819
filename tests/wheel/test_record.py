"""RECORD: reading it, writing it, and keeping it true after a patch."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.python_layout import from_statement
from builder.record import Row, encode, encoded, parse

PACKAGES = "usr/local/lib/python3.12/dist-packages"
LAYOUT = from_statement("3.12", PACKAGES, at="python")
RECORD = f"{PACKAGES}/vllm-1.0.dist-info/RECORD"
NO_HASH = "expected 32 bytes in urlsafe base64"
NO_TEXT = "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"
TUNED = "vllm/configs/E=256,N=512,device_name=X.json"


def line(path: str, data: bytes) -> bytes:
    name = f'"{path}"' if "," in path else path
    return f"{name},sha256={encoded(Digest.of(data))},{len(data)}".encode()


@pytest.mark.parametrize(
    "data, message",
    [
        (b"a\n", "R:1: expected path,hash,size, got 'a'"),
        (b"a,,\n\nb,c,d,e\n", "R:2: expected path,hash,size, got 'b,c,d,e'"),
        (b",,\n", "R:1: expected path,hash,size, got ',,'"),
        (b"a,sha256=abc,1\n", f"R:1: 'a': hash: {NO_HASH}, got 'sha256=abc'"),
        (b"a,sha1=abc,1\n", "R:1: 'a': hash: expected sha256, got 'sha1=abc'"),
        (b"a,,-1\n", "R:1: 'a': size: expected a count of bytes, got '-1'"),
        (b"a,,%b\n" % (19 * b"9"),
         f"R:1: 'a': size: expected a count of bytes, got '{19 * '9'}'"),
        (b"a,,\nb,,\na,,\n", "R: 'a' stands there twice"),
        (b"\xff,,\n", f"R: not UTF-8: {NO_TEXT}"),
    ],
)  # fmt: skip
def test_what_is_no_record_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(IntegrityError) as caught:
        parse(data, at="R")
    assert caught.value.message == message


NAMES = st.text(
    st.characters(exclude_characters="\0\r\n", exclude_categories=["Cs"]), min_size=1, max_size=20
)


@given(st.dictionaries(NAMES, st.none() | st.binary(max_size=8), max_size=6))
@settings(max_examples=60)
def test_what_is_written_is_read_back_by_us_and_by_csv(files: dict[str, bytes | None]) -> None:
    rows = [
        Row(path) if data is None else Row(path, Digest.of(data), len(data))
        for path, data in files.items()
    ]
    data = encode(rows)
    assert parse(data, at="RECORD") == tuple(sorted(rows, key=lambda row: row.path))
    read = csv.reader(io.StringIO(data.decode(), newline=""))
    assert [fields[0] for fields in read] == sorted(files)
