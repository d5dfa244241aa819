"""Bytes to a Diff: every form that git and diff write, and a line number for all others."""

import re

import pytest

from builder.diff import ChangeKind, FileChange, Hunk, Line, parse
from builder.errors import ProjectError

ZOO = (
    b"prose before the diff, with - dashes\n- and a list\n\n"
    b"diff --git a/pkg/__init__.py b/pkg/__init__.py\n"
    b"new file mode 100644\nindex 0000000..e69de29\n"
    b"diff --git a/old.py b/new.py\n"
    b"similarity index 100%\nrename from old.py\nrename to new.py\n"
    b"diff --git a/one.py b/two.py\n"
    b"similarity index 66%\nrename from one.py\nrename to two.py\nindex 1111111..2222222 100644\n"
    b"--- a/one.py\n+++ b/two.py\n@@ -1,2 +1,2 @@ def f():\n a\n-b\n+c\n"
    b"diff --git a/one.py b/three.py\n"
    b"similarity index 100%\ncopy from one.py\ncopy to three.py\n"
    b"diff --git a/run me.sh b/run me.sh\nold mode 100644\nnew mode 100755\n"
    b"diff --git a/gone.py b/gone.py\n"
    b"deleted file mode 100644\nindex 1111111..0000000\n"
    b"--- a/gone.py\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n\\ No newline at end of file\n"
    b'diff --git "a/na\\303\\257ve tpl.jinja" "b/na\\303\\257ve tpl.jinja"\n'
    b"index 1111111..2222222 100644\n"
    b'--- "a/na\\303\\257ve tpl.jinja"\n+++ "b/na\\303\\257ve tpl.jinja"\t\n'
    b"@@ -1 +1 @@\n-a\x0cb\xe2\x80\xa8c\rd\n+e\r\n"
)


def _hunk(old: tuple[int, int], new: tuple[int, int], *lines: tuple[str, bytes]) -> Hunk:
    return Hunk(
        old_start=old[0],
        old_count=old[1],
        new_start=new[0],
        new_count=new[1],
        lines=tuple(Line(op, text) for op, text in lines),
    )


def test_every_kind_of_git_section_becomes_one_change() -> None:
    assert parse(ZOO, at="zoo").changes == (
        FileChange(
            kind=ChangeKind.ADD,
            old_path=None,
            new_path="b/pkg/__init__.py",
            new_mode=0o100644,
        ),
        FileChange(kind=ChangeKind.RENAME, old_path="a/old.py", new_path="b/new.py"),
        FileChange(
            kind=ChangeKind.RENAME,
            old_path="a/one.py",
            new_path="b/two.py",
            hunks=(_hunk((1, 2), (1, 2), (" ", b"a\n"), ("-", b"b\n"), ("+", b"c\n")),),
        ),
        FileChange(kind=ChangeKind.COPY, old_path="a/one.py", new_path="b/three.py"),
        FileChange(
            kind=ChangeKind.MODE,
            old_path="a/run me.sh",
            new_path="b/run me.sh",
            old_mode=0o100644,
            new_mode=0o100755,
        ),
        FileChange(
            kind=ChangeKind.DELETE,
            old_path="a/gone.py",
            new_path=None,
            old_mode=0o100644,
            hunks=(_hunk((1, 1), (0, 0), ("-", b"x")),),
        ),
        FileChange(
            kind=ChangeKind.MODIFY,
            old_path="a/naïve tpl.jinja",
            new_path="b/naïve tpl.jinja",
            hunks=(_hunk((1, 1), (1, 1), ("-", b"a\x0cb\xe2\x80\xa8c\rd\n"), ("+", b"e\r\n")),),
        ),
    )


def test_a_change_and_a_hunk_know_their_line() -> None:
    modified = parse(ZOO, at="zoo").changes[2]
    assert (modified.line, modified.hunks[0].line) == (11, 18)


