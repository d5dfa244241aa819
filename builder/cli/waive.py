"""``builder waive``."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any

import click

from builder.cli import show
from builder.cli.settings import Settings, command_with_settings, shared_options
from builder.cli.site import Site, variant_names
from builder.errors import ProjectError, UsageError
from builder.lock import codec
from builder.lock.codec_waivers import GENESIS_ALLOWLIST, day
from builder.lock.model import GenesisPin, VllmBuild, Waiver
from builder.node.readers import TEXT_LIMIT
from builder.settings.model import Level
from builder.variant import GenesisStep, Variant
from builder.waivers import LONGEST, ended, identity, name_of, recorded, shown_build

_HELP = "builder waive --help says what it takes"


@click.command("waive")
@click.argument("variant", required=False, shell_complete=variant_names)
@click.option("--reason", metavar="TEXT", help="Why it is let through.")
@click.option("--until", metavar="DATE", help="The last day on which it holds: 2026-12-31.")
@click.option("--author", metavar="TEXT", help="Who lets it through (default: as git knows you).")
@click.option("--list", "listed", is_flag=True, help="Show the waivers that there are.")
@shared_options
@command_with_settings
def command(
    settings: Settings,
    variant: str | None,
    reason: str | None,
    until: str | None,
    author: str | None,
    listed: bool,
) -> None:
    """Let a variant build on a base that is not on a list.

    The waiver is written to lockfiles/waivers.yaml: for this vLLM build, under this commit of
    the patch set, until the end of a day in UTC. To take it back, remove it there.
    """
    site = Site(settings)
    if listed:
        if (variant, reason, until, author) != (None, None, None, None):
            raise UsageError("--list takes no other argument", hint=_HELP)
        known = site.project.waivers
        uncounted = site.project.unvouched(known, today=site.today)
        _show(settings, known, site.today, uncounted)
        return
    name = _given(variant, "argument 'VARIANT'")
    why = _said(_given(reason, "option '--reason'"), "--reason")
    last = _last_day(_given(until, "option '--until'"), site.today)
    who = _author(site, author)
    new = _waiver(site, site.project.variant(name), reason=why, until=last, author=who)
    written = _record(site, new)
    unsigned = site.project.unvouched({written.name: written}, today=site.today)
    show.result(
        settings,
        {"file": codec.WAIVERS, **_document(written, site.today)},
        f"{codec.WAIVERS}: {written.name}: vLLM {shown_build(written.vllm)} under"
        f" Genesis {written.genesis.short}, until {written.until}",
        aside=f"it counts once it is signed: builder trust sign --waiver {written.name} --key NAME"
        if unsigned
        else None,
    )


def _given(value: str | None, what: str) -> str:
    if value is None:
        raise UsageError(f"missing {what}", hint=_HELP)
    return value


def _said(value: str, option: str) -> str:
    """A text on one line, for the lockfile."""
    text = value.strip()
    if not text:
        raise UsageError(f"{option}: nothing but blanks", hint="say it in a few words")
    if not text.isprintable() or len(text) > TEXT_LIMIT:
        raise UsageError(f"{option}: expected a text on one line", hint="say it in a few words")
    return text


def _last_day(value: str, today: date) -> date:
    last = day(value)
    if last is None:
        raise UsageError(
            f"--until: expected a day of the calendar, got {value!r}", hint="for example 2026-12-31"
        )
    if last < today:
        raise UsageError(f"--until: {value} is over", hint=f"it is {today} in UTC")
    if last - today > LONGEST:
        raise UsageError(
            f"--until: {value} is more than {LONGEST.days} days away",
            hint=f"{today + LONGEST} at the latest; it can be renewed then",
        )
    return last


def _author(site: Site, given: str | None) -> str:
    from builder.adapters.git_author import git_author

    if given is not None:
        return _said(given, "--author")
    found = git_author(site.project.root)
    if found is None:
        raise UsageError(
            "nobody to answer for it: git knows no user.name and user.email here",
            hint="give --author 'NAME <EMAIL>'",
        )
    return _said(found.shown, "user.name and user.email of git")


def _waiver(site: Site, variant: Variant, *, reason: str, until: date, author: str) -> Waiver:
    """The waiver that the variant needs.

    Raises:
        ProjectError: It has no Genesis step, or nobody knows its vLLM.
        UsageError: It needs none.
    """
    from builder.policy import vllm_build_of

    step = next((item for item in variant.steps if isinstance(item, GenesisStep)), None)
    if step is None:
        raise ProjectError(
            f"{variant.at}: no genesis step, so that there is nothing to waive",
            hint="builder variants lists the variants",
        )
    lock = site.project.lock_for(variant)
    pin = lock.genesis[step.genesis]
    build = vllm_build_of(variant, lock)
    if build is None:
        raise ProjectError(
            f"{variant.at}: base: nothing says which vLLM it holds",
            hint=f"write 'vllm' with its version and commit into the entry in {codec.IMAGES}",
        )
    _refuse_what_is_listed(site, variant, step, pin, build)
    return Waiver(
        name=name_of(pin.commit, identity(build)),
        rule=GENESIS_ALLOWLIST,
        genesis=pin.commit,
        vllm=identity(build),
        reason=reason,
        author=author,
        until=str(until),
    )


def _refuse_what_is_listed(
    site: Site, variant: Variant, step: GenesisStep, pin: GenesisPin, build: VllmBuild
) -> None:
    from builder.patch_facts import facts_of
    from builder.pipeline import materials
    from builder.policy import Case, judge_base

    with site.at_work(variant.name) as world:
        facts = facts_of(pin, materials(site.project, variant, world), store=world.store)
    case = Case(variant=variant.name, step=step, pin=pin, facts=facts)
    objection = judge_base(case, build=build, policy=site.project.settings.genesis)
    if objection is None or objection.level is not Level.ERROR:
        raise UsageError(
            f"{step.at}: nothing to waive: vLLM {build.version} may pass under Genesis"
            f" {pin.commit.short}",
            hint=f"builder build {variant.name}",
        )


def _record(site: Site, new: Waiver) -> Waiver:
    """Write it; returns it under the name that it has got."""
    from builder.lock.edit import put, remove

    written: list[Waiver] = []

    def change(data: bytes | None) -> bytes:
        before = {} if data is None else codec.read_waivers(data)
        after = recorded(before, new)
        written.extend(item for item in after.values() if item == replace(new, name=item.name))
        for name in before.keys() - after.keys():
            data = remove(data or b"", Waiver, name)
        return put(data, written[-1])

    site.project.update(codec.WAIVERS, change)
    return written[-1]


def _show(
    settings: Settings, waivers: Mapping[str, Waiver], today: date, why: Mapping[str, str]
) -> None:
    items = sorted(waivers.values(), key=lambda item: (item.until, item.name))
    rows = [
        (
            item.name,
            shown_build(item.vllm),
            item.genesis.short,
            _state(item, today, counts=item.name not in why),
            item.author,
            item.reason,
        )
        for item in items
    ]
    headers = ("WAIVER", "VLLM", "GENESIS", "", "AUTHOR", "REASON")
    show.result(
        settings,
        {"waivers": [{**_document(item, today), "why_not": why.get(item.name)} for item in items]},
        show.table(headers, rows) if rows else "no waivers",
        aside="\n".join(f"{name} does not count: {reason}" for name, reason in why.items()) or None,
    )


def _state(item: Waiver, today: date, *, counts: bool) -> str:
    if ended(item, today):
        return f"ended {item.until}"
    return f"until {item.until}" if counts else "does not count"


def _document(waiver: Waiver, today: date) -> dict[str, Any]:
    return {
        "name": waiver.name,
        "rule": waiver.rule,
        "genesis": str(waiver.genesis),
        "vllm": waiver.vllm,
        "reason": waiver.reason,
        "author": waiver.author,
        "until": waiver.until,
        "ended": ended(waiver, today),
    }
