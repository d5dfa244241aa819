"""Hunks at their stated place, or at the only other one; every file or none."""

import pytest

from builder.diff import Applied, AppliedFile, Place, SourceText, apply, parse
from builder.digest import Digest
from builder.errors import PatchError, ProjectError
from builder.verdict import Verdict
from tests.diff.images import Image, create, edit
from tests.soon import within

HERE = Place(root="", strip=1)
DRIFT_HINT = "the base differs from the one that the diff was made for: take a diff for this base"
AMBIGUOUS_HINT = "make the diff with more context (git diff -U10), for this base"


def _apply(files: dict[str, bytes], diff: bytes, *, strict: bool = False) -> Applied:
    return apply(parse(diff, at="d"), HERE, read=Image(files).read, strict=strict)


def _refusal(files: dict[str, bytes], diff: bytes, *, strict: bool = False) -> PatchError:
    with pytest.raises(PatchError) as caught:
        _apply(files, diff, strict=strict)
    return caught.value


def _lines(*parts: str | int) -> bytes:
    """Lines of words; a number stands for so many lines that occur once each."""
    lines: list[str] = []
    for part in parts:
        lines += [part] if isinstance(part, str) else [f"{len(lines)}." for _ in range(part)]
    lines = [f"filler {n}" if line.endswith(".") else line for n, line in enumerate(lines)]
    return "".join(f"{line}\n" for line in lines).encode()


HUNK = b"--- a/f\n+++ b/f\n@@ -5,3 +5,3 @@\n x\n-y\n+Y\n z\n"


def test_a_hunk_applies_at_its_stated_place_and_the_image_path_is_joined() -> None:
    data = _lines(4, "x", "y", "z", 3)
    files = {"opt/pkg/f": data}
    applied = apply(parse(HUNK, at="d"), Place(root="opt/pkg", strip=1), read=Image(files).read)
    wanted = _lines(4, "x", "Y", "z", 3)
    assert applied == Applied(
        files=(
            AppliedFile(
                path="opt/pkg/f",
                verdict=Verdict.APPLIED,
                pre=Digest.of(data),
                post=Digest.of(wanted),
                data=wanted,
                offsets=(0,),
            ),
        ),
        ignored=(),
    )


def test_the_time_grows_with_the_hunks_and_not_with_their_square() -> None:
    count = 30_000
    data = b"".join(b"line %d\n" % n for n in range(6 * count))
    hunks = [
        f"@@ -{6 * n + 1},3 +{6 * n + 1},3 @@\n line {6 * n}\n-line {6 * n + 1}\n+new\n"
        f" line {6 * n + 2}\n"
        for n in range(count)
    ]
    parsed = parse(f"--- a/f\n+++ b/f\n{''.join(hunks)}".encode(), at="d")
    with within(2):  # it takes 0.3; with a look back at each hunk, 5
        apply(parsed, HERE, read=Image({"f": data}).read)


def test_a_hunk_moves_to_the_only_place_and_the_offset_is_recorded() -> None:
    (file,) = _apply({"f": _lines(9, "x", "y", "z", 3)}, HUNK).files
    assert (file.verdict, file.offsets) == (Verdict.APPLIED_WITH_OFFSET, (5,))
    assert file.data == _lines(9, "x", "Y", "z", 3)


def test_the_stated_place_wins_over_others() -> None:
    (file,) = _apply({"f": _lines(1, "x", "y", "z", "x", "y", "z", "x", "y", "z", 3)}, HUNK).files
    assert file.offsets == (0,)
    assert file.data == _lines(1, "x", "y", "z", "x", "Y", "z", "x", "y", "z", 3)


def test_strict_forbids_moving() -> None:
    error = _refusal({"f": _lines(9, "x", "y", "z", 3)}, HUNK, strict=True)
    assert (error.verdict, error.path, error.message, error.hint) == (
        Verdict.DRIFT_ANCHOR,
        "f",
        (
            "d:3: 'f': hunk 1 of 1 does not match at line 5: got 'filler 4\\n', wanted 'x\\n'; "
            "moving it is forbidden (strict)"
        ),
        DRIFT_HINT,
    )


