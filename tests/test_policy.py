"""What a project lets pass: each word of a patch set about a base, each complaint about an
environment, and the waivers between them."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date

import pytest

from builder.digest import Digest, ObjectId
from builder.errors import PolicyError, ProjectError
from builder.genesis.allowlist import Allowlist, Listing, Presence
from builder.genesis.facts import Facts
from builder.genesis.lint import Rule, lint
from builder.genesis.registry import Patch
from builder.lock.model import GenesisPin, ImagePin, Lock, VllmBuild, Waiver, WheelPin
from builder.policy import (
    Case,
    Objection,
    Ruling,
    enforce,
    judge_base,
    judge_environment,
    judge_step,
    vllm_build_of,
)
from builder.reference import Reference
from builder.settings.model import GenesisPolicy, Level
from builder.variant import (
    Base,
    GenesisStep,
    LayoutBase,
    PinnedBase,
    ScratchBase,
    Step,
    Variant,
    WheelsStep,
)
from tests.test_waivers import COMMIT, GENESIS, NIGHTLY, OTHER, RELEASE, by_name, waiver

TODAY = date(2026, 12, 31)
POLICY = GenesisPolicy()
HINT = (
    "take a base that it lists, or record an exception: builder waive night --reason TEXT --until"
    " DATE"
)
AT = "variants/night.yaml:7: steps[0]"
STEP = GenesisStep(name="patches", genesis="v7", platform="cuda-8.6", at=AT)
PIN = GenesisPin(
    name="v7", repository="https://git.example/patches", commit=GENESIS, tree=ObjectId("9" * 40)
)
PATCHES = (
    Patch(id="P1", flag="GENESIS_ENABLE_P1", conflicts=("P2",)),
    Patch(id="P2", flag="GENESIS_ENABLE_P2", requires=("P3",)),
    Patch(id="P3", flag="GENESIS_ENABLE_P3", lifecycle="retired", versions=(">=0.30",)),
)


def case(*good: str, pending: tuple[str, ...] = (), presence: Presence = Presence.PRESENT) -> Case:
    allowlist = Allowlist(presence=presence, file="guards.py", good=good, pending=pending)
    facts = Facts(payload="vllm/_genesis", allowlist=allowlist, patches=PATCHES)
    return Case(variant="night", step=STEP, pin=PIN, facts=facts)


def judged(
    item: Case,
    *waivers: Waiver,
    build: VllmBuild = RELEASE,
    environment: Mapping[str, str] | None = None,
    today: date = TODAY,
    policy: GenesisPolicy = POLICY,
) -> Ruling:
    return judge_step(
        item,
        build=build,
        environment=environment or {},
        waivers=by_name(*waivers),
        today=today,
        policy=policy,
    )


# --- which vLLM --------------------------------------------------------------------------------


def image_pin(vllm: VllmBuild | None) -> ImagePin:
    return ImagePin(name="base", follows=Reference.parse("docker.io/vllm/vllm-openai"), vllm=vllm)


def wheel_pin(name: str, project: str, version: str) -> WheelPin:
    filename = f"{project}-{version}-py3-none-any.whl"
    return WheelPin(
        name=name, project=project, version=version, filename=filename, digest=Digest.of(b"")
    )


LOCK = Lock(
    images={"base": image_pin(NIGHTLY), "bare": image_pin(None)},
    wheels={
        "vllm-a": wheel_pin("vllm-a", "vLLM", "0.20.1"),
        "vllm-b": wheel_pin("vllm-b", "vllm", "0.20.2"),
        "other": wheel_pin("other", "vllm-flash-attn", "9.0"),
    },
)
A = WheelsStep(name="a", wheels=("other", "vllm-a"))
B = WheelsStep(name="b", wheels=("vllm-b", "other"))
LAYOUT = LayoutBase(layout="base", digest=Digest.of(b""))


@pytest.mark.parametrize(
    ("base", "steps", "build"),
    [
        pytest.param(PinnedBase(pin="base"), (STEP,), NIGHTLY, id="what the lock says of the base"),
        pytest.param(PinnedBase(pin="bare"), (STEP,), None, id="a base of which it says nothing"),
        pytest.param(PinnedBase(pin="gone"), (STEP,), None, id="a base that is not pinned"),
        pytest.param(LAYOUT, (STEP,), None, id="a layout, which only its tree can tell"),
        pytest.param(ScratchBase(), (B, STEP), RELEASE, id="a wheel"),
        pytest.param(PinnedBase(pin="base"), (A, B, STEP), RELEASE, id="the last wheel below it"),
        pytest.param(PinnedBase(pin="base"), (STEP, B), NIGHTLY, id="not a wheel above it"),
        pytest.param(
            ScratchBase(),
            (WheelsStep(name="w", wheels=("other", "missing")), STEP),
            None,
            id="no wheel of another project",
        ),
    ],
)
def test_the_vllm_of_a_variant_is_what_its_genesis_step_finds(
    base: Base, steps: tuple[Step, ...], build: VllmBuild | None
) -> None:
    assert vllm_build_of(Variant(name="v", base=base, steps=steps), LOCK) == build


# --- the base ----------------------------------------------------------------------------------


def test_a_listed_base_passes_without_a_word() -> None:
    ruling = judged(case("0.20.2"), waiver())
    assert (ruling.objections, ruling.waiver, ruling.until) == ((), None, None)
    assert ruling.judgement.listing is Listing.LISTED
    enforce(ruling)


def test_a_nightly_is_listed_by_its_commit() -> None:
    assert judged(case(NIGHTLY.version), build=NIGHTLY).objections == ()
    another = VllmBuild(version=NIGHTLY.version, commit=ObjectId("f" * 40))
    assert judged(case(NIGHTLY.version), build=another).errors


@pytest.mark.parametrize(
    ("item", "build", "rule", "level", "message", "hint"),
    [
        pytest.param(
            case("0.20.1", "0.19.0"),
            RELEASE,
            "allowlist",
            Level.ERROR,
            "Genesis 777777777777 does not list vLLM 0.20.2",
            f"the nearest that it lists: '0.20.1', '0.19.0'; {HINT}",
            id="not listed",
        ),
        pytest.param(
            case("0.20.1"),
            NIGHTLY,
            "allowlist",
            Level.ERROR,
            f"Genesis 777777777777 does not list vLLM 0.20.2rc1.dev9+g01d4d1ad3 ({COMMIT})",
            f"the nearest that it lists: '0.20.1'; {HINT}",
            id="not listed, by its commit",
        ),
        pytest.param(
            case(),
            RELEASE,
            "allowlist",
            Level.ERROR,
            "Genesis 777777777777 does not list vLLM 0.20.2",
            HINT,
            id="an empty list",
        ),
        pytest.param(
            case(pending=("0.20.2",)),
            RELEASE,
            "pending",
            Level.ERROR,
            "Genesis 777777777777 lists vLLM 0.20.2 only as pending",
            HINT,
            id="pending",
        ),
        pytest.param(
            case("0.20.2", pending=("0.20.2",)),
            RELEASE,
            "pending",
            Level.WARNING,
            "Genesis 777777777777 lists vLLM 0.20.2, and lists it as pending, too",
            None,
            id="both",
        ),
        pytest.param(
            case(presence=Presence.NONE),
            RELEASE,
            "no-list",
            Level.WARNING,
            "Genesis 777777777777 has no list that vLLM 0.20.2 could be on",
            HINT,
            id="no list in this era",
        ),
        pytest.param(
            case(presence=Presence.MISSING),
            RELEASE,
            "allowlist",
            Level.ERROR,
            "Genesis 777777777777 lacks the module that should list vLLM 0.20.2",
            HINT,
            id="module missing",
        ),
    ],
)
def test_each_word_about_a_base_has_its_rule(
    item: Case, build: VllmBuild, rule: str, level: Level, message: str, hint: str | None
) -> None:
    objection = Objection(rule=rule, level=level, message=message, hint=hint)
    assert judge_base(item, build=build, policy=POLICY) == objection
    ruling = judged(item, build=build)
    assert ruling.objections == (objection,)
    if level is Level.WARNING:
        enforce(ruling)
        return
    with pytest.raises(PolicyError) as caught:
        enforce(ruling)
    assert caught.value.exit_status == 5
    assert (caught.value.message, caught.value.hint) == (f"{AT}: {rule}: {message}", hint)


@pytest.mark.parametrize(
    ("item", "policy", "levels"),
    [
        pytest.param(
            case("0.20.1"),
            replace(POLICY, allowlist=Level.WARNING),
            [Level.WARNING],
            id="an allowlist that is only told of",
        ),
        pytest.param(
            case(pending=("0.20.2",)),
            replace(POLICY, pending=Level.OFF),
            [],
            id="pending counts as listed",
        ),
        pytest.param(
            case("0.20.2", pending=("0.20.2",)),
            replace(POLICY, pending=Level.OFF),
            [],
            id="both, and pending says nothing",
        ),
        pytest.param(
            case(presence=Presence.NONE),
            replace(POLICY, no_list=Level.ERROR),
            [Level.ERROR],
            id="no patch set without a list",
        ),
        pytest.param(
            case(presence=Presence.NONE),
            replace(POLICY, no_list=Level.OFF),
            [],
            id="a patch set without a list, and no word",
        ),
    ],
)
def test_the_policy_says_what_stops_a_build(
    item: Case, policy: GenesisPolicy, levels: list[Level]
) -> None:
    ruling = judged(item, waiver(until="2000-01-01"), policy=policy)
    assert [objection.level for objection in ruling.objections] == levels


# --- waivers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "item",
    [case("0.20.1"), case(pending=("0.20.2",)), case(presence=Presence.MISSING)],
    ids=["not listed", "pending", "module missing"],
)
def test_a_waiver_lets_the_base_pass_and_is_told(item: Case) -> None:
    held = waiver(until="2026-12-31")
    ruling = judged(item, held, today=date(2026, 12, 31))
    enforce(ruling)
    assert (ruling.waiver, ruling.until, ruling.errors) == (held, "2026-12-31", ())
    (told,) = ruling.warnings
    assert told.message.endswith("; waiver 'w' lets it pass until 2026-12-31: tried (Ada)")
    assert told.hint is None


def refusal(*waivers: Waiver, build: VllmBuild = RELEASE, today: date = TODAY) -> PolicyError:
    ruling = judged(case("0.20.1"), *waivers, build=build, today=today)
    assert (ruling.waiver, ruling.until) == (None, None)
    with pytest.raises(PolicyError) as caught:
        enforce(ruling)
    return caught.value


NEAREST = f"the nearest that it lists: '0.20.1'; {HINT}"


def test_a_waiver_that_is_over_refuses_again_and_says_since_when() -> None:
    error = refusal(waiver(until="2026-12-30"))
    assert error.message == (
        f"{AT}: allowlist: Genesis 777777777777 does not list vLLM 0.20.2, and waiver 'w' ended on"
        " 2026-12-30"
    )
    assert error.hint == NEAREST


def test_of_two_waivers_one_that_holds_is_enough() -> None:
    over, holds = waiver("a", until="2026-12-30"), waiver("b", until="2027-01-05")
    assert judged(case(), over, holds).waiver == holds
    assert judged(case(), holds, over).waiver == holds


def test_of_two_waivers_that_are_over_the_last_one_is_named() -> None:
    error = refusal(waiver("a", until="2026-01-01"), waiver("b", until="2026-02-28"))
    assert error.message.endswith("and waiver 'b' ended on 2026-02-28")


def test_a_waiver_for_something_else_does_not_count_and_is_named() -> None:
    error = refusal(
        waiver("older", genesis=OTHER),
        waiver("nightly", vllm=str(COMMIT)),
        waiver("unrelated", genesis=OTHER, vllm="0.1.0"),
    )
    assert error.message == f"{AT}: allowlist: Genesis 777777777777 does not list vLLM 0.20.2"
    assert error.hint == (
        f"{NEAREST}; waiver 'older' is for vLLM 0.20.2 under Genesis 888888888888,"
        " waiver 'nightly' is for vLLM 01d4d1ad375d under Genesis 777777777777"
    )


def test_many_waivers_for_something_else_are_counted() -> None:
    error = refusal(*(waiver(f"w{number}", vllm=f"0.1.{number}") for number in range(5)))
    assert error.hint is not None
    assert error.hint.endswith(
        "'w2' is for vLLM 0.1.2 under Genesis 777777777777, 2 more are for others"
    )


def test_a_waiver_takes_no_objection_to_the_environment_away() -> None:
    ruling = judged(case(), waiver(), environment={"GENESIS_ENABLE_P9": "1"})
    assert [(item.rule, item.level) for item in ruling.objections] == [
        ("allowlist", Level.WARNING),
        ("unknown-flag", Level.ERROR),
    ]
    with pytest.raises(ProjectError):
        enforce(ruling)


# --- the environment ---------------------------------------------------------------------------


@pytest.mark.parametrize("rule", Rule)
def test_every_rule_of_the_lint_has_a_level(rule: Rule) -> None:
    assert POLICY.level(str(rule)) in {Level.ERROR, Level.WARNING}


def test_one_objection_to_the_environment_is_the_message() -> None:
    with pytest.raises(ProjectError) as caught:
        enforce(judged(case("0.20.2"), environment={"GENESIS_ENABLE_P1": "yes please"}))
    assert caught.value.exit_status == 3
    assert caught.value.message == (
        f"{AT}: odd-value: GENESIS_ENABLE_P1: expected 1 or 0, got 'yes please', which counts as"
        " off"
    )
    assert caught.value.hint == "write 1 to switch it on, 0 to switch it off"


def test_several_objections_are_all_told_a_line_each() -> None:
    environment = {"GENESIS_ENABLE_P1": "1", "GENESIS_ENABLE_P2": "1", "GENESIS_ENABLE_P9": "1"}
    with pytest.raises(ProjectError) as caught:
        enforce(judged(case("0.20.2"), environment=environment))
    head, *lines = caught.value.message.split("\n")
    assert head == f"{AT}: Genesis 777777777777 has 3 objections to the environment"
    found = lint(environment, case().facts, version=None)
    assert [str(item.rule) for item in found] == ["unknown-flag", "conflict", "unmet-requirement"]
    assert lines == [f"  {item.rule}: {item.message}; {item.hint}" for item in found]
    assert caught.value.hint == (
        "mend image.env; what is an error stands under policy.genesis in builder.yaml"
    )


def test_what_is_only_told_stops_nothing_and_what_is_off_is_not_told() -> None:
    environment = {"GENESIS_ENABLE_P3": "1"}
    ruling = judged(case("0.20.2"), environment=environment)
    enforce(ruling)
    assert [item.rule for item in ruling.warnings] == ["retired", "version-range"]
    quiet = replace(POLICY, retired=Level.OFF, version_range=Level.ERROR)
    ruling = judged(case("0.20.2"), environment=environment, policy=quiet)
    assert [(item.rule, item.level) for item in ruling.objections] == [
        ("version-range", Level.ERROR)
    ]


def test_without_a_version_nothing_is_said_of_versions() -> None:
    environment = {"GENESIS_ENABLE_P3": "1", "PATH": "/bin"}
    found = judge_environment(environment, case().facts, version=None, policy=POLICY)
    assert [item.rule for item in found] == ["retired"]


def test_a_base_that_is_not_listed_is_said_before_the_environment() -> None:
    with pytest.raises(PolicyError):
        enforce(judged(case(), environment={"GENESIS_ENABLE_P9": "1"}))
