"""What a command line and the environment say, read once, as one value.

The shared options may stand before or after the command's name.
"""

import os
from collections.abc import Callable, Mapping
from functools import update_wrapper
from pathlib import Path
from typing import Any, TypeVar

import click

from builder.cli.log import configure_logging
from builder.cli.unchanged import store_directory
from builder.errors import UsageError
from builder.oci import Platform
from builder.value import field, value

CallableT = TypeVar("CallableT", bound=Callable[..., Any])


DONE = "done"
"""Where a command leaves what it has done so far, for the one JSON document of a run that fails."""


@value
class Settings:
    """The shared options and the environment of one run."""

    directory: Path
    store: Path | None = None
    json: bool = False
    offline: bool = False
    quiet: bool = False
    verbose: int = 0
    environment: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def log_level(self) -> int:
        """As :mod:`logging` counts: warnings; ``-v``: what takes time; ``-vv``: why."""
        if self.quiet:
            return 40
        return {0: 30, 1: 20}.get(self.verbose, 10)

    @property
    def plain(self) -> bool:
        """Whether no shared option was given but ``--json``."""
        return not (self.store or self.offline or self.quiet or self.verbose) and (
            self.directory == Path()
        )

    @property
    def store_path(self) -> Path:
        """``--store``, ``BUILDER_STORE``, or the user's cache directory."""
        if self.store is not None:
            return self.store
        return Path(store_directory(self.environment))

    @property
    def mirrors(self) -> dict[str, str]:
        """``BUILDER_MIRRORS``: pairs separated by blanks. ``URL-PREFIX=TARGET`` redirects git
        repositories (to another URL, a repository, bundle or fast-export stream on disk);
        ``HOST=HOST[:PORT][/PREFIX]`` redirects a registry."""
        pairs = {}
        for item in self.environment.get("BUILDER_MIRRORS", "").split():
            prefix, equals, target = item.partition("=")
            if not equals or not prefix or not target:
                raise UsageError(
                    f"BUILDER_MIRRORS: expected PREFIX=TARGET, got {item!r}",
                    hint="pairs are separated by blanks",
                )
            pairs[prefix] = target
        return pairs


def _keep(context: click.Context, parameter: click.Parameter, given: Any) -> None:
    """Remember a shared option wherever it stood; the one nearest to the command wins."""
    if given not in (None, False, 0):
        context.find_root().obj[parameter.name] = given


class NamedPath(click.Path):
    """A path that may not be there yet. An empty one, which a script has of a variable that is not
    set, would be the working directory."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> str | bytes | os.PathLike[str]:
        if not os.fspath(value):
            self.fail("it is empty", param, ctx)
        return super().convert(value, param, ctx)


SHARED: tuple[Callable[[CallableT], CallableT], ...] = (
    click.option(
        "-C",
        "directory",
        type=click.Path(file_okay=False, exists=True, path_type=Path),
        metavar="DIR",
        help="The project (default: the working directory).",
        callback=_keep,
        expose_value=False,
    ),
    click.option(
        "--store",
        type=NamedPath(file_okay=False, path_type=Path),
        metavar="DIR",
        help="The store (default: BUILDER_STORE, or the user's cache directory).",
        callback=_keep,
        expose_value=False,
    ),
    click.option(
        "--json",
        is_flag=True,
        help="One JSON document on stdout.",
        callback=_keep,
        expose_value=False,
    ),
    click.option(
        "--offline",
        is_flag=True,
        help="Never use the network.",
        callback=_keep,
        expose_value=False,
    ),
    click.option(
        "-q",
        "--quiet",
        is_flag=True,
        help="Errors only.",
        callback=_keep,
        expose_value=False,
    ),
    click.option(
        "-v",
        "--verbose",
        count=True,
        help="Say what takes time; twice: say why.",
        callback=_keep,
        expose_value=False,
    ),
)


def shared_options(function: CallableT) -> CallableT:
    """Give a command the shared options."""
    for option in reversed(SHARED):
        function = option(function)
    return function


def command_with_settings(function: Callable[..., None]) -> Callable[..., None]:
    """Call ``function(settings, **parameters)`` with the settings of this run, logging set up."""

    @click.pass_context
    def call(context: click.Context, /, *arguments: Any, **parameters: Any) -> None:
        given: dict[str, Any] = dict(context.find_root().obj)
        given.setdefault("directory", Path())
        settings = Settings(**given, environment=dict(os.environ))
        configure_logging(settings.log_level)
        context.invoke(function, settings, *arguments, **parameters)

    return update_wrapper(call, function)


class PlatformType(click.ParamType[Platform]):
    """``os/architecture[/variant]``."""

    name = "platform"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Platform:
        return value if isinstance(value, Platform) else Platform.parse(value, at="--platform")


platform_option = click.option(
    "--platform",
    type=PlatformType(),
    metavar="OS/ARCH",
    help="Which platform of the base (default: builder.yaml, or linux/amd64).",
)
