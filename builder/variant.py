"""Variants and overlays: recipes written by people, as frozen values.

A *target* path is where a file goes in the image: with a leading slash it is absolute, otherwise
it is relative to the packages directory of the image's Python (``.../dist-packages``), which is
discovered from the image, never guessed. ``at`` is the place in the file, for messages.
"""

from enum import StrEnum
from typing import TypeAlias

from builder.digest import Digest
from builder.value import field, value

PLANNED = {
    "dockerfile": "build that image first, and name it as the base",
}
"""Kinds of steps that are to come, with what there is in their place."""


@value
class PinnedBase:
    """An entry of ``lockfiles/vllm.yaml``."""

    pin: str


@value
class LayoutBase:
    """An OCI image layout on disk, relative to the project; the manifest or index by digest."""

    layout: str
    digest: Digest


@value
class ScratchBase:
    """Nothing at all."""


Base: TypeAlias = PinnedBase | LayoutBase | ScratchBase


@value
class Python:
    """Which Python the image has, for images where it cannot be discovered (``base: scratch``)."""

    version: str
    """``3.12``"""
    packages: str
    """The packages directory, from the root: ``usr/local/lib/python3.12/dist-packages``."""


@value
class PullStep:
    """Apply a pinned pull request. ``ignore`` are globs over the diff's own paths (after the
    strip); ``until_upstream`` leaves the step out, visibly, where upstream has it already."""

    name: str
    pull: str
    ignore: tuple[str, ...] = ()
    root: str | None = None
    strip: int | None = None
    until_upstream: bool = False
    at: str = field(default="", compare=False)


@value
class OverlayStep:
    """Apply ``overlays/NAME/``."""

    name: str
    overlay: str
    until_upstream: bool = False
    at: str = field(default="", compare=False)


@value
class Placement:
    """One file of a source pin and where it goes. ``replaces`` is the pre-image, ``None`` for a
    file that must not exist; ``mode`` is ``None`` to keep what is there (0644 for a new file)."""

    source: str
    target: str
    replaces: Digest | None
    mode: int | None = None
    at: str = field(default="", compare=False)


@value
class SourceStep:
    """Place files of a source pin."""

    name: str
    source: str
    files: tuple[Placement, ...]
    until_upstream: bool = False
    at: str = field(default="", compare=False)


@value
class WheelsStep:
    """Install pinned wheels into the packages directory, without resolving dependencies."""

    name: str
    wheels: tuple[str, ...]
    at: str = field(default="", compare=False)


@value
class GenesisStep:
    """Lay a pinned patch set into the packages directory and bake its text patches.

    The patch set decides by what it finds where it runs; ``platform`` and ``speculative`` say it.
    The third hidden input is the environment: that of the image (:class:`ImageSettings`).
    """

    name: str
    genesis: str
    platform: str
    """``cuda-8.6``: the vendor, and the compute capability where it has one."""
    speculative: str | None = None
    """The method of speculative decoding that will be served with, such as ``mtp``."""
    at: str = field(default="", compare=False)


@value
class ScriptFile:
    """Where a patch script stands: among the ``scripts`` of an overlay, or in a source pin."""

    overlay: str | None = None
    source: str | None = None
    path: str


@value
class ScriptStep:
    """Run a patch script in the sandbox, on a copy of the directories of what it ``touches``.

    ``touches`` are targets: every file that the script changes, adds or removes.
    """

    name: str
    script: ScriptFile
    interpreter: str
    """``python``, ``sh`` (a POSIX shell, whichever the sandbox has) or ``bash``."""
    touches: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    at: str = field(default="", compare=False)


Step: TypeAlias = PullStep | OverlayStep | SourceStep | WheelsStep | GenesisStep | ScriptStep


@value
class ImageSettings:
    """Changes to the base's config. ``None`` keeps what the base has; an empty tuple empties it.
    ``env`` and ``labels`` are merged into the base's, ours win; a value of ``None`` removes."""

    env: tuple[tuple[str, str | None], ...] = ()
    labels: tuple[tuple[str, str | None], ...] = ()
    entrypoint: tuple[str, ...] | None = None
    command: tuple[str, ...] | None = None
    workdir: str | None = None
    user: str | None = None


@value
class Variant:
    """A recipe: base, ordered steps, image settings, models."""

    name: str
    description: str = ""
    base: Base
    python: Python | None = None
    steps: tuple[Step, ...] = ()
    image: ImageSettings = ImageSettings()
    models: tuple[str, ...] = ()
    at: str = field(default="", compare=False)


class Action(StrEnum):
    """What an anchored edit does with its text."""

    REPLACE = "replace"
    INSERT_BEFORE = "insert-before"
    INSERT_AFTER = "insert-after"


@value
class FileRule:
    """A whole file. ``replaces`` is the pre-image, ``None`` for a file that must not exist."""

    target: str
    file: str
    data: bytes = field(repr=False)
    replaces: Digest | None
    mode: int | None = None
    at: str = field(default="", compare=False)


@value
class RemoveRule:
    """A file that goes away; ``replaces`` is its content."""

    target: str
    replaces: Digest
    at: str = field(default="", compare=False)


@value
class Edit:
    """One anchored edit: ``anchor`` must stand exactly ``count`` times, byte for byte."""

    anchor: bytes
    action: Action
    text: bytes
    count: int = 1
    at: str = field(default="", compare=False)


@value
class EditRule:
    """Anchored edits of one file, in order; ``replaces`` pins the pre-image where given."""

    target: str
    edits: tuple[Edit, ...]
    replaces: Digest | None = None
    at: str = field(default="", compare=False)


@value
class PatchRule:
    """A diff that stands in the overlay's directory."""

    file: str
    data: bytes = field(repr=False)
    root: str | None = None
    strip: int | None = None
    ignore: tuple[str, ...] = ()
    at: str = field(default="", compare=False)


@value
class Script:
    """A patch script that stands in the overlay's directory. ``script`` steps run it; to apply the
    overlay does nothing with it."""

    file: str
    data: bytes = field(repr=False)


@value
class Overlay:
    """``overlays/NAME/overlay.yaml`` with the bytes of the files it names."""

    name: str
    files: tuple[FileRule, ...] = ()
    remove: tuple[RemoveRule, ...] = ()
    edits: tuple[EditRule, ...] = ()
    patch: PatchRule | None = None
    scripts: tuple[Script, ...] = ()
    at: str = field(default="", compare=False)

    @property
    def changes(self) -> bool:
        """Whether applying it does anything."""
        return bool(self.files or self.remove or self.edits or self.patch)
