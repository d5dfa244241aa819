"""Base images: from a tag to index, manifest, config and layers, and to the vLLM inside."""

from builder.lock.model import ImagePin
from builder.oci import Platform
from builder.ports import Progress, Registry, Store
from builder.reference import Reference
from builder.resolve.found import Resolved
from builder.upstream import History


def resolve_image(
    pin: ImagePin,
    *,
    platforms: tuple[Platform, ...],
    registry: Registry,
    store: Store,
    progress: Progress,
    now: str,
    before: ImagePin | None = None,
) -> Resolved[ImagePin]:
    """Resolve ``pin.follows`` (a tag) to everything that a lock holds of an image. The pin's name,
    ``tags`` and ``commits`` are taken over.

    Args:
        before: The pin as it is locked. Where what the tag names is the same, its ``locked`` stays.

    Raises:
        IntegrityError: Tag, digest and documents contradict each other.
    """
    raise NotImplementedError


def complete_image(
    pin: ImagePin,
    *,
    platforms: tuple[Platform, ...],
    registry: Registry,
    store: Store,
    progress: Progress,
    now: str,
) -> Resolved[ImagePin]:
    """Fill in what a locked pin lacks, without moving it: by its digests. That its tag names
    something else by now, or nothing, is a remark."""
    raise NotImplementedError


def newest_tag(
    pin: ImagePin,
    *,
    platform: Platform,
    registry: Registry,
    store: Store,
    history: History,
) -> Reference:
    """The newest of the tags that ``pin.tags`` matches. Names have no order: the commits that they
    are named by have (``pin.commits``), or the times at which the images were made.

    Raises:
        ProjectError: The pin follows no tags; none matches; or nothing says which is the newest.
    """
    raise NotImplementedError
