"""Branches of the project's repository: made beside it, never in it."""

import base64
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.adapters.git_remote import GitRemote, Token
from builder.errors import (
    AuthError,
    BuilderError,
    GoneError,
    NetworkError,
    OfflineError,
    ProjectError,
    UsageError,
)
from builder.upstream import Start
from tests.adapters.git_world import git, serving
from tests.nightly.repository import AUTHOR, URL, Repository

pytestmark = pytest.mark.requires("git")
BRANCH = "builder/bump/genesis/patches"
LOCK = "lockfiles/genesis.yaml"


def pushed(repository: Repository, data: bytes, *, expected: str | None = None) -> str:
    branches = repository.worktree()
    start = branches.start(None)
    tree = branches.tree(start.commit, {LOCK: data})
    commit = branches.commit(tree, start.commit, "bump\n")
    branches.push(BRANCH, commit, expected=expected)
    return commit


def test_a_commit_has_the_base_with_the_files_and_the_author(repository: Repository) -> None:
    before = repository.state()
    commit = pushed(repository, b"version: 1\n")
    assert repository.branches()[BRANCH] == commit
    shown = git(repository.remote, "show", "--format=%an <%ae> %aI %cn %cI%n%P%n%B", commit)
    time = "2026-05-11T00:00:00+00:00"
    assert shown.splitlines()[:3] == [
        f"{AUTHOR.name} <{AUTHOR.email}> {time} {AUTHOR.name} {time}",
        repository.branches()["main"],
        "bump",
    ]
    assert git(repository.remote, "diff", "--name-only", f"{commit}^", commit) == LOCK
    assert git(repository.remote, "show", f"{commit}:{LOCK}") == "version: 1"
    assert repository.state() == before


def test_a_new_file_is_added_and_a_mode_stays(repository: Repository) -> None:
    (repository.project / LOCK).chmod(0o755)
    repository.save()
    branches = repository.worktree()
    start = branches.start("main")
    tree = branches.tree(start.commit, {LOCK: b"x", "lockfiles/images/it.yaml": b"y"})
    lines = repository.git("ls-tree", "-r", tree, "lockfiles").splitlines()
    assert [line.partition(" ")[0] for line in lines] == ["100755", "100644"]


def test_a_link_in_place_of_a_lockfile_is_refused(repository: Repository) -> None:
    (repository.project / LOCK).unlink()
    (repository.project / LOCK).symlink_to("../README.md")
    repository.save()
    branches = repository.worktree()
    with pytest.raises(ProjectError) as caught:
        branches.tree(branches.start("main").commit, {LOCK: b"x"})
    assert caught.value.message == f"{LOCK}: expected a file in the repository, got mode 120000"


def test_a_project_below_the_top_is_committed_where_it_is(tmp_path: Path) -> None:
    repository = Repository.make(tmp_path, below="images of ours/ä")
    commit = pushed(repository, b"deep\n")
    path = f"images of ours/ä/{LOCK}"
    assert git(repository.remote, "show", f"{commit}:{path}") == "deep"
    branches = repository.worktree()
    assert branches.read(commit, LOCK) == b"deep\n"
    (repository.project / "overlays").mkdir()
    (repository.project / "overlays/new.txt").write_text("x")
    with pytest.raises(ProjectError, match=r"images of ours/ä/overlays/new\.txt"):
        branches.start("main")


def test_a_worktree_of_a_repository_is_as_good(repository: Repository, tmp_path: Path) -> None:
    repository.git("worktree", "add", "--quiet", "--detach", str(tmp_path / "other"))
    other = Repository(
        clone=tmp_path / "other", remote=repository.remote, project=tmp_path / "other"
    )
    branches = other.worktree()
    start = branches.start("main")
    commit = branches.commit(branches.tree(start.commit, {LOCK: b"x"}), start.commit, "m")
    branches.push(BRANCH, commit, expected=None)
    assert repository.branches()[BRANCH] == commit


