"""Pull requests: where they began, what they change, and what became of them."""

import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NoReturn

import pytest

from builder import notes
from builder.diff import canonical, parse
from builder.digest import Digest, ObjectId
from builder.errors import BuilderError, GoneError, IntegrityError, ProjectError
from builder.lock.model import Escrow, Lock, PullPin, SourceDiff
from builder.materials import PinnedMaterials
from builder.reference import Reference
from tests.adapters.git_world import git
from tests.resolve.commits import NOW, THEN, URL, CommitWorld

PULL = "refs/pull/7/head"
ESCROW = Escrow(registry=Reference.parse("ghcr.io/acme/escrow"), digest=Digest.of(b"copy"))
UNKNOWN = (
    "no API of its host is known: whether it is open is not known, and it is taken to be for"
    " refs/heads/main"
)


@pytest.fixture
def world(tmp_path: Path) -> CommitWorld:
    return CommitWorld(tmp_path)


@pytest.fixture
def base(world: CommitWorld) -> str:
    return world.commit("main", {"a.py": b"1\n2\n3\n", "b.py": b"b\n"})


def ids(pin: PullPin) -> tuple[str, str]:
    return str(pin.base), str(pin.head)


def test_a_pull_request_is_pinned_by_its_commits_and_the_change_between(
    world: CommitWorld, base: str
) -> None:
    first = world.commit(PULL, {"a.py": b"1\n2\nthree\n", "b.py": b"b\n"}, base)
    head = world.commit(PULL, {"a.py": b"1\n2\nIII\n", "b.py": b"b\n"}, first)
    world.commit("main", {"a.py": b"1\n2\n3\n", "b.py": b"later\n"}, base)
    world.says(7, head=head)
    found = world.pull()
    diff = world.git.diff(URL, base, head)
    assert found.pin == PullPin(
        name="fix",
        repository=URL,
        pull=7,
        base=ObjectId.parse(base),
        head=ObjectId.parse(head),
        diff=canonical(parse(diff, at="x")),
        raw=Digest.of(diff),
        locked=THEN,
    )
    assert (found.remarks, found.merged, found.distance) == ((), None, None)
    assert b"-3\n+III\n" in diff


def test_the_change_stays_usable_when_the_pull_request_is_gone(
    world: CommitWorld, base: str, tmp_path: Path
) -> None:
    head = world.commit(PULL, {"a.py": b"x\n", "b.py": b"b\n"}, base)
    pin = world.pull().pin
    world.upstream.set_refs({PULL: None})
    with pytest.raises(GoneError) as caught:
        world.pull(before=pin)
    assert caught.value.message == f"pull 'fix': {URL} has no {PULL}"

    def nobody(*_: object) -> NoReturn:
        raise AssertionError("asked")

    materials = PinnedMaterials(
        lock=Lock(),
        store=world.store,
        git=nobody,
        wheels=nobody,
        make_sandbox=nobody,
        open_copy=nobody,
    )
    assert materials.pull(pin) == world.git.diff(URL, base, head)
    assert zlib.decompress(world.store.note(notes.DIFF, f"{base}-{head}") or b"")


def test_while_the_head_stays_the_pin_stays_wherever_the_branch_goes(
    world: CommitWorld, base: str
) -> None:
    other = world.commit(PULL, {"a.py": b"x\n", "b.py": b"b\n"}, base)
    world.says(7, head=other)
    pin = replace(world.pull().pin, root="vllm", strip=1, escrow=(ESCROW,), raw=None)
    world.commit("main", {"a.py": b"x\n", "b.py": b"b\n"}, base, other)  # merged
    found = world.pull(before=replace(pin, failing=("v",)))
    assert found.pin == pin
    assert found.pin.locked == THEN
    assert found.distance is not None
    assert (found.distance.ahead, found.distance.behind) == ((), ())


def test_a_head_that_goes_on_is_a_new_pin_with_what_lies_between(
    world: CommitWorld, base: str
) -> None:
    old = world.commit(PULL, {"a.py": b"x\n", "b.py": b"b\n"}, base)
    pin = replace(world.pull().pin, root="vllm", strip=1, escrow=(ESCROW,), failing=("v",))
    new = world.commit(PULL, {"a.py": b"y\n", "b.py": b"b\n"}, old)
    world.says(7, head=new)
    found = world.pull(before=pin)
    assert ids(found.pin) == (base, new)
    assert (found.pin.root, found.pin.strip, found.pin.escrow) == ("vllm", 1, ())
    assert (found.pin.failing, found.pin.locked) == ((), NOW)
    assert found.pin.diff != pin.diff
    assert found.distance is not None
    assert [commit.id for commit in found.distance.ahead] == [new]
    assert found.remarks == ()


