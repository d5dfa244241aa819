"""Already upstream is proved by a round trip, never guessed."""

import pytest

from builder.diff import Place, apply, parse
from builder.errors import PatchError
from builder.verdict import Verdict
from tests.diff.images import Image, create, edit

HERE = Place(root="", strip=1)
COPY = b"diff --git a/f b/g\nsimilarity index 100%\ncopy from f\ncopy to g\n"
RENAME = b"diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n"
MODE = b"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n"
DELETE = b"--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-a\n"
HUNK = b"--- a/f\n+++ b/f\n@@ -2,3 +2,3 @@\n b\n-c\n+C\n d\n"


def _verdict(files: dict[str, bytes], diff: bytes, *, mode: int = 0o644) -> PatchError:
    with pytest.raises(PatchError) as caught:
        apply(parse(diff, at="d"), HERE, read=Image(files, mode=mode).read)
    return caught.value


def test_the_message_names_all_files_and_the_way_out() -> None:
    error = _verdict({"f": b"b\n", "n": b"new\n"}, edit("f") + create("n"))
    assert (error.verdict, error.path, error.message, error.hint) == (
        Verdict.ALREADY_UPSTREAM,
        None,
        "d: the base has this change already, in all of its files: 'f', 'n'",
        "remove the step, or mark it `until: upstream`",
    )


@pytest.mark.parametrize(
    "files, diff, mode",
    [
        pytest.param({"f": b"b\n"}, edit("f"), 0o644, id="edit"),
        pytest.param({"f": b"0\na\nb\nC\nd\ne\n"}, HUNK, 0o644, id="edit that stands elsewhere"),
        pytest.param({"n": b"new\n"}, create("n"), 0o644, id="new file of equal bytes"),
        pytest.param({"x": b""}, DELETE, 0o644, id="deletion"),
        pytest.param({"g": b"a\n"}, RENAME, 0o644, id="rename"),
        pytest.param({"f": b"a\n", "g": b"a\n"}, COPY, 0o644, id="copy"),
        pytest.param({"f": b"b\n", "g": b"a\n"}, edit("f") + COPY, 0o644, id="copy and edit"),
        pytest.param({"f": b"a\n"}, MODE, 0o755, id="mode"),
        pytest.param({"g": b"b\n"}, edit("f") + RENAME, 0o644, id="two commits"),
    ],
)
def test_a_base_that_has_the_change_is_recognised(
    files: dict[str, bytes], diff: bytes, mode: int
) -> None:
    assert _verdict(files, diff, mode=mode).verdict == Verdict.ALREADY_UPSTREAM


@pytest.mark.parametrize(
    "files, diff, verdict",
    [
        pytest.param({"f": b"c\n"}, edit("f"), Verdict.DRIFT_ANCHOR, id="neither side"),
        pytest.param(
            {"f": b"a\nb\nC\nd\nb\nC\nd\n0\n"},
            HUNK.replace(b"-2,3 +2,3", b"-9,3 +9,3"),
            Verdict.DRIFT_ANCHOR,
            id="the new text stands twice",
        ),
        pytest.param({"n": b"New\n"}, create("n"), Verdict.REFUSED, id="new file of other bytes"),
        pytest.param(
            {"f": b"a\n", "g": b"other\n"}, COPY, Verdict.REFUSED, id="copy of something else"
        ),
    ],
)
def test_what_is_not_proved_keeps_its_own_verdict(
    files: dict[str, bytes], diff: bytes, verdict: Verdict
) -> None:
    assert _verdict(files, diff).verdict == verdict


@pytest.mark.parametrize(
    "files, hunks, verdict",
    [
        pytest.param(
            {"f": b"a\nother\nD\n"},
            b"@@ -2 +1,0 @@\n-b\n@@ -4 +3 @@\n-d\n+D\n",
            Verdict.DRIFT_ANCHOR,
            id="deletion",
        ),
        pytest.param(
            {"f": b"a\nb\nc\nD\n"},
            b"@@ -1,0 +2 @@\n+b\n@@ -3 +4 @@\n-d\n+D\n",
            Verdict.AMBIGUOUS_ANCHOR,
            id="insertion",
        ),
    ],
)
def test_hunks_without_context_prove_nothing_by_lines_that_are_there_or_not(
    files: dict[str, bytes], hunks: bytes, verdict: Verdict
) -> None:
    assert _verdict(files, b"--- a/f\n+++ b/f\n" + hunks).verdict == verdict


def test_a_new_file_of_equal_bytes_and_another_mode_is_not_upstream() -> None:
    assert _verdict({"n": b"new\n"}, create("n"), mode=0o755).verdict == Verdict.REFUSED


def test_a_base_with_a_part_of_the_change_is_an_error_that_names_both_parts() -> None:
    error = _verdict({"f": b"b\n", "g": b"a\n", "h": b"a\n"}, edit("f") + edit("g") + edit("h"))
    assert (error.verdict, error.message, error.hint) == (
        Verdict.REFUSED,
        "d: the base has a part of this change: already upstream are 'f'; not yet 'g', 'h'",
        "take a diff for this base",
    )


def test_a_part_upstream_and_a_part_that_drifted_is_drift() -> None:
    error = _verdict({"f": b"b\n", "g": b"c\n"}, edit("f") + edit("g"))
    assert error.verdict == Verdict.DRIFT_ANCHOR


def test_strict_does_not_hide_that_the_change_is_upstream() -> None:
    image = Image({"f": b"0\na\nb\nC\nd\ne\n"})
    with pytest.raises(PatchError) as caught:
        apply(parse(HUNK, at="d"), HERE, read=image.read, strict=True)
    assert caught.value.verdict == Verdict.ALREADY_UPSTREAM