def test_the_tip_is_what_the_remote_has_and_comes_from_there(
    repository: Repository, tmp_path: Path
) -> None:
    commit = pushed(repository, b"one")
    other = tmp_path / "second"
    repository.git("clone", "--quiet", "--single-branch", f"file://{repository.remote}", str(other))
    second = Repository(clone=other, remote=repository.remote, project=other)
    before = second.state()
    tip = second.worktree().tip(BRANCH)
    assert tip is not None
    assert (tip.commit, tip.message) == (commit, "bump\n")
    assert tip.parents == (repository.branches()["main"],)
    assert tip.tree == git(repository.remote, "rev-parse", f"{commit}^{{tree}}")
    assert second.worktree().read(tip.commit, LOCK) == b"one"
    assert second.worktree().read(tip.commit, "lockfiles/none.yaml") is None
    assert second.state() == before
    assert second.worktree().tip("builder/bump/genesis/none") is None


def test_a_shallow_clone_stays_shallow_and_can_push(repository: Repository, tmp_path: Path) -> None:
    for number in range(3):
        repository.save(f"change {number}")
    pushed(repository, b"one")
    repository.save("on goes main")
    other = tmp_path / "shallow"
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.remote}", str(other))
    shallow = Repository(clone=other, remote=repository.remote, project=other)
    branches = shallow.worktree()
    tip = branches.tip(BRANCH)
    assert tip is not None
    assert len(tip.parents) == 1
    assert shallow.git("rev-list", "--count", "--all", tip.commit) == "2"
    commit = pushed(shallow, b"two", expected=tip.commit)
    assert repository.branches()[BRANCH] == commit
    assert git(repository.remote, "rev-list", "--count", commit) == "6"


def test_a_branch_that_moved_meanwhile_is_left(repository: Repository) -> None:
    one = pushed(repository, b"one")
    with pytest.raises(ProjectError) as caught:
        pushed(repository, b"two", expected=None)
    assert caught.value.message == f"push of {BRANCH}: somebody else has pushed to it meanwhile"
    with pytest.raises(ProjectError):
        pushed(repository, b"two", expected=repository.branches()["main"])
    assert repository.branches()[BRANCH] == one


def test_a_remote_that_refuses_is_an_auth_error_with_its_words(repository: Repository) -> None:
    hook = repository.remote / "hooks/pre-receive"
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    git(repository.remote, "config", "core.hooksPath", str(hook.parent))  # ours are off
    with pytest.raises(AuthError) as caught:
        pushed(repository, b"one")
    assert "(pre-receive hook declined)" in caught.value.message
    assert BRANCH not in repository.branches()


def test_hooks_and_settings_of_the_clone_do_not_take_part(
    repository: Repository, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("pre-push", "reference-transaction", "post-index-change"):
        hook = repository.clone / ".git/hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran-{name}\nexit 1\n")
        hook.chmod(0o755)
    repository.git("config", "push.followTags", "true")
    repository.git("config", "commit.gpgSign", "true")
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "foreign"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "nowhere"))
    pushed(repository, b"one")
    assert [path.name for path in tmp_path.iterdir() if path.name.startswith(("ran", "for"))] == []


@pytest.mark.parametrize("kind", ["changed", "removed", "added", "staged"])
def test_a_tree_with_other_recipes_is_refused_before_anything(
    kind: str, repository: Repository
) -> None:
    recipe = repository.project / "variants/it.yaml"
    match kind:
        case "removed":
            recipe.unlink()
        case "added":
            (recipe.parent / "other.yaml").write_text("x")
        case _:
            recipe.write_text("other\n")
    if kind == "staged":
        repository.git("add", "--all")
    path = "variants/other.yaml" if kind == "added" else "variants/it.yaml"
    with pytest.raises(ProjectError) as caught:
        repository.worktree().start(None)
    assert caught.value.message == (
        f"branch 'main' at origin: has other recipes or locks than this directory: {path}"
    )


def test_whatever_decides_nothing_may_differ(repository: Repository) -> None:
    (repository.clone / "README.md").write_text("other\n")
    (repository.clone / "notes.txt").write_text("mine\n")
    commit = repository.branches()["main"]
    assert repository.worktree().start(None) == Start(branch="main", commit=commit)


def test_a_local_commit_that_was_not_pushed_is_no_base(repository: Repository) -> None:
    there = repository.branches()["main"]
    (repository.clone / "README.md").write_text("other\n")
    repository.git("commit", "--quiet", "--all", "-m", "mine")
    assert repository.worktree().start(None).commit == there


