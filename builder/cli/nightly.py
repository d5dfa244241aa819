"""``builder nightly``."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from builder import nightly, nightly_report
from builder.adapters.git_author import Identity, git_author
from builder.cli import show
from builder.cli.settings import NamedPath
from builder.cli.site import Site, project_command
from builder.errors import (
    AuthError,
    BuilderError,
    EnvironmentFault,
    ProjectError,
    UsageError,
    worst,
)
from builder.nightly import Outcome, State
from builder.nightly_report import Morning
from builder.propose import Proposed, propose
from builder.world import World

if TYPE_CHECKING:
    from builder.adapters.git_worktree import GitWorktree
    from builder.upstream import Proposals


@project_command(
    "nightly",
    click.option(
        "--propose",
        "proposing",
        is_flag=True,
        help="Push a branch and open a pull request for each pin that moved and passes.",
    ),
    click.option(
        "--base", metavar="BRANCH", help="What proposals are for (default: HEAD's branch)."
    ),
    click.option(
        "--summary",
        type=NamedPath(dir_okay=False, path_type=Path),
        metavar="FILE",
        help="Append all reports to it, as Markdown (default: GITHUB_STEP_SUMMARY).",
    ),
)
@click.pass_context
def command(
    context: click.Context, site: Site, proposing: bool, base: str | None, summary: Path | None
) -> None:
    """Try every pin that follows something, and build what passes.

    Each pin by itself: one that fails stops no other. Nothing is written into the project; with
    --propose, each pin that moved and passes becomes a branch builder/bump/KIND/NAME at the remote
    'origin', with one pull request.
    """
    if base is not None and not proposing:
        raise UsageError("--base is the branch that proposals are for", hint="add --propose")
    if summary is None and (given := site.settings.environment.get("GITHUB_STEP_SUMMARY")):
        summary = Path(given)
    project = site.project
    told: list[Morning] = []
    with site.at_work() as world, _summarised(told, summary):
        means = nightly.means_of(project, world=world, platform=site.platform)
        proposer = _proposer(site, world, means, base) if proposing else None
        outcomes = nightly.night(project, world=world, platform=site.platform, means=means)
        for outcome in outcomes:
            told.append(item := _proposed(outcome, proposer))
            if not site.settings.json:
                click.echo(nightly_report.text(item))
    status = worst(error.exit_status for item in told for error in item.errors)
    if site.settings.json:
        show.document(nightly_report.document(told, status=status))
    context.exit(status)


@contextmanager
def _summarised(told: list[Morning], summary: Path | None) -> Iterator[None]:
    """Write what was told by then, also of a night that is broken off; that it can be written is
    found out before."""
    with show.report_file(summary, "a", option="--summary") as write:
        try:
            yield
        finally:
            write(nightly_report.markdown(told))


def _proposed(outcome: Outcome, proposer: Callable[[Outcome], Proposed] | None) -> Morning:
    if proposer is None or outcome.state is not State.PASSES:
        return Morning(outcome=outcome)
    try:
        return Morning(outcome=outcome, proposed=proposer(outcome))
    except BuilderError as error:
        return Morning(outcome=outcome, error=error)


def _proposer(
    site: Site, world: World, means: nightly.Means, base: str | None
) -> Callable[[Outcome], Proposed]:
    """Who proposes; that it can be done is found out before anything is tried."""
    branches, proposals = _places(site, world)
    start = branches.start(base)

    def proposer(outcome: Outcome) -> Proposed:
        return propose(
            site.project,
            outcome,
            start,
            branches=branches,
            proposals=proposals,
            put=means.put,
        )

    return proposer


def _places(site: Site, world: World) -> "tuple[GitWorktree, Proposals]":
    """The repository of the project, and its pull requests."""
    from builder.adapters.forge_hosts import locate, token_for
    from builder.adapters.forge_proposals import ForgeProposals
    from builder.adapters.git_remote import Token
    from builder.adapters.git_worktree import GitWorktree

    branches = GitWorktree(
        site.project.root,
        home=site.store.paths.root / "git",
        author=_identity(site),
        time=world.now,
        offline=site.settings.offline,
    )
    apis = {item.host: item.api for item in site.project.settings.forges}
    place = locate(branches.remote.url, apis)
    if place is None:
        raise ProjectError(
            f"--propose: nobody knows an API for pull requests at {branches.remote.shown}",
            hint="say where it is under forges in builder.yaml",
        )
    environment = site.settings.environment
    given = environment.get("GITHUB_TOKEN") or environment.get("GH_TOKEN") or ""
    secret = token_for(place, apis, given.strip(), at="--propose")
    if secret is None:
        raise AuthError(
            f"--propose: there is no token to open pull requests at {place.host} with",
            hint="set GITHUB_TOKEN to one that may write contents and pull requests",
        )
    branches.remote.token = Token(host=place.host, secret=secret)
    proposals = ForgeProposals(place, token=secret, offline=site.settings.offline)
    return branches, proposals


def _identity(site: Site) -> Identity:
    """``GIT_AUTHOR_NAME`` and ``GIT_AUTHOR_EMAIL``, or whom git knows in the project."""
    environment = site.settings.environment
    name, email = environment.get("GIT_AUTHOR_NAME"), environment.get("GIT_AUTHOR_EMAIL")
    if name and email:
        return Identity(name=name, email=email)
    known = git_author(site.project.root)
    if known is None:
        raise EnvironmentFault(
            "--propose: git knows no author for the commits",
            hint="git config user.name and user.email, or GIT_AUTHOR_NAME and GIT_AUTHOR_EMAIL",
        )
    return known
