"""Which platforms an image is for, by its documents."""

from builder import base as bases
from builder.digest import Digest
from builder.errors import ProjectError
from builder.oci import Index, Manifest, Platform
from builder.origin import Origin
from builder.ports import Store


def members(document: Manifest | Index) -> set[Digest]:
    """The manifests that a document leads to."""
    if isinstance(document, Index):
        return {item.digest for item in document.manifests}
    return {document.digest}


def available(
    document: Manifest | Index,
    wanted: tuple[Platform, ...],
    *,
    origin: Origin,
    store: Store,
    at: str,
) -> tuple[tuple[Platform, ...], tuple[str, ...]]:
    """Which of the platforms an image has, and a remark on each of the others.

    Raises:
        ProjectError: It has none of them.
    """
    if isinstance(document, Index):
        offered = [item.platform for item in document.manifests if item.platform is not None]
        have = tuple(item for item in wanted if any(_serves(other, item) for other in offered))
    else:
        raw = bases.raw_config(document, origin=origin, store=store, at=at)
        config = bases.config_of(raw, at=f"{at}: config {document.config.digest}")
        only = Platform(str(config.get("os")), str(config.get("architecture")))
        offered = [only]
        have = tuple(item for item in wanted if _loosely(item) == only)
    known = ", ".join(sorted(str(item) for item in offered if item.os != "unknown")) or "none"
    if not have:
        raise ProjectError(
            f"{at}: the image is not for {', '.join(map(str, wanted))}, it has: {known}",
            hint="choose another with --platform, or another tag",
        )
    lacking = (item for item in wanted if item not in have)
    return have, tuple(f"the image is not for {item}, it has: {known}" for item in lacking)


def _serves(offered: Platform, wanted: Platform) -> bool:
    """As ``Index.select`` has it."""
    return offered == wanted or (wanted.variant is None and _loosely(offered) == wanted)


def _loosely(platform: Platform) -> Platform:
    return Platform(platform.os, platform.architecture)