def test_a_base_that_is_not_here_names_the_command(repository: Repository, tmp_path: Path) -> None:
    other = tmp_path / "second"
    repository.git("clone", "--quiet", f"file://{repository.remote}", str(other))
    repository.save("later")
    second = Repository(clone=other, remote=repository.remote, project=other)
    with pytest.raises(ProjectError) as caught:
        second.worktree().start(None)
    commit = repository.branches()["main"]
    assert caught.value.message == (
        f"branch 'main' at origin: its commit {commit[:12]} is not here"
    )
    assert caught.value.hint == "git fetch origin main"


def test_a_base_that_the_remote_lacks(repository: Repository) -> None:
    with pytest.raises(ProjectError) as caught:
        repository.worktree().start("release")
    assert caught.value.message == "branch 'release' at origin: there is none"


def test_a_head_on_no_branch_wants_a_base(repository: Repository) -> None:
    repository.git("checkout", "--quiet", "--detach")
    with pytest.raises(UsageError) as caught:
        repository.worktree().start(None)
    assert caught.value.hint == "name it: --base BRANCH"
    assert repository.worktree().start("main").branch == "main"


def test_a_project_outside_of_git(tmp_path: Path, repository: Repository) -> None:
    outside = Repository(clone=tmp_path, remote=repository.remote, project=tmp_path)
    with pytest.raises(ProjectError, match="in no git repository with files"):
        outside.worktree(tmp_path / "home")


def test_a_bare_repository_has_no_project(repository: Repository, tmp_path: Path) -> None:
    bare = Repository(clone=repository.remote, remote=repository.remote, project=repository.remote)
    with pytest.raises(ProjectError, match="in no git repository with files"):
        bare.worktree(tmp_path / "home")


def test_a_repository_without_the_remote(repository: Repository) -> None:
    repository.git("remote", "remove", "origin")
    with pytest.raises(ProjectError, match="no remote 'origin'"):
        repository.worktree()


def test_offline_asks_nobody(repository: Repository) -> None:
    with pytest.raises(OfflineError):
        repository.worktree(offline=True).start("main")


def test_a_remote_that_is_gone_and_one_that_does_not_answer(repository: Repository) -> None:
    repository.git("config", f"url.{repository.remote}-gone.insteadOf", URL)
    repository.git("config", "--unset", f"url.{repository.remote}.insteadOf")
    with pytest.raises(GoneError):
        repository.worktree().start("main")
    repository.git("config", "remote.origin.url", "http://127.0.0.1:9/x.git")
    with pytest.raises(NetworkError):
        repository.worktree().start("main")


def remote_with_token(repository: Repository, url: str) -> GitRemote:
    repository.git("config", "remote.origin.url", url)
    remote = repository.worktree().remote
    remote.token = Token(host="forge.test", secret="s3cret")
    return remote


