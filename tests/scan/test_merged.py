"""The merged view is what unpacking the layers in order would make, read from indexes alone."""

import pytest

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.merged import MergedView
from builder.tree import Entry, Kind, View
from tests.scan.archives import (
    Item,
    MemoryLayer,
    directory,
    file,
    hardlink,
    layer,
    symlink,
)


def content(view: MergedView, path: str) -> bytes | None:
    entry = view.stat(path)
    return view.read(path) if entry is not None and entry.is_file else None


def test_it_is_a_view() -> None:
    view: View = MergedView([layer(file("a", b"1"))])
    assert view.stat("a") == Entry(path="a", kind=Kind.FILE, size=1, digest=Digest.of(b"1"))
    assert (view.read("a"), view.children(""), view.resolve("a")) == (b"1", ("a",), "a")


def test_no_layers_are_an_empty_tree() -> None:
    view = MergedView()
    assert (view.stat("a"), view.children(""), view.resolve("a/b")) == (None, (), "a/b")
    assert content(view.over(layer(file("a", b"1"))), "a") == b"1"


def test_an_opaque_marker_hides_lower_layers_but_not_its_own_whatever_the_order() -> None:
    lower = layer(directory("d"), file("d/a", b"1"), file("d/b", b"2"))
    upper = layer(directory("d"), file("d/new", b"3"), file("d/.wh..wh..opq"))
    view = MergedView([lower, upper])
    assert view.children("d") == ("new",)
    assert view.stat("d/a") is None
    assert content(view, "d/new") == b"3"


def test_a_whiteout_of_a_directory_hides_its_tree_and_a_new_one_may_stand_there() -> None:
    lower = layer(directory("d"), directory("d/e"), file("d/e/a", b"1"), file("x", b"2"))
    gone = layer(file(".wh.d"))
    again = layer(directory("d"), directory("d/e"), file("d/e/new", b"3"), file(".wh.d"))
    assert MergedView([lower, gone]).children("") == ("x",)
    assert MergedView([lower, gone]).stat("d/e/a") is None
    for stack in ([lower, again], [lower, gone, again]):
        view = MergedView(stack)
        assert view.children("d/e") == ("new",)
        assert view.stat("d/e/a") is None


def test_whiteouts_act_on_lower_layers_only() -> None:
    view = MergedView(
        [
            layer(file("a", b"1"), file("b", b"1")),
            layer(file(".wh.a"), file("a", b"2"), file(".wh.b")),
            layer(file("b", b"3")),
        ]
    )
    assert (content(view, "a"), content(view, "b")) == (b"2", b"3")


def test_an_opaque_root_hides_everything_below() -> None:
    view = MergedView([layer(file("a"), file("d/b")), layer(file(".wh..wh..opq"), file("c"))])
    assert (view.children(""), view.stat("a"), view.stat("d/b")) == (("c",), None, None)


def test_a_file_over_a_directory_hides_its_tree_also_below_a_later_directory() -> None:
    stack = [
        layer(directory("d"), file("d/a", b"1")),
        layer(file("d", b"file")),
        layer(directory("d"), file("d/b", b"2")),
    ]
    assert MergedView(stack[:2]).stat("d/a") is None
    assert MergedView(stack).children("d") == ("b",)
    assert MergedView(stack).stat("d/a") is None


def test_directories_that_are_only_implied_keep_what_lower_layers_say_of_them() -> None:
    lower = layer(directory("d", mode=0o700), file("d/a"))
    view = MergedView([lower, layer(file("d/b")), layer(file("e/c"))])
    assert view.stat("d") == Entry(path="d", kind=Kind.DIRECTORY, mode=0o700)
    assert view.stat("e") == Entry(path="e", kind=Kind.DIRECTORY, mode=0o755)
    assert view.children("d") == ("a", "b")


@pytest.mark.parametrize("lower", [symlink("lib", "usr/lib"), file("lib")])
def test_a_layer_that_writes_through_a_link_of_a_lower_one_is_refused(lower: Item) -> None:
    with pytest.raises(IntegrityError) as refused:
        MergedView([layer(lower), layer(file("lib/x"))]).stat("lib/x")
    assert refused.value.message == (
        f"'lib': a layer has files below it, and a lower layer has a {lower.kind} there,"
        " wanted a directory"
    )


LINKS = (
    directory("usr"),
    directory("usr/lib"),
    file("usr/lib/x", b"x"),
    symlink("lib", "usr/lib"),
    symlink("abs", "/usr/lib"),
    symlink("up", "../../../../usr"),
    directory("opt"),
    symlink("opt/back", "../lib/../../usr/lib"),
    symlink("chain", "opt/back"),
    symlink("loop", "loop2"),
    symlink("loop2", "./loop"),
    symlink("dangling", "nowhere/deep"),
    symlink("last", "usr/lib/x"),
)


@pytest.mark.parametrize(
    ("path", "real"),
    [
        ("lib/x", "usr/lib/x"),
        ("abs/x", "usr/lib/x"),
        ("up/lib/x", "usr/lib/x"),
        ("opt/back/x", "usr/lib/x"),
        ("chain/x", "usr/lib/x"),
        ("lib/new/x", "usr/lib/new/x"),
        ("dangling/x", "nowhere/deep/x"),
        ("last", "last"),
        ("new/a/b", "new/a/b"),
    ],
)
def test_links_on_the_way_are_followed_inside_the_root(path: str, real: str) -> None:
    view = MergedView([layer(*LINKS)])
    assert view.resolve(path) == real
    entry = view.stat(real)
    assert (None if entry is None else entry.digest) == getattr(view.stat(path), "digest", None)


