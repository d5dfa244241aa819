"""The trust policy of a project: whether it is signed, how long it holds, whom it forgets."""

from collections.abc import Callable, Iterator, Mapping
from datetime import date, timedelta

from builder.check.finding import Finding, error_at, warning_at
from builder.errors import BuilderError, ProjectError
from builder.lock.model import Waiver
from builder.project import Project
from builder.trust.chain import Text, check_expiry, demand
from builder.trust.codec import read_policy
from builder.trust.model import KeyState, Policy
from builder.trust.names import FILE, RESERVED
from builder.trust.scope import EVERYTHING

SOON = timedelta(days=14)


def policy(project: Project, *, today: date, soon: timedelta = SOON) -> Iterator[Finding]:
    """What is wrong with the policy as it stands, accepted or not; nothing, where there is none."""
    latest = project.versions.latest
    if latest is None:
        return
    try:
        found = read_policy(latest.raw)
    except ProjectError as error:
        yield error_at(FILE, error)
        return
    yield from _refused(lambda: demand(found, latest, whose="its own"))
    yield from _steps(project, found, latest)
    yield from _refused(lambda: check_expiry(found, today))
    if today <= found.expires <= today + soon:
        yield warning_at(
            FILE,
            f"expires with {found.expires}, and nothing is trusted after it",
            hint="builder trust new begins the next version",
        )
    yield from _keys(found, today, soon)
    yield from _roles(found)


def accepted(project: Project) -> Iterator[Finding]:
    """Whether this machine accepts the policy."""
    yield from _refused(project.accepted)


def unvouched(project: Project, waivers: Mapping[str, Waiver], *, today: date) -> Iterator[Finding]:
    """Waivers that do not count."""
    try:
        why = project.unvouched(waivers, today=today)
    except BuilderError as error:
        yield error_at(FILE, error)
        return
    for name, reason in why.items():
        yield warning_at(
            waivers[name].at,
            f"does not count: {reason}",
            hint=f"builder trust sign --waiver {name} --key NAME signs it",
        )


def _refused(question: Callable[[], object]) -> Iterator[Finding]:
    try:
        question()
    except BuilderError as error:
        yield error_at(FILE, error)


def _steps(project: Project, found: Policy, latest: Text) -> Iterator[Finding]:
    """The version before, where it is kept: it must vouch for this one."""
    before = project.versions.history.get(found.version - 1)
    if before is None:
        if found.version > 1:
            yield warning_at(
                FILE,
                f"trust/{found.version - 1}.yaml is not kept: whoever accepted an older version"
                " follows only if the keys of that one signed this one",
                hint="builder trust new keeps the versions that it replaces",
            )
        return
    try:
        old = read_policy(before.raw, file=before.file)
    except ProjectError as error:
        yield error_at(before.file, error)
        return
    if old.version != found.version - 1:
        yield warning_at(before.file, f"version {old.version}, which is not what its name says")
        return
    yield from _refused(lambda: demand(old, latest, whose=f"version {old.version}"))


def _keys(found: Policy, today: date, soon: timedelta) -> Iterator[Finding]:
    used = {name for role in found.roles.values() for name in role.keys}
    for key in found.keys.values():
        if key.until and key.until < today:
            yield warning_at(key.at, f"its last day was {key.until}", hint="retire it")
        elif key.until and key.until <= today + soon:
            yield warning_at(key.at, f"its last day is {key.until}")
        if key.name not in used:
            yield warning_at(key.at, "no role has it", hint="remove it, or give it a role")


def _roles(found: Policy) -> Iterator[Finding]:
    signing = {scope.role for scope in found.scopes}
    for role in found.roles.values():
        active = [key for key in found.keys_of(role) if key.state is KeyState.ACTIVE]
        if len(active) < role.threshold:
            yield warning_at(
                role.at,
                f"{len(active)} active keys, and {role.threshold} have to sign: nothing new counts",
            )
        if role.name not in RESERVED and role.name not in signing:
            yield warning_at(role.at, "no scope names it", hint="remove it, or give it a scope")
    for scope in found.scopes:
        if EVERYTHING in scope.repositories:
            yield warning_at(
                scope.at,
                f"'*' is every repository of every registry, for the role {scope.role!r}",
                hint="name the registry at least: registry.example/*",
            )
