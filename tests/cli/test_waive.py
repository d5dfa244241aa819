"""``builder waive``: an exception is recorded with who, why and until when, or not at all."""

import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from builder.digest import ObjectId
from builder.lock import codec
from builder.lock.model import Waiver
from tests.cli.conftest import Builder, Ran, tree
from tests.patch_world import PatchWorld, patch_world, write_patched
from tests.trust.keys import policy_text, signatures

pytestmark = pytest.mark.requires("git")

FILE = "lockfiles/waivers.yaml"


def day(days: int) -> str:
    """So many days from now, in UTC."""
    return str(datetime.now(UTC).date() + timedelta(days=days))


@pytest.fixture
def world(tmp_path: Path, environment: dict[str, str]) -> PatchWorld:
    """A patch set that lists vLLM 0.20.1, behind the name that the lock has for it."""
    world = patch_world(tmp_path)
    environment["BUILDER_MIRRORS"] = world.mirrors
    environment["GIT_CONFIG_NOSYSTEM"] = "1"
    return world


@pytest.fixture
def night(world: PatchWorld, project: Path) -> Path:
    """The project, with a variant on vLLM 0.20.2, which the patch set does not list."""
    write_patched(project, world)
    return project


def waive(builder: Builder, **given: str) -> Ran:
    """What is not given is as it should be."""
    usual = {"reason": "tried it", "until": day(30), "author": "Ada <a@example.org>"}
    options = (f"--{name}={text}" for name, text in (usual | given).items())
    return builder("waive", "night", *options)


def refused(ran: Ran, status: int, message: str, hint: str) -> None:
    assert (ran.status, ran.out) == (status, "")
    assert ran.err == f"builder: error: {message}\n  hint: {hint}\n"


def waivers(project: Path) -> dict[str, Waiver]:
    return dict(codec.read_waivers((project / FILE).read_bytes()))


def expected(world: PatchWorld, **changed: str) -> dict[str, Waiver]:
    name = f"genesis-{world.commit[:12]}-vllm-0.20.2"
    fields = {"reason": "tried it", "author": "Ada <a@example.org>", "until": day(30)} | changed
    waiver = Waiver(
        name=name,
        rule="genesis-allowlist",
        genesis=ObjectId(world.commit),
        vllm="0.20.2",
        **fields,
    )
    return {name: waiver}


def test_a_waiver_is_written_for_the_commit_and_the_build(
    world: PatchWorld, night: Path, builder: Builder
) -> None:
    ran = waive(builder, reason="  tried it ")
    assert (ran.status, ran.err) == (0, "")
    (name,) = expected(world)
    assert ran.out == (
        f"{FILE}: {name}: vLLM 0.20.2 under Genesis {world.commit[:12]}, until {day(30)}\n"
    )
    assert waivers(night) == expected(world)


def test_the_document_has_the_waiver_and_its_file(
    world: PatchWorld, night: Path, builder: Builder
) -> None:
    options = ("--reason", "tried it", "--until", day(366), "--author", "Ada", "--json")
    assert builder("waive", "night", *options).json == {
        "file": FILE,
        "name": f"genesis-{world.commit[:12]}-vllm-0.20.2",
        "rule": "genesis-allowlist",
        "genesis": world.commit,
        "vllm": "0.20.2",
        "reason": "tried it",
        "author": "Ada",
        "until": day(366),
        "ended": False,
    }


def test_a_second_one_renews_the_first_and_leaves_the_others(
    world: PatchWorld, night: Path, builder: Builder
) -> None:
    other = Waiver(
        name="other",
        rule="genesis-allowlist",
        genesis=ObjectId("7" * 40),
        vllm="0.1.0",
        reason="old",
        author="Bob",
        until="2020-02-29",
    )
    (night / FILE).write_bytes(codec.write_pins(Waiver, {"other": other}))
    waive(builder)
    assert waivers(night) == {"other": other} | expected(world)
    before = (night / FILE).read_bytes()
    waive(builder)
    assert (night / FILE).read_bytes() == before
    (night / FILE).write_bytes(b"# Ours.\n" + before.replace(b"waivers:", b"waivers:  # few"))
    waive(builder, until=day(60), reason="tried again")
    text = (night / FILE).read_text()
    assert text.startswith("# Ours.\nversion: 1\nwaivers:  # few\n"), "comments stay"
    assert waivers(night) == {"other": other} | expected(world, until=day(60), reason="tried again")


