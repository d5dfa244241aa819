"""What is wrong with an environment, by the patch set that reads it.

Pure: nothing is refused here. Whether a complaint is an error or a warning is the project's policy.
"""

from collections.abc import Iterator, Mapping
from enum import StrEnum

from builder.genesis.facts import Facts
from builder.genesis.meant import meant
from builder.genesis.registry import Patch
from builder.genesis.switches import OFF, ON, Switched, disabling, spellings, switched
from builder.value import field, value


class Rule(StrEnum):
    """What a complaint is about, in the order in which complaints are made."""

    UNKNOWN_FLAG = "unknown-flag"
    """A variable of the patch set's that this commit does not read."""
    ODD_VALUE = "odd-value"
    """A flag that is neither on nor off. The patch set takes it for off."""
    NO_EFFECT = "no-effect"
    """A flag that is set, and decides nothing."""
    CONFLICT = "conflict"
    UNMET_REQUIREMENT = "unmet-requirement"
    RETIRED = "retired"
    """A patch that is switched on and that the patch set has given up."""
    SUPERSEDED = "superseded"
    """A patch that is switched on and that vLLM, or another patch, has made needless."""
    VERSION_RANGE = "version-range"


_RANK = {rule: rank for rank, rule in enumerate(Rule)}


@value
class Complaint:
    """One thing that is wrong."""

    rule: Rule
    subject: str
    """The variable or the patch; both patches of a conflict."""
    message: str
    hint: str


@value
class _Scene:
    """What the rules look at."""

    environment: Mapping[str, str]
    """The patch set's variables only."""
    facts: Facts = field(repr=False)
    patches: Mapping[str, Patch] = field(repr=False)
    flags: frozenset[str] = field(repr=False)
    """Every spelling of every variable that switches a patch on."""
    state: Switched

    def named(self, name: str) -> str:
        """A patch that is on, with why it is."""
        flag = self.state.on.get(name)
        return f"{name} (on by default)" if flag is None else f"{name} ({flag})"


def lint(
    environment: Mapping[str, str], facts: Facts, *, version: str | None
) -> tuple[Complaint, ...]:
    """Everything that is wrong with ``environment``.

    Args:
        environment: All variables of the image; those that are not the patch set's are ignored.
        facts: The commit.
        version: The version of vLLM in the base, where it is known.

    Conditions on the model, the KV cache or the device are not looked at.
    """
    ours = {
        name: text
        for name, text in sorted(environment.items())
        if name.startswith(("GENESIS_", "SNDR_"))
    }
    scene = _Scene(
        environment=ours,
        facts=facts,
        patches={patch.id: patch for patch in facts.patches},
        flags=_flags(facts),
        state=switched(ours, facts),
    )
    found = (
        *_unknown(scene),
        *_odd(scene),
        *_without_effect(scene),
        *_conflicts(scene),
        *_requirements(scene),
        *_given_up(scene),
        *_versions(scene, version),
    )
    return tuple(sorted(found, key=lambda complaint: _RANK[complaint.rule]))


def _flags(facts: Facts) -> frozenset[str]:
    return frozenset(
        name
        for patch in facts.patches
        for flag in (patch.flag, *patch.aliases)
        if flag is not None
        for name in spellings(flag, facts)
    )


def _unknown(scene: _Scene) -> Iterator[Complaint]:
    for name in scene.environment:
        if not _is_known(name, scene):
            yield Complaint(
                rule=Rule.UNKNOWN_FLAG,
                subject=name,
                message=f"{name} is read by nothing in this commit of the patch set",
                hint=meant(name, scene.facts, scene.flags | scene.facts.names),
            )


def _is_known(name: str, scene: _Scene) -> bool:
    return (
        name in scene.flags
        or name in scene.facts.names
        or ("_DISABLE_" in name and _disables_one(name, scene))
    )


def _disables_one(name: str, scene: _Scene) -> bool:
    return any(name in disabling(patch, scene.facts) for patch in scene.facts.patches)


def _odd(scene: _Scene) -> Iterator[Complaint]:
    for name, text in scene.environment.items():
        switch = name in scene.flags or "_ENABLE_" in name or "_DISABLE_" in name
        if switch and _is_known(name, scene) and text.strip().lower() not in ON | OFF:
            yield Complaint(
                rule=Rule.ODD_VALUE,
                subject=name,
                message=f"{name}: expected 1 or 0, got {text[:60]!r}, which counts as off",
                hint="write 1 to switch it on, 0 to switch it off",
            )


