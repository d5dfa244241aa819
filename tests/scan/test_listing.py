"""Everything below a directory at once, against the same asked for one by one."""

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.merged import MergedView
from builder.observed import Observed, answers_alike
from builder.tree import Entry
from tests.fakes import File, TreeView, listed_below
from tests.scan.archives import Item, directory, file, hardlink, layer, symlink
from tests.scan.test_merged_property import layers


def stacked(*stack: tuple[Item, ...]) -> MergedView:
    """Bottom first."""
    return MergedView([layer(*items) for items in stack])


def asked_one_by_one(view: MergedView, path: str) -> tuple[Entry, ...] | None:
    try:
        return listed_below(view, path)
    except IntegrityError:
        return None


def asked_at_once(view: MergedView, path: str) -> tuple[Entry, ...] | None:
    try:
        return view.below(path)
    except IntegrityError:
        return None


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow], database=None)
@given(st.lists(layers(), min_size=1, max_size=4), st.sampled_from(["", "a", "b", "a/b", "b/a"]))
@example([(file("a/b/x"),), (file("a/b"),), (directory("a/b"), file("a/b/y"))], "a")
@example([(directory("a"), file("a/x", b"1")), (symlink("b", "a"),)], "b")
@example([(file("a/x", b"1"), hardlink("a/y", "a/x")), (file("a/x", b"2"),)], "a")
@example([(file("a"),), (file("a/x"),)], "")
def test_all_at_once_is_what_one_by_one_gives(stack: list[tuple[Item, ...]], path: str) -> None:
    expected = asked_one_by_one(stacked(*stack), path)
    view = stacked(*stack)
    assert asked_at_once(view, path) == expected
    if expected is not None:
        assert listed_below(view, path) == expected  # what was found stays true
        files = [entry for entry in expected if entry.is_file]
        contents = view.read_many(entry.path for entry in files)
        assert {entry.path: Digest.of(contents[entry.path]) for entry in files} == {
            entry.path: entry.digest for entry in files
        }


def test_compiled_files_are_left_out() -> None:
    view = stacked(
        (file("p/__pycache__/m.cpython-312.pyc"), file("p/m.py"), file("p/__pycache__.py")),
        (file("p/__pycache__/.wh.m.cpython-312.pyc"), file("p/__pycache__/n.pyc")),
    )
    assert [entry.path for entry in view.below("p")] == ["p/__pycache__.py", "p/m.py"]


def test_there_is_nothing_below_what_is_no_directory() -> None:
    view = stacked((file("a"),))
    assert view.below("a") == view.below("b") == view.below("a/b") == ()


def test_many_files_are_read_each_layer_by_itself() -> None:
    view = stacked((file("a", b"1"), file("b", b"1"), file("c", b"3")), (file("c", b"4"),))
    assert view.read_many(["c", "b", "a"]) == {"c": b"4", "b": b"1", "a": b"1"}


@pytest.mark.parametrize("path", ["d", "none", "l"])
def test_what_is_no_file_cannot_be_read(path: str) -> None:
    view = stacked((directory("d"), file("a"), symlink("l", "a")))
    with pytest.raises(KeyError):
        view.read_many(["a", path])


# --- what is remembered of it --------------------------------------------------------------------

TREE = {"p/a.py": b"1", "p/d/b.py": b"2", "q": b"3"}


def test_a_whole_directory_is_one_read() -> None:
    view = Observed(TreeView(TREE))
    entries = view.below("p")
    view.read_many(entry.path for entry in entries)
    assert [(operation, path) for operation, path, _ in view.reads] == [("below", "p")]
    view.read_many(["q"])
    assert [(operation, path) for operation, path, _ in view.reads] == [
        ("below", "p"),
        ("stat", "q"),
    ]


@pytest.mark.parametrize(
    "change, alike",
    [
        pytest.param({"q": b"other"}, True, id="elsewhere"),
        pytest.param({"p/__pycache__/a.pyc": b"new"}, True, id="a compiled file"),
        pytest.param({"p/a.py": b"other"}, False, id="content"),
        pytest.param({"p/a.py": File(b"1", mode=0o755)}, False, id="mode"),
        pytest.param({"p/a.py": File(b"1", uid=1)}, False, id="owner"),
        pytest.param({"p/d/c.py": b"new"}, False, id="a new file"),
    ],
)
def test_the_answer_covers_all_of_each_file(change: dict[str, bytes | File], alike: bool) -> None:
    view = Observed(TreeView(TREE))
    view.below("p")
    assert answers_alike(TreeView({**TREE, **change}), view.reads) is alike
