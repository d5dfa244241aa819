"""What a build was: the record that stays in the store beside each image.

It is what ``why`` and ``explain`` read, and what a signed manifest will say. It holds no time, no
path of the machine and nothing of the environment.
"""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from builder import canonical, notes
from builder.base import Base
from builder.digest import Digest
from builder.errors import BuilderError, IntegrityError, ProjectError
from builder.image import Image
from builder.oci import Manifest
from builder.outcome import Output
from builder.plan import Plan
from builder.ports import Store
from builder.realise import Realised
from builder.value import value
from builder.variant import ImageSettings, Variant

if TYPE_CHECKING:
    from builder.policy import Ruling


@value
class Build:
    """A variant and what it came to."""

    plan: Plan
    base: Base | None
    steps: tuple[Realised, ...]
    image: Image
    rulings: "tuple[Ruling, ...]" = ()
    """What the project said to its patch sets."""

    @property
    def variant(self) -> Variant:
        return self.plan.variant

    @property
    def until(self) -> tuple[str, ...]:
        """The last days (UTC) of the waivers that let it pass."""
        return tuple(ruling.until for ruling in self.rulings if ruling.until is not None)


def describe(build: Build) -> dict[str, Any]:
    """The record of a build as canonical JSON takes it."""
    base = build.base
    rulings = [_ruling(ruling) for ruling in build.rulings]
    return {
        "version": 1,
        **({"rulings": rulings} if rulings else {}),
        "variant": build.variant.name,
        "platform": str(build.plan.platform),
        "digest": str(build.image.digest),
        "base": None
        if base is None
        else {
            "manifest": str(base.manifest.digest),
            "index": None if base.index is None else str(base.index),
            "reference": None if base.reference is None else str(base.reference),
            **({"twin_of": str(base.twin.of)} if base.twin else {}),
        },
        "settings": settings_record(build.variant.image),
        "steps": [
            {
                "name": item.step.name,
                "kind": item.step.kind,
                "pins": list(item.step.request.pins),
                "derivation": str(item.step.derivation.id),
                "inputs": item.step.inputs,
                "output": item.output.record(),
            }
            for item in build.steps
        ],
        "blobs": sorted({str(blob) for item in build.steps for blob in item.output.blobs}),
    }


def _ruling(ruling: "Ruling") -> dict[str, Any]:
    """The allowlist's word on a patch set, and the waiver that let it pass."""
    waiver = ruling.waiver
    return {
        "genesis": str(ruling.commit),
        "vllm": ruling.judgement.vllm,
        "listing": str(ruling.judgement.listing),
        "waiver": None
        if waiver is None
        else {
            "name": waiver.name,
            "reason": waiver.reason,
            "author": waiver.author,
            "until": waiver.until,
        },
    }


def settings_record(settings: ImageSettings) -> dict[str, Any]:
    """All settings as canonical JSON takes them."""
    return {
        "env": dict(settings.env),
        "labels": dict(settings.labels),
        "entrypoint": None if settings.entrypoint is None else list(settings.entrypoint),
        "command": None if settings.command is None else list(settings.command),
        "workdir": settings.workdir,
        "user": settings.user,
    }


@value
class RecordedBase:
    """What a record says of the base."""

    manifest: Digest
    index: Digest | None
    reference: str | None


@value
class RecordedStep:
    """One step of a record."""

    name: str
    kind: str
    pins: tuple[str, ...]
    derivation: Digest
    inputs: Mapping[str, Any]
    output: Output


@value
class Record:
    """A record, read back."""

    variant: str
    platform: str
    digest: Digest
    base: RecordedBase | None
    settings: Mapping[str, Any]
    steps: tuple[RecordedStep, ...]


def recorded(digest: Digest, store: Store) -> Record:
    """The record of the image with this manifest digest.

    Raises:
        ProjectError: The store has none: the image was not built here, or was collected.
        IntegrityError: The one that it has is damaged.
    """
    raw = store.note(notes.IMAGE, digest.hex)
    if raw is None:
        raise ProjectError(
            f"no record of image {digest} in the store",
            hint="build it again on this machine, from the project as it was: git log -S"
            f" {digest.short} -- lockfiles/images names the commit that accepted it",
        )
    at = f"record of image {digest}"
    try:
        return _record(canonical.decode(raw, at=at))
    except (BuilderError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise IntegrityError(
            f"{at}: damaged, or of another version of builder",
            hint="build it again on this machine: that writes it anew",
        ) from error


def _record(value: dict[str, Any]) -> Record:
    base = value["base"]
    return Record(
        variant=value["variant"],
        platform=value["platform"],
        digest=Digest.parse(value["digest"]),
        base=None
        if base is None
        else RecordedBase(
            manifest=Digest.parse(base["manifest"]),
            index=None if base["index"] is None else Digest.parse(base["index"]),
            reference=base["reference"],
        ),
        settings=dict(value["settings"]),
        steps=tuple(_step(item) for item in value["steps"]),
    )


def _step(item: dict[str, Any]) -> RecordedStep:
    return RecordedStep(
        name=item["name"],
        kind=item["kind"],
        pins=tuple(item["pins"]),
        derivation=Digest.parse(item["derivation"]),
        inputs=dict(item["inputs"]),
        output=Output.parse(item["output"]),
    )


def own_layers(store: Store) -> Iterator[Digest]:
    """The blobs that the steps of the store's images made: what must be there."""
    for record in _records(store):
        for step in record.steps:
            yield from step.output.blobs


def needed(store: Store) -> Iterator[Digest]:
    """Every blob that a build of the store's images would ask for again: what the steps made, the
    base's documents, and what is known of its layers."""
    yield from own_layers(store)
    for record in _records(store):
        if record.base is not None:
            yield from _base_blobs(record.base, store)


def _records(store: Store) -> Iterator[Record]:
    """The records of the store's images, as far as they can be read: half a memo is none."""
    for descriptor in store.references().values():
        try:
            record = recorded(descriptor.digest, store)
        except (ProjectError, IntegrityError):
            continue
        yield record


def _base_blobs(base: RecordedBase, store: Store) -> Iterator[Digest]:
    if base.index is not None:
        yield base.index
    yield base.manifest
    if not store.has(base.manifest):
        return
    manifest = Manifest.parse(store.read(base.manifest), at=f"manifest {base.manifest}")
    yield manifest.config.digest
    for layer in manifest.layers:
        if (note := store.note(notes.LAYER, layer.digest.hex)) is not None:
            yield from notes.blobs_of(note)
