"""The digest of a diff's meaning: equal for every dress, different for every change."""

import dataclasses
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.diff import ChangeKind, Diff, FileChange, Hunk, Line, canonical, parse
from builder.errors import ProjectError
from tests.diff.git_oracle import Git
from tests.diff.images import create, edit

BODY = (
    b"diff --git a/f.py b/f.py\nindex 123456789..abcdef012 100644\n--- a/f.py\n+++ b/f.py\n"
    b"@@ -1,3 +1,3 @@ def f():\n a\n-b\n+c\n d\n"
)
MAIL = b"From: A <a@example.org>\nSubject: s\n\nwhy\n---\n\n" + BODY + b"-- \n2.39.5\n"


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(
            BODY.replace(b"123456789..abcdef012", b"1234567890..abcdef0123"), id="longer ids"
        ),
        pytest.param(BODY.replace(b"index 123456789..abcdef012 100644\n", b""), id="no ids"),
        pytest.param(BODY.replace(b" def f():", b""), id="no section heading"),
        pytest.param(b"prose\n\n" + BODY, id="prose"),
        pytest.param(MAIL, id="mail"),
        pytest.param(MAIL.replace(b"2.39.5", b"2.47.0"), id="mail of another git"),
        pytest.param(BODY.split(b"100644\n")[1], id="no git header"),
    ],
)
def test_dress_does_not_count(other: bytes) -> None:
    assert canonical(parse(other, at="d")) == canonical(parse(BODY, at="d"))


def test_the_order_of_files_does_not_count() -> None:
    one, other = edit("a.py") + create("b.py"), create("b.py") + edit("a.py")
    assert canonical(parse(one, at="d")) == canonical(parse(other, at="d"))


def test_the_order_of_changes_to_one_file_counts() -> None:
    back = edit("a.py").replace(b"-a\n+b\n", b"-b\n+a\n")
    one, other = edit("a.py") + back, back + edit("a.py")
    assert canonical(parse(one, at="d")) != canonical(parse(other, at="d"))


def test_how_independent_commits_are_cut_does_not_count() -> None:
    head = b"commit " + b"1" * 40 + b"\n\n"
    one = head + edit("a.py") + b"\n" + head + edit("b.py")
    assert canonical(parse(one, at="d")) == canonical(parse(edit("a.py") + edit("b.py"), at="d"))


@pytest.mark.parametrize(
    "old, new",
    [
        pytest.param(b"-b\n", b"-b \n", id="a blank in a removed line"),
        pytest.param(b" a\n", b"  a\n", id="a blank in the context"),
        pytest.param(b"+c\n", b"+c\r\n", id="a carriage return"),
        pytest.param(b" d\n", b" d\n\\ No newline at end of file\n", id="the last newline"),
        pytest.param(b"@@ -1,3 +1,3 @@", b"@@ -2,3 +2,3 @@", id="position"),
        pytest.param(b"f.py", b"g.py", id="path"),
        pytest.param(b"a/f.py", b"x/f.py", id="prefix"),
        pytest.param(b"index", b"old mode 100644\nnew mode 100755\nindex", id="mode"),
    ],
)
def test_every_byte_of_meaning_counts(old: bytes, new: bytes) -> None:
    changed = BODY.replace(old, new)
    assert changed != BODY
    assert canonical(parse(changed, at="d")) != canonical(parse(BODY, at="d"))


@settings(max_examples=200)
@given(at=st.integers(0, len(BODY) - 1), byte=st.integers(0, 255))
def test_no_byte_of_the_content_can_change_unseen(at: int, byte: int) -> None:
    start = BODY.index(b"f():\n") + 5  # the lines behind @@, each with its operation
    at = max(at, start)
    changed = BODY[:at] + bytes([byte]) + BODY[at + 1 :]
    try:
        other = canonical(parse(changed, at="d"))
    except ProjectError:
        return
    assert (other == canonical(parse(BODY, at="d"))) == (changed == BODY)


def test_all_that_git_may_be_set_to_gives_the_same_digest(tmp_path: Path) -> None:
    """One change as different versions, sizes of repositories and settings of git print it."""
    git = Git(tmp_path)
    lines = b"".join(b"line %d\n" % n for n in range(40))
    old = {"a.py": (b"def f():\n" + lines, False), "b.sh": (b"x\n", False), "d": (b"gone\n", False)}
    new = {
        "a.py": (b"def f():\n" + lines.replace(b"30", b"thirty"), False),
        "b.sh": (b"x\n", True),
        "c \u00fc.py": (b"new", False),
    }
    (tmp_path / "order").write_text("d\nc*\nb.sh\na.py\n")
    plain = canonical(parse(git.diff(old, new), at="d"))
    for options in (
        ("--full-index",),
        ("--abbrev=7",),
        ("--abbrev=11",),
        (f"-O{tmp_path / 'order'}",),
        ("--stat", "--patch"),
        ("--no-indent-heuristic",),
        ("--diff-algorithm=histogram",),
    ):
        assert canonical(parse(git.diff(old, new, *options), at="d")) == plain
    mail = git.mails([old, new], [b"subject\n\nwhy\n"])
    assert canonical(parse(mail, at="d")) == plain


BASE = FileChange(kind=ChangeKind.MODIFY, old_path="a/f", new_path="b/f")
HUNK = Hunk(old_start=1, old_count=1, new_start=1, new_count=1, lines=(Line("-", b"a\n"),))
OTHER: dict[str, Any] = {
    "kind": ChangeKind.ADD,
    "old_path": "a/g",
    "new_path": "b/lat\udce9",
    "old_mode": 0o100644,
    "new_mode": 0o100755,
    "hunks": (HUNK,),
    "unfit": "a binary file",
    "payload": b"literal 0",
}
DRESS = {"line", "commit"}


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(FileChange)])
def test_every_field_of_a_change_is_in_the_digest_or_is_dress(field: str) -> None:
    if field in DRESS:
        return
    changed = dataclasses.replace(BASE, **{field: OTHER[field]})
    assert canonical(Diff(changes=(changed,))) != canonical(Diff(changes=(BASE,)))


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(Hunk) if f.name != "line"])
def test_every_field_of_a_hunk_is_in_the_digest(field: str) -> None:
    value: Any = (Line("+", b"a\n"),) if field == "lines" else 7
    one = dataclasses.replace(BASE, hunks=(HUNK,))
    other = dataclasses.replace(BASE, hunks=(dataclasses.replace(HUNK, **{field: value}),))
    assert canonical(Diff(changes=(one,))) != canonical(Diff(changes=(other,)))


def test_the_digest_of_a_diff_never_changes() -> None:
    """Locks hold this digest: another value here makes every pinned diff look changed."""
    golden = "sha256:4d594eb86c68d03dc497bfbd4909875305876392715512e2bf3b985db13f0bd9"
    assert str(canonical(parse(BODY, at="d"))) == golden
