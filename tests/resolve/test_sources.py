"""Files of other repositories: at which commit, which bytes, and what is no file."""

from dataclasses import replace
from pathlib import Path

import pytest

from builder.digest import Digest, ObjectId
from builder.errors import BuilderError, GoneError, IntegrityError, ProjectError
from builder.lock.model import Escrow, SourceFile, SourcePin
from builder.reference import Reference
from tests.adapters.git_world import git
from tests.resolve.commits import NOBODY, NOW, THEN, URL, CommitWorld

ESCROW = Escrow(registry=Reference.parse("ghcr.io/acme/escrow"), digest=Digest.of(b"copy"))
POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 3\n"


@pytest.fixture
def world(tmp_path: Path) -> CommitWorld:
    return CommitWorld(tmp_path)


def test_files_are_pinned_as_they_were_committed(world: CommitWorld) -> None:
    text, program = b"a\r\n$Format:%D$\n", b"#!/bin/sh\n"
    commit = world.commit(
        "main",
        {
            "d/a.py": text,
            "run": ("100755", program),
            ".gitattributes": b"* text=auto eol=crlf export-subst\n",
            "empty": b"",
            "\u00fcber/\u2713.txt": b"x",
        },
    )
    paths = ("run", "d/a.py", "empty", "\u00fcber/\u2713.txt")
    found = world.source(commit, *paths)
    assert found.pin == SourcePin(
        name="club",
        repository=URL,
        follows="main",
        commit=ObjectId.parse(commit),
        tree=ObjectId.parse(git(world.upstream.path, "rev-parse", f"{commit}^{{tree}}")),
        files=tuple(
            SourceFile(path=path, digest=Digest.of(data), size=len(data))
            for path, data in zip(paths, (program, text, b"", b"x"), strict=True)
        ),
        locked=THEN,
    )
    assert (found.remarks, found.distance) == ((), None)


def test_no_target_is_what_the_pin_follows(world: CommitWorld) -> None:
    commit = world.commit("dev", {"a": b"1"})
    world.upstream.tag("v1", commit)
    for follows in ("dev", "v1", "refs/tags/v1"):
        assert str(world.source(None, "a", follows=follows).pin.commit) == commit
    with pytest.raises(ProjectError) as caught:
        world.source(None, "a", follows=None)
    assert caught.value.message == "source 'club': follows no ref, so that nothing is newer"


def test_a_pin_that_has_not_moved_is_the_same(world: CommitWorld) -> None:
    world.commit("main", {"a": b"1"})
    pin = replace(world.source(None, "a").pin, escrow=(ESCROW,))
    found = world.source(None, "a", before=replace(pin, failing=("v",)))
    assert found.pin == pin
    assert found.pin.locked == THEN


def test_a_newer_commit_is_told_with_what_lies_between(world: CommitWorld) -> None:
    old = world.commit("main", {"a": b"1", "b": b"b"})
    pin = replace(world.source(None, "a").pin, escrow=(ESCROW,), failing=("v",))
    new = world.commit("main", {"a": b"2", "b": b"b"}, old)
    found = world.source(None, "a", before=pin)
    assert (str(found.pin.commit), found.pin.locked) == (new, NOW)
    assert (found.pin.escrow, found.pin.failing) == ((), ())
    assert found.distance is not None
    assert [commit.id for commit in found.distance.ahead] == [new]
    assert found.remarks == ()


def test_the_same_files_at_another_commit_keep_their_copies(world: CommitWorld) -> None:
    old = world.commit("main", {"a": b"1", "b": b"1"})
    pin = replace(world.source(None, "a").pin, escrow=(ESCROW,))
    world.commit("main", {"a": b"1", "b": b"2"}, old)
    found = world.source(None, "a", before=pin)
    assert (found.pin.escrow, found.pin.locked) == ((ESCROW,), NOW)
    assert found.remarks == ("the files are the same at both commits",)