def test_a_plain_diff_has_time_stamps_and_only_dev_null_is_absent() -> None:
    diff = parse(
        b"diff -ruN old/a b.py new/a b.py\n"
        b"--- old/a b.py\t2024-01-01 00:00:00.000000000 +0000\n"
        b"+++ new/a b.py\t2024-01-02 00:00:00.000000000 +0000\n@@ -1 +1 @@\n-a\n+b\n"
        b"--- /dev/null\t1970-01-01 00:00:00.000000000 +0000\n+++ new/n.py\n@@ -0,0 +1 @@\n+n\n"
        b"--- old/e.py\t1970-01-01 00:00:00.000000000 +0000\n+++ new/e.py\n@@ -0,0 +1 @@\n+e\n",
        at="plain",
    )
    assert [(c.kind, c.old_path, c.new_path) for c in diff.changes] == [
        (ChangeKind.MODIFY, "old/a b.py", "new/a b.py"),
        (ChangeKind.ADD, None, "new/n.py"),
        (ChangeKind.MODIFY, "old/e.py", "new/e.py"),
    ]


def test_an_empty_line_in_a_hunk_is_context_whose_blank_was_stripped() -> None:
    one = parse(b"--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n\n-b\n+c\n", at="d")
    other = parse(b"--- a/f\n+++ b/f\n@@ -1,3 +1,3 @@\n a\n \n-b\n+c\n", at="d")
    assert one == other


