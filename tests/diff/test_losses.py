"""Diffs that git apply or GNU patch take, and lose or misplace a part of. We refuse them.

Each test shows first, with the real tool, that it reports success.
"""

import shutil
import subprocess
from pathlib import Path

import pytest

from builder.diff import Place, apply, parse
from builder.errors import BuilderError
from tests.diff.git_oracle import HERE, Git, Tree, patched, read_from
from tests.diff.images import edit

pytestmark = pytest.mark.requires("git", "patch")


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Git:
    return Git(tmp_path_factory.mktemp("git"))


def _gnu_patch(directory: Path, tree: Tree, diff: bytes) -> tuple[int, dict[str, bytes]]:
    work = directory / "work"
    shutil.rmtree(work, ignore_errors=True)
    work.mkdir()
    for path, (data, _) in tree.items():
        (work / path).write_bytes(data)
    done = subprocess.run(
        ["patch", "--batch", "-p1"], cwd=work, input=diff, capture_output=True, check=False
    )
    return done.returncode, {file.name: file.read_bytes() for file in work.iterdir()}


def _file(data: bytes) -> tuple[bytes, bool]:
    return data, False


def _refusal(tree: Tree, diff: bytes) -> str:
    with pytest.raises(BuilderError) as caught:
        apply(parse(diff, at="d"), HERE, read=read_from(tree).get)
    return caught.value.message


def test_git_loses_the_lines_behind_a_count_that_is_too_small(git: Git) -> None:
    tree = {"f": _file(b"a\nb\nc\n")}
    diff = b"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n-a\n+A\n b\n-c\n+C\n"
    assert git.apply(tree, diff) == {"f": _file(b"A\nb\nc\n")}
    assert _refusal(tree, diff) == "d:7: b'-c' after the end of a hunk"


def test_git_makes_a_copy_of_the_old_text_where_a_commit_renames_what_another_edited(
    git: Git,
) -> None:
    tree = {"f": _file(b"a\n")}
    diff = edit("f") + (b"diff --git a/f b/g\nsimilarity index 100%\nrename from f\nrename to g\n")
    assert git.apply(tree, diff) == {"f": _file(b"b\n"), "g": _file(b"a\n")}
    assert patched(tree, parse(diff, at="d")) == {"g": _file(b"b\n")}


def test_git_makes_an_empty_file_where_the_content_was_cut_off(git: Git) -> None:
    diff = b"diff --git a/n b/n\nnew file mode 100644\nindex 0000000..1234567\n"
    assert git.apply({"f": _file(b"")}, diff) == {"f": _file(b""), "n": _file(b"")}
    assert _refusal({}, diff) == "d:1: 'b/n' has content that the diff does not carry"


def test_git_takes_the_nearer_of_two_places(git: Git) -> None:
    body = b"p\nx\ny\nz\n"
    tree = {"f": _file(b"0\n1\n2\n" + body + b"3\n4\n5\n" + body + b"6\n")}
    diff = b"--- a/f\n+++ b/f\n@@ -2,3 +2,3 @@\n x\n-y\n+Y\n z\n"
    after = git.apply(tree, diff)
    assert after is not None
    assert after["f"][0].index(b"Y") < after["f"][0].index(b"y")
    assert _refusal(tree, diff) == (
        "d:3: 'f': hunk 1 of 1 does not match at line 2 and matches at lines 5, 12"
    )


def test_git_puts_what_belongs_behind_the_end_at_the_end(git: Git) -> None:
    tree = {"f": _file(b"a\n")}
    diff = b"--- a/f\n+++ b/f\n@@ -9,0 +10 @@\n+new\n"
    assert git.apply(tree, diff, "--unidiff-zero") == {"f": _file(b"a\nnew\n")}
    assert "the file has 1 lines" in _refusal(tree, diff)


def test_patch_keeps_one_file_of_two_and_leaves_litter(tmp_path: Path) -> None:
    tree = {"f": _file(b"a\n"), "g": _file(b"other\n")}
    status, after = _gnu_patch(tmp_path, tree, edit("f") + edit("g"))
    assert (status, after["f"], sorted(after)) == (1, b"b\n", ["f", "g", "g.orig", "g.rej"])
    assert "'g': hunk 1 of 1 does not match" in _refusal(tree, edit("f") + edit("g"))


def test_patch_takes_a_diff_that_a_message_quotes(tmp_path: Path) -> None:
    tree = {"f": _file(b"a\n"), "g": _file(b"quoted\n")}
    quoted = b"--- a/g\n+++ b/g\n@@ -1 +1 @@\n-quoted\n+taken\n"
    mail = b"From: A\nSubject: s\n\nsee\n" + quoted + b"---\n\n" + edit("f") + b"-- \n2.39.5\n"
    status, after = _gnu_patch(tmp_path, tree, mail)
    assert (status, after["g"]) == (0, b"taken\n")
    assert patched(tree, parse(mail, at="d")) == {"f": _file(b"b\n"), "g": _file(b"quoted\n")}


def test_patch_ignores_context_that_differs(tmp_path: Path) -> None:
    """Its fuzz is 2 unless it is told otherwise."""
    tree = {"f": _file(b"1\n2\nother\na\n5\n6\n7\n")}
    diff = b"--- a/f\n+++ b/f\n@@ -1,7 +1,7 @@\n 1\n 2\n 3\n-a\n+b\n 5\n 6\n 7\n"
    status, after = _gnu_patch(tmp_path, {"f": _file(b"x\n2\n3\na\n5\n6\n7\n")}, diff)
    assert (status, after["f"]) == (0, b"x\n2\n3\nb\n5\n6\n7\n")
    assert "got 'other\\n', wanted '3\\n'" in _refusal(tree, diff)


def test_git_writes_through_a_mark_that_hides_the_first_section(git: Git) -> None:
    mode = b"\xef\xbb\xbfdiff --git a/f b/f\nold mode 100644\nnew mode 100755\n"
    tree = {"f": _file(b"a\n"), "g": _file(b"a\n")}
    assert git.apply(tree, mode + edit("g")) == {"f": _file(b"a\n"), "g": _file(b"b\n")}
    assert _refusal(tree, mode + edit("g")) == (
        "d: the diff starts with the byte order mark of UTF-8: it was converted"
    )


def test_the_same_diff_is_taken_where_nothing_is_lost(git: Git) -> None:
    tree = {"f": _file(b"a\n"), "g": _file(b"a\n")}
    assert patched(tree, parse(edit("f") + edit("g"), at="d"), Place(root="", strip=1)) == (
        git.apply(tree, edit("f") + edit("g"))
    )