@pytest.mark.parametrize("until", [0, 366], ids=["today", "366 days from now"])
def test_the_first_and_the_last_day_that_can_be_given(
    until: int, world: PatchWorld, night: Path, builder: Builder
) -> None:
    assert waive(builder, until=day(until)).status == 0


def test_the_author_is_whom_git_knows(
    world: PatchWorld, night: Path, builder: Builder, tmp_path: Path
) -> None:
    options = ("waive", "night", "--reason", "tried it", "--until", day(30))
    before = tree(night)
    ran = builder(*options)
    refused(
        ran,
        2,
        "nobody to answer for it: git knows no user.name and user.email here",
        "give --author 'NAME <EMAIL>'",
    )
    assert tree(night) == before
    (tmp_path / "home/.gitconfig").write_text("[user]\n\tname = Eve\n\temail = e@example.org\n")
    assert builder(*options).status == 0
    assert waivers(night) == expected(world, author="Eve <e@example.org>")


def test_what_the_patch_set_says_is_kept(
    world: PatchWorld, night: Path, builder: Builder, store: Path
) -> None:
    assert waive(builder).status == 0
    shutil.rmtree(world.upstream)
    shutil.rmtree(store / "git")
    shutil.rmtree(store / "notes/tree")
    assert waive(builder, until=day(3)).status == 0
    for note in (store / "notes/facts").iterdir():
        note.write_bytes(b"{}")
    assert waive(builder, until=day(3)).status != 0, "half a note is none"


REFUSED = [
    pytest.param(
        {"until": "2027-02-29"},
        2,
        "--until: expected a day of the calendar, got '2027-02-29'",
        "for example 2026-12-31",
        id="29 February of a year that has none",
    ),
    pytest.param(
        {"until": "tomorrow"},
        2,
        "--until: expected a day of the calendar, got 'tomorrow'",
        "for example 2026-12-31",
        id="a word for a day",
    ),
    pytest.param(
        {"until": "2020-01-01"},
        2,
        "--until: 2020-01-01 is over",
        None,
        id="a day that is over",
    ),
    pytest.param(
        {"reason": " "},
        2,
        "--reason: nothing but blanks",
        "say it in a few words",
        id="no reason",
    ),
    pytest.param(
        {"reason": "a\nb"},
        2,
        "--reason: expected a text on one line",
        "say it in a few words",
        id="a reason of two lines",
    ),
    pytest.param(
        {"author": ""},
        2,
        "--author: nothing but blanks",
        "say it in a few words",
        id="nobody",
    ),
]


@pytest.mark.parametrize(("given", "status", "message", "hint"), REFUSED)
def test_what_is_no_exception_with_an_end_is_refused_and_nothing_changes(
    given: dict[str, str],
    status: int,
    message: str,
    hint: str | None,
    night: Path,
    builder: Builder,
) -> None:
    before = tree(night)
    refused(waive(builder, **given), status, message, hint or f"it is {day(0)} in UTC")
    assert tree(night) == before


@pytest.mark.parametrize("days", [-1, 367], ids=["yesterday", "a year and two days"])
def test_a_day_outside_of_the_year_to_come_is_refused(
    days: int, night: Path, builder: Builder
) -> None:
    what = "is over" if days < 0 else "is more than 366 days away"
    today = f"it is {day(0)} in UTC"
    latest = f"{day(366)} at the latest; it can be renewed then"
    ran = waive(builder, until=day(days))
    refused(ran, 2, f"--until: {day(days)} {what}", today if days < 0 else latest)
    assert not (night / FILE).exists()


def test_a_variant_without_a_patch_set_has_nothing_to_waive(night: Path, builder: Builder) -> None:
    ran = builder("waive", "hello", "--reason=x", f"--until={day(3)}", "--author=A")
    refused(
        ran,
        3,
        "variants/hello.yaml:1: no genesis step, so that there is nothing to waive",
        "builder variants lists the variants",
    )