def test_the_entry_at_a_path_through_links_has_that_path_and_can_be_read() -> None:
    view = MergedView([layer(*LINKS)])
    entry = view.stat("chain/x")
    assert entry is not None
    assert (entry.path, view.read("chain/x")) == ("chain/x", b"x")
    assert view.children("chain") == ("x",)


def test_the_last_component_is_not_followed() -> None:
    view = MergedView([layer(*LINKS)])
    entry = view.stat("last")
    assert entry is not None
    assert entry.target == "usr/lib/x"
    with pytest.raises(KeyError, match="last"):
        view.read("last")


def test_loops_are_refused() -> None:
    view = MergedView([layer(*LINKS)])
    for ask in (view.stat, view.resolve, view.children):
        with pytest.raises(IntegrityError) as refused:
            ask("loop/x")
        assert refused.value.message.endswith(": more than 40 links, or a loop")


def test_a_parent_that_is_a_file_has_nothing_below_it_and_can_not_be_written_to() -> None:
    view = MergedView([layer(*LINKS)])
    assert view.stat("lib/x/y") is None
    assert view.children("lib/x") == ()
    with pytest.raises(IntegrityError) as refused:
        view.resolve("lib/x/y")
    assert refused.value.message == (
        "'lib/x/y': its parent 'usr/lib/x' is a file, wanted a directory"
    )


def test_links_of_upper_layers_lead_to_files_of_lower_ones() -> None:
    view = MergedView([layer(directory("a"), file("a/x", b"1")), layer(symlink("b", "a"))])
    assert content(view, "b/x") == b"1"
    assert content(view.over(layer(directory("a"), file("a/x", b"2"))), "b/x") == b"2"


def test_a_hard_link_is_the_file_that_its_layer_saw() -> None:
    view = MergedView(
        [
            layer(file("below", b"0")),
            layer(file("a", b"1"), hardlink("same", "a"), hardlink("twice", "same")),
            layer(hardlink("old", "below"), file("a", b"2")),
        ]
    )
    assert [content(view, path) for path in ("a", "same", "twice", "old")] == [
        b"2",
        b"1",
        b"1",
        b"0",
    ]
    assert view.stat("same") == Entry(path="same", kind=Kind.FILE, size=1, digest=Digest.of(b"1"))


@pytest.mark.parametrize(
    ("items", "message"),
    [
        pytest.param(
            [hardlink("h", "missing")],
            "'h': a hard link to 'missing', which is no file",
            id="missing",
        ),
        pytest.param(
            [directory("d"), hardlink("h", "d")],
            "'h': a hard link to 'd', which is no file",
            id="a directory",
        ),
        pytest.param(
            [hardlink("h", "i"), hardlink("i", "h")],
            "'h': more than 40 hard links in a row, or a loop",
            id="a loop",
        ),
    ],
)
def test_a_hard_link_to_no_file_is_refused(items: list[Item], message: str) -> None:
    view = MergedView([layer(*items)])
    with pytest.raises(IntegrityError) as refused:
        view.stat("h")
    assert refused.value.message == message


def test_lower_layers_are_not_touched_once_an_upper_one_decides() -> None:
    layers = [
        layer(directory("d"), file("d/a"), file("d/b")),
        layer(file("d/.wh.b"), directory("d")),
        layer(directory("d"), file("d/a", b"1"), symlink("l", "d")),
    ]
    view = MergedView(layers)
    assert [each.streamed for each in layers] == [0, 0, 0]
    assert content(view, "l/a") == b"1"
    assert [each.streamed for each in layers] == [0, 0, 1]
    assert view.stat("d/b") is None
    assert [each.streamed for each in layers] == [0, 1, 1]
    assert view.children("d") == ("a",)
    assert [each.streamed for each in layers] == [1, 1, 1]


def test_a_view_over_a_view_leaves_the_lower_one_as_it_was() -> None:
    base = MergedView([layer(directory("d"), file("d/a", b"1"))])
    upper = base.over(layer(directory("d"), file("d/.wh.a"), file("d/b", b"2")))
    assert (base.children("d"), upper.children("d")) == (("a",), ("b",))
    assert (content(base, "d/a"), content(upper, "d/a")) == (b"1", None)


def test_every_layer_hears_what_will_be_read_and_none_is_streamed() -> None:
    layers = [layer(file("a")), layer(file("b"))]
    MergedView(layers).prefetch(iter(["a", "b"]))
    assert [(each.wanted, each.streamed) for each in layers] == [(["a", "b"], 0)] * 2


def test_bytes_that_are_not_those_of_the_index_are_refused() -> None:
    class Forged(MemoryLayer):
        def read(self, entry: Entry) -> bytes:
            return b"forged"

    view = MergedView([Forged(layer(file("a", b"1")).data)])
    with pytest.raises(IntegrityError) as refused:
        view.read("a")
    assert refused.value.message == (
        f"a: expected {Digest.of(b'1')}, got {Digest.of(b'forged')} (6 bytes)"
    )
