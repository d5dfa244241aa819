"""``builder matrix``."""

import json
import logging

import click

from builder.cli import show
from builder.cli.site import Site, project_command
from builder.errors import ProjectError
from builder.matrix import LIMIT, document, jobs, refused

_log = logging.getLogger(__name__)


@project_command(
    "matrix",
    click.option("--ready", is_flag=True, help="Only those whose base can be had now: ask."),
)
def command(site: Site, ready: bool) -> None:
    """List the variants as jobs for a CI.

    With --json on one line, as GitHub Actions takes a matrix. Nothing is fetched for it, unless
    --ready asks for the documents of each base; those that are left out are named on stderr.
    """
    found = tuple(jobs(site.project, asked=site.asked, usual=site.platform))
    if ready:
        with site.at_work() as world:
            errors = [refused(site.project, job, world=world) for job in found]
        for job, error in zip(found, errors, strict=True):
            if error is not None:
                _log.warning("%s (%s) is left out: %s", job.variant, job.platform, error.message)
        found = tuple(job for job, error in zip(found, errors, strict=True) if error is None)
    if len(found) > LIMIT:
        raise ProjectError(
            f"{len(found)} jobs, and a matrix takes {LIMIT}", hint="ask for one --platform"
        )
    if site.settings.json:
        click.echo(json.dumps(document(found)))
        return
    rows = [
        (
            job.variant,
            str(job.platform),
            job.base,
            "-" if job.accepted is None else job.accepted.short,
            "sandbox" if job.sandbox else "-",
        )
        for job in found
    ]
    click.echo(show.table(("VARIANT", "PLATFORM", "BASE", "ACCEPTED", "NEEDS"), rows))
