"""The pins of all lockfiles, as frozen values. ``builder.lock.codec`` reads and writes them.

A pin keeps what it *follows* (where a newer one would be looked for) beside what it *is* (the
identity that a build uses). Detail that nobody resolved yet is ``None`` or empty: absent, not
invented. ``at`` says where the entry stands (``lockfiles/vllm.yaml:12: vllm.NAME``), for messages;
it is no part of the value.
"""

from collections.abc import Mapping
from typing import TypeAlias

from builder.digest import Digest, ObjectId
from builder.oci import Platform
from builder.reference import Reference
from builder.value import field, value


@value
class Escrow:
    """A place of ours where the pinned bytes are kept: a registry repository, or an OCI layout
    directory relative to the project."""

    registry: Reference | None = None
    layout: str | None = None
    digest: Digest


@value
class LayerPin:
    """One layer of a pinned image: the blob as served, and what it inflates to. ``files`` is the
    digest of its file index (:mod:`builder.files`), which whoever reads the layer is held to."""

    digest: Digest
    size: int
    diff_id: Digest | None = None
    files: Digest | None = None


@value
class PlatformPin:
    """One platform's manifest of a pinned image."""

    manifest: Digest
    config: Digest | None = None
    layers: tuple[LayerPin, ...] = ()


@value
class VllmBuild:
    """Which vLLM the image holds, read from the image itself."""

    version: str
    commit: ObjectId | None = None
    package: str | None = None


@value
class ImagePin:
    """A base image (``lockfiles/vllm.yaml``). At least one of ``index`` and ``platforms`` is
    given; ``index`` is what the tag named when it was locked."""

    name: str
    follows: Reference
    tags: str | None = None
    """The tags among which a newer one is looked for: ``nightly-*``. ``None``: it stays."""
    commits: str | None = None
    """The git repository of the commits that the tags are named by, which have an order; the tags
    do not. ``None``: they are ordered by when their images were made."""
    index: Digest | None = None
    platforms: tuple[tuple[Platform, PlatformPin], ...] = ()
    vllm: VllmBuild | None = None
    escrow: tuple[Escrow, ...] = ()
    failing: tuple[str, ...] = ()
    """Variants that were known not to bake when it was pinned; so for every kind of pin."""
    locked: str | None = None
    at: str = field(default="", compare=False)

    def platform(self, platform: Platform) -> PlatformPin | None:
        """What is known of one platform."""
        return dict(self.platforms).get(platform)


@value
class SourceFile:
    """One file of a source pin. ``path`` is the path in its repository."""

    path: str
    digest: Digest
    size: int


@value
class SourcePin:
    """Files of another git repository at a commit (``lockfiles/sources.yaml``)."""

    name: str
    repository: str
    follows: str | None = None
    """The ref that a bump looks at; ``None`` for a pin that stays."""
    commit: ObjectId
    tree: ObjectId
    files: tuple[SourceFile, ...]
    escrow: tuple[Escrow, ...] = ()
    failing: tuple[str, ...] = ()
    locked: str | None = None
    at: str = field(default="", compare=False)

    def file(self, path: str) -> SourceFile | None:
        """The pinned file at ``path``, if it is one of those that were pinned."""
        return next((item for item in self.files if item.path == path), None)


@value
class SourceDiff:
    """A diff that somebody publishes as a file: where a source pin has it."""

    source: str
    path: str


@value
class PullPin:
    """An upstream pull request (``lockfiles/pulls.yaml``).

    The change is either the git diff from ``base`` to ``head``, or the file that ``published``
    names (a rebase that someone maintains). ``diff`` is the canonical digest of the change,
    whichever way it comes; ``raw`` that of the bytes as they were fetched.
    """

    name: str
    repository: str
    pull: int
    base: ObjectId | None = None
    head: ObjectId | None = None
    published: SourceDiff | None = None
    diff: Digest
    raw: Digest | None = None
    root: str | None = None
    strip: int | None = None
    escrow: tuple[Escrow, ...] = ()
    failing: tuple[str, ...] = ()
    locked: str | None = None
    at: str = field(default="", compare=False)


