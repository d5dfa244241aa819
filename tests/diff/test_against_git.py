"""Whatever git makes, we apply to the same bytes; whatever git refuses, we refuse."""

from collections.abc import Iterator
from contextlib import suppress
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, assume, event, given, settings
from hypothesis import strategies as st

from builder.diff import canonical, parse
from builder.errors import BuilderError, PatchError
from builder.verdict import Verdict
from tests.diff.git_oracle import Git, Tree, patched

pytestmark = pytest.mark.requires("git")
BOUNDED = settings(
    max_examples=60,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)

# Lines that repeat (for ambiguity), that another splitter would break, and that look like a diff.
LINES = st.sampled_from(
    [
        *(b"a", b"b", b"c", b"a", b"b", b"", b"  ", b"    return x", b"foo\r", b"\x0cpage"),
        *(b"x \x0b y", b"u\xe2\x80\xa8v", b"latin \xe9", b"-- ", b"--", b"-- a/x", b"++ b/x"),
        *(b"@@ -1 +1 @@", b"diff --git a/a b/a", b"From: me", b"\\ No newline at end of file"),
    ]
)
TEXTS = st.builds(
    lambda lines, end: b"\n".join(lines) + (b"\n" if lines and end else b""),
    st.lists(LINES, max_size=14),
    st.sampled_from([True, True, True, False]),
)
NAMES = st.sampled_from(
    [
        *("a.py", "pkg/b.py", "pkg/sub/c.py", "b/x", "sp ace.txt", "two  sp aces ", "tab\tname"),
        *('q"uote', "back\\slash", "naïve tpl.jinja", "lat\udce9.txt", "new\nline", "x x", "-d"),
    ]
)
FILES = st.tuples(TEXTS, st.booleans())
TREES = st.dictionaries(NAMES, FILES, min_size=1, max_size=5)


@pytest.fixture(scope="module")
def git(tmp_path_factory: pytest.TempPathFactory) -> Git:
    return Git(tmp_path_factory.mktemp("git"))


def _edited(draw: st.DrawFn, data: bytes) -> bytes:
    """Some lines of ``data`` removed, repeated or replaced."""
    lines = data.split(b"\n")
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(0, len(lines)))
        end = min(len(lines), start + draw(st.integers(0, 2)))
        lines[start:end] = draw(st.lists(LINES, max_size=3))
    return b"\n".join(lines)


@st.composite
def successors(draw: st.DrawFn, tree: Tree) -> Tree:
    """A tree that a commit could make of ``tree``."""
    after = dict(tree)
    for path in sorted(tree):
        data, executable = tree[path]
        action = draw(st.sampled_from(["keep", "edit", "edit", "move", "copy", "mode", "remove"]))
        if action in {"move", "remove"}:
            after.pop(path, None)
        if action in {"move", "copy"}:
            after[draw(NAMES)] = (_edited(draw, data), executable)
        if action == "edit":
            after[path] = (_edited(draw, data), executable)
        if action == "mode":
            after[path] = (data, not executable)
    after.update(draw(st.dictionaries(NAMES, FILES, max_size=2)))
    return after


@st.composite
def histories(draw: st.DrawFn, count: int) -> list[Tree]:
    trees: list[Tree] = [draw(TREES)]
    for _ in range(count):
        trees.append(draw(successors(trees[-1])))
    return trees


OPTIONS = st.tuples(
    st.sampled_from(["-U1", "-U2", "-U3", "-U5"]),
    st.sampled_from(
        [(), ("-M",), ("-M20%",), ("-C",), ("-C", "--find-copies-harder"), ("-B", "-M")]
    ),
    st.sampled_from([(), ("--full-index",), ("--abbrev=4",)]),
    st.sampled_from([(), (), ("--patience",), ("--src-prefix=old/", "--dst-prefix=new/")]),
).map(lambda parts: (parts[0], *parts[1], *parts[2], *parts[3]))


@BOUNDED
@given(history=histories(1), options=OPTIONS)
def test_what_git_makes_gives_the_new_tree_byte_for_byte(
    git: Git, history: list[Tree], options: tuple[str, ...]
) -> None:
    old, new = history
    assume(old != new)
    data = git.diff(old, new, *options)
    assert patched(old, parse(data, at="diff")) == dict(new)


@BOUNDED
@given(history=histories(1))
def test_a_diff_without_prefixes_is_applied_without_a_strip(git: Git, history: list[Tree]) -> None:
    from builder.diff import Place

    old, new = history
    assume(old != new)
    diff = parse(git.diff(old, new, "--no-prefix", "-M"), at="diff")
    assert patched(old, diff, Place(root="", strip=0)) == dict(new)


