"""RECORD: reading it, writing it, and keeping it true after a patch."""

import csv
import io

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.changes import Inline
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.python_layout import from_statement
from builder.record import Row, encode, encoded, parse, update_record
from tests.wheel.views import Image

PACKAGES = "usr/local/lib/python3.12/dist-packages"
LAYOUT = from_statement("3.12", PACKAGES)
RECORD = f"{PACKAGES}/vllm-1.0.dist-info/RECORD"
NO_HASH = "expected 32 bytes in urlsafe base64"
NO_TEXT = "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte"
TUNED = "vllm/configs/E=256,N=512,device_name=X.json"


def line(path: str, data: bytes) -> bytes:
    name = f'"{path}"' if "," in path else path
    return f"{name},sha256={encoded(Digest.of(data))},{len(data)}".encode()


def image(record: bytes, *, others: dict[str, bytes] | None = None) -> Image:
    files = {f"{PACKAGES}/{name}": b"old" for name in ("vllm/a.py", "vllm/b.py", TUNED)}
    files[f"{PACKAGES}/vllm/__pycache__/a.cpython-312.pyc"] = b"old"
    files["usr/local/bin/vllm"] = b"old"
    return Image(files | {RECORD: record} | (others or {}))


@pytest.mark.parametrize("end", [b"\n", b"\r\n"], ids=["LF", "CR LF"])
def test_rows_of_changed_files_follow_and_all_other_bytes_stay(end: bytes) -> None:
    before = end.join(
        [
            line("vllm/b.py", b"old"),
            line(TUNED, b"old"),
            b"vllm/__pycache__/a.cpython-312.pyc,,",
            line("vllm/a.py", b"old"),
            b'"odd quoting",,',
            b"vllm-1.0.dist-info/RECORD,,",
            b"",
        ]
    )
    changed = {
        f"{PACKAGES}/{TUNED}": Inline(b"new tuned"),
        f"{PACKAGES}/vllm/a.py": Inline(b"new"),
        f"{PACKAGES}/vllm/__pycache__/a.cpython-312.pyc": None,
        f"{PACKAGES}/vllm/new.py": Inline(b"not of the project"),
        "etc/passwd": Inline(b"elsewhere"),
    }
    (put,) = update_record(image(before), LAYOUT, changed)
    assert (put.path, put.mode) == (RECORD, None)
    assert put.content.open().read() == end.join(
        [
            line("vllm/b.py", b"old"),
            line(TUNED, b"new tuned"),
            line("vllm/a.py", b"new"),
            b'"odd quoting",,',
            b"vllm-1.0.dist-info/RECORD,,",
            b"",
        ]
    )


def test_a_record_without_a_last_line_end_keeps_that() -> None:
    before = line("vllm/b.py", b"old") + b"\n" + line("vllm/a.py", b"old")
    (put,) = update_record(image(before), LAYOUT, {f"{PACKAGES}/vllm/a.py": Inline(b"new")})
    assert put.content.open().read() == (
        line("vllm/b.py", b"old") + b"\n" + line("vllm/a.py", b"new")
    )


def test_replaced_bytecode_keeps_its_open_row() -> None:
    before = b"vllm/__pycache__/a.cpython-312.pyc,,\n"
    changed = {f"{PACKAGES}/vllm/__pycache__/a.cpython-312.pyc": Inline(b"new")}
    assert update_record(image(before), LAYOUT, changed) == ()


def test_the_project_of_the_same_name_is_read_first_and_alone() -> None:
    others = {f"{PACKAGES}/aaa-1.dist-info/RECORD": b"", f"{PACKAGES}/zzz-1.dist-info/RECORD": b""}
    view = image(line("vllm/a.py", b"old") + b"\n", others=others)
    assert update_record(view, LAYOUT, {f"{PACKAGES}/vllm/a.py": Inline(b"new")})
    assert view.reads == [RECORD]


def test_a_new_file_costs_no_reading() -> None:
    view = image(b"")
    assert update_record(view, LAYOUT, {f"{PACKAGES}/vllm/new.py": Inline(b"new")}) == ()
    assert view.reads == []


def test_files_of_several_projects_each_change_their_own_record() -> None:
    others = {
        f"{PACKAGES}/other-1.dist-info/RECORD": line("shared.py", b"old") + b"\n",
        f"{PACKAGES}/shared.py": b"old",
        f"{PACKAGES}/broken-1.dist-info/METADATA": b"no RECORD here",
    }
    view = image(line("vllm/a.py", b"old") + b"\n", others=others)
    changed = {f"{PACKAGES}/vllm/a.py": Inline(b"new"), f"{PACKAGES}/shared.py": None}
    puts = update_record(view, LAYOUT, changed)
    assert [(put.path, put.content.open().read()) for put in puts] == [
        (f"{PACKAGES}/other-1.dist-info/RECORD", b""),
        (RECORD, line("vllm/a.py", b"new") + b"\n"),
    ]


def test_a_broken_row_of_a_changed_file_is_an_error() -> None:
    with pytest.raises(IntegrityError) as caught:
        update_record(
            image(b'ok,,\n"vllm/a.py,x\n'), LAYOUT, {f"{PACKAGES}/vllm/a.py": Inline(b"new")}
        )
    assert caught.value.message == f"{RECORD}:2: expected path,hash,size, got '\"vllm/a.py,x'"


@pytest.mark.parametrize(
    "data, message",
    [
        (b"a\n", "R:1: expected path,hash,size, got 'a'"),
        (b"a,,\n\nb,c,d,e\n", "R:2: expected path,hash,size, got 'b,c,d,e'"),
        (b",,\n", "R:1: expected path,hash,size, got ',,'"),
        (b"a,sha256=abc,1\n", f"R:1: 'a': hash: {NO_HASH}, got 'sha256=abc'"),
        (b"a,sha1=abc,1\n", "R:1: 'a': hash: expected sha256, got 'sha1=abc'"),
        (b"a,,-1\n", "R:1: 'a': size: expected a count of bytes, got '-1'"),
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
@settings(max_examples=60, deadline=None)
def test_what_is_written_is_read_back_by_us_and_by_csv(files: dict[str, bytes | None]) -> None:
    rows = [
        Row(path) if data is None else Row(path, Digest.of(data), len(data))
        for path, data in files.items()
    ]
    data = encode(rows)
    assert parse(data, at="RECORD") == tuple(sorted(rows, key=lambda row: row.path))
    read = csv.reader(io.StringIO(data.decode(), newline=""))
    assert [fields[0] for fields in read] == sorted(files)