def test_two_candidates_are_ambiguous_and_listed() -> None:
    """GNU patch and git take the nearer one: the change lands in the wrong function."""
    body = ("    x = 1", "    y = 2", "    return x + y")
    data = _lines(30, "def first():", *body, 7, "def second():", *body, 4)
    diff = b"--- a/f\n+++ b/f\n@@ -5,3 +5,3 @@\n     x = 1\n-    y = 2\n+    y = 3\n"
    diff += b"     return x + y\n"
    error = _refusal({"f": data}, diff)
    assert (error.verdict, error.message, error.hint) == (
        Verdict.AMBIGUOUS_ANCHOR,
        "d:3: 'f': hunk 1 of 1 does not match at line 5 and matches at lines 32, 43",
        AMBIGUOUS_HINT,
    )


def test_drift_shows_the_first_line_that_differs() -> None:
    error = _refusal({"f": _lines(4, "x", "other", "z", 3)}, HUNK)
    assert (error.verdict, error.message) == (
        Verdict.DRIFT_ANCHOR,
        (
            "d:3: 'f': hunk 1 of 1 does not match at line 6: got 'other\\n', wanted 'y\\n'; "
            "its lines stand nowhere in the file"
        ),
    )


def test_whitespace_is_content() -> None:
    error = _refusal({"f": _lines(4, "x", "y ", "z", 3)}, HUNK)
    assert "got 'y \\n', wanted 'y\\n'" in error.message
    error = _refusal({"f": _lines(4, "x", "y", "z", 3).replace(b"\n", b"\r\n")}, HUNK)
    assert "got 'x\\r\\n', wanted 'x\\n'" in error.message


def test_a_hunk_does_not_move_where_its_new_text_already_stands_at_the_stated_place() -> None:
    data = _lines(4, "x", "Y", "z", 3, "x", "y", "z", 3)
    assert _refusal({"f": data}, HUNK).verdict == Verdict.ALREADY_UPSTREAM
    error = _refusal({"f": data}, HUNK + b"@@ -15,3 +15,3 @@\n p\n-q\n+Q\n r\n")
    assert (error.verdict, error.message) == (
        Verdict.AMBIGUOUS_ANCHOR,
        "d:3: 'f': hunk 1 of 2 matches at line 11, but line 5 has its new text already",
    )


def test_a_hunk_of_line_1_belongs_to_the_beginning() -> None:
    diff = b"--- a/f\n+++ b/f\n@@ -1,2 +1,3 @@\n+import x\n a\n b\n"
    error = _refusal({"f": b"# license\na\nb\nc\n"}, diff)
    assert (error.verdict, error.message) == (
        Verdict.DRIFT_ANCHOR,
        (
            "d:3: 'f': hunk 1 of 1 does not match at line 1: got '# license\\n', wanted 'a\\n'; "
            "at line 2 it would not be at the beginning of the file, where it belongs"
        ),
    )


def test_a_hunk_without_context_behind_it_belongs_to_the_end() -> None:
    diff = b"--- a/f\n+++ b/f\n@@ -2,2 +2,3 @@\n b\n c\n+d\n"
    assert _apply({"f": b"a\nb\nc\n"}, diff).files[0].data == b"a\nb\nc\nd\n"
    moved = _apply({"f": b"0\na\nb\nc\n"}, diff).files[0]
    assert (moved.data, moved.offsets) == (b"0\na\nb\nc\nd\n", (1,))
    error = _refusal({"f": b"a\nb\nc\nmore\n"}, diff)
    assert error.message == (
        "d:3: 'f': hunk 1 of 1 does not match at line 2: 1 lines follow where it says that the "
        "file ends; at line 2 it would not be at the end of the file, where it belongs"
    )


def test_a_hunk_that_moves_keeps_the_border_that_its_context_shows() -> None:
    diff = b"--- a/f\n+++ b/f\n@@ -3,4 +3,4 @@\n a\n b\n-c\n+C\n d\n"
    assert _apply({"f": b"0\na\nb\nc\nd\n"}, diff).files[0].offsets == (-1,)
    error = _refusal({"f": b"0\na\nb\nc\nd\ne\n"}, diff)
    assert error.message.endswith("it would not be at the end of the file, where it belongs")
    diff = b"--- a/f\n+++ b/f\n@@ -3,4 +3,4 @@\n a\n-b\n+B\n c\n d\n"
    assert _apply({"f": b"a\nb\nc\nd\ne\n"}, diff).files[0].offsets == (-2,)
    error = _refusal({"f": b"0\na\nb\nc\nd\ne\n"}, diff)
    assert error.message.endswith("it would not be at the beginning of the file, where it belongs")


