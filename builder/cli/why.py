"""``builder why``."""

from typing import Any

import click

from builder.build_record import recorded
from builder.cli import show
from builder.cli.site import VARIANT, Site, project_command
from builder.digest import Digest
from builder.pipeline import kept
from builder.why import Touch, Trail, trail


@project_command("why", VARIANT, click.argument("path"))
def command(site: Site, variant: str, path: str) -> None:
    """Say which step and pin is responsible for a file.

    PATH is a file of the last build on this machine: absolute, or the end of the path
    (vllm/config.py) of a file that a step wrote, or else of one that the base has.
    """
    image = kept(site.project, variant, store=site.store, platform=site.platform)
    found = trail(recorded(image, site.store), path, site.store)
    show.result(site.settings, _document(found, image), _text(found, path, variant))


def _document(found: Trail, image: Digest) -> dict[str, Any]:
    base = found.base
    return {
        "path": found.path,
        "image": str(image),
        "link": found.link,
        "base": None
        if base is None
        else {"layer": str(base.layer), "content": _full(base.content)},
        "base_read": found.base_read,
        "touched_by": [
            {
                "step": item.step,
                "kind": item.kind,
                "pins": list(item.pins),
                "verdict": item.verdict,
                "pre": _full(item.pre),
                "post": _full(item.post),
                "offsets": list(item.offsets),
                "patches": list(item.patches),
            }
            for item in found.touches
        ],
    }


def _text(found: Trail, path: str, variant: str) -> str:
    head = f"/{found.path}"
    if path.startswith("/") and path != head:
        head = f"{path} leads to {head}"
    if found.link is not None:
        head += f", a link to {found.link!r}"
    lines = [head]
    if not found.touches:
        lines.append(f"no step of {variant} writes it: it is as the base has it")
    if not found.base_read:
        lines.append("what the base has there is not known: its layers were not read here")
    rows = [_base_row(found)] if found.base is not None else []
    rows += [_row(item) for item in found.touches]
    if rows:
        lines.append(show.table(("STEP", "KIND", "VERDICT", "BEFORE", "AFTER", "INPUTS"), rows))
    return "\n".join(lines)


def _base_row(found: Trail) -> tuple[str, ...]:
    assert found.base is not None
    return ("base", "", "", "", _short(found.base.content), f"layer {found.base.layer.short}")


def _row(item: Touch) -> tuple[str, ...]:
    offsets = f" {list(item.offsets)}" if any(item.offsets) else ""
    after = "removed" if item.post is None else item.post.short
    verdict = f"{item.verdict}{offsets}"
    inputs = ", ".join(item.pins) + (f": {', '.join(item.patches)}" if item.patches else "")
    return (item.step, item.kind, verdict, _short(item.pre), after, inputs)


def _full(digest: Digest | None) -> str | None:
    return None if digest is None else str(digest)


def _short(digest: Digest | None) -> str:
    return "-" if digest is None else digest.short