def _without_effect(scene: _Scene) -> Iterator[Complaint]:
    for name, flag in scene.state.stubborn.items():
        patch = scene.patches[name]
        off = next(iter(disabling(patch, scene.facts)), None)
        yield Complaint(
            rule=Rule.NO_EFFECT,
            subject=flag,
            message=f"{flag} decides nothing: {name} is always applied"
            if patch.always
            else f"{flag} is {scene.environment[flag][:60]!r}, and {name} is on all the same: "
            "its flag can only switch it on",
            hint="leave it out" + (f"; {off}=1 switches {name} off" if off else ""),
        )


def _conflicts(scene: _Scene) -> Iterator[Complaint]:
    on = scene.state.on
    seen = set()
    for name in on:
        for other in scene.patches[name].conflicts:
            pair = frozenset({name, other})
            if other == name or other not in on or pair in seen:
                continue
            seen.add(pair)
            first, second = (item for item in on if item in pair)
            switches = dict.fromkeys(by for by in (on[first], on[second]) if by is not None)
            yield Complaint(
                rule=Rule.CONFLICT,
                subject=f"{first}, {second}",
                message=f"{scene.named(first)} conflicts with {scene.named(second)}, "
                "and both are on",
                hint=f"set {' or '.join(switches)} to 0"
                if switches
                else "pin another commit of the patch set: both are its own defaults",
            )


def _requirements(scene: _Scene) -> Iterator[Complaint]:
    for name, by in scene.state.on.items():
        for other in scene.patches[name].requires:
            if other in scene.state.on:
                continue
            needed = scene.patches.get(other)
            ways = [f"switch {other} on ({needed.flag})"] if needed and needed.flag else []
            ways += [f"set {by} to 0"] if by else []
            yield Complaint(
                rule=Rule.UNMET_REQUIREMENT,
                subject=name,
                message=f"{scene.named(name)} requires {other}, which "
                + ("this commit does not have" if needed is None else "is off"),
                hint=" or ".join(ways) or "pin another commit of the patch set",
            )


def _given_up(scene: _Scene) -> Iterator[Complaint]:
    for name, flag in scene.state.on.items():
        patch = scene.patches[name]
        if flag is None or not (patch.retired or patch.superseded_by):
            continue
        words = (
            ["deprecated" if patch.deprecated else str(patch.lifecycle)] if patch.retired else []
        )
        if patch.superseded_by:
            words.append(f"superseded by {', '.join(patch.superseded_by)[:90]!r}")
        yield Complaint(
            rule=Rule.RETIRED if patch.retired else Rule.SUPERSEDED,
            subject=name,
            message=f"{scene.named(name)} is switched on, and the patch set calls it "
            + ", ".join(words),
            hint=f"set {flag} to 0" + ("" if patch.retired else " where the base has that"),
        )


def _versions(scene: _Scene, version: str | None) -> Iterator[Complaint]:
    for name, flag in scene.state.on.items():
        wanted = scene.patches[name].versions
        if version is not None and wanted and not _within(version, wanted):
            yield Complaint(
                rule=Rule.VERSION_RANGE,
                subject=name,
                message=f"{scene.named(name)} is for vLLM {','.join(wanted)!r}, got {version!r}",
                hint=f"set {flag} to 0" if flag else "pin a commit of the patch set for this vLLM",
            )


def _within(version: str, specifiers: tuple[str, ...]) -> bool:
    """Whether a version meets them all, as the patch set has it: local parts (which PEP 440 does
    not allow in such a place, and which the patch set writes) are left out on both sides, and
    pre-releases count. What cannot be read excludes nothing."""
    from packaging.specifiers import SpecifierSet  # noqa: PLC0415 - takes long
    from packaging.version import Version  # noqa: PLC0415 - the same

    try:
        public = Version(version.partition("+")[0])
        wanted = SpecifierSet(",".join(item.partition("+")[0] for item in specifiers))
        return wanted.contains(public, prereleases=True)
    except ValueError:  # what packaging refuses, and more digits than Python reads as a number
        return True
