"""``builder bump``."""

from collections.abc import Sequence
from pathlib import Path

import click

from builder import bump as bumps
from builder import report
from builder.bump import UNTRIED, Bump
from builder.cli import show
from builder.cli.settings import NamedPath
from builder.cli.site import Site, project_command, variant_names
from builder.errors import (
    BuilderError,
    GoneError,
    UsageError,
)
from builder.lock.kinds import KINDS, pins_of
from builder.moves import moves
from builder.node import nearest


@project_command(
    "bump",
    click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND"),
    click.argument("words", nargs=-1, metavar="[NAME] [TARGET]"),
    click.option("--latest", is_flag=True, help="For vllm: the newest of the tags it follows."),
    click.option("--dry-run", is_flag=True, help="Try and report; write nothing."),
    click.option(
        "--variant",
        "variants",
        multiple=True,
        metavar="VARIANT",
        shell_complete=variant_names,
        help="Try this one only; may be given again (default: all that use the pin).",
    ),
    click.option(
        "--allow-failing", is_flag=True, help="Write also where a variant fails, and record it."
    ),
    click.option(
        "--markdown",
        type=NamedPath(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Write the report for a pull request, too.",
    ),
)
def command(
    site: Site,
    kind: str,
    words: tuple[str, ...],
    latest: bool,
    dry_run: bool,
    variants: tuple[str, ...],
    allow_failing: bool,
    markdown: Path | None,
) -> None:
    """Move a pin, after everything that depends on it was tried.

    KIND is vllm, genesis, pull, source, wheel or model. TARGET is a tag (vllm), a full commit id,
    branch or tag (genesis, source), a version (wheel) or a revision (model); without one the pin
    moves to what it follows. NAME may be left out where only one pin can be meant.

    The lock is written only when every variant that uses the pin passes; with --variant, those that
    were not tried are named.
    """
    if len(words) > 2:
        raise UsageError(f"expected [NAME] [TARGET], got {len(words)} words")
    with (
        show.report_file(markdown, "w", option="--markdown") as write,
        site.at_work(*variants) as world,
    ):
        try:
            moved = moves(
                site.project, kind, words, latest=latest, world=world, platform=site.platform
            )
        except GoneError as error:
            error.hint = _or_a_name(site, kind, words, error.hint)
            raise
        bump = bumps.tried(
            site.project, moved, world=world, platform=site.platform, variants=variants
        )
        write(report.markdown(bump))
    conclude(site, bump, dry_run=dry_run, allow_failing=allow_failing, then=_accept(bump))


def _accept(bump: Bump) -> str | None:
    """What is left to do: an image that was accepted is another one now."""
    other = [
        trial.variant
        for trial in bump.trials
        if trial.passes and trial.accepted not in (None, trial.image)
    ]
    return f"next: look at what differs, then: builder accept {' '.join(other)}" if other else None


def conclude(
    site: Site,
    bump: Bump,
    *,
    dry_run: bool = False,
    allow_failing: bool = False,
    then: str | None = None,
) -> None:
    """Report a bump, and write it if that may be; ``then`` is said where something was written. A
    variant that could not be tried has not failed: what says nothing of the pin may not be allowed.

    Raises:
        BuilderError: A variant fails: the first of what stops it.
    """
    error = next((e for e in bump.errors if not allow_failing or isinstance(e, UNTRIED)), None)
    written = () if dry_run or error else bumps.write(site.project, bump)
    text = report.text(bump)
    if written:
        text += f"\n\nwrote {', '.join(written)}"
    elif bump.changes and dry_run:
        text += "\n\nnothing was written (--dry-run)"
    document = report.document(bump, written=written)
    if error is None:
        show.result(site.settings, document, text, aside=then if written else None)
        return
    show.so_far(site.settings, document, f"{text}\n")
    raise _refusal(error, bump)


def _or_a_name(site: Site, kind: str, words: Sequence[str], hint: str | None) -> str | None:
    """The hint where the one word was taken for a target, and may be the slip of a name."""
    pins = pins_of(site.project, kind)
    if len(words) != 1 or words[0] in pins or hint is None:
        return hint
    near = nearest(words[0], pins)
    said = f"did you mean the pin {near!r}?" if near else f"the {kind} pins are {', '.join(pins)};"
    return f"{said} {hint}"


def _refusal(error: BuilderError, bump: Bump) -> BuilderError:
    """The first error, with what can be done about a bump that fails."""
    hint = f"{len(bump.failing)} of {len(bump.trials)} variants fail: {', '.join(bump.failing)}"
    more = "--allow-failing writes it anyway"
    if not bump.changes:
        more = "the lock is as it was: --allow-failing has nothing to write"
    elif any(isinstance(item, UNTRIED) for item in bump.errors):
        more = "what could not be tried is not written with --allow-failing, either"
    error.hint = "; ".join(filter(None, (error.hint, hint, more)))
    return error
