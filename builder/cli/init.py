"""``builder init``."""

import shlex
from pathlib import Path

import click

from builder.cli import show
from builder.cli.settings import NamedPath, Settings, command_with_settings, shared_options
from builder.cli.start import start_project


@click.command("init")
@click.argument("where", metavar="[DIR]", default=".", type=NamedPath(path_type=Path))
@shared_options
@command_with_settings
def command(settings: Settings, where: Path) -> None:
    """Make a new project that bakes at once.

    DIR (default: the working directory) is made where it does not exist. Nothing that is
    there is touched: a project, or a file that init would write, is refused.
    """
    place = settings.directory / where
    files = start_project(place)
    chosen = "" if place.resolve() == Path.cwd() else f"-C {shlex.quote(str(place))} "
    show.result(
        settings,
        {"directory": str(place), "files": list(files)},
        "\n".join(files),
        aside=f"next: builder {chosen}build hello",
    )