def test_hunks_keep_their_order() -> None:
    diff = HUNK + b"@@ -15,3 +15,3 @@\n p\n-q\n+Q\n r\n"
    error = _refusal({"f": _lines(2, "p", "q", "r", 9, "x", "y", "z", 2)}, diff)
    assert (error.verdict, error.message) == (
        Verdict.DRIFT_ANCHOR,
        "d:8: 'f': hunk 2 of 2 matches only at line 3, before the end of the hunk above it",
    )


def test_behind_a_hunk_that_moved_the_stated_place_must_be_the_only_one() -> None:
    diff = HUNK + b"@@ -15,3 +15,3 @@\n p\n-q\n+Q\n r\n"
    data = _lines(7, "x", "y", "z", 4, "p", "q", "r", "p", "q", "r", 3)
    error = _refusal({"f": data}, diff)
    assert (error.verdict, error.message) == (
        Verdict.AMBIGUOUS_ANCHOR,
        "d:8: 'f': hunk 2 of 2 matches at lines 15, 18, and what stands before it has moved",
    )
    data = _lines(7, "x", "y", "z", 4, "p", "q", "r", 3)
    assert _apply({"f": data}, diff).files[0].offsets == (3, 0)


def test_a_hunk_whose_two_starts_disagree_has_no_stated_place() -> None:
    """Somebody cut a hunk out by hand: the old start is right, or the new one."""
    diff = b"--- a/f\n+++ b/f\n@@ -5,3 +8,3 @@\n x\n-y\n+Y\n z\n"
    assert _apply({"f": _lines(4, "x", "y", "z", 3)}, diff).files[0].offsets == (0,)
    error = _refusal({"f": _lines(4, "x", "y", "z", "x", "y", "z", 3)}, diff)
    assert error.verdict == Verdict.AMBIGUOUS_ANCHOR


ZERO = b"--- a/f\n+++ b/f\n@@ -2 +2 @@\n-b\n+B\n@@ -4,0 +5 @@\n+new\n"


def test_hunks_without_context_apply_where_they_say_and_nowhere_else() -> None:
    assert _apply({"f": b"a\nb\nc\nd\ne\n"}, ZERO).files[0].data == b"a\nB\nc\nd\nnew\ne\n"
    error = _refusal({"f": b"a\nc\nb\nd\ne\n"}, ZERO)
    assert (error.verdict, error.message) == (
        Verdict.DRIFT_ANCHOR,
        (
            "d:3: 'f': hunk 1 of 2 does not match at line 2: got 'c\\n', wanted 'b\\n'; "
            "it has no context and cannot move"
        ),
    )


def test_an_insertion_without_context_is_not_made_twice() -> None:
    error = _refusal({"f": b"a\nb\nc\nd\nnew\n"}, ZERO)
    assert (error.verdict, error.message) == (
        Verdict.AMBIGUOUS_ANCHOR,
        "d:6: 'f': hunk 2 of 2 inserts without context what already stands at line 5",
    )


def test_an_insertion_behind_the_end_of_the_file_is_refused() -> None:
    """Git apply --unidiff-zero puts it at the end, wherever that is."""
    error = _refusal({"f": b"a\nb\nc\n"}, ZERO)
    assert error.message == (
        "d:6: 'f': hunk 2 of 2 does not match at line 5: the file has 3 lines; "
        "it has no context and cannot move"
    )


def test_an_insertion_is_not_glued_to_a_last_line_without_a_newline() -> None:
    error = _refusal({"f": b"a\nb\nc\nd"}, ZERO)
    assert error.verdict == Verdict.DRIFT_ANCHOR


