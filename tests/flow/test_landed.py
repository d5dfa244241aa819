"""Pull requests that a base has by now: said of those whose merge is in its history, and of no
other one; and a host is asked once about each."""

from dataclasses import dataclass, field, replace

import pytest

from builder.bump import Bump, Landed, tried
from builder.errors import OfflineError
from builder.moves import Move
from builder.resolve.found import Resolved
from builder.upstream import Commit, PullFacts
from tests.fakes import FakeForge, FakeHistory
from tests.flow.images import PACKAGES, serve
from tests.flow.worlds import AMD64, Tiny, base_image
from tests.standin.registry import StandIn

REPOSITORY = "https://code.example/acme/vllm"
START, MERGE, BASE, ASIDE = (f"{number:040x}" for number in range(1, 5))
COMMITS = {
    START: Commit(id=START, time=1, subject="start"),
    MERGE: Commit(id=MERGE, time=2, subject="merge", parents=(START,)),
    BASE: Commit(id=BASE, time=3, subject="base", parents=(MERGE,)),
    ASIDE: Commit(id=ASIDE, time=3, subject="aside", parents=(START,)),
}


@dataclass(slots=True)
class Forge:
    """Counts what it is asked."""

    merge: str | None
    asked: list[int] = field(default_factory=list)

    def pull(self, repository: str, number: int) -> PullFacts | None:
        self.asked.append(number)
        state = "open" if self.merge is None else "merged"
        facts = PullFacts(
            title="x", state=state, base_ref="main", head=START, merge_commit=self.merge
        )
        return FakeForge({7: facts}).pull(repository, number)


@pytest.fixture
def project(tiny: Tiny, registry: StandIn) -> Tiny:
    """Two variants with pull request 7, on a base whose vLLM is of :data:`BASE`."""
    made = base_image()
    serve(registry, made)
    tiny.pin(made, vllm={"version": "0.1", "commit": BASE, "package": f"{PACKAGES}/vllm"})
    for number in (7, 8):
        value = {
            "follows": {"repository": REPOSITORY, "pull": number},
            "base": START,
            "head": ASIDE,
            "diff": f"sha256:{number:064x}",
        }
        tiny.lock("pulls", f"pr{number}", value)
    tiny.variant("one", {"pull": "pr7"})
    tiny.variant("two", {"pull": "pr7", "name": "seven"})
    return tiny


def bumped(tiny: Tiny, forge: Forge) -> Bump:
    made, world = tiny.world()

    def offline() -> None:
        raise OfflineError("no git here")

    world = replace(
        world,
        make_git=offline,  # type: ignore[arg-type]  # it only raises
        make_forge=lambda: forge,
        make_history=lambda: FakeHistory(COMMITS),
    )
    pin = made.images["base"]
    move = Move(kind="vllm", before=pin, resolved=Resolved(pin=pin))
    return tried(made, [move], world=world, platform=AMD64)


def test_a_merge_in_the_history_of_the_base_has_landed(project: Tiny) -> None:
    forge = Forge(MERGE)
    assert bumped(project, forge).landed == (
        Landed(variant="one", step="pr7", pull=7, commit=MERGE),
        Landed(variant="two", step="seven", pull=7, commit=MERGE),
    )
    assert forge.asked == [7]


@pytest.mark.parametrize("merge", [ASIDE, None], ids=["merged elsewhere", "not merged"])
def test_what_the_base_does_not_have_has_not_landed(project: Tiny, merge: str | None) -> None:
    bump = bumped(project, Forge(merge))
    assert (bump.landed, bump.remarks) == ((), ())


def test_what_nobody_can_tell_is_said_once(project: Tiny) -> None:
    project.variant("three", {"pull": "pr8"})
    project.variant("four", {"pull": "pr8"})
    forge = Forge(MERGE)
    bump = bumped(project, forge)
    assert [item.variant for item in bump.landed] == ["one", "two"]
    (remark,) = bump.remarks
    assert remark.startswith("whether pull requests have landed is not known: ")
    assert "pull request 8: 404" in remark
    assert sorted(forge.asked) == [7, 8]
