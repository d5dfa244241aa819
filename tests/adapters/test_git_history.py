"""Refs and commits of remote repositories, against git itself and against the fake."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.adapters.git import GitMirror
from builder.adapters.git_history import GitHistory
from builder.adapters.git_mirrors import unread
from builder.adapters.git_process import Answer
from builder.adapters.git_refs import read_refs
from builder.adapters.git_source import Kind, Source
from builder.errors import (
    AuthError,
    BuilderError,
    EnvironmentFault,
    GoneError,
    IntegrityError,
    NetworkError,
    OfflineError,
    RateLimitError,
)
from builder.upstream import Commit, History
from tests.adapters.git_world import Remote, Upstream, git, serving
from tests.fakes import FakeHistory
from tests.standin.registry import Reply, stand_in

URL = "https://code.example/acme/patches"
NOBODY = "0123456789" * 4
PROGRAM = (
    "import sys; from pathlib import Path;"
    "from builder.adapters.git_history import GitHistory;"
    "h = GitHistory(Path(sys.argv[1]), mirrors={'https://code.example/': sys.argv[2]},"
    " offline=False);"
    f"print(*h.reachable({URL!r}, sys.argv[3]))"
)


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream.make(tmp_path / "served" / "acme" / "patches.git")


@pytest.fixture
def remote(upstream: Upstream, tmp_path: Path) -> Iterator[Remote]:
    with serving(tmp_path / "served") as served:
        yield served


def over(tmp_path: Path, remote: Remote, *, offline: bool = False) -> GitHistory:
    return GitHistory(
        tmp_path / "store", mirrors={"https://code.example/": remote.url}, offline=offline
    )


def local(tmp_path: Path, place: Path, *, limit: int = 10_000) -> GitHistory:
    mirrors = {URL: str(place)}
    return GitHistory(tmp_path / "store", mirrors=mirrors, offline=True, limit=limit)


def mirror_of(tmp_path: Path) -> Path:
    (bare,) = (tmp_path / "store").glob("*.sha1.history.git")
    return bare


def kinds(bare: Path) -> set[str]:
    said = git(bare, "cat-file", "--batch-all-objects", "--batch-check=%(objecttype)")
    return {*said.split()}


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[int, ...]], list[int], dict[str, int]]:
    """Parents by number (none: another root), times with some skew, refs."""
    size = draw(st.integers(1, 14))
    parents = [
        tuple(draw(st.lists(st.integers(0, n - 1), unique=True, max_size=3)) if n else ())
        for n in range(size)
    ]
    times = [1_700_000_000 + 100 * n + draw(st.integers(-150, 150)) for n in range(size)]
    names = ["refs/heads/main", "refs/heads/dev", "refs/tags/v1", "refs/pull/7/head"]
    refs = {name: draw(st.integers(0, size - 1)) for name in names}
    return parents, times, refs


@settings(max_examples=6)
@given(graph=graphs(), data=st.data())
def test_random_histories_are_as_git_says(
    graph: tuple[list[tuple[int, ...]], list[int], dict[str, int]], data: st.DataObject
) -> None:
    parents, times, tips = graph
    with TemporaryDirectory() as directory:
        upstream = Upstream.make(Path(directory) / "served.git")
        ids = upstream.graph(parents, times)
        refs = {name: ids[number] for name, number in tips.items()}
        upstream.set_refs(refs)
        commits = {
            name: Commit(
                id=name,
                time=times[number],
                subject=f"commit {number}",
                parents=tuple(ids[each] for each in parents[number]),
            )
            for number, name in enumerate(ids)
        }
        real = local(Path(directory), upstream.path)
        one, other = data.draw(st.sampled_from(ids)), data.draw(st.sampled_from(ids))
        for history in (real, FakeHistory(commits, {**refs, "HEAD": refs["refs/heads/main"]})):
            _as_git_says(history, upstream.path, commits, one, other)


def _as_git_says(
    history: History, path: Path, commits: dict[str, Commit], one: str, other: str
) -> None:
    def ask(*arguments: str) -> list[str]:
        done = subprocess.run(
            ("git", f"--git-dir={path}", *arguments), capture_output=True, text=True, check=False
        )
        return done.stdout.split()

    assert history.commit(URL, one) == commits[one]
    best = history.merge_base(URL, one, other)
    assert best is None or best in ask("merge-base", "--all", one, other)
    assert (best is None) == (ask("merge-base", one, other) == [])
    distance = history.distance(URL, one, other)
    assert sorted(c.id for c in distance.ahead) == sorted(ask("rev-list", f"{one}..{other}"))
    assert sorted(c.id for c in distance.behind) == sorted(ask("rev-list", f"{other}..{one}"))
    assert all(c == commits[c.id] for c in distance.ahead + distance.behind)
    assert history.is_ancestor(URL, one, other) == (one in ask("rev-list", other))
    contains = ask("for-each-ref", "--format=%(refname)", f"--contains={one}")
    assert history.reachable(URL, one) == tuple(sorted(contains))
    main = git(path, "rev-parse", "refs/heads/main")
    assert history.refs(URL)["HEAD"] == main
    assert history.default_branch(URL) == "refs/heads/main"


def test_what_is_ahead_is_told_newest_first_and_cut_at_a_limit(
    upstream: Upstream, tmp_path: Path
) -> None:
    ids = upstream.graph([(), (0,), (1,), (2,)], [100, 200, 300, 400])
    whole = local(tmp_path, upstream.path).distance(URL, ids[0], ids[3])
    assert [c.id for c in whole.ahead] == ids[:0:-1]
    assert whole.complete
    cut = local(tmp_path, upstream.path, limit=2).distance(URL, ids[0], ids[3])
    assert [c.id for c in cut.ahead] == [ids[3], ids[2]]
    assert not cut.complete


@pytest.mark.parametrize("filters", [True, False], ids=["knows filters", "knows no filters"])
def test_one_commit_is_fetched_with_its_history_and_without_files_where_that_is_known(
    upstream: Upstream, remote: Remote, tmp_path: Path, filters: bool
) -> None:
    git(upstream.path, "config", "uploadpack.allowFilter", str(filters).lower())
    old = upstream.commit("refs/heads/main", {"a": b"1"})
    new = upstream.commit("refs/heads/main", {"a": b"2"}, parent=old)
    upstream.commit("refs/heads/dev", {"a": b"3"})
    history = over(tmp_path, remote)
    assert [c.id for c in history.distance(URL, old, new).ahead] == [new]
    bare = mirror_of(tmp_path)
    assert kinds(bare) == ({"commit"} if filters else {"commit", "tree", "blob"})
    assert git(bare, "rev-list", "--count", "--all") == "2"
    asked = len(remote.requests)
    assert over(tmp_path, remote, offline=True).is_ancestor(URL, old, new)
    assert len(remote.requests) == asked


def test_local_repositories_are_read_without_their_files(
    upstream: Upstream, tmp_path: Path
) -> None:
    commit = upstream.commit("refs/heads/main", {"a": b"1"})
    assert local(tmp_path, upstream.path).reachable(URL, commit) == ("refs/heads/main",)
    assert kinds(mirror_of(tmp_path)) == {"commit"}


def test_a_server_that_serves_no_ids_is_asked_for_all_refs(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    remote.old = True
    main = upstream.commit("refs/heads/main", {"a": b"1"})
    past = upstream.commit("refs/pull/7/head", {"a": b"2"})
    upstream.commit("refs/pull/7/head", {"a": b"3"}, parent=past)
    upstream.tag("v1", main)
    history = over(tmp_path, remote)
    assert history.reachable(URL, past) == ("refs/pull/7/head",)
    assert history.reachable(URL, main) == ("refs/heads/main", "refs/tags/v1")
    with pytest.raises(GoneError) as caught:
        history.commit(URL, NOBODY)
    assert caught.value.message == (
        f"{URL}: {NOBODY}: the remote answers and does not have it, neither by id nor behind a ref"
    )


def test_a_commit_of_a_fork_is_had_by_its_id_and_no_ref_leads_to_it(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    main = upstream.commit("refs/heads/main", {"a": b"1"})
    fork = upstream.commit("refs/hidden/x", {"a": b"2"}, parent=main)
    upstream.set_refs({"refs/hidden/x": None})
    history = over(tmp_path, remote)
    assert history.reachable(URL, fork) == ()
    assert history.merge_base(URL, fork, main) == main


def test_refs_are_branches_tags_and_pulls_with_what_is_behind_tags(
    upstream: Upstream, tmp_path: Path
) -> None:
    old = upstream.commit("refs/heads/main", {"a": b"1"})
    new = upstream.commit("refs/heads/v1", {"a": b"2"}, parent=old)
    nested = upstream.tag("nested", upstream.tag("v1", old))
    tree = git(upstream.path, "rev-parse", f"{old}^{{tree}}")
    upstream.tag("files", tree)
    upstream.set_refs(
        {
            "refs/tags/light": new,
            "refs/pull/25/head": new,
            "refs/pull/25/merge": old,
            "refs/notes/commits": old,
        }
    )
    history = local(tmp_path, upstream.path)
    assert history.refs(URL) == {
        "HEAD": old,
        "refs/heads/main": old,
        "refs/heads/v1": new,
        "refs/pull/25/head": new,
        "refs/tags/files": tree,
        "refs/tags/light": new,
        "refs/tags/nested": old,
        "refs/tags/v1": old,
    }
    assert history.reachable(URL, new) == ("refs/heads/v1", "refs/pull/25/head", "refs/tags/light")
    with pytest.raises(IntegrityError) as caught:
        history.commit(URL, nested)
    assert caught.value.message == f"{URL}: {nested} names a tag object, the commit is {old}"
    with pytest.raises(IntegrityError) as caught:
        history.commit(URL, tree)
    assert caught.value.message == f"{URL}: {tree} names a tree, wanted a commit"


def test_refs_are_asked_once_in_a_run(upstream: Upstream, remote: Remote, tmp_path: Path) -> None:
    first = upstream.commit("refs/heads/main", {"a": b"1"})
    history = over(tmp_path, remote)
    threads = [threading.Thread(target=history.refs, args=(URL,)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    asked = len(remote.requests)
    upstream.commit("refs/heads/main", {"a": b"2"})
    assert history.refs(URL)["refs/heads/main"] == first
    assert history.default_branch(URL) == "refs/heads/main"
    assert len(remote.requests) == asked <= 2


def test_a_branch_that_was_force_pushed_keeps_what_is_at_hand_of_its_past(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    root = upstream.commit("refs/heads/main", {"a": b"1"})
    old = upstream.commit("refs/pull/1/head", {"a": b"2"}, parent=root)
    assert over(tmp_path, remote).reachable(URL, old) == ("refs/pull/1/head",)
    new = upstream.commit("refs/pull/1/head", {"a": b"3"}, parent=root)
    git(upstream.path, "gc", "--quiet", "--prune=now")
    history = over(tmp_path, remote)
    assert history.reachable(URL, old) == ()
    distance = history.distance(URL, old, new)
    assert ([c.id for c in distance.ahead], [c.id for c in distance.behind]) == ([new], [old])


def test_histories_without_anything_in_common_have_no_base(
    upstream: Upstream, tmp_path: Path
) -> None:
    one, other = upstream.graph([(), ()], [1, 2])
    history = local(tmp_path, upstream.path)
    assert history.merge_base(URL, one, other) is None
    assert not history.is_ancestor(URL, one, other)


def test_a_repository_that_moved_is_followed(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    commit = upstream.commit("refs/heads/main", {"a": b"1"})
    upstream.path.rename(upstream.path.with_name("renamed.git"))
    remote.moved = ("/acme/patches", "/acme/renamed.git")
    history = over(tmp_path, remote)
    assert history.refs(URL)["refs/heads/main"] == commit
    assert history.reachable(URL, commit) == ("refs/heads/main",)


def test_offline_is_an_error_only_for_what_is_not_at_hand(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    commit = upstream.commit("refs/heads/main", {"a": b"1"})
    over(tmp_path, remote).commit(URL, commit)
    asked = len(remote.requests)
    history = over(tmp_path, remote, offline=True)
    assert history.commit(URL, commit).subject == "commit 1"
    with pytest.raises(OfflineError) as caught:
        history.commit(URL, NOBODY)
    assert caught.value.message == f"{URL}: no {NOBODY} at hand, and --offline is set"
    for ask in (history.refs, history.default_branch):
        with pytest.raises(OfflineError) as caught:
            ask(URL)
        assert caught.value.message == f"{URL}: no list of refs at hand, and --offline is set"
    assert len(remote.requests) == asked


def test_a_transfer_that_breaks_off_can_be_repeated(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    first = upstream.commit("refs/heads/main", {"a": os.urandom(9000)})
    second = upstream.commit("refs/heads/main", {"a": os.urandom(9000)}, parent=first)
    history = over(tmp_path, remote)
    assert history.commit(URL, first).id == first
    remote.cut = True
    with pytest.raises(NetworkError):
        history.commit(URL, second)
    bare = mirror_of(tmp_path)
    (bare / "objects/pack/tmp_pack_x").touch()
    (bare / "packed-refs.lock").touch()
    remote.cut = False
    assert history.is_ancestor(URL, first, second)
    assert not (bare / "objects/pack/tmp_pack_x").exists()


@pytest.mark.parametrize(
    "status, kind",
    [(401, AuthError), (404, GoneError), (429, RateLimitError), (503, NetworkError)],
)
def test_a_status_of_the_server_is_told_as_what_it_is(
    upstream: Upstream, remote: Remote, tmp_path: Path, status: int, kind: type[BuilderError]
) -> None:
    commit = upstream.commit("refs/heads/main", {"a": b"1"})
    remote.status = status
    history = over(tmp_path, remote)
    for ask in (lambda: history.refs(URL), lambda: history.commit(URL, commit)):
        with pytest.raises(BuilderError) as caught:
            ask()
        assert type(caught.value) is kind
    remote.status = None
    assert history.refs(URL)["HEAD"] == commit


@pytest.mark.parametrize(
    "body, said",
    [
        (b"<html>log in</html>", "the remote names no ref at all"),
        (b"<html>log in</html>\n", "not valid: is this a git repository?"),
        (b"", "the remote names no ref at all"),
    ],
    ids=["a line", "a whole line", "nothing"],
)
def test_a_page_in_place_of_a_git_server_is_no_empty_repository(
    upstream: Upstream, tmp_path: Path, body: bytes, said: str
) -> None:
    commit = upstream.commit("refs/heads/main", {"a": b"1"})
    with stand_in() as page:
        html = Reply(headers={"Content-Type": "text/html"}, body=body)
        page.on("GET", ".*", html, forever=True)
        mirrors = {URL: f"http://{page.host}/x"}
        history = GitHistory(tmp_path / "store", mirrors=mirrors, offline=False)
        whole = GitMirror(tmp_path / "store", mirrors=mirrors, offline=False)
        for ask in (
            lambda: history.refs(URL),
            lambda: history.commit(URL, commit),
            lambda: whole.tree(URL, commit),
        ):
            with pytest.raises(NetworkError) as caught:
                ask()
            assert caught.value.message.endswith(said)


def test_what_is_damaged_is_an_integrity_error(upstream: Upstream, tmp_path: Path) -> None:
    ids = upstream.graph([(), (0,), (1,)], [1, 2, 3])
    upstream.set_refs({"refs/heads/main": ids[2]})
    assert local(tmp_path, upstream.path).reachable(URL, ids[0]) == ("refs/heads/main",)
    for pack in (mirror_of(tmp_path) / "objects" / "pack").iterdir():
        pack.unlink()
    history = local(tmp_path, upstream.path)
    for ask in (history.reachable, history.commit):
        with pytest.raises(IntegrityError) as caught:
            ask(URL, ids[0])
        assert caught.value.message.startswith(f"{URL}: its history cannot be read: fatal: ")
        assert str(mirror_of(tmp_path)) in str(caught.value.hint)
    (upstream.path / "objects" / ids[1][:2] / ids[1][2:]).unlink()
    with pytest.raises(IntegrityError) as caught:
        GitHistory(tmp_path / "other", mirrors={URL: str(upstream.path)}, offline=True).commit(
            URL, ids[2]
        )
    assert caught.value.message.startswith(
        f"{URL}: {ids[2]}: cannot be read from {str(upstream.path)!r}: "
    )
    assert caught.value.message.isprintable()


def _bundle(upstream: Upstream, path: Path) -> None:
    git(upstream.path, "bundle", "create", "--quiet", str(path), "--all", "HEAD")


def _stream(upstream: Upstream, path: Path) -> None:
    # fast-export leaves nested tags to the reader; --all covers branches and tags.
    path.write_text(git(upstream.path, "fast-export", "--all") + "\n")


@pytest.mark.parametrize("pack", [_bundle, _stream], ids=["bundle", "fast-export stream"])
def test_files_of_git_have_refs_and_history_too(
    upstream: Upstream, tmp_path: Path, pack: Callable[[Upstream, Path], None]
) -> None:
    old = upstream.commit("refs/heads/main", {"a": b"1"})
    new = upstream.commit("refs/pull/3/head", {"a": b"2"}, parent=old)
    git(upstream.path, "tag", "-a", "-m", "x", "v1", old, config=("user.name=A", "user.email=a"))
    pack(upstream, tmp_path / "packed.fast-export")
    for _ in range(2):
        history = local(tmp_path, tmp_path / "packed.fast-export")
        refs = {name: to for name, to in history.refs(URL).items() if name != "HEAD"}
        assert refs == {"refs/heads/main": old, "refs/pull/3/head": new, "refs/tags/v1": old}
        assert history.default_branch(URL) == "refs/heads/main"
        assert history.reachable(URL, new) == ("refs/pull/3/head",)
        with pytest.raises(GoneError):
            history.commit(URL, NOBODY)
    packs = [*(mirror_of(tmp_path) / "objects" / "pack").glob("*.pack")]
    assert len(packs) <= 4  # taken in for a question that it answers, and where it lacks something


def test_a_shallow_clone_is_no_history(upstream: Upstream, tmp_path: Path) -> None:
    old = upstream.commit("refs/heads/main", {"a": b"1"})
    new = upstream.commit("refs/heads/main", {"a": b"2"}, parent=old)
    shallow = tmp_path / "shallow.git"
    git(tmp_path, "clone", "-q", "--bare", "--depth=1", f"file://{upstream.path}", str(shallow))
    with pytest.raises(IntegrityError) as caught:
        local(tmp_path, shallow).commit(URL, new)
    assert caught.value.message.startswith(f"{URL}: {new}")
    assert "shallow" in caught.value.message + str(caught.value.hint)


def test_a_head_without_a_branch_names_none(upstream: Upstream, tmp_path: Path) -> None:
    commit = upstream.commit("refs/heads/one", {"a": b"1"})
    upstream.commit("refs/heads/other", {"a": b"2"})
    with pytest.raises(GoneError) as caught:
        local(tmp_path, upstream.path).default_branch(URL)
    assert caught.value.message == f"{URL}: HEAD names no branch that is there"
    (upstream.path / "HEAD").write_text(commit + "\n")
    history = local(tmp_path, upstream.path)
    assert history.refs(URL)["HEAD"] == commit
    assert history.default_branch(URL) == "refs/heads/one"


@pytest.mark.parametrize(
    "message, subject",
    [
        pytest.param(b"", "", id="empty"),
        pytest.param(b"one\ntwo\n\nthree", "one two", id="a paragraph"),
        pytest.param(b"one\r\n\r\ntwo", "one", id="CRLF"),
        pytest.param(b"\x1b[31mred\x07\xe2\x80\xae", "[31mred", id="escape sequences"),
        pytest.param(b"caf\xe9", "caf\ufffd", id="not UTF-8"),
        pytest.param("übergröße ✓".encode(), "übergröße ✓", id="beyond ASCII"),
        pytest.param(b"commit " + b"1" * 40, "commit " + "1" * 40, id="like a line of git"),
        pytest.param(b"] [x] %H", "] [x] %H", id="like our format"),
        pytest.param(b"x" * 100_000, "x" * 100_000, id="long"),
    ],
)
def test_any_message_gives_a_subject(
    upstream: Upstream, tmp_path: Path, message: bytes, subject: str
) -> None:
    root = upstream.commit("refs/heads/main", {"a": b"0"})
    commit = upstream.commit("refs/heads/main", {"a": b"1"}, parent=root, message=message)
    history = local(tmp_path, upstream.path)
    found = Commit(id=commit, time=1700000002, subject=subject, parents=(root,))
    assert history.commit(URL, commit) == found
    assert history.distance(URL, root, commit).ahead == (found,)


def test_ids_of_two_kinds_are_in_no_repository(upstream: Upstream, tmp_path: Path) -> None:
    commit = upstream.commit("refs/heads/main", {"a": b"1"})
    history = local(tmp_path, upstream.path)
    with pytest.raises(IntegrityError, match="ids of two kinds"):
        history.merge_base(URL, commit, "1" * 64)
    with pytest.raises(BuilderError):
        history.commit(URL, "1" * 64)


def test_two_processes_may_ask_at_once(upstream: Upstream, remote: Remote, tmp_path: Path) -> None:
    commits = [upstream.commit(f"refs/heads/b{n}", {"a": b"%d" % n}) for n in range(3)]
    running = [
        subprocess.Popen(
            (sys.executable, "-c", PROGRAM, str(tmp_path / "store"), remote.url, commit),
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        for commit in commits
    ]
    said = [process.communicate()[0].decode().strip() for process in running]
    assert said == [f"refs/heads/b{n}" for n in range(3)]


def test_a_process_that_is_killed_leaves_a_mirror_that_can_be_used(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    first = upstream.commit("refs/heads/main", {"a": os.urandom(9000)})
    second = upstream.commit("refs/heads/main", {"a": os.urandom(9000)}, parent=first)
    assert over(tmp_path, remote).commit(URL, first).id == first
    remote.held.clear()
    asked = len(remote.requests)
    process = subprocess.Popen(
        (sys.executable, "-c", PROGRAM, str(tmp_path / "store"), remote.url, second),
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
    )
    while not any(line.startswith("POST") for line in remote.requests[asked:]):
        time.sleep(0.01)
    process.kill()
    process.wait()
    remote.held.set()
    assert over(tmp_path, remote).is_ancestor(URL, first, second)


def test_a_repository_that_hashes_otherwise_has_history_too(tmp_path: Path) -> None:
    path = tmp_path / "served.git"
    git(path, "init", "--quiet", "--bare", "--object-format=sha256", "-b", "main", str(path))
    commit = Upstream(path).commit("refs/heads/main", {"a": b"1"})
    assert len(commit) == 64
    history = local(tmp_path, path)
    assert history.refs(URL) == {"HEAD": commit, "refs/heads/main": commit}
    assert history.reachable(URL, commit) == ("refs/heads/main",)
    with pytest.raises(GoneError):
        history.commit(URL, NOBODY)


def test_many_refs_are_no_heap_of_files(upstream: Upstream, tmp_path: Path) -> None:
    ids = upstream.graph([(), *((n,) for n in range(119))], range(120))
    upstream.set_refs({f"refs/pull/{n + 1}/head": name for n, name in enumerate(ids)})
    history = local(tmp_path, upstream.path)
    assert len(history.reachable(URL, ids[0])) == 120
    assert history.reachable(URL, ids[-2]) == ("refs/pull/119/head", "refs/pull/120/head")
    loose = [*mirror_of(tmp_path).glob("refs/builder/got/*")]
    assert len(loose) < 3


@given(
    st.lists(
        st.one_of(
            st.binary(max_size=60),
            st.sampled_from(
                [
                    b"ref: refs/heads/main\tHEAD",
                    b"ref: \tHEAD",
                    b"a" * 40 + b"\tHEAD",
                    b"a" * 40 + b"\trefs/heads/main",
                    b"b" * 40 + b"\trefs/heads/caf\xe9",
                    b"b" * 40 + b"\trefs/heads/a\xc2\xa0b",
                    b"c" * 40 + b"\trefs/tags/v1^{}",
                    b"c" * 39 + b"\trefs/heads/short",
                    b"d" * 64 + b"\trefs/pull/007/head",
                    b"d" * 64 + b"\trefs/pull/7/head",
                ]
            ),
        )
    )
)
def test_whatever_a_remote_says_of_its_refs_is_read(lines: list[bytes]) -> None:
    refs = read_refs(b"\n".join(lines))
    assert refs.commits.keys() == refs.objects.keys()
    assert {*refs.commits} <= {"HEAD", "refs/heads/main", "refs/pull/7/head"}
    assert refs.branch in (None, "refs/heads/main")
    assert (b"a" * 40 + b"\trefs/heads/main" in lines) == ("refs/heads/main" in refs.commits)


def test_what_is_at_hand_is_read_at_once_and_nobody_is_asked(
    upstream: Upstream, remote: Remote, tmp_path: Path
) -> None:
    first = upstream.commit("refs/heads/main", {"a": b"1"})
    second = upstream.commit("refs/heads/main", {"a": b"2"}, parent=first)
    other = upstream.commit("refs/heads/other", {"a": b"3"})
    who = ("-c", "user.name=a", "-c", "user.email=a@example.org")
    git(upstream.path, *who, "tag", "-a", "-m", "t", "v1", first)
    tag, tree = (git(upstream.path, "rev-parse", name) for name in ("v1", f"{first}^{{tree}}"))
    history = over(tmp_path, remote)
    assert history.at_hand(URL, [first, second]) == {}
    history.commit(URL, second)
    history.reachable(URL, first)
    remote.requests.clear()
    ids = [first, second, "0" * 40, "f" * 64, tag, tree]
    found = history.at_hand(URL, ids)
    assert set(found) == {first, second}
    assert found[second].parents == (first,)
    assert other not in found
    assert remote.requests == []
    assert history.at_hand(URL, []) == {}


@pytest.mark.parametrize(
    "said",
    [
        "fatal: write error: No space left on device",
        "fatal: sha1 file 'objects/pack/tmp_idx' write error. Out of diskspace",
        "error: failed to write new configuration file git/config.lock",
        "fatal: unable to create thing: Disk quota exceeded",
        "fatal: unable to create thing: Read-only file system",
    ],
)
def test_a_disk_of_ours_is_no_fault_of_a_source(said: str, tmp_path: Path) -> None:
    source = Source(location=str(tmp_path), kind=Kind.REPOSITORY, protocols="file", local=True)
    answer = Answer(status=128, stdout=b"", stderr=said)
    assert isinstance(unread(answer, source, at="x"), EnvironmentFault)


def test_a_mirror_that_cannot_be_made_is_no_bug(
    upstream: Upstream, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    (programs / "git").write_text("#!/bin/sh\necho fatal: something new >&2; exit 128\n")
    (programs / "git").chmod(0o755)
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    with pytest.raises(EnvironmentFault, match="fatal: something new"):
        local(tmp_path, upstream.path).refs(URL)