@BOUNDED
@given(history=histories(1))
def test_a_diff_without_context_gives_the_new_tree_or_is_refused_where_it_is_ambiguous(
    git: Git, history: list[Tree]
) -> None:
    old, new = history
    assume(old != new)
    data = git.diff(old, new, "-U0")
    diff = parse(data, at="diff")
    got, refusal = None, ""
    try:
        got = patched(old, diff)
    except PatchError as error:
        event(f"refused: {error.verdict}")
        refusal = error.message
    if "inserts without context what already stands" not in refusal:
        # Only hunks at line 1: git without --unidiff-zero takes them for whole files, and so do we.
        unproved = not diff.without_context and git.apply(old, data) is None
        assert got == (None if unproved else dict(new)), refusal


@BOUNDED
@given(history=histories(3), unified=st.sampled_from(["-U1", "-U3"]))
def test_mails_give_the_same_tree_as_the_net_diff(
    git: Git, history: list[Tree], unified: str
) -> None:
    assume(all(one != other for one, other in pairwise(history)))
    quoted = b"subject\n\n```diff\n--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n```\n"
    indented = b"subject\n\n    diff --git a/a.py b/a.py\n    deleted file mode 100644\n"
    mails = git.mails(history, [b"plain\n", quoted, indented], unified, "-M")
    assume(history[0] != history[-1])
    assert patched(history[0], parse(mails, at="mails")) == dict(history[-1])
    net = parse(git.diff(history[0], history[-1], unified), at="diff")
    assert patched(history[0], net) == dict(history[-1])


@BOUNDED
@given(history=histories(1))
def test_the_digest_does_not_depend_on_dress(git: Git, history: list[Tree]) -> None:
    assume(history[0] != history[1])
    old, new = history
    plain = canonical(parse(git.diff(old, new, "--abbrev=4"), at="diff"))
    assert canonical(parse(git.diff(old, new, "--full-index"), at="diff")) == plain
    assert canonical(parse(git.mails(history, [b"why\n"], "--no-renames"), at="mail")) == plain


@st.composite
def _damaged_bytes(draw: st.DrawFn, data: bytes) -> bytes:
    lines = data.split(b"\n")
    for _ in range(draw(st.integers(1, 2))):
        n = draw(st.integers(0, len(lines) - 1))
        match draw(st.sampled_from(["drop", "double", "swap", "replace", "digit", "blank"])):
            case "drop":
                del lines[n]
            case "double":
                lines.insert(n, lines[n])
            case "swap":
                lines[n : n + 2] = lines[n : n + 2][::-1]
            case "replace":
                lines[n] = lines[n][:1] + draw(LINES)
            case "digit":
                lines[n] = lines[n].replace(b"1", b"2", 1)
            case _:
                lines[n] = b""
        lines = lines or [b""]
    return b"\n".join(lines)


def _compare(git: Git, tree: Tree, data: bytes) -> None:
    """We may refuse more than git; what we accept, git accepts with the same result."""
    ours = None
    options: Iterator[str] = iter(())
    with suppress(BuilderError):
        diff = parse(data, at="diff")
        options = iter(["--unidiff-zero"] if diff.without_context else [])
        ours = patched(tree, diff)
    event("accepted" if ours is not None else "refused")
    if ours is not None:
        assert git.apply(tree, data, *options) == ours


@settings(BOUNDED, max_examples=150)
@given(history=histories(1), unified=st.sampled_from(["-U0", "-U1", "-U3"]), data=st.data())
def test_on_a_base_that_drifted_we_accept_nothing_that_git_refuses(
    git: Git, history: list[Tree], unified: str, data: st.DataObject
) -> None:
    old, new = history
    assume(old != new)
    diff = git.diff(old, new, unified, "-M")
    drifted = {
        path: (data.draw(st.composite(_edited)(content)), executable)
        for path, (content, executable) in old.items()
    }
    _compare(git, drifted, diff)


@settings(BOUNDED, max_examples=200)
@given(history=histories(1), unified=st.sampled_from(["-U0", "-U1", "-U3"]), data=st.data())
def test_of_a_damaged_diff_we_accept_nothing_that_git_refuses(
    git: Git, history: list[Tree], unified: str, data: st.DataObject
) -> None:
    old, new = history
    assume(old != new)
    diff = git.diff(old, new, unified, "-M")
    _compare(git, old, data.draw(_damaged_bytes(diff)))


@BOUNDED
@given(history=histories(1))
def test_on_the_new_tree_the_verdict_is_already_upstream_or_a_refusal(
    git: Git, history: list[Tree]
) -> None:
    old, new = history
    assume(old != new)
    diff = parse(git.diff(old, new, "-M"), at="diff")
    verdict = "applies again"
    try:
        patched(new, diff)
    except PatchError as error:
        verdict = error.verdict
    event(verdict)
    if verdict == Verdict.ALREADY_UPSTREAM:
        assert git.apply(new, git.diff(new, old, "-M")) == dict(old)