@value
class WheelPin:
    """A Python wheel (``lockfiles/wheels.yaml``).

    ``path`` is a directory of the project that holds the unpacked wheel, for wheels of our own;
    otherwise the wheel is fetched through pip as ``project==version``.
    """

    name: str
    project: str
    version: str
    filename: str
    digest: Digest
    size: int | None = None
    path: str | None = None
    escrow: tuple[Escrow, ...] = ()
    failing: tuple[str, ...] = ()
    locked: str | None = None
    at: str = field(default="", compare=False)


@value
class Subtree:
    """A directory of a commit, by path and tree id."""

    path: str
    tree: ObjectId


@value
class GenesisPin:
    """A commit of the Genesis patch set (``lockfiles/genesis.yaml``)."""

    name: str
    repository: str
    follows: str | None = None
    commit: ObjectId
    tree: ObjectId
    payload: Subtree | None = None
    plugin: Subtree | None = None
    reachable: tuple[str, ...] = ()
    """Refs from which the commit could be reached when it was locked."""
    escrow: tuple[Escrow, ...] = ()
    failing: tuple[str, ...] = ()
    locked: str | None = None
    at: str = field(default="", compare=False)


@value
class ModelFile:
    """One file of a model. Without a digest the entry is visibly incomplete."""

    path: str
    digest: Digest | None = None
    size: int | None = None


@value
class ModelPin:
    """Model weights at a revision (``lockfiles/models.yaml``)."""

    name: str
    repository: str
    follows: str | None = None
    commit: ObjectId
    files: tuple[ModelFile, ...] = ()
    include: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    """Tensors that it must have."""
    forbid: tuple[str, ...] = ()
    """Tensors that it must not have."""
    tensors: int | None = None
    """How many it must have."""
    dtypes: tuple[str, ...] = ()
    """The types that their elements must have, each of them somewhere and no other: ``BF16``."""
    failing: tuple[str, ...] = ()
    locked: str | None = None
    at: str = field(default="", compare=False)


@value
class ResultFile:
    """A file that a variant changes: before and after; ``None`` where there is none."""

    path: str
    pre: Digest | None = None
    post: Digest | None = None


@value
class ResultPatch:
    """What became of one patch of a patch set. ``reason`` is that of one that was not applied."""

    name: str
    outcome: str
    """A word of :class:`builder.outcome.PatchState`."""
    reason: str | None = None


@value
class Waiver:
    """An exception to a rule (``lockfiles/waivers.yaml``): for this vLLM build under this commit of
    a patch set, until the end of a day (UTC)."""

    name: str
    rule: str
    """``genesis-allowlist``."""
    genesis: ObjectId
    """The commit of the patch set."""
    vllm: str
    """The build: the full commit where there is one, otherwise the version."""
    reason: str
    author: str
    until: str
    """``2026-12-31``."""
    at: str = field(default="", compare=False)


@value
class Result:
    """What a variant baked to on one platform when a person accepted it
    (``lockfiles/images/NAME.yaml``)."""

    variant: str
    platform: Platform
    digest: Digest
    derivation: Digest | None = None
    """The id of the last step: what was asked. Another one today makes the result stale."""
    diff_ids: tuple[Digest, ...]
    files: tuple[ResultFile, ...] = ()
    patches: tuple[ResultPatch, ...] = ()
    """Of the patch set, where the variant bakes one; in the order of its names."""
    at: str = field(default="", compare=False)


Pin: TypeAlias = ImagePin | PullPin | SourcePin | WheelPin | GenesisPin | ModelPin


@value
class Lock:
    """All lockfiles of a project. Mappings are by pin name (results by variant name)."""

    images: Mapping[str, ImagePin] = field(default_factory=dict)
    pulls: Mapping[str, PullPin] = field(default_factory=dict)
    sources: Mapping[str, SourcePin] = field(default_factory=dict)
    wheels: Mapping[str, WheelPin] = field(default_factory=dict)
    genesis: Mapping[str, GenesisPin] = field(default_factory=dict)
    models: Mapping[str, ModelPin] = field(default_factory=dict)
    waivers: Mapping[str, Waiver] = field(default_factory=dict)
    results: Mapping[str, tuple[Result, ...]] = field(default_factory=dict)