def test_a_hunk_that_could_be_a_whole_file_needs_the_whole_file() -> None:
    diff = b"--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n-a\n-b\n+c\n"
    assert _apply({"f": b"a\nb\n"}, diff).files[0].data == b"c\n"
    error = _refusal({"f": b"a\nb\nmore\n"}, diff)
    assert error.message == (
        "d:3: 'f': hunk 1 of 1 does not match at line 1: 1 lines follow where it says that the "
        "file ends; it has no context and cannot move"
    )


@pytest.mark.parametrize(
    "old, lines, new",
    [
        (b"a", b"-a\n\\ No newline\n+a\n", b"a\n"),
        (b"a\n", b"-a\n+a\n\\ No newline\n", b"a"),
        (b"a", b"-a\n\\ No newline\n+b\n\\ No newline\n", b"b"),
    ],
)
def test_the_last_newline_is_exact(old: bytes, lines: bytes, new: bytes) -> None:
    diff = b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n" + lines
    assert _apply({"f": old}, diff).files[0].data == new
    assert _refusal({"f": old + b"\n" if old == b"a" else b"a"}, diff).verdict in (
        Verdict.DRIFT_ANCHOR,
        Verdict.ALREADY_UPSTREAM,
    )


def test_one_file_that_fails_leaves_nothing_of_the_others() -> None:
    error = _refusal({"a": b"a\n", "b": b"other\n"}, edit("a") + edit("b"))
    assert (error.verdict, error.path) == (Verdict.DRIFT_ANCHOR, "b")


def test_a_file_that_is_missing_is_named() -> None:
    error = _refusal({"b": b"a\n"}, edit("a") + edit("b"))
    assert (error.verdict, error.path, error.message) == (
        Verdict.FILE_MISSING,
        "a",
        "d:1: 'a' does not exist, and the diff wants to modify it",
    )


def test_a_new_file_must_not_exist() -> None:
    error = _refusal({"n": b"other\n"}, create("n"))
    assert (error.verdict, error.message) == (
        Verdict.REFUSED,
        "d:1: 'n' exists already, and the diff wants to add it",
    )


def test_a_deletion_needs_the_whole_file() -> None:
    diff = b"--- a/f\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-a\n-b\n"
    (file,) = _apply({"f": b"a\nb\n"}, diff).files
    assert (file.data, file.post, file.pre) == (None, None, Digest.of(b"a\nb\n"))
    error = _refusal({"f": b"a\nb\nmore\n"}, diff)
    assert (error.verdict, error.message) == (
        Verdict.DRIFT_ANCHOR,
        (
            "d:1: 'f' is to be deleted and is not the file that the diff shows, "
            "they differ from line 3"
        ),
    )


RENAME = (
    b"diff --git a/f b/g\nsimilarity index 50%\nrename from f\nrename to g\n"
    b"--- a/f\n+++ b/g\n@@ -1,2 +1,2 @@\n a\n-b\n+B\n"
)


def test_a_rename_gives_two_files_and_keeps_the_mode() -> None:
    image = Image({"f": b"a\nb\n"}, mode=0o755)
    applied = apply(parse(RENAME, at="d"), HERE, read=image.read)
    assert [(f.path, f.previous_path, f.data, f.mode, f.pre) for f in applied.files] == [
        ("f", None, None, None, Digest.of(b"a\nb\n")),
        ("g", "f", b"a\nB\n", 0o755, None),
    ]


def test_a_rename_onto_a_file_is_refused() -> None:
    error = _refusal({"f": b"a\nb\n", "g": b"x\n"}, RENAME)
    assert (error.verdict, error.message) == (
        Verdict.REFUSED,
        "d:1: 'g' exists already, and the diff wants to rename it",
    )


def test_two_files_swap_their_names() -> None:
    section = b"diff --git a/%s b/%s\nsimilarity index 100%%\nrename from %s\nrename to %s\n"
    diff = section % (b"x", b"y", b"x", b"y") + section % (b"y", b"x", b"y", b"x")
    applied = _apply({"x": b"1\n", "y": b"2\n"}, diff)
    assert [(f.path, f.data) for f in applied.files] == [("x", b"2\n"), ("y", b"1\n")]


def test_a_copy_takes_the_source_as_it_was_before_the_commit() -> None:
    copy = b"diff --git a/f b/g\nsimilarity index 100%\ncopy from f\ncopy to g\n"
    applied = _apply({"f": b"a\n"}, edit("f") + copy)
    assert [(f.path, f.data) for f in applied.files] == [("f", b"b\n"), ("g", b"a\n")]


