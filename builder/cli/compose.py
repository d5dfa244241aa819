"""``builder compose``."""

import difflib
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from builder.cli import show
from builder.cli.app import Commands
from builder.cli.site import Site, project_command
from builder.errors import ProjectError
from builder.oci import Platform
from builder.project_files import Files
from builder.strict_yaml import SIZE_LIMIT

if TYPE_CHECKING:
    from collections.abc import Callable

    from builder.check.finding import Finding
    from builder.compose.judge import Judgement
    from builder.compose.pin import Pinned
    from builder.digest import Digest

FILES = click.argument("files", nargs=-1, required=True, metavar="FILE...", type=click.Path())


@click.group("compose", cls=Commands)
def command() -> None:
    """Pin the images of compose files by digest, or check them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited:
    """A compose file with the bytes that it has and those that it shall have."""

    file: str
    old: bytes
    new: bytes
    services: "tuple[Pinned, ...]"

    @property
    def diff(self) -> str:
        """What changes, as a unified diff."""
        # Lines as git has them: splitlines ends some at a form feed or U+2028, too.
        old, new = (list(io.StringIO(data.decode(), newline="\n")) for data in (self.old, self.new))
        names = (self.file, self.file)
        if not Path(self.file).is_absolute():  # as git has them, for git apply and patch -p1
            names = (f"a/{self.file}", f"b/{self.file}")
        lines = difflib.unified_diff(old, new, *names)
        ended = (
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in lines
        )
        return "".join(ended)


@project_command(
    "pin",
    FILES,
    click.option("--diff", is_flag=True, help="Show what would change; write nothing."),
    click.option(
        "--keep-override",
        is_flag=True,
        help="Pin the default of ${NAME:-DEFAULT} alone, so that NAME still decides.",
    ),
)
def pin(site: Site, files: tuple[str, ...], diff: bool, keep_override: bool) -> None:
    """Set images to what their services name, by tag and digest.

    A service names a variant or a pinned base with the label builder.variant, with a comment
    # builder: NAME at its image, or through composes in builder.yaml. No other byte of a file
    changes. Of several files none is written if one cannot be pinned.
    """
    from builder.compose.service import NAMING

    done = [_edited(site, file, keep_override=keep_override) for file in dict.fromkeys(files)]
    if not any(item.services for item in done):
        raise ProjectError(
            f"{', '.join(files)}: no service names a variant or a pinned base", hint=NAMING
        )
    if not diff:
        for item in done:
            _write(item)
    # Of a long file a diff takes longer than all else: it is made for those who see it.
    if site.settings.json:
        show.document(_pinned_document(done, written=not diff))
    elif diff:
        changed = "".join(item.diff for item in done)
        click.echo(changed.rstrip("\n") or "nothing would change")
    else:
        click.echo(_pinned_text(done))


def _edited(site: Site, file: str, *, keep_override: bool) -> Edited:
    from builder.check.composes import mapped
    from builder.compose.document import read
    from builder.compose.pin import pin as edit
    from builder.compose.service import services
    from builder.compose.target import targets

    data = read_file(file)
    document = read(data, file=file)
    found = services(document, mapped(site.project, in_project(site, file)))
    look_up = targets(site.project, site.platform, _built(site))
    new, pinned = edit(document, found, look_up, keep_override=keep_override)
    return Edited(file=file, old=data, new=new, services=pinned)


def _built(site: Site) -> "Callable[[str, Platform], Digest | None]":
    def built(name: str, platform: Platform) -> "Digest | None":
        from builder.pipeline import kept

        try:
            return kept(site.project, name, store=site.store, platform=platform)
        except ProjectError:
            return None

    return built


def in_project(site: Site, file: str) -> str:
    """The path by which builder.yaml would name a file."""
    root = os.path.realpath(site.project.root)
    return Path(os.path.relpath(os.path.realpath(file), root)).as_posix()


def read_file(file: str) -> bytes:
    """The bytes of a compose file.

    Raises:
        ProjectError: There is none.
    """
    data = Files(Path()).read(file, limit=SIZE_LIMIT)
    if data is None:
        raise ProjectError(
            f"{file}: no such file",
            hint="compose files are named from the working directory, wherever the project is",
        )
    return data


def _write(item: Edited) -> None:
    """Replace a file, whole, if it is still what was read."""
    if item.new == item.old:
        return

    def change(data: bytes | None) -> bytes:
        if data not in {item.old, item.new}:  # another run may have done the same
            raise ProjectError(
                f"{item.file}: changed while it was being pinned", hint="run it again"
            )
        return item.new

    path = Path(os.path.realpath(item.file))
    Files(path.parent).replace(path.name, change, limit=SIZE_LIMIT)


def _pinned_document(done: Sequence[Edited], *, written: bool) -> dict[str, Any]:
    return {
        "written": written,
        "files": [
            {
                "file": item.file,
                "changed": item.new != item.old,
                "services": [
                    {
                        "service": one.service,
                        "line": one.line,
                        "runs": one.target.name,
                        "kind": one.target.kind,
                        "source": one.target.source,
                        "before": one.before,
                        "image": one.after,
                        "override": one.override,
                    }
                    for one in item.services
                ],
                "diff": item.diff,
            }
            for item in done
        ],
    }


def _shown(name: str) -> str:
    """The name of a service for a terminal: any text can be one, escapes too."""
    return name if name.isprintable() else repr(name)


def _pinned_text(done: Sequence[Edited]) -> str:
    rows = []
    for item in done:
        rows += [
            (
                f"{item.file}:{one.line}",
                _shown(one.service),
                one.target.shown,
                str(one.target.source),
                "as it was" if one.before == one.after else one.after,
            )
            for one in item.services
        ]
        if not item.services:
            rows.append((item.file, "", "", "", "names nothing"))
    return show.table(("WHERE", "SERVICE", "RUNS", "DIGEST", "IMAGE"), rows)


@project_command("check", FILES)
@click.pass_context
def check(context: click.Context, site: Site, files: tuple[str, ...]) -> None:
    """Check that images are pinned, and to what the lock says.

    A variant is held to its accepted result, a base to its pin. What names something and is not
    pinned to it is an error (3); what is named by tag alone, and names nothing, is a warning.
    """
    from builder.check.composes import finding, judged, left_out, mapped
    from builder.check.finding import exit_status
    from builder.cli.check import document, text
    from builder.compose.document import read

    found: list[tuple[str, Judgement]] = []
    findings: list[Finding] = []
    paths = {file: in_project(site, file) for file in files}
    for file, path in paths.items():
        names = mapped(site.project, path)
        parsed = read(read_file(file), file=file)
        images = judged(site.project, parsed, mapped=names, platform=site.platform)
        found += ((file, item) for item in images)
        findings += (said for item in images for said in finding(item, file))
        findings += left_out(parsed, path, paths.values())
    value = {**document(findings), "images": [_image(file, item) for file, item in found]}
    show.result(site.settings, value, text(findings) if findings else _all_well(found))
    context.exit(exit_status(findings))


def _image(file: str, item: "Judgement") -> Mapping[str, Any]:
    return {
        "file": file,
        "line": item.line,
        "service": item.service,
        "runs": item.runs,
        "image": item.image,
        "state": item.state,
    }


def _all_well(found: Sequence[tuple[str, "Judgement"]]) -> str:
    rows = [
        (f"{file}:{item.line}", _shown(item.service), item.runs or "", str(item.state))
        for file, item in found
    ]
    return show.table(("WHERE", "SERVICE", "RUNS", ""), rows)


for _command in (pin, check):
    command.add_command(_command)
