"""Getting a commit: by id, from branches, from pulls, from mirrors; and saying why it fails."""

import fcntl
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.adapters.git import GitMirror
from builder.errors import (
    AuthError,
    BuilderError,
    EnvironmentFault,
    GoneError,
    IntegrityError,
    NetworkError,
    OfflineError,
    ProjectError,
    RateLimitError,
)
from tests.adapters.git_world import Remote, Upstream, git, serving

URL = "https://code.example/acme/patches"
NOBODY = "0123456789" * 4


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream.make(tmp_path / "served" / "acme" / "patches.git")


@pytest.fixture
def remote(upstream: Upstream, tmp_path: Path) -> Iterator[Remote]:
    with serving(tmp_path / "served") as served:
        yield served


def mirror(tmp_path: Path, remote: Remote, *, offline: bool = False) -> GitMirror:
    return GitMirror(
        tmp_path / "store", mirrors={"https://code.example/": remote.url}, offline=offline
    )


def local(tmp_path: Path, replacement: Path, *, offline: bool = True) -> GitMirror:
    return GitMirror(tmp_path / "store", mirrors={URL: str(replacement)}, offline=offline)


def test_a_commit_is_fetched_by_its_id_once_and_without_history(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    old = upstream.commit("refs/heads/main", {"a": b"1"})
    new = upstream.commit("refs/heads/main", {"a": b"2"}, parent=old)
    tree = git(upstream.path, "rev-parse", f"{new}^{{tree}}")
    assert mirror(tmp_path, remote).tree(URL, new) == tree
    asked = len(remote.requests)
    assert mirror(tmp_path, remote).tree(URL, new) == tree
    assert len(remote.requests) == asked
    (bare,) = (tmp_path / "store").glob("*.git")
    assert git(bare, "rev-list", "--count", new) == "1"


def test_a_commit_that_no_branch_reaches_is_fetched_by_its_id(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    orphan = upstream.commit("refs/hidden/x", {"a": b"1"})
    git(upstream.path, "update-ref", "-d", "refs/hidden/x")
    upstream.commit("refs/heads/main", {"b": b"2"})
    (file,) = mirror(tmp_path, remote).files(URL, orphan, ("a",))
    assert file.data == b"1"


def test_a_server_that_serves_no_ids_is_asked_for_branches_then_pulls(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    remote.old = True
    tip = upstream.commit("refs/heads/main", {"a": b"new root"})
    old = upstream.commit("refs/pull/7/head", {"a": b"old"})
    pull = upstream.commit("refs/pull/7/head", {"a": b"pull"}, parent=old)
    past = upstream.commit("refs/heads/dev", {"a": b"dev 1"})
    upstream.commit("refs/heads/dev", {"a": b"dev 2"}, parent=past)
    mirrored = mirror(tmp_path, remote)
    for commit, data in ((tip, b"new root"), (pull, b"pull"), (past, b"dev 1"), (old, b"old")):
        assert mirrored.files(URL, commit, ("a",))[0].data == data


@pytest.mark.parametrize("old", [False, True], ids=["serves ids", "serves refs only"])
def test_a_commit_that_the_remote_lacks_is_gone(
    upstream: Upstream, remote: Remote, tmp_path: Path, old: bool
) -> None:
    remote.old = old
    upstream.commit("refs/heads/main", {"a": b"1"})
    with pytest.raises(GoneError) as caught:
        mirror(tmp_path, remote).tree(URL, NOBODY)
    assert caught.value.message == (
        f"{URL}: {NOBODY}: the remote answers and does not have it, neither by id nor in a branch"
        " or pull"
    )


@pytest.mark.parametrize(
    "status, kind",
    [
        (401, AuthError),
        (403, AuthError),
        (404, GoneError),
        (410, GoneError),
        (429, RateLimitError),
        (500, NetworkError),
        (503, NetworkError),
    ],
)
def test_a_status_of_the_server_is_told_as_what_it_is(
    upstream: Upstream, remote: Remote, tmp_path: Path, status: int, kind: type[BuilderError]
) -> None:
    commit = upstream.commit("refs/heads/main", {"a": b"1"})
    remote.status = status
    mirrored = mirror(tmp_path, remote)
    with pytest.raises(BuilderError) as caught:
        mirrored.tree(URL, commit)
    assert type(caught.value) is kind
    assert caught.value.message.startswith(f"{URL}: {commit}: fatal: ")
    remote.status = None
    assert mirrored.tree(URL, commit)


def test_a_server_that_is_not_there_is_a_network_error(tmp_path: Path) -> None:
    with serving(tmp_path) as remote:
        pass
    with pytest.raises(NetworkError, match="Failed to connect") as caught:
        mirror(tmp_path, remote).tree(URL, NOBODY)
    assert type(caught.value) is NetworkError


def test_credentials_of_a_mirror_stay_out_of_messages(remote: Remote, tmp_path: Path) -> None:
    secret = remote.url.replace("://", "://user:sesame@") + "nothing"
    mirrored = GitMirror(tmp_path / "store", mirrors={URL: secret}, offline=False)
    with pytest.raises(GoneError) as caught:
        mirrored.tree(URL, NOBODY)
    assert "sesame" not in caught.value.message


def test_a_transfer_that_breaks_off_leaves_nothing_and_can_be_repeated(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    commit = upstream.commit("refs/heads/main", {"a": os.urandom(100_000)})
    remote.cut = True
    mirrored = mirror(tmp_path, remote)
    with pytest.raises(NetworkError) as caught:
        mirrored.tree(URL, commit)
    assert type(caught.value) is NetworkError
    remote.cut = False
    assert mirrored.tree(URL, commit)


def test_what_a_killed_git_left_is_swept_away(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    first = upstream.commit("refs/heads/main", {"a": b"1"})
    mirrored = mirror(tmp_path, remote)
    mirrored.tree(URL, first)
    (bare,) = (tmp_path / "store").glob("*.git")
    (bare / "shallow.lock").touch()
    (bare / "objects/pack/tmp_pack_x").touch()
    second = upstream.commit("refs/heads/main", {"a": b"2"}, parent=first)
    assert mirrored.tree(URL, second)
    assert not (bare / "objects/pack/tmp_pack_x").exists()


def test_offline_uses_what_is_at_hand_and_names_what_is_not(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    commit = upstream.commit("refs/heads/main", {"a": b"1"})
    with pytest.raises(OfflineError) as caught:
        mirror(tmp_path, remote, offline=True).tree(URL, commit)
    assert caught.value.message == f"{URL}: no {commit} at hand, and --offline is set"
    assert remote.requests == []
    tree = mirror(tmp_path, remote).tree(URL, commit)
    assert mirror(tmp_path, remote, offline=True).tree(URL, commit) == tree


def test_a_commit_that_came_with_another_one_is_not_fetched_again(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    remote.old = True
    first = upstream.commit("refs/heads/main", {"a": b"1"})
    second = upstream.commit("refs/heads/main", {"a": b"2"}, parent=first)
    upstream.commit("refs/heads/main", {"a": b"3"}, parent=second)
    mirror(tmp_path, remote).tree(URL, first)
    asked = len(remote.requests)
    assert mirror(tmp_path, remote, offline=True).tree(URL, second) == git(
        upstream.path, "rev-parse", f"{second}^{{tree}}"
    )
    assert len(remote.requests) == asked


def test_the_lock_of_a_killed_process_stays_until_its_git_has_ended(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    commit = upstream.commit("refs/heads/main", {"a": b"1"})
    remote.held.clear()
    running = started(tmp_path, remote, commit)
    try:
        for _ in range(500):
            if sum(request.startswith("POST") for request in remote.requests) > 0:
                break
            time.sleep(0.02)
    finally:
        running.kill()
        running.communicate()
    (lock,) = (tmp_path / "store").glob("*.lock")
    with lock.open("ab") as file:
        with pytest.raises(BlockingIOError):
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        remote.held.set()
        fcntl.flock(file, fcntl.LOCK_EX)
    assert mirror(tmp_path, remote).tree(URL, commit)


def started(tmp_path: Path, remote: Remote, commit: str) -> "subprocess.Popen[bytes]":
    """A process that prints the tree of a commit."""
    program = (
        "import sys; from pathlib import Path; from builder.adapters.git import GitMirror;"
        "m = GitMirror(Path(sys.argv[1]), mirrors={'https://code.example/': sys.argv[2]},"
        " offline=False);"
        f"print(m.tree({URL!r}, sys.argv[3]))"
    )
    return subprocess.Popen(
        (sys.executable, "-c", program, str(tmp_path / "store"), remote.url, commit),
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )


def test_two_processes_may_fetch_into_one_mirror(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    commits = [upstream.commit(f"refs/heads/b{n}", {"a": b"%d" % n}) for n in range(4)]
    running = [started(tmp_path, remote, commit) for commit in commits]
    trees = [process.communicate()[0].decode().strip() for process in running]
    assert trees == [git(upstream.path, "rev-parse", f"{commit}^{{tree}}") for commit in commits]


def test_a_local_repository_of_another_owner_can_be_a_mirror_offline(
    upstream: Upstream, tmp_path: Path
) -> None:
    commit = upstream.commit("refs/heads/main", {"a": b"1"})
    if os.geteuid() == 0:  # elsewhere the test still covers local paths
        for path in (upstream.path, *upstream.path.rglob("*")):
            os.chown(path, 12345, 12345)
    assert local(tmp_path, upstream.path).files(URL, commit, ("a",))[0].data == b"1"


def test_a_bundle_can_be_a_mirror(upstream: Upstream, tmp_path: Path) -> None:
    old = upstream.commit("refs/heads/main", {"a": b"1"})
    upstream.commit("refs/heads/main", {"a": b"2"}, parent=old)
    bundle = tmp_path / "patches.bundle"
    git(upstream.path, "bundle", "create", "--quiet", str(bundle), "main")
    mirrored = local(tmp_path, bundle)
    assert mirrored.files(URL, old, ("a",))[0].data == b"1"
    with pytest.raises(GoneError) as caught:
        mirrored.tree(URL, NOBODY)
    assert caught.value.message == f"{URL}: {NOBODY} is not in {str(bundle)!r}"


@pytest.mark.parametrize("name", ["pipe.fast-export", "pipe"])
def test_a_pipe_is_no_mirror_and_nobody_waits_for_it(tmp_path: Path, name: str) -> None:
    os.mkfifo(tmp_path / name)
    with pytest.raises(ProjectError) as caught:
        local(tmp_path, tmp_path / name).tree(URL, NOBODY)
    assert caught.value.message == (
        f"mirrors: {str(tmp_path / name)!r}: neither a repository, a git bundle nor a fast-export"
        " stream"
    )


def test_a_file_where_the_mirrors_are_kept_is_a_fault_of_the_environment(tmp_path: Path) -> None:
    (tmp_path / "git").write_text("in the way")
    mirrors = GitMirror(tmp_path / "git", mirrors={}, offline=True)
    with pytest.raises(EnvironmentFault) as caught:
        mirrors.tree(URL, NOBODY)
    assert caught.value.message == f"{tmp_path / 'git'}: cannot be written: File exists"
    assert caught.value.hint == (
        "git repositories are kept in the store: choose another with --store DIR"
    )


@pytest.mark.parametrize("name", ["patches.fast-export", "patches.txt"])
def test_a_fast_export_stream_can_be_a_mirror_and_gives_the_same_ids(
    upstream: Upstream, tmp_path: Path, name: str
) -> None:
    old = upstream.commit("refs/heads/main", {"a": b"1", "bin/x": ("100755", b"#!/bin/sh\n")})
    new = upstream.commit("refs/heads/main", {"a": b"2"}, parent=old)
    stream = tmp_path / name
    stream.write_text(git(upstream.path, "fast-export", "--all") + "\n")
    mirrored = local(tmp_path, stream)
    assert mirrored.files(URL, old, ("bin/x",))[0].mode == "100755"
    assert mirrored.tree(URL, new) == git(upstream.path, "rev-parse", f"{new}^{{tree}}")


@pytest.mark.parametrize(
    "data, message",
    [
        (
            b"hello",
            "mirrors: {path!r}: neither a repository, a git bundle nor a fast-export stream",
        ),
        (None, f"mirrors: {URL!r} is replaced by {{path!r}}: no such path"),
    ],
    ids=["another file", "nothing"],
)
def test_a_local_mirror_that_is_none_is_refused(
    tmp_path: Path, data: bytes | None, message: str
) -> None:
    path = tmp_path / "thing"
    if data is not None:
        path.write_bytes(data)
    with pytest.raises(ProjectError) as caught:
        local(tmp_path, path).tree(URL, NOBODY)
    assert caught.value.message == message.format(path=str(path))


def test_a_stream_that_git_cannot_import_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.fast-export"
    path.write_bytes(b"feature export-marks=/tmp/x\n")
    with pytest.raises(ProjectError, match="not a fast-export stream that git can read: fatal: "):
        local(tmp_path, path).tree(URL, NOBODY)


def test_a_damaged_local_mirror_is_an_integrity_error(upstream: Upstream, tmp_path: Path) -> None:
    commit = upstream.commit("refs/heads/main", {"a": b"1"})
    blob = git(upstream.path, "rev-parse", f"{commit}:a")
    (upstream.path / "objects" / blob[:2] / blob[2:]).unlink()
    with pytest.raises(IntegrityError, match="cannot be read from"):
        local(tmp_path, upstream.path).tree(URL, commit)


def test_ssh_asks_nothing_and_gives_up_a_peer_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "ssh"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$@" >> {tmp_path}/asked\nexit 255\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    mirror = GitMirror(tmp_path / "store", mirrors={}, offline=False)
    with pytest.raises(NetworkError):
        mirror.tree("ssh://git@host.invalid/acme/patches", "0" * 40)
    asked = (tmp_path / "asked").read_text().splitlines()
    assert asked
    for line in asked:
        options = {word for word in line.split() if word.startswith("-o")}
        assert options >= {
            "-oBatchMode=yes",
            "-oConnectTimeout=30",
            "-oServerAliveInterval=15",
            "-oServerAliveCountMax=4",
        }


@pytest.mark.parametrize(
    "repository",
    ["http://code.example/x", "git://code.example/x", "ext::sh -c x", "/srv/x", "--upload-pack=x"],
)
def test_a_repository_that_is_neither_https_nor_ssh_is_refused(
    tmp_path: Path, repository: str
) -> None:
    with pytest.raises(ProjectError) as caught:
        GitMirror(tmp_path / "store", mirrors={}, offline=False).tree(repository, NOBODY)
    assert caught.value.message == f"{repository!r}: not a git repository that a pin may name"


@pytest.mark.parametrize(
    "prefix, fits",
    [
        ("https://code.example/", True),
        ("https://code.example/acme", True),
        ("https://code.example/acme/patches.git", False),
        ("https://code.example/acme/patch", False),
        ("https://code.example/acme/patches/", False),
    ],
)
def test_a_mirror_prefix_ends_at_a_slash(
    upstream: Upstream, tmp_path: Path, prefix: str, fits: bool
) -> None:
    commit = upstream.commit("refs/heads/main", {"a": b"1"})
    rest = URL.removeprefix(prefix)
    base = str(upstream.path).removesuffix(f"/{rest.strip('/')}.git")
    mirrored = GitMirror(tmp_path / "store", mirrors={prefix: base}, offline=True)
    if fits:
        assert mirrored.tree(URL, commit)
    else:
        with pytest.raises(OfflineError):
            mirrored.tree(URL, commit)


def test_the_longest_mirror_prefix_wins(upstream: Upstream, tmp_path: Path) -> None:
    commit = upstream.commit("refs/heads/main", {"a": b"1"})
    mirrors = {"https://code.example/": "/nowhere", URL: str(upstream.path)}
    assert GitMirror(tmp_path / "store", mirrors=mirrors, offline=True).tree(URL + ".git", commit)
