"""``builder trust export``."""

import os
import sys
import sysconfig
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import click

from builder import durable
from builder.cli import show
from builder.cli.settings import NamedPath, Settings, command_with_settings, shared_options
from builder.cli.site import Site
from builder.cli.trust_policy import holding
from builder.digest import Digest
from builder.errors import EnvironmentFault, UsageError

if TYPE_CHECKING:
    from builder.trust.export.chosen import Export

FORMATS = ("containers", "kyverno", "cosign", "containerd", "notation")


@click.command("export")
@click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    required=True,
    help="containers is for podman, skopeo and CRI-O.",
)
@click.option(
    "--out",
    type=NamedPath(file_okay=False, path_type=Path),
    metavar="DIR",
    required=True,
    help="Where the files go; none of them may be there.",
)
@click.option(
    "--reject",
    is_flag=True,
    help="With containers, kyverno: refuse images that no scope has.",
)
@click.option(
    "--certificate",
    "certificates",
    multiple=True,
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="With notation: a certificate of a key of the policy. Repeatable.",
)
@shared_options
@command_with_settings
def export(
    settings: Settings, form: str, out: Path, reject: bool, certificates: tuple[Path, ...]
) -> None:
    """Write the policy in the words of another tool.

    It has to be accepted here. The copy knows today's keys, and not when the policy expires.
    """
    site = Site(settings)
    if reject and form not in ("containers", "kyverno"):
        raise UsageError(
            f"--reject is for --format containers and kyverno, got {form}",
            hint=f"leave it out: what no scope has is refused by {form} in any case",
        )
    if certificates and form != "notation":
        raise UsageError(
            f"--certificate is for --format notation, got {form}",
            hint="leave it out: the others go by the keys of the policy",
        )
    made = _notation(site, certificates) if form == "notation" else _made(site, form, reject=reject)
    _write(out, made.files)
    show.result(
        settings,
        {
            "format": form,
            "directory": str(out),
            "files": sorted(made.files),
            "remarks": list(made.remarks),
        },
        "\n".join(str(out / name) for name in sorted(made.files)),
        aside="\n".join(f"note: {line}" for line in made.remarks),
    )


def _notation(site: Site, certificates: Sequence[Path]) -> "Export":
    from builder.cli.notation import chain_of
    from builder.trust.export.notation import notation

    policy = holding(site)
    return notation(policy, [chain_of(file) for file in certificates], today=site.today)


def _made(site: Site, form: str, *, reject: bool) -> "Export":
    policy = holding(site)
    match form:
        case "containers":
            from builder.trust.export.containers import containers

            return containers(policy, today=site.today, reject=reject)
        case "kyverno":
            from builder.trust.export.kyverno import kyverno

            return kyverno(policy, today=site.today, reject=reject)
        case "containerd":
            from builder.trust.export.containerd import containerd

            accepted = site.project.accepted()
            assert accepted is not None
            return containerd(
                policy,
                program=_program(),
                project=PurePosixPath(site.settings.directory.resolve()),
                anchor=Digest.of(accepted.raw),
                today=site.today,
            )
        case _:
            from builder.trust.export.cosign import cosign

            return cosign(policy, today=site.today)


def _program() -> PurePosixPath:
    """The builder that runs, or the one that is installed beside this Python."""
    started = Path(sys.argv[0])
    installed = Path(sysconfig.get_path("scripts"), "builder")
    for path in ([started] if started.name == "builder" else []) + [installed]:
        if path.is_file() and os.access(path, os.X_OK):
            return PurePosixPath(path.absolute())
    raise EnvironmentFault(
        f"no program 'builder' in {installed.parent}, and containerd has to start one",
        hint="install builder, and run the one that is installed",
    )


def _write(out: Path, files: dict[str, bytes]) -> None:
    for name in files:
        if os.path.lexists(out / name):
            raise UsageError(
                f"{out / name}: is there already", hint="remove it, or give another directory"
            )
    with ExitStack() as undo, durable.writing(out):
        for name, data in files.items():
            path = out / name
            path.parent.mkdir(parents=True, exist_ok=True)
            mode = 0o755 if data.startswith(b"#!") else 0o644
            temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
            with durable.staged(temporary, data, mode):
                path.hardlink_to(temporary)
            undo.callback(path.unlink, missing_ok=True)
        undo.pop_all()
