"""Anchored edits: the count is the guard."""

import pytest

from builder.changes import Inline, Put
from builder.digest import Digest
from builder.errors import PatchError
from builder.steps.edits import edit_file
from builder.variant import Action, Edit, EditRule
from builder.verdict import Verdict
from tests.fakes import TreeView

PATH = "pkg/a.py"


def rule(*edits: Edit, replaces: bytes | None = None) -> EditRule:
    return EditRule(
        target=PATH,
        edits=edits,
        replaces=None if replaces is None else Digest.of(replaces),
        at="overlay.yaml:2: edits[0]",
    )


def replace(anchor: bytes, text: bytes, *, count: int = 1) -> Edit:
    return Edit(
        anchor=anchor,
        action=Action.REPLACE,
        text=text,
        count=count,
        at="overlay.yaml:4: edits[0].edits[0]",
    )


@pytest.mark.parametrize(
    ("action", "after"),
    [
        pytest.param(Action.REPLACE, b"one\nNEW\nthree\n", id="replace"),
        pytest.param(Action.INSERT_BEFORE, b"one\nNEW\ntwo\nthree\n", id="insert before"),
        pytest.param(Action.INSERT_AFTER, b"one\ntwo\nNEW\nthree\n", id="insert after"),
    ],
)
def test_an_edit_changes_its_anchor_and_nothing_else(action: Action, after: bytes) -> None:
    change, outcome = edit_file(
        rule(Edit(anchor=b"two\n", action=action, text=b"NEW\n")),
        PATH,
        TreeView({PATH: b"one\ntwo\nthree\n"}),
    )
    assert change == Put(path=PATH, content=Inline(after))
    assert outcome.pre == Digest.of(b"one\ntwo\nthree\n")
    assert outcome.post == Digest.of(after)


def test_an_anchor_that_is_not_there_is_drift() -> None:
    with pytest.raises(PatchError) as caught:
        edit_file(rule(replace(b"return old", b"return new")), PATH, TreeView({PATH: b"pass\n"}))
    assert caught.value.verdict == Verdict.DRIFT_ANCHOR
    assert caught.value.message == (
        "overlay.yaml:4: edits[0].edits[0]: the anchor 'return old' stands 0 times in"
        " 'pkg/a.py', wanted 1"
    )


def test_an_anchor_that_stands_twice_is_ambiguous_and_its_lines_are_named() -> None:
    with pytest.raises(PatchError) as caught:
        edit_file(rule(replace(b"x = 1", b"x = 2")), PATH, TreeView({PATH: b"x = 1\n\nx = 1\n"}))
    assert caught.value.verdict == Verdict.AMBIGUOUS_ANCHOR
    assert "(lines 1, 3), wanted 1" in caught.value.message


def test_an_anchor_may_be_wanted_more_than_once() -> None:
    change, _ = edit_file(
        rule(replace(b"x = 1", b"x = 2", count=2)), PATH, TreeView({PATH: b"x = 1\nx = 1\n"})
    )
    assert change.content == Inline(b"x = 2\nx = 2\n")


def test_each_edit_sees_the_result_of_the_one_before() -> None:
    change, _ = edit_file(
        rule(replace(b"one", b"two"), replace(b"two", b"three")), PATH, TreeView({PATH: b"one\n"})
    )
    assert change.content == Inline(b"three\n")


def test_an_edit_that_stands_already_is_upstream() -> None:
    edit = Edit(anchor=b"def f():\n", action=Action.INSERT_AFTER, text=b"    check()\n")
    with pytest.raises(PatchError) as caught:
        edit_file(rule(edit), PATH, TreeView({PATH: b"def f():\n    check()\n    pass\n"}))
    assert caught.value.verdict == Verdict.ALREADY_UPSTREAM


def test_a_pinned_pre_image_must_match() -> None:
    with pytest.raises(PatchError) as caught:
        edit_file(
            rule(replace(b"one", b"two"), replaces=b"another\n"), PATH, TreeView({PATH: b"one\n"})
        )
    assert caught.value.verdict == Verdict.REFUSED


def test_an_edit_that_changes_nothing_is_refused() -> None:
    with pytest.raises(PatchError) as caught:
        edit_file(rule(replace(b"one", b"one")), PATH, TreeView({PATH: b"one\n"}))
    assert caught.value.message == "overlay.yaml:2: edits[0]: the edits leave 'pkg/a.py' as it was"


def test_a_missing_file_is_an_error() -> None:
    with pytest.raises(PatchError) as caught:
        edit_file(rule(replace(b"one", b"two")), PATH, TreeView({"pkg/b.py": b""}))
    assert caught.value.verdict == Verdict.FILE_MISSING