@pytest.mark.parametrize(
    ("vllm", "policy"),
    [("0.20.1", ""), ("0.20.2", "policy: {genesis: {allowlist: warning}}\n")],
    ids=["listed", "only told"],
)
def test_a_base_that_may_pass_needs_no_waiver(
    vllm: str, policy: str, world: PatchWorld, night: Path, builder: Builder
) -> None:
    write_patched(night, world, vllm=vllm)
    (night / "builder.yaml").write_text(f"version: 1\n{policy}")
    before = tree(night)
    ran = waive(builder)
    refused(
        ran,
        2,
        f"variants/night.yaml:6: steps[1]: nothing to waive: vLLM {vllm} may pass under Genesis"
        f" {world.commit[:12]}",
        "builder build night",
    )
    assert tree(night) == before


def test_a_base_of_which_nobody_knows_the_vllm_cannot_be_waived(
    night: Path, builder: Builder
) -> None:
    recipe = night / "variants/night.yaml"
    recipe.write_text(recipe.read_text().replace("  - wheels: [vllm]\n", ""))
    ran = waive(builder)
    refused(
        ran,
        3,
        "variants/night.yaml:1: base: nothing says which vLLM it holds",
        "write 'vllm' with its version and commit into the entry in lockfiles/vllm.yaml",
    )


def test_a_broken_file_of_waivers_is_refused_and_not_written_over(
    night: Path, builder: Builder
) -> None:
    (night / FILE).write_text("version: 1\nwaivers: {a: &x {}, b: *x}\n")
    before = tree(night)
    ran = waive(builder)
    assert ran.status == 3
    assert ran.err.startswith(f"builder: error: {FILE}:2:")
    assert tree(night) == before


LISTED = """\
version: 1
waivers:
  b:
    rule: genesis-allowlist
    genesis: "7777777777777777777777777777777777777777"
    vllm: "01d4d1ad375dc5854779c593eee093bcebb0cada"
    reason: "never again"
    author: "Ada <a@example.org>"
    until: "9999-12-31"
  a:
    rule: genesis-allowlist
    genesis: "8888888888888888888888888888888888888888"
    vllm: "0.20.2"
    reason: "for a while"
    author: Bob
    until: "2020-02-29"
"""


def test_the_waivers_are_listed_those_that_end_first_first(
    project: Path, builder: Builder, store: Path
) -> None:
    assert builder("waive", "--list").out == "no waivers\n"
    assert builder("waive", "--list", "--json").json == {"waivers": []}
    (project / FILE).write_text(LISTED)
    assert builder("waive", "--list").out == (
        "WAIVER  VLLM          GENESIS                         AUTHOR               REASON\n"
        "a       0.20.2        888888888888  ended 2020-02-29  Bob                  for a while\n"
        "b       01d4d1ad375d  777777777777  until 9999-12-31  Ada <a@example.org>  never again\n"
    )
    found = builder("waive", "--list", "--json").json["waivers"]
    assert [(item["name"], item["ended"]) for item in found] == [("a", True), ("b", False)]
    assert found[1]["vllm"] == "01d4d1ad375dc5854779c593eee093bcebb0cada"
    assert not store.exists()


def test_a_waiver_that_nobody_signed_does_not_look_as_if_it_counted(
    project: Path, builder: Builder
) -> None:
    (project / FILE).write_text(LISTED)
    raw = policy_text(expires="2999-12-31").encode()
    (project / "trust.yaml").write_bytes(raw)
    (project / "trust.yaml.sig.jsonl").write_bytes(signatures(raw, "ada", "bob") or b"")
    assert builder("trust", "init", "--accept-first").status == 0
    ran = builder("waive", "--list")
    assert "  does not count    Ada " in ran.out
    assert "until" not in ran.out
    assert "b does not count: it ends more than 366 days from now" in ran.err
    assert builder("waive", "--list", "--json").json["waivers"][1]["why_not"] is not None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--list", "night"), "--list takes no other argument"),
        (("--list", "--reason", "x"), "--list takes no other argument"),
        ((), "missing argument 'VARIANT'"),
        (("night",), "missing option '--reason'"),
        (("night", "--reason", "x"), "missing option '--until'"),
    ],
)
def test_half_a_command_is_a_usage_error(
    arguments: tuple[str, ...], message: str, builder: Builder
) -> None:
    ran = builder("waive", *arguments)
    refused(ran, 2, message, "builder waive --help says what it takes")