def test_a_rebase_of_the_same_change_keeps_the_copies(world: CommitWorld, base: str) -> None:
    old = world.commit(PULL, {"a.py": b"x\n", "b.py": b"b\n"}, base)
    pin = replace(world.pull().pin, escrow=(ESCROW,))
    later = world.commit("main", {"a.py": b"1\n2\n3\n", "b.py": b"b\n", "c.py": b"c\n"}, base)
    new = world.commit(PULL, {"a.py": b"x\n", "b.py": b"b\n", "c.py": b"c\n"}, later)
    world.says(7, head=new)
    found = world.pull(before=pin)
    assert ids(found.pin) == (later, new)
    assert (found.pin.diff, found.pin.escrow) == (pin.diff, (ESCROW,))
    assert found.remarks == (
        f"the pull request was force-pushed: {old[:12]} is not in the history of its new head",
        f"its base moved from {base[:12]} to {later[:12]}",
        "the change itself is the same",
    )


def test_a_force_push_whose_old_head_is_gone_is_still_told(world: CommitWorld, base: str) -> None:
    world.commit(PULL, {"a.py": b"x\n", "b.py": b"b\n"}, base)
    pin = replace(world.pull().pin, head=ObjectId.parse("9" * 40))
    new = world.commit(PULL, {"a.py": b"y\n", "b.py": b"b\n"}, base)
    world.says(7, head=new)
    found = world.pull(before=pin)
    assert found.distance is None
    assert found.remarks == (
        f"the pull request was force-pushed: {'9' * 12} is not in the history of its new head",
        f"{'9' * 12} is gone: nobody can say what lies between it and the new one",
    )


def test_main_merged_into_the_pull_request_is_no_part_of_its_change(
    world: CommitWorld, base: str
) -> None:
    first = world.commit(PULL, {"a.py": b"x\n", "b.py": b"b\n"}, base)
    later = world.commit("main", {"a.py": b"1\n2\n3\n", "b.py": b"later\n"}, base)
    head = world.commit(PULL, {"a.py": b"x\n", "b.py": b"later\n"}, first, later)
    pin = world.pull().pin
    assert ids(pin) == (later, head)
    assert b"b.py" not in world.git.diff(URL, later, head)


@pytest.mark.parametrize("how", ["merge", "squash", "rebase"])
@pytest.mark.parametrize("known", [True, False], ids=["the API says so", "git alone"])
def test_of_one_that_was_merged_the_change_is_the_same_as_before(
    world: CommitWorld, base: str, how: str, known: bool
) -> None:
    first = world.commit(PULL, {"a.py": b"1\n2\n3\n", "b.py": b"B\n"}, base)
    head = world.commit(PULL, {"a.py": b"x\n", "b.py": b"B\n"}, first)
    before = world.pull().pin
    later = world.commit("main", {"a.py": b"1\n2\n3\n", "b.py": b"b\n", "c": b"c"}, base)
    files = {"a.py": b"x\n", "b.py": b"B\n", "c": b"c"}
    if how == "merge":
        merge = world.commit("main", files, later, head)
    elif how == "squash":
        merge = world.commit("main", files, later)
    else:
        step = world.commit("main", {"a.py": b"1\n2\n3\n", "b.py": b"B\n", "c": b"c"}, later)
        merge = world.commit("main", files, step)
    world.commit("main", files | {"d": b"d"}, merge)
    if known:
        world.says(7, head=head, state="merged", merge_commit=merge)
    found = world.pull()
    assert found.pin == before
    if known:
        said = f"the pull request was merged into main by {merge[:12]}"
        assert (found.merged, found.remarks) == (merge, (said,))
    elif how == "merge":
        told = f"refs/heads/main has it already, by {merge[:12]}"
        assert (found.merged, found.remarks) == (merge, (UNKNOWN, told))
    else:  # git cannot know
        assert (found.merged, found.remarks) == (None, (UNKNOWN,))


@pytest.mark.parametrize("known", [True, False], ids=["the API says so", "git alone"])
def test_one_that_the_branch_was_moved_to_leaves_no_trace_and_is_refused(
    world: CommitWorld, base: str, known: bool
) -> None:
    head = world.commit(PULL, {"a.py": b"x\n"}, base)
    world.upstream.set_refs({"refs/heads/main": head})
    world.commit("main", {"a.py": b"y\n"}, head)
    if known:
        world.says(7, head=head, state="merged", merge_commit=head)
    with pytest.raises(ProjectError) as caught:
        world.pull()
    where = head if known else "refs/heads/main"
    assert caught.value.message == (
        f"pull 'fix': {head} is in the history of {where} of {URL}, and nothing there says where"
        " the pull request began"
    )