@pytest.mark.parametrize(
    "lines, texts",
    [
        pytest.param(
            b"-a\n\\ No newline at end of file\n+a\n", [b"a", b"a\n"], id="only the old lacked it"
        ),
        pytest.param(
            b"-a\n+a\n\\ Kein Zeilenumbruch\n", [b"a\n", b"a"], id="only the new lacks it"
        ),
        pytest.param(
            b"-a\n\\ No newline at end of file\n+b\n\\ No newline at end of file\n",
            [b"a", b"b"],
            id="both lack it",
        ),
    ],
)
def test_a_missing_newline_belongs_to_the_line_above(lines: bytes, texts: list[bytes]) -> None:
    (change,) = parse(b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n" + lines, at="d").changes
    assert [line.text for line in change.hunks[0].lines] == texts


def test_sections_of_one_file_in_a_row_are_commits_one_after_the_other() -> None:
    edit = b"--- a/f\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n"
    other = edit.replace(b"/f\n", b"/g\n")
    diff = parse(edit + other + edit + other, at="d")
    assert [change.commit for change in diff.changes] == [0, 0, 1, 1]


def test_git_show_output_is_one_commit_for_each_header() -> None:
    edit = b"commit %s\nAuthor: A\n\n    - a list\n    +++ not a header\n\ndiff --git a/%s b/%s\n"
    body = b"old mode 100644\nnew mode 100755\n\n"
    data = edit % (b"1" * 40, b"f", b"f") + body + edit % (b"2" * 40, b"g", b"g") + body
    assert [change.commit for change in parse(data, at="d").changes] == [0, 1]


def test_two_files_may_swap_their_names_in_one_commit() -> None:
    section = b"diff --git a/%s b/%s\nsimilarity index 100%%\nrename from %s\nrename to %s\n"
    data = section % (b"x", b"y", b"x", b"y") + section % (b"y", b"x", b"y", b"x")
    assert [change.commit for change in parse(data, at="d").changes] == [0, 0]


@pytest.mark.parametrize(
    "section, unfit",
    [
        pytest.param(
            b"index 1111111..2222222 100644\nBinary files a/f and b/f differ\n",
            "a binary file without its content",
            id="binary without payload",
        ),
        pytest.param(
            b"index 1111111..2222222 100644\nGIT binary patch\nliteral 1\nIcmZPo\n\n"
            b"literal 0\nHcmV?d00001\n\n",
            "a binary file",
            id="binary with payload",
        ),
        pytest.param(
            b"new file mode 120000\nindex 0000000..1111111\n--- /dev/null\n+++ b/f\n"
            b"@@ -0,0 +1 @@\n+target\n\\ No newline at end of file\n",
            "a symbolic link",
            id="link",
        ),
        pytest.param(
            b"index 1111111..2222222 120000\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-x\n"
            b"\\ No newline at end of file\n+y\n\\ No newline at end of file\n",
            "a symbolic link",
            id="link that changes its target",
        ),
        pytest.param(
            b"index 1111111..2222222 160000\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n"
            b"-Subproject commit 1\n+Subproject commit 2\n",
            "a submodule",
            id="submodule",
        ),
    ],
)
def test_what_no_package_can_take_is_marked_and_the_rest_is_read(
    section: bytes, unfit: str
) -> None:
    next_one = b"diff --git a/g b/g\nold mode 100644\nnew mode 100755\n"
    diff = parse(b"diff --git a/f b/f\n" + section + next_one, at="d")
    assert [(change.path, change.unfit) for change in diff.changes] == [("b/f", unfit), ("b/g", "")]


GIT = b"diff --git a/f b/f\n"
MARKS = b"--- a/f\n+++ b/f\n"
EDIT = MARKS + b"@@ -1 +1 @@\n-a\n+b\n"


@pytest.mark.parametrize(
    "data, message",
    [
        pytest.param(b"", "d:1: no change in the whole diff", id="nothing"),
        pytest.param(b"only prose\n", "d:1: no change in the whole diff", id="only prose"),
        pytest.param(
            GIT + b"index 1111111..2222222 100644\n",
            "d:1: a section without any operation",
            id="section without operation",
        ),
        pytest.param(GIT + MARKS, "d:1: a file header without a hunk", id="header alone"),
        pytest.param(MARKS, "d:1: a file header without a hunk", id="plain header alone"),
        pytest.param(
            MARKS + b"@@ -1,2 +1,2 @@\n a\n-b\n",
            "d:3: the diff ends inside a hunk, 0 old and 1 new lines are missing",
            id="truncated hunk",
        ),
        pytest.param(
            MARKS + b"@@ -1 +1 @@\n-a\n+b",
            "d:3: the diff ends inside a hunk, 0 old and 1 new lines are missing",
            id="truncated line",
        ),
        pytest.param(
            GIT + b"old mode 100644\nnew mode 100755",
            "d:3: the diff ends inside a header",
            id="truncated header",
        ),
        pytest.param(
            MARKS + b"@@ -1 +1,2 @@\n-a\n+b\ngarbage\n",
            "d:6: b'garbage' inside the hunk of line 3, 0 old and 1 new lines are missing",
            id="garbage in a hunk",
        ),
        pytest.param(
            MARKS + b"@@ -1 +1 @@\n-a\n-b\n",
            "d:5: more lines than the hunk header of line 3 counts",
            id="count too small, inside",
        ),
        pytest.param(
            EDIT + b"+c\n", "d:6: b'+c' after the end of a hunk", id="count too small, behind"
        ),
        pytest.param(
            EDIT + b"\n-c\n", "d:7: b'-c' after the end of a hunk", id="too small, after a blank"
        ),
        pytest.param(
            EDIT + b"@@ nonsense\n", "d:6: not a hunk header: b'@@ nonsense'", id="header"
        ),
        pytest.param(
            MARKS + b"@@ -5 +5 @@\n-a\n+b\n@@ -5 +5 @@\n-a\n+b\n",
            "d:6: a hunk at -5 +5 overlaps the one before, which ends at -5 +5",
            id="overlap",
        ),
        pytest.param(
            MARKS + b"@@ -5 +5 @@\n-a\n+b\n@@ -2 +2 @@\n-a\n+b\n",
            "d:6: a hunk at -2 +2 overlaps the one before, which ends at -5 +5",
            id="backwards",
        ),
        pytest.param(
            MARKS + b"@@ -0 +1 @@\n-a\n+b\n",
            "d:3: a hunk with lines at line 0: b'@@ -0 +1 @@'",
            id="line 0",
        ),
        pytest.param(
            MARKS + b"@@ -1 +1 @@\n a\n", "d:3: a hunk that changes nothing", id="only context"
        ),
        pytest.param(
            MARKS + b"@@ -1 +1 @@\n-a\n+a\n", "d:3: a hunk that changes nothing", id="a for a"
        ),
        pytest.param(
            MARKS + b"@@ -1,2 +1 @@\n-a\n\\ No newline at end of file\n-b\n+c\n",
            "d:6: a line after the one without a newline at the end of the file",
            id="line after the last",
        ),
        pytest.param(
            MARKS + b"@@ -1 +1 @@\n-a\n+b\n\\ No newline at end of file\n@@ -9 +9 @@\n-a\n+b\n",
            "d:7: a hunk after the one that ends the file",
            id="hunk after the last",
        ),
        pytest.param(
            b"diff --cc f\nindex 1,2..3\n", "d:1: a combined diff (of a merge)", id="combined"
        ),
        pytest.param(
            MARKS + b"@@@ -1,1 -1,1 +1,1 @@@\n- a\n",
            "d:3: a hunk of a combined diff (of a merge)",
            id="combined hunk",
        ),
        pytest.param(b"@@ -1 +1 @@\n-a\n+b\n", "d:1: a hunk without a file header", id="no header"),
        pytest.param(
            b"diff --git a/f b/f\n--- a/g\n+++ b/f\n@@ -1 +1 @@\n-a\n+b\n",
            "d:1: b'diff --git a/f b/f' does not agree with the lines below it",
            id="names disagree",
        ),
        pytest.param(
            b"diff --git a/f b/g\n--- a/f\n+++ b/g\n@@ -1 +1 @@\n-a\n+b\n",
            "d:1: b'diff --git a/f b/g' does not agree with the lines below it",
            id="another name without a rename",
        ),
        pytest.param(
            b"diff --git a/d/f b/d/g\nsimilarity index 100%\nrename from f\nrename to g\n",
            "d:1: b'diff --git a/d/f b/d/g' does not agree with the lines below it",
            id="rename disagrees",
        ),
        pytest.param(
            b"--- a/f.py.orig\n+++ b/f.py\n@@ -1 +1 @@\n-a\n+b\n",
            "d:1: the header names two files, 'a/f.py.orig' and 'b/f.py'",
            id="orig",
        ),
        pytest.param(
            b"--- /dev/null\n+++ /dev/null\n@@ -1 +1 @@\n-a\n+b\n",
            "d:1: /dev/null on both sides",
            id="null twice",
        ),
        pytest.param(
            GIT + b"new file mode 100644\n" + EDIT,
            "d:5: a creation whose hunk is not all of the file",
            id="creation with old lines",
        ),
        pytest.param(
            GIT + b"new file mode 100644\n" + MARKS + b"@@ -0,0 +1 @@\n+a\n",
            "d:1: /dev/null where a file stays, or a name where there is none",
            id="creation of a name",
        ),
        pytest.param(
            GIT + b"new file mode 100644\nindex 0000000..1234567\n",
            "d:1: 'b/f' has content that the diff does not carry",
            id="content of a creation is lost",
        ),
        pytest.param(
            GIT + b"deleted file mode 100644\nindex 1234567..0000000\n",
            "d:1: 'a/f' has content that the diff does not carry",
            id="content of a deletion is left out",
        ),
        pytest.param(
            b"diff --git a/f b/g\nsimilarity index 90%\nrename from f\nrename to g\n",
            "d:1: 'b/g' has content that the diff does not carry",
            id="hunks of a rename are lost",
        ),
        pytest.param(
            GIT + b"old mode 100644\n" + EDIT,
            "d:1: one of 'old mode' and 'new mode' without the other",
            id="half of a mode",
        ),
        pytest.param(
            GIT + b"new file mode 100644\ndeleted file mode 100644\n",
            "d:1: header lines that contradict each other",
            id="new and deleted",
        ),
        pytest.param(
            GIT + b"old mode 100644\nnew mode 100777\n",
            "d:1: mode '100777', wanted 100644 or 100755",
            id="mode",
        ),
        pytest.param(
            GIT + b"new mode 100755\nnew mode 100755\n",
            "d:3: a second 'new mode' line in one section",
            id="twice",
        ),
        pytest.param(
            b"diff --git a/f b/f\r\n" + EDIT,
            "d:1: the header ends in a carriage return: line ends of the diff were converted",
            id="converted to CRLF",
        ),
        pytest.param(
            b"--- a/f\r\n+++ b/f\r\n@@ -1 +1 @@\r\n-a\r\n+b\r\n",
            "d:1: the header ends in a carriage return: line ends of the diff were converted",
            id="plain, converted to CRLF",
        ),
        pytest.param(
            b'--- "a/f\\q"\n+++ "b/f\\q"\n@@ -1 +1 @@\n-a\n+b\n',
            "d:1: a name with broken quotes: b'\"a/f\\\\q\"'",
            id="broken quotes",
        ),
        pytest.param(
            EDIT + b"Only in new: g.py\n",
            "d:6: a difference without its content: 'Only in new: g.py'",
            id="diff -r without -N",
        ),
        pytest.param(
            EDIT + b"Binary files old/x.so and new/x.so differ\n",
            "d:6: a difference without its content: 'Binary files old/x.so and new/x.so differ'",
            id="binary in a plain diff",
        ),
        pytest.param(
            EDIT + b"*** old/g\n--- new/g\n***************\n",
            "d:8: a context diff",
            id="context diff",
        ),
        pytest.param(
            EDIT + b"prose\nnew file mode 100644\n",
            "d:7: a mode without a file header",
            id="stray mode",
        ),
        pytest.param(
            b"\xef\xbb\xbf" + EDIT,
            "d: the diff starts with the byte order mark of UTF-8: it was converted",
            id="byte order mark",
        ),
    ],
)
def test_what_does_not_follow_the_format_is_refused_with_its_line(
    data: bytes, message: str
) -> None:
    with pytest.raises(ProjectError) as caught:
        parse(data, at="d")
    assert caught.value.message == message


@pytest.mark.parametrize(
    "path, fault",
    [
        pytest.param(b"b/../../x", "has a '..' component", id="leaves"),
        pytest.param(b"/etc/x", "is absolute", id="absolute"),
        pytest.param(b"b/.git/config", "has a '.git' component", id="git"),
        pytest.param(b"b/.GIT/config", "has a '.GIT' component", id="git in capitals"),
        pytest.param(b"b/sub/git~1/x", "has a 'git~1' component", id="git's short name"),
        pytest.param(b"b//x", "has an empty component", id="empty component"),
        pytest.param(b"b/x/", "has an empty component", id="slash at the end"),
        pytest.param(b"b/./x", "has a '.' component", id="dot"),
        pytest.param(b"C:\\x", "names a drive", id="drive"),
        pytest.param(b"b/C:/x", "names a drive", id="drive behind the prefix"),
        pytest.param(b"b/..\\x", "has a '..\\\\x' component", id="leaves with a backslash"),
        pytest.param(b'"b/x\\000y"', "has a NUL byte", id="NUL"),
        pytest.param(b"b/" + b"x" * 4096, "is longer than 4096", id="long"),
    ],
)
def test_a_hostile_path_is_refused(path: bytes, fault: str) -> None:
    data = b"--- /dev/null\n+++ " + path + b"\n@@ -0,0 +1 @@\n+x\n"
    with pytest.raises(ProjectError, match=re.escape(f"d:1: a path that {fault}: ")):
        parse(data, at="d")


def test_a_path_of_github_is_not_taken_for_git() -> None:
    data = b"--- /dev/null\n+++ b/.github/x.yml\n@@ -0,0 +1 @@\n+x\n"
    assert parse(data, at="d").changes[0].new_path == "b/.github/x.yml"


def test_a_header_of_many_blanks_costs_nothing_and_is_refused() -> None:
    with pytest.raises(ProjectError, match="does not agree"):
        parse(b"diff --git " + b"a " * 1_000_000 + b"\nold mode 100644\nnew mode 100755\n", at="d")


def test_a_diff_beyond_the_limits_is_refused_before_it_is_split() -> None:
    with pytest.raises(ProjectError) as caught:
        parse(b"\n" * 1_000_001, at="d")
    assert caught.value.message == "d: a diff of 1000001 lines, the limit is 1000000"