def test_a_commit_reads_what_the_one_before_it_made() -> None:
    """Git apply reads the file on disk for the rename, and loses the edit."""
    rename = b"diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n"
    applied = _apply({"f": b"a\n"}, edit("f") + rename)
    assert [(f.path, f.previous_path, f.data) for f in applied.files] == [
        ("f", None, None),
        ("g", "f", b"b\n"),
    ]


def test_several_commits_to_one_file_are_one_file_with_the_first_pre_image() -> None:
    again = edit("f").replace(b"-a\n+b\n", b"-b\n+c\n")
    (file,) = _apply({"f": b"a\n"}, edit("f") + again).files
    assert (file.pre, file.data, file.offsets) == (Digest.of(b"a\n"), b"c\n", (0, 0))


def test_a_file_that_comes_and_goes_is_no_change() -> None:
    gone = b"--- a/n\n+++ /dev/null\n@@ -1 +0,0 @@\n-new\n"
    assert [file.path for file in _apply({"f": b"a\n"}, create("n") + edit("f") + gone).files] == [
        "f"
    ]
    error = _refusal({"f": b"a\n"}, create("n") + gone)
    assert (error.verdict, error.message) == (
        Verdict.REFUSED,
        "d: the diff changes nothing: its commits undo each other",
    )


def test_a_mode_keeps_the_bits_that_git_does_not_know() -> None:
    diff = parse(b"diff --git a/f b/f\nold mode 100644\nnew mode 100755\n", at="d")
    read = {"f": SourceText(data=b"a\n", mode=0o640)}.get
    (file,) = apply(diff, HERE, read=read).files
    assert (file.mode, file.data) == (0o750, b"a\n")


def test_a_new_executable_file_is_executable() -> None:
    (file,) = _apply({}, create("n").replace(b"100644", b"100755")).files
    assert (file.mode, file.data, file.pre) == (0o755, b"new\n", None)


def test_an_empty_new_file_is_made() -> None:
    diff = b"diff --git a/p/__init__.py b/p/__init__.py\nnew file mode 100644\n"
    (file,) = _apply({}, diff).files
    assert (file.path, file.data, file.mode) == ("p/__init__.py", b"", 0o644)


def test_a_file_may_not_lie_below_a_file() -> None:
    error = _refusal({"f": b"a\n"}, create("f/g"))
    assert error.message == "d: 'f/g' would lie below the file 'f'"


def test_two_names_for_one_file_after_the_strip_are_an_error() -> None:
    diff = b"--- x/old/f\n+++ x/new/f\n@@ -1 +1 @@\n-a\n+b\n"
    with pytest.raises(ProjectError) as caught:
        _apply({"old/f": b"a\n"}, diff)
    assert caught.value.message == (
        "d:1: strip 1 leaves two names for one file, 'old/f' and 'new/f'"
    )


def test_a_thousand_hunks_that_moved_in_a_long_file_take_no_time() -> None:
    lines = [b"line %d\n" % n for n in range(10_000)]
    hunks = [
        b"@@ -%d,3 +%d,3 @@\n %s-%s+changed %d\n %s"
        % (n + 1, n + 1, lines[n], lines[n + 1], n, lines[n + 2])
        for n in range(10, 9_990, 10)
    ]
    diff = parse(b"--- a/f\n+++ b/f\n" + b"".join(hunks), at="d")
    image = Image({"f": b"before\n" * 3 + b"".join(lines)})
    with within(2):
        (file,) = apply(diff, HERE, read=image.read).files
    assert set(file.offsets) == {3}


def test_a_file_of_equal_lines_is_searched_in_linear_time() -> None:
    old = b"".join(b"-x\n" for _ in range(5_000))
    diff = parse(b"--- a/f\n+++ b/f\n@@ -5,5002 +5,2 @@\n a\n" + old + b" b\n", at="d")
    with within(5), pytest.raises(PatchError, match="its lines stand nowhere in the file"):
        apply(diff, HERE, read=Image({"f": b"x\n" * 200_000}).read)