def test_one_that_was_closed_is_told_and_stays(world: CommitWorld, base: str) -> None:
    head = world.commit(PULL, {"a.py": b"x\n"}, base)
    pin = world.pull().pin
    world.says(7, head=head, state="closed")
    found = world.pull(before=pin)
    assert (found.pin, found.merged) == (pin, None)
    assert found.remarks == ("the pull request was closed without being merged",)


def test_the_branch_that_it_is_for_is_what_the_api_says(world: CommitWorld, base: str) -> None:
    release = world.commit("release", {"a.py": b"release\n"}, base)
    head = world.commit(PULL, {"a.py": b"fixed\n"}, release)
    assert ids(world.pull().pin) == (base, head)
    world.says(7, head=head, base_ref="release")
    assert ids(world.pull().pin) == (release, head)
    world.says(7, head=head, base_ref="gone")
    with pytest.raises(GoneError) as caught:
        world.pull()
    assert caught.value.message == (
        f"pull 'fix': it is for refs/heads/gone, and {URL} has no such branch any more"
    )


def test_what_git_has_and_the_api_does_not_show_is_told(world: CommitWorld, base: str) -> None:
    head = world.commit(PULL, {"a.py": b"x\n"}, base)
    world.says(8, head=head)
    (remark,) = world.pull().remarks
    assert remark == (
        "the API of its host does not show it, though git has it: whether it is open is not known,"
        " and it is taken to be for refs/heads/main"
    )


def test_git_and_the_api_may_be_at_different_heads(world: CommitWorld, base: str) -> None:
    head = world.commit(PULL, {"a.py": b"x\n"}, base)
    world.says(7, head="9" * 40)
    found = world.pull()
    assert str(found.pin.head) == head
    assert found.remarks == (f"its head is {head[:12]} for git and {'9' * 12} for the API",)


def _nothing(world: CommitWorld, base: str) -> None:
    files = {"a.py": b"1\n2\n3\n", "b.py": b"b\n"}
    world.commit(PULL, files, world.commit(PULL, {"a.py": b"x\n"}, base))


def _at_the_tip(world: CommitWorld, base: str) -> None:
    world.upstream.set_refs({PULL: base})


def _unrelated(world: CommitWorld, base: str) -> None:
    world.commit(PULL, {"a.py": b"x\n"})


@pytest.mark.parametrize(
    "make, kind, message",
    [
        pytest.param(_nothing, ProjectError, "nothing changes from", id="a change taken back"),
        pytest.param(_at_the_tip, ProjectError, "nothing changes from", id="no commit"),
        pytest.param(_unrelated, IntegrityError, "has no history in common", id="another root"),
    ],
)
def test_what_is_no_change_is_refused(
    world: CommitWorld,
    base: str,
    make: Callable[[CommitWorld, str], None],
    kind: type[BuilderError],
    message: str,
) -> None:
    make(world, base)
    with pytest.raises(kind) as caught:
        world.pull()
    assert message in caught.value.message
    assert [*world.store.notes(notes.DIFF)] == []


def test_what_no_step_can_apply_is_told(world: CommitWorld, base: str) -> None:
    files = {"a.py": b"x\n", "b.py": b"b\n"}
    binaries = {f"x{n}.so": b"\0%d" % n for n in range(6)}
    head = world.commit(PULL, files | binaries | {"link": ("120000", b"a.py")}, base)
    world.says(7, head=head)
    (remark,) = world.pull().remarks
    assert remark == (
        "no step can apply all of it: 'link' is a symbolic link, 'x0.so' is a binary file without"
        " its content, 'x1.so' is a binary file without its content, 'x2.so' is a binary file"
        " without its content, 'x3.so' is a binary file without its content and 2 more"
    )


def test_a_published_diff_does_not_move_with_the_pull_request(
    world: CommitWorld, base: str
) -> None:
    world.commit(PULL, {"a.py": b"x\n"}, base)
    pin = replace(world.pull().pin, published=SourceDiff(source="club", path="x.patch"))
    with pytest.raises(ProjectError) as caught:
        world.pull(before=pin)
    assert caught.value.message == (
        "pull 'fix': its diff is a file of the source 'club', so that it does not move with the"
        " pull request"
    )
    assert caught.value.hint == "bump source club"


def test_a_repository_without_the_pull_request_is_told(world: CommitWorld, base: str) -> None:
    with pytest.raises(GoneError) as caught:
        world.pull(8)
    assert caught.value.message == f"pull 'fix': {URL} has no refs/pull/8/head"
    assert git(world.upstream.path, "rev-parse", "refs/heads/main") == base
