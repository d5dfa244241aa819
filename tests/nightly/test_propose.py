"""Proposals: one branch and one pull request a pin, and nothing where nothing is new."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import quoting
from builder.bump import Bump
from builder.digest import Digest
from builder.errors import NetworkError, ProjectError
from builder.lock import codec
from builder.lock.edit import put
from builder.moves import Move
from builder.nightly import Baked, Outcome
from builder.project import Project
from builder.propose import BODY_LIMIT, Proposed, body, branch_of, propose, shortened
from builder.resolve.found import Resolved
from builder.upstream import Commit, Distance, Proposal
from tests.adapters.git_world import git
from tests.nightly.repository import Repository
from tests.nightly.worlds import NEW, NOW, OLD, moved

pytestmark = pytest.mark.requires("git")
LOCK = "lockfiles/genesis.yaml"
BRANCH = "builder/bump/genesis/patches"
TEXT = f"""\
version: 1
genesis:
  # Chosen with care.
  patches:
    follows: {{repository: https://git.test/patches, ref: refs/heads/main}}
    commit: {OLD}
    tree: {OLD}
"""


@dataclass
class Host:
    """Pull requests by branch; ``asked`` counts the calls."""

    bodies: dict[str, str] = field(default_factory=dict)
    asked: int = 0
    down: bool = False

    def open_or_update(self, *, head: str, base: str, title: str, body: str) -> Proposal:
        self.asked += 1
        if self.down:
            raise NetworkError("down")
        before = self.bodies.get(head)
        self.bodies[head] = text = f"{base}\n{title}\n{body}"
        state = "opened" if before is None else "unchanged" if before == text else "updated"
        return Proposal(url=f"https://forge.test/{head}", state=state)


@pytest.fixture
def host() -> Host:
    return Host()


@pytest.fixture
def repository(tmp_path: Path) -> Repository:
    made = Repository.make(tmp_path)
    (made.project / LOCK).write_text(TEXT)
    made.save("patches")
    return made


def outcome(project: Project, *, locked: str = NOW, **fields: Any) -> Outcome:
    pin = project.genesis["patches"]
    move = Move(kind="genesis", before=pin, resolved=Resolved(pin=moved(pin, locked=locked)))
    given: dict[str, Any] = {"kind": "genesis", "name": "patches", "bump": Bump(moves=(move,))}
    return Outcome(**given | fields)


def proposed(repository: Repository, host: Host, **fields: Any) -> Proposed:
    """A night's proposal, by a run of its own."""
    project = Project(repository.project)
    branches = repository.worktree()
    start = branches.start("main")
    given = outcome(project, **fields)
    return propose(project, given, start, branches=branches, proposals=host, put=put)


def test_the_lock_alone_changes_and_only_the_pin_in_it(repository: Repository, host: Host) -> None:
    before = repository.state()
    made = proposed(repository, host)
    assert (made.branch, made.state) == (BRANCH, "opened")
    assert repository.branches() == {"main": repository.branches()["main"], BRANCH: made.pushed}
    assert git(repository.remote, "diff", "--name-only", "main", BRANCH) == LOCK
    lock = git(repository.remote, "show", f"{BRANCH}:{LOCK}").encode() + b"\n"
    pin = codec.read_genesis(lock)["patches"]
    assert (pin.commit, pin.locked) == (NEW, "2026-05-11T00:00:00Z")
    assert b"# Chosen with care." in lock
    assert repository.state() == before
    subject = git(repository.remote, "show", "--no-patch", "--format=%s", BRANCH)
    assert subject == "bump genesis patches: aaaaaaaaaaaa -> bbbbbbbbbbbb"
    assert host.bodies[BRANCH].splitlines()[:2] == ["main", subject]


def test_the_next_night_pushes_nothing_though_its_time_is_another(
    repository: Repository, host: Host
) -> None:
    first = proposed(repository, host)
    again = proposed(repository, host, locked="2026-05-12T00:00:00Z")
    assert again == Proposed(branch=BRANCH, pushed=None, url=first.url, state="unchanged")
    assert repository.branches()[BRANCH] == first.pushed


def test_the_next_night_in_a_fresh_clone_pushes_nothing(
    repository: Repository, host: Host, tmp_path: Path
) -> None:
    first = proposed(repository, host)
    other = tmp_path / "fresh"
    repository.git("clone", "--quiet", "--depth=1", f"file://{repository.remote}", str(other))
    fresh = Repository(clone=other, remote=repository.remote, project=other)
    assert proposed(fresh, host, locked="2026-05-12T00:00:00Z").pushed is None
    assert repository.branches()[BRANCH] == first.pushed


def test_a_base_that_went_on_gets_the_same_lock_on_top(repository: Repository, host: Host) -> None:
    first = proposed(repository, host)
    (repository.clone / "README.md").write_text("other\n")
    main = repository.save("docs")
    again = proposed(repository, host, locked="2026-05-12T00:00:00Z")
    assert again.pushed not in (None, first.pushed)
    assert git(repository.remote, "rev-parse", f"{BRANCH}^") == main
    diffs = [
        git(repository.remote, "diff", f"{commit}^", f"{commit}")
        for commit in (first.pushed, BRANCH)
    ]
    assert diffs[0] == diffs[1]


def test_a_newer_target_takes_the_place_of_the_older(repository: Repository, host: Host) -> None:
    proposed(repository, host)
    project = Project(repository.project)
    branches = repository.worktree()
    start = branches.start("main")
    pin = project.genesis["patches"]
    newest = replace(moved(pin, locked="2026-05-13T00:00:00Z"), commit=OLD)
    move = Move(kind="genesis", before=pin, resolved=Resolved(pin=newest))
    newer = outcome(project, bump=Bump(moves=(move,)))
    made = propose(project, newer, start, branches=branches, proposals=host, put=put)
    assert made.pushed is not None
    lock = git(repository.remote, "show", f"{BRANCH}:{LOCK}").encode()
    pin = codec.read_genesis(lock)["patches"]
    assert (pin.tree, pin.locked) == (NEW, "2026-05-13T00:00:00Z")


@pytest.mark.parametrize("how", ["on top", "amended", "reworded", "another"])
def test_what_a_person_pushed_to_the_branch_stays(
    how: str, repository: Repository, host: Host
) -> None:
    proposed(repository, host)
    asked = host.asked
    repository.git("fetch", "--quiet", "origin", BRANCH)
    repository.git("checkout", "--quiet", "FETCH_HEAD")
    if how != "reworded":
        (repository.clone / "README.md").write_text("mended\n")
        repository.git("add", "--all")
    match how:
        case "amended":
            repository.git("commit", "--quiet", "--amend", "--no-edit")
        case "reworded":
            repository.git("commit", "--quiet", "--amend", "-m", "mine now")
        case _:
            repository.git("commit", "--quiet", "-m", "mend")
    repository.git("push", "--quiet", "--force", "origin", f"HEAD:refs/heads/{BRANCH}")
    theirs = repository.branches()[BRANCH]
    repository.git("checkout", "--quiet", "main")
    assert proposed(repository, host) == Proposed(branch=BRANCH, state="held")
    assert repository.branches()[BRANCH] == theirs
    assert host.asked == asked


def test_a_host_that_was_down_is_asked_again_without_another_push(
    repository: Repository, host: Host
) -> None:
    host.down = True
    with pytest.raises(NetworkError):
        proposed(repository, host)
    there = repository.branches()[BRANCH]
    host.down = False
    made = proposed(repository, host, locked="2026-05-12T00:00:00Z")
    assert (made.pushed, made.state) == (None, "opened")
    assert repository.branches()[BRANCH] == there


def test_a_branch_with_a_lock_that_cannot_be_read_is_renewed(
    repository: Repository, host: Host
) -> None:
    branches = repository.worktree()
    start = branches.start("main")
    tree = branches.tree(start.commit, {LOCK: b"\xff\0"})
    odd = branches.commit(tree, start.commit, f"odd\n\nBuilder-Tree: {tree}\n")
    branches.push(BRANCH, odd, expected=None)
    assert proposed(repository, host).pushed is not None


def test_results_go_with_the_lock(repository: Repository, host: Host) -> None:
    results = {"lockfiles/images/it.yaml": b"renewed\n"}
    image = Digest.of(b"image")
    proposed(repository, host, results=results, baked=(Baked(variant="it", image=image),))
    names = git(repository.remote, "diff", "--name-only", "main", BRANCH).splitlines()
    assert names == [LOCK, "lockfiles/images/it.yaml"]
    text = host.bodies[BRANCH]
    assert f"| `it` | `{image}` | - |" in text
    assert "Merging this accepts the images above: it renews `lockfiles/images/it.yaml`." in text


def test_variants_that_failed_once_are_no_longer_said_to(
    repository: Repository, host: Host
) -> None:
    lock = repository.project / LOCK
    lock.write_text(TEXT + "    failing: [it]\n")
    repository.save("failing")
    proposed(repository, host)
    raw = git(repository.remote, "show", f"{BRANCH}:{LOCK}").encode()
    assert codec.read_genesis(raw)["patches"].failing == ()


def test_a_name_that_git_takes_for_no_branch() -> None:
    assert branch_of("vllm", "nightly-1.2") == "builder/bump/vllm/nightly-1.2"
    with pytest.raises(ProjectError) as caught:
        branch_of("vllm", "nightly.lock")
    assert caught.value.message == (
        "vllm nightly.lock: no branch can be named builder/bump/vllm/nightly.lock"
    )


def test_a_long_report_is_cut_where_a_host_takes_it(repository: Repository) -> None:
    commits = tuple(Commit(id="c" * 40, time=0, subject="x" * 5000) for _ in range(40))
    made = outcome(Project(repository.project))
    assert made.bump is not None
    (move,) = made.bump.moves
    told = replace(move.resolved, distance=Distance(ahead=commits, behind=()))
    text = body(replace(made, bump=Bump(moves=(replace(move, resolved=told),))))
    assert len(text) <= BODY_LIMIT
    assert text.count("<details>") == text.count("</details>") == 1
    assert text.count("\n```") == 2
    assert text.endswith("run `builder nightly` for all of it.\n")


LINES = st.lists(
    st.one_of(
        st.text(st.characters(exclude_characters="`\n\r"), max_size=40),
        st.just("<details><summary>x</summary>"),
        st.just("</details>"),
    ),
    max_size=60,
)


@given(st.lists(st.tuples(LINES, LINES), max_size=4), st.integers(600, 1500))
def test_whatever_is_cut_ends_what_it_began(
    parts: list[tuple[list[str], list[str]]], limit: int
) -> None:
    lines: list[str] = []
    for prose, quoted in parts:
        lines += prose + quoting.fenced([*quoted, "``` in a quote"])
    text = "\n".join(lines) + "\n"
    cut = shortened(text, limit)
    if len(text) <= limit:
        assert cut == text
        return
    assert len(cut) <= limit
    fence = ""
    for line in cut.splitlines():
        if line.startswith("```") and set(line) == {"`"}:
            fence = "" if line == fence else fence or line
    assert fence == ""
