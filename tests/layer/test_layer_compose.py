"""``builder.layer.compose``: what a layer holds, and what it refuses to hold."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.changes import Change, Inline, Put, Remove, Symlink
from builder.digest import Digest
from builder.errors import BuilderError, IntegrityError, PatchError, ProjectError
from builder.layer import LayerEntry, compose
from builder.tree import Entry, Kind
from tests.fakes import File, Link, TreeView

CAPABILITY = ("security.capability", b"\x01\x00\x00\x02\x00\x04\x00\x00")
BASE = TreeView(
    {
        "etc/conf": File(b"a", mode=0o600, uid=5, gid=6, xattrs=(("user.k", b"\0\xff"),)),
        "lib": Link("usr/lib"),
        "usr/lib/m.py": b"X = 128\n",
        "usr/lib/n.py": b"",
        "usr/lib/current": Link("m.py"),
        "usr/bin/su": File(b"su", mode=0o4755),
        "usr/bin/ping": File(b"ping", mode=0o755, xattrs=(CAPABILITY,)),
        "usr/bin/sealed": File(b"x", xattrs=(("security.ima", b"\x03"),)),
        "dev/null": Entry(path="", kind=Kind.CHARACTER),
        "loop": Link("loop"),
        "out": Link("../.."),
        "hidden": Link("usr/.wh.lib"),
    }
)


def put(path: str, data: bytes = b"new", mode: int | None = None) -> Put:
    return Put(path=path, content=Inline(data), mode=mode)


def entries(*changes: Change) -> list[Entry]:
    return [item.entry for item in compose(changes, BASE)]


def names(*changes: Change) -> list[str]:
    return [entry.path for entry in entries(*changes)]


def new(path: str, mode: int = 0o644) -> Entry:
    """The entry of ``put(path)`` where the base has nothing."""
    return Entry(path=path, kind=Kind.FILE, mode=mode, size=3, digest=Digest.of(b"new"))


def test_no_changes_make_no_layer() -> None:
    assert compose((), BASE) == ()


def test_a_new_file_is_0644_of_root_or_of_the_mode_that_it_is_given() -> None:
    assert entries(put("etc/a"), put("etc/b", mode=0o755)) == [
        new("etc/a"),
        new("etc/b", mode=0o755),
    ]


def test_a_replaced_file_keeps_mode_owner_and_xattrs() -> None:
    kept = Entry(
        path="etc/conf",
        kind=Kind.FILE,
        mode=0o600,
        uid=5,
        gid=6,
        size=3,
        digest=Digest.of(b"new"),
        xattrs=(("user.k", b"\0\xff"),),
    )
    assert entries(put("etc/conf")) == [kept]
    assert entries(put("etc/conf", mode=0o640))[0].mode == 0o640


def test_a_replaced_file_keeps_its_setuid_bit() -> None:
    assert entries(put("usr/bin/su"))[0].mode == 0o4755


def test_only_the_parents_that_the_base_lacks_are_made_and_each_once() -> None:
    directory = Entry(path="usr/lib/a", kind=Kind.DIRECTORY, mode=0o755)
    assert entries(put("usr/lib/a/b/one"), put("usr/lib/a/two")) == [
        directory,
        Entry(path="usr/lib/a/b", kind=Kind.DIRECTORY, mode=0o755),
        new("usr/lib/a/b/one"),
        new("usr/lib/a/two"),
    ]


def test_a_path_through_a_link_lands_where_the_link_leads_and_the_link_stays() -> None:
    assert names(put("lib/m.py"), put("lib/sub/x"), Remove(path="lib/n.py")) == [
        "usr/lib/.wh.n.py",
        "usr/lib/m.py",
        "usr/lib/sub",
        "usr/lib/sub/x",
    ]


def test_entries_are_sorted_by_the_bytes_of_their_paths() -> None:
    paths = ["a-b/x", "a/x", "a.x", "\udcff", "\uffff", "\U0001f600"]
    expected = ["a", "a-b", "a-b/x", "a.x", "a/x", "\uffff", "\U0001f600", "\udcff"]
    assert names(*(put(path) for path in paths)) == expected


def test_a_removal_is_an_empty_file_of_root() -> None:
    assert compose([Remove(path="etc/conf")], BASE) == (
        LayerEntry(
            entry=Entry(path="etc/.wh.conf", kind=Kind.FILE, mode=0o644, digest=Digest.of(b""))
        ),
    )


def test_a_whiteout_in_the_root_has_no_directory() -> None:
    (item,) = compose([Remove(path="lib")], BASE)
    assert (item.entry.path, item.removes) == (".wh.lib", "lib")


def test_a_link_is_made_and_may_be_pointed_elsewhere() -> None:
    link = Entry(path="usr/lib/current", kind=Kind.SYMLINK, mode=0o777, target="n.py")
    assert entries(Symlink(path="usr/lib/current", target="n.py")) == [link]
    assert names(Symlink(path="opt/l", target="/usr/lib")) == ["opt", "opt/l"]


@pytest.mark.parametrize(
    "changes, expected",
    [
        pytest.param(
            [Remove(path="usr/lib/current"), put("usr/lib/current")],
            [new("usr/lib/current")],
            id="a link becomes a file",
        ),
        pytest.param(
            [Remove(path="etc/conf"), Symlink(path="etc/conf", target="../usr")],
            [Entry(path="etc/conf", kind=Kind.SYMLINK, mode=0o777, target="../usr")],
            id="a file becomes a link, and keeps nothing",
        ),
        pytest.param(
            [Remove(path="usr/bin/ping"), put("usr/bin/ping")],
            [new("usr/bin/ping")],
            id="a file with capabilities is made anew without them",
        ),
        pytest.param(
            [Remove(path="etc/conf"), put("etc/conf/d/x")],
            [
                Entry(path="etc/conf", kind=Kind.DIRECTORY, mode=0o755),
                Entry(path="etc/conf/d", kind=Kind.DIRECTORY, mode=0o755),
                new("etc/conf/d/x"),
            ],
            id="a file becomes a directory",
        ),
    ],
)
def test_what_is_removed_and_made_again_has_no_whiteout(
    changes: list[Change], expected: list[Entry]
) -> None:
    assert entries(*changes) == entries(*reversed(changes)) == expected


def test_a_file_with_capabilities_may_change_its_mode_alone() -> None:
    (entry,) = entries(put("usr/bin/ping", b"ping", mode=0o700))
    assert (entry.mode, entry.xattrs) == (0o700, (CAPABILITY,))


REFUSALS = [
    pytest.param(
        [put("usr/lib")],
        PatchError,
        "layer: 'usr/lib': it is a directory and cannot become a file",
        None,
        id="a file over a directory",
    ),
    pytest.param(
        [Symlink(path="usr/lib", target="x")],
        PatchError,
        "layer: 'usr/lib': it is a directory and cannot become a link",
        None,
        id="a link over a directory",
    ),
    pytest.param(
        [put("dev/null")],
        PatchError,
        "layer: 'dev/null': it is a device or pipe and cannot become a file",
        None,
        id="a file over a device",
    ),
    pytest.param(
        [Symlink(path="etc/conf", target="x")],
        PatchError,
        "layer: 'etc/conf': it is a file and cannot become a link",
        "remove it in the same step",
        id="a link over a file",
    ),
    pytest.param(
        [put("lib/current")],
        PatchError,
        "layer: 'usr/lib/current': it is a link to 'usr/lib/m.py', which would stay as it is",
        "change what the link names, or remove the link in the same step",
        id="a file over a link",
    ),
    pytest.param(
        [put("etc/conf/x")],
        PatchError,
        "layer: 'etc/conf/x': 'etc/conf' is a file, not a directory",
        None,
        id="below a file",
    ),
    pytest.param(
        [put("dev/null/x")],
        PatchError,
        "layer: 'dev/null/x': 'dev/null' is a device or pipe, not a directory",
        None,
        id="below a device",
    ),
    pytest.param(
        [put("usr/bin/ping")],
        PatchError,
        "layer: 'usr/bin/ping': its security.capability vouches for the old content and must not"
        " pass to a new one",
        "remove the file and add it anew in the same step, which drops its xattrs",
        id="new content under old capabilities",
    ),
    pytest.param(
        [put("usr/bin/sealed")],
        PatchError,
        "layer: 'usr/bin/sealed': its security.ima vouches for the old content and must not pass"
        " to a new one",
        "remove the file and add it anew in the same step, which drops its xattrs",
        id="new content under an old signature",
    ),
    pytest.param(
        [Remove(path="etc/none")],
        PatchError,
        "layer: 'etc/none' is to be removed and does not exist",
        "drop the removal if the base no longer has the file",
        id="the removal of nothing",
    ),
    pytest.param(
        [Remove(path="usr/lib")],
        PatchError,
        "layer: 'usr/lib': it is a directory, and only files and links are removed",
        None,
        id="the removal of a directory",
    ),
    pytest.param(
        [Symlink(path="usr/lib/l", target="../../../etc")],
        PatchError,
        "layer: 'usr/lib/l': as a link to '../../../etc' it would lead out of the image",
        None,
        id="a link that leads out",
    ),
    pytest.param(
        [put("lib/m.py"), put("usr/lib/m.py")],
        ProjectError,
        "layer: 'usr/lib/m.py': two changes to one file (written as 'lib/m.py' and 'usr/lib/m.py')",
        "put them into two steps, whose order the variant gives",
        id="one file by two names",
    ),
    pytest.param(
        [Remove(path="etc/conf"), Remove(path="etc/conf")],
        ProjectError,
        "layer: 'etc/conf': two changes to one file (written as 'etc/conf')",
        "put them into two steps, whose order the variant gives",
        id="removed twice",
    ),
    pytest.param(
        [put("opt"), put("opt/x")],
        ProjectError,
        "layer: 'opt/x' stands below 'opt', which the same step writes",
        "name the directory that is meant, or use two steps",
        id="below a file of the same step",
    ),
    pytest.param(
        [Remove(path="lib"), put("lib/x")],
        ProjectError,
        "layer: 'lib/x' stands below 'lib', which the same step removes",
        "name the directory that is meant, or use two steps",
        id="below a link that goes",
    ),
    pytest.param(
        [Symlink(path="lib", target="usr/bin"), put("lib/x")],
        ProjectError,
        "layer: 'lib/x' stands below 'lib', which the same step writes",
        "name the directory that is meant, or use two steps",
        id="below a link that is pointed elsewhere",
    ),
    pytest.param(
        [put("etc/x", mode=0o100644)],
        ProjectError,
        "layer: 'etc/x': expected a mode of at most 07777, got 0o100644",
        None,
        id="a mode with a file type",
    ),
    pytest.param(
        [put("a/.wh.b/c")],
        IntegrityError,
        "layer: 'a/.wh.b/c': a name that starts with '.wh.' would delete files",
        "the prefix is reserved by the OCI image-spec; no file of an image can have it",
        id="a whiteout in disguise",
    ),
    pytest.param(
        [put("../x")],
        IntegrityError,
        "layer: a path that leaves the image: '../x'",
        None,
        id="dots",
    ),
    pytest.param(
        [put("/etc/x")],
        IntegrityError,
        "layer: expected a plain path from the image's root, got '/etc/x'",
        None,
        id="absolute",
    ),
    pytest.param(
        [put("etc/\0")],
        IntegrityError,
        "layer: a path with a NUL byte: 'etc/\\x00'",
        None,
        id="NUL",
    ),
    pytest.param(
        [put("\ud800")],
        IntegrityError,
        "layer: a name that is not text: '\\ud800'",
        None,
        id="half a surrogate pair",
    ),
    pytest.param(
        [put("\udcc3\udca4"), put("\u00e4")],
        IntegrityError,
        "layer: a name that is not text: '\\udcc3\\udca4'",
        None,
        id="a second spelling of one name",
    ),
    pytest.param(
        [put("ä" * 128)],
        IntegrityError,
        f"layer: a name over 255 bytes: '{'ä' * 128}'",
        None,
        id="a name that no file system holds",
    ),
    pytest.param(
        [Symlink(path="l", target="")],
        IntegrityError,
        "layer: 'l': expected the target of a link, got ''",
        None,
        id="a link to nothing",
    ),
    pytest.param(
        [Symlink(path="l", target="a\0b")],
        IntegrityError,
        "layer: 'l': expected the target of a link, got 'a\\x00b'",
        None,
        id="NUL in the target of a link",
    ),
    pytest.param(
        [put("hidden/x")],
        IntegrityError,
        "layer: 'usr/.wh.lib/x': a name that starts with '.wh.' would delete files",
        "the prefix is reserved by the OCI image-spec; no file of an image can have it",
        id="through a link of the base to the name of a whiteout",
    ),
    pytest.param(
        [put("loop/x")],
        IntegrityError,
        "'loop': a loop of links",
        None,
        id="a loop of links",
    ),
    pytest.param(
        [put("out/x")],
        IntegrityError,
        "'out': a link leads out of the image",
        None,
        id="through a link that leads out",
    ),
]


@pytest.mark.parametrize("changes, error, message, hint", REFUSALS)
def test_a_change_that_cannot_be_meant_is_refused(
    changes: list[Change], error: type[BuilderError], message: str, hint: str | None
) -> None:
    hint = error.usual_hint if hint is None else hint
    for order in (changes, changes[::-1]):
        with pytest.raises(error) as caught:
            compose([*order, put("etc/fine")], BASE)
        assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_refusal_names_the_step_the_file_and_the_verdict() -> None:
    with pytest.raises(PatchError) as caught:
        compose([Remove(path="lib/none")], BASE, at="variants/a.yaml: step 2")
    error = caught.value
    assert error.message.startswith("variants/a.yaml: step 2: 'usr/lib/none' is to be removed")
    assert (error.verdict, error.path) == ("file-missing", "usr/lib/none")
    with pytest.raises(PatchError) as caught:
        compose([put("lib/current")], BASE)
    assert (caught.value.verdict, caught.value.path) == ("refused", "usr/lib/current")


def test_only_the_tree_is_looked_at_and_no_file_is_read() -> None:
    BASE.reads.clear()
    compose([put("usr/lib/m.py"), Remove(path="etc/conf")], BASE)
    assert BASE.reads == []


@settings(max_examples=30)
@given(
    st.permutations(
        [
            put("lib/m.py"),
            put("opt/x/y"),
            put("opt/z"),
            Remove(path="usr/lib/n.py"),
            Remove(path="etc/conf"),
            put("etc/conf/below"),
            Symlink(path="opt/l", target="x"),
        ]
    )
)
def test_the_order_of_the_changes_has_no_meaning(changes: list[Change]) -> None:
    assert names(*changes) == [
        "etc/conf",
        "etc/conf/below",
        "opt",
        "opt/l",
        "opt/x",
        "opt/x/y",
        "opt/z",
        "usr/lib/.wh.n.py",
        "usr/lib/m.py",
    ]
