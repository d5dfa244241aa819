"""What a person may write for a commit, and what is refused because it could mean another."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.errors import BuilderError, GoneError, IntegrityError, ProjectError
from builder.resolve.targets import Target, find_target
from builder.upstream import Commit
from tests.adapters.git_world import git
from tests.fakes import FakeHistory
from tests.resolve.commits import NOBODY, URL, CommitWorld

A, B, C = "aaaaaaa1" + "0" * 32, "aaaaaaa2" + "0" * 32, "c" * 40
COMMITS = {name: Commit(id=name, time=1, subject="x") for name in (A, B, C)}
HISTORY = FakeHistory(
    COMMITS,
    {
        "HEAD": A,
        "refs/heads/main": A,
        "refs/heads/both": B,
        "refs/tags/both": B,
        "refs/tags/v1": C,
        "refs/heads/20240101": B,
        "refs/heads/pull/5": B,
        "refs/pull/5/head": C,
        "refs/pull/25/head": C,
        "refs/heads/main-sync": A,
    },
)


def find(target: str | None) -> Target:
    return find_target(URL, target, history=HISTORY, at="genesis 'x'")


@pytest.mark.parametrize(
    "target, commit, ref",
    [
        (A, A, None),
        ("main", A, "refs/heads/main"),
        ("refs/heads/both", B, "refs/heads/both"),
        ("refs/tags/both", B, "refs/tags/both"),
        ("v1", C, "refs/tags/v1"),
        ("20240101", B, "refs/heads/20240101"),
        ("pull/25", C, "refs/pull/25/head"),
        ("pull/25/head", C, "refs/pull/25/head"),
        ("refs/pull/25/head", C, "refs/pull/25/head"),
        ("refs/pull/5", C, "refs/pull/5/head"),
        ("refs/heads/pull/5", B, "refs/heads/pull/5"),
        ("HEAD", A, "HEAD"),
    ],
)
def test_a_target_is_one_commit(target: str, commit: str, ref: str | None) -> None:
    assert find(target) == Target(commit=commit, ref=ref)


@pytest.mark.parametrize(
    "target, kind, message, hint",
    [
        pytest.param(
            "aaaaaaa",
            ProjectError,
            "'aaaaaaa' is a short id, which can change its meaning; wanted all 40 digits",
            f"of the refs of {URL} it may mean {B} (refs/heads/20240101), {A} (refs/heads/main)",
            id="a short id of two commits",
        ),
        pytest.param(
            "CCCC",
            ProjectError,
            "'CCCC' is a short id, which can change its meaning; wanted all 40 digits",
            f"of the refs of {URL} it may mean {C} (refs/pull/25/head)",
            id="a short id in capitals",
        ),
        pytest.param(
            "dddd",
            ProjectError,
            "'dddd' is a short id, which can change its meaning; wanted all 40 digits",
            f"no ref of {URL} is at such a commit; its page or git rev-parse has the full id",
            id="a short id of nothing",
        ),
        pytest.param(
            A.upper(),
            ProjectError,
            f"{A.upper()!r} is not how git writes an id",
            f"write {A}",
            id="a full id in capitals",
        ),
        pytest.param(
            "both",
            ProjectError,
            f"'both' is more than one ref of {URL}",
            "write refs/heads/both or refs/tags/both",
            id="branch and tag",
        ),
        pytest.param(
            "pull/5",
            ProjectError,
            f"'pull/5' is more than one ref of {URL}",
            "write refs/heads/pull/5 or refs/pull/5/head",
            id="branch and pull request",
        ),
        pytest.param(
            "mian",
            GoneError,
            f"{URL} has no branch, tag or pull request 'mian'",
            "did you mean main?",
            id="a slip",
        ),
        pytest.param(
            "refs/heads/zzz",
            GoneError,
            f"{URL} has no branch, tag or pull request 'refs/heads/zzz'",
            "git ls-remote shows what there is",
            id="nothing like it",
        ),
        pytest.param(
            None,
            ProjectError,
            "follows no ref, so that nothing is newer",
            "say which commit, branch or tag",
            id="none",
        ),
    ],
)
def test_what_is_no_target_is_refused(
    target: str | None, kind: type[BuilderError], message: str, hint: str
) -> None:
    with pytest.raises(BuilderError) as caught:
        find(target)
    assert type(caught.value) is kind
    assert caught.value.message == f"genesis 'x': {message}"
    assert caught.value.hint == hint


def test_many_commits_of_a_short_id_are_not_all_listed() -> None:
    ids = [f"abcd{n:036x}" for n in range(9)]
    history = FakeHistory(
        {name: Commit(id=name, time=1, subject="") for name in ids},
        {f"refs/heads/{n}": name for n, name in enumerate(ids)},
    )
    with pytest.raises(ProjectError) as caught:
        find_target(URL, "abcd", history=history, at="x")
    assert str(caught.value.hint).endswith("(refs/heads/4) and 4 more")


@given(st.text(max_size=50))
def test_no_text_is_a_crash_or_a_guess(text: str) -> None:
    try:
        found = find(text)
    except (ProjectError, GoneError):
        return
    assert found.ref == "HEAD" or text in (found.commit, found.ref) or text in str(found.ref)


def test_an_annotated_tag_gives_the_commit_and_other_objects_are_refused(tmp_path: Path) -> None:
    world = CommitWorld(tmp_path)
    commit = world.commit("main", {"a": b"1"})
    inner = world.upstream.tag("inner", commit)
    world.upstream.tag("outer", inner)
    tree = git(world.upstream.path, "rev-parse", f"{commit}^{{tree}}")
    world.upstream.tag("files", tree)

    def ask(target: str) -> Target:
        return find_target(URL, target, history=world.history, at="x")

    assert ask("outer") == Target(commit=commit, ref="refs/tags/outer")
    with pytest.raises(IntegrityError, match=f"{inner} names a tag object, the commit is {commit}"):
        ask(inner)
    with pytest.raises(IntegrityError, match=f"{tree} names a tree, wanted a commit"):
        ask("files")
    with pytest.raises(GoneError):
        ask(NOBODY)