def test_a_branch_that_was_rewritten_and_a_tag_that_was_moved_are_told(world: CommitWorld) -> None:
    root = world.commit("main", {"a": b"0"})
    old = world.commit("main", {"a": b"1"}, root)
    world.upstream.tag("v1", old)
    branch, tag = world.source("main", "a").pin, world.source("v1", "a", follows="v1").pin
    new = world.commit("main", {"a": b"2"}, root)
    world.upstream.tag("v1", new)
    assert world.source(None, "a", before=branch).remarks == (
        f"refs/heads/main does not have {old[:12]} in its history",
    )
    assert world.source(None, "a", follows="v1", before=tag).remarks == (
        f"the tag refs/tags/v1 was moved from {old[:12]} to {new[:12]}",
    )
    alone = world.commit("main", {"a": b"3"})
    assert world.source(None, "a", before=branch).remarks == (
        f"refs/heads/main was re-rooted: its history has nothing in common with {old[:12]}",
    )
    assert world.source(alone, "a", before=branch).remarks == ()


def test_an_old_commit_that_is_gone_does_not_stop_a_new_one(world: CommitWorld) -> None:
    world.commit("main", {"a": b"1"})
    pin = replace(world.source(None, "a").pin, commit=ObjectId.parse(NOBODY))
    found = world.source(None, "a", before=pin)
    assert found.distance is None
    assert found.remarks == (
        f"{NOBODY[:12]} is gone: nobody can say what lies between it and the new one",
        "the files are the same at both commits",
    )


@pytest.mark.parametrize(
    "paths, message, hint",
    [
        pytest.param(
            ("old/place/fix.patch",),
            "has no 'old/place/fix.patch'",
            "the nearest to 'old/place/fix.patch' is 'new/place/fix.patch'",
            id="moved",
        ),
        pytest.param(
            ("new/place/fix.pach",),
            "has no 'new/place/fix.pach'",
            "the nearest to 'new/place/fix.pach' is 'new/place/fix.patch'",
            id="a slip",
        ),
        pytest.param(
            ("zzz", "dir/yy"),
            "has no 'zzz' and no 'dir/yy'",
            "nothing there is like 'zzz'; nothing there is like 'dir/yy'",
            id="two that are nowhere",
        ),
        pytest.param(
            ("/new/place/fix.patch",),
            "has no '/new/place/fix.patch'",
            "the nearest to '/new/place/fix.patch' is 'new/place/fix.patch'",
            id="absolute",
        ),
        pytest.param(("",), "has no ''", "nothing there is like ''", id="empty"),
    ],
)
def test_a_file_that_is_not_there_is_an_error_with_the_nearest(
    world: CommitWorld, paths: tuple[str, ...], message: str, hint: str
) -> None:
    commit = world.commit("main", {"new/place/fix.patch": b"x", "README": b"x"})
    with pytest.raises(IntegrityError) as caught:
        world.source("main", *paths)
    assert caught.value.message == f"source 'club': {URL} {message} at {commit}"
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    "path, message",
    [
        ("dir", "is a directory, wanted a file"),
        ("link", "is a symbolic link, wanted a file"),
        ("module", "is a submodule at"),
        ("weights", "is a Git LFS pointer"),
    ],
)
def test_what_is_no_file_is_refused(world: CommitWorld, path: str, message: str) -> None:
    world.commit(
        "main",
        {
            "dir/a": b"a",
            "link": ("120000", b"dir/a"),
            "module": ("160000", b"1" * 40),
            "weights": POINTER,
        },
    )
    with pytest.raises(IntegrityError, match=message):
        world.source("main", path)


@pytest.mark.parametrize(
    "paths, got", [((), "none"), (("a", "b", "a"), "a, b, a")], ids=["no path", "one twice"]
)
def test_paths_are_named_each_once(world: CommitWorld, paths: tuple[str, ...], got: str) -> None:
    world.commit("main", {"a": b"1", "b": b"2"})
    with pytest.raises(ProjectError) as caught:
        world.source("main", *paths)
    assert caught.value.message == (
        f"source 'club': expected the paths of files, each once, got {got}"
    )


@pytest.mark.parametrize(
    "target, kind",
    [("abcdef1", ProjectError), ("nowhere", GoneError), (NOBODY, GoneError), ("v1", ProjectError)],
)
def test_what_is_no_commit_is_refused(
    world: CommitWorld, target: str, kind: type[BuilderError]
) -> None:
    world.upstream.tag("v1", world.commit("v1", {"a": b"1"}))
    with pytest.raises(BuilderError) as caught:
        world.source(target, "a")
    assert type(caught.value) is kind