def trace(repository: Repository, url: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """The environment that git is given for a remote at ``url``, and what it was called with."""
    seen: list[str] = []
    real = subprocess.run

    def run(command: tuple[str, ...], **options: object) -> "subprocess.CompletedProcess[bytes]":
        seen.append(f"{command!r} {options.get('env')!r}")
        return real(("false",), capture_output=True, check=False)

    remote = remote_with_token(repository, url)
    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(BuilderError):
        _ = remote.heads
    return "\n".join(seen)


@pytest.mark.parametrize(
    ("url", "given"),
    [
        ("https://forge.test/acme/images", True),
        ("https://me@forge.test/acme/images.git", True),
        ("https://forge.test.evil.test/acme/images", False),
        ("https://evil.test/forge.test/", False),
        ("https://evil.test/@forge.test/x", False),
        ("http://forge.test/acme/images", False),
        ("ssh://git@forge.test/acme/images", False),
        ("git@forge.test:acme/images.git", False),
    ],
)
def test_the_token_goes_to_its_host_over_tls_and_is_no_argument(
    url: str, given: bool, repository: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = trace(repository, url, monkeypatch)
    secret = base64.b64encode(b"x-access-token:s3cret").decode()
    assert (secret in said) is given
    command, _, _ = said.partition(" {")
    assert secret not in command
    assert "s3cret" not in command
    assert "'http.followRedirects'" in said


@pytest.mark.parametrize(
    ("credentials", "shown"),
    [("me:hunter2@", ""), ("me:x@hunter2@", ""), ("me:x/hunter2@", "***@")],
)
def test_what_git_says_holds_no_credentials(
    repository: Repository, credentials: str, shown: str
) -> None:
    remote = remote_with_token(repository, f"http://{credentials}127.0.0.1:9/x.git")
    with pytest.raises(NetworkError) as caught:
        _ = remote.heads
    assert "hunter2" not in caught.value.message
    assert remote.shown == f"http://{shown}127.0.0.1:9/x.git"


def test_a_push_over_http_is_refused_by_a_server_that_takes_none(
    repository: Repository, tmp_path: Path
) -> None:
    with serving(tmp_path) as server:
        repository.git("config", "remote.origin.url", f"{server.url}remote.git")
        branches = repository.worktree()
        start = branches.start("main")
        commit = branches.commit(branches.tree(start.commit, {LOCK: b"x"}), start.commit, "m")
        with pytest.raises(AuthError):
            branches.push(BRANCH, commit, expected=None)
    assert BRANCH not in repository.branches()
    assert os.listdir(repository.remote / "refs/heads") == ["main"]


@pytest.mark.parametrize("branch", ["main", "heads/main", "zweig-ä\u2028x"])
def test_the_branch_of_head_is_found_whatever_else_has_its_name(
    branch: str, repository: Repository
) -> None:
    if branch != "main":
        repository.git("checkout", "--quiet", "-b", branch)
        repository.git("push", "--quiet", "origin", f"HEAD:refs/heads/{branch}")
    repository.git("tag", branch)
    assert repository.worktree().start(None).branch == branch


def test_a_branch_in_the_way_is_no_matter_of_rights(repository: Repository) -> None:
    repository.git("push", "--quiet", "origin", "HEAD:refs/heads/builder")
    with pytest.raises(ProjectError) as caught:
        pushed(repository, b"one")
    assert caught.value.message == (
        f"push of {BRANCH}: origin has a branch 'builder', beside which git can have none of this"
        " name"
    )


def _ignored(repository: Repository) -> str:
    (repository.clone / ".git/info/exclude").write_text("*.yaml\n")
    (repository.project / "variants/mine.yaml").write_text("x")
    return "variants/mine.yaml"


def _other_line_ends(repository: Repository) -> str:
    repository.git("config", "core.autocrlf", "true")
    path = repository.project / LOCK
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    return LOCK


def _behind_a_link(repository: Repository) -> str:
    (repository.project / "variants").rename(repository.clone / "real")
    (repository.project / "variants").symlink_to("real")
    repository.save()
    assert repository.worktree().start(None).branch == "main"
    (repository.clone / "real/mine.yaml").write_text("x")
    return "real/mine.yaml"


def _out_of_the_repository(repository: Repository) -> str:
    outside = repository.clone.parent / "outside.yaml"
    outside.write_text("x")
    (repository.project / "variants/mine.yaml").symlink_to(outside)
    repository.save()
    return "variants/mine.yaml"


def _a_pipe(repository: Repository) -> str:
    os.mkfifo(repository.project / "variants/mine.yaml")
    return "variants/mine.yaml"


@pytest.mark.parametrize(
    "world",
    [_ignored, _other_line_ends, _behind_a_link, _out_of_the_repository, _a_pipe],
)
def test_what_git_itself_passes_over_is_different_too(
    world: Callable[[Repository], str], repository: Repository
) -> None:
    path = world(repository)
    with pytest.raises(ProjectError) as caught:
        repository.worktree().start(None)
    assert caught.value.message == (
        f"branch 'main' at origin: has other recipes or locks than this directory: {path}"
    )


def test_what_programs_leave_beside_recipes_is_not_different(repository: Repository) -> None:
    left = repository.project / "overlays/it/__pycache__/fix.cpython-312.pyc"
    left.parent.mkdir(parents=True)
    left.write_bytes(b"x")
    assert repository.worktree().start(None).branch == "main"


def test_hooks_of_a_remote_on_this_machine_have_their_say(repository: Repository) -> None:
    hook = repository.remote / "hooks/pre-receive"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\nexit 1\n")
    hook.chmod(0o755)
    with pytest.raises(AuthError) as caught:
        pushed(repository, b"one")
    assert "pre-receive hook declined" in caught.value.message
