"""What a build was: the record that stays in the store beside each image.

It is what ``why`` and ``explain`` read, and what a signed manifest will say. It holds no time, no
path of the machine and nothing of the environment.
"""

from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from builder import canonical, notes
from builder.base import Base
from builder.digest import Digest
from builder.errors import ProjectError
from builder.image import Image
from builder.oci import Manifest
from builder.outcome import Output
from builder.plan import Plan
from builder.ports import Store
from builder.realise import Realised
from builder.value import value
from builder.variant import ImageSettings, Variant


@value
class Build:
    """A variant and what it came to."""

    plan: Plan
    base: Base | None
    steps: tuple[Realised, ...]
    image: Image

    @property
    def variant(self) -> Variant:
        return self.plan.variant


def describe(build: Build) -> dict[str, Any]:
    """The record of a build as canonical JSON takes it."""
    base = build.base
    return {
        "version": 1,
        "variant": build.variant.name,
        "platform": str(build.plan.platform),
        "digest": str(build.image.digest),
        "base": None
        if base is None
        else {
            "manifest": str(base.manifest.digest),
            "index": None if base.index is None else str(base.index),
            "reference": None if base.reference is None else str(base.reference),
        },
        "settings": _settings(build.variant.image),
        "steps": [
            {
                "name": item.step.name,
                "kind": item.step.kind,
                "pins": list(item.step.request.pins),
                "derivation": str(item.step.derivation.id),
                "inputs": item.step.request.record(),
                "output": item.output.record(),
            }
            for item in build.steps
        ],
        "blobs": sorted({str(blob) for item in build.steps for blob in item.output.blobs}),
    }


def _settings(settings: ImageSettings) -> dict[str, Any]:
    return {
        "env": dict(settings.env),
        "labels": dict(settings.labels),
        "entrypoint": None if settings.entrypoint is None else list(settings.entrypoint),
        "command": None if settings.command is None else list(settings.command),
        "workdir": settings.workdir,
        "user": settings.user,
    }


def own_layers(store: Store) -> Iterator[Digest]:
    """The blobs that the steps of the store's images made: what must be there."""
    for descriptor in store.references().values():
        with suppress(ProjectError):
            for step in recorded(descriptor.digest, store).steps:
                yield from step.output.blobs


def needed(store: Store) -> Iterator[Digest]:
    """Every blob that a build of the store's images would ask for again: what the steps made, the
    base's documents, and what is known of its layers."""
    yield from own_layers(store)
    for descriptor in store.references().values():
        with suppress(ProjectError, KeyError):
            base = recorded(descriptor.digest, store).base
            if base is not None:
                yield from _base_blobs(base, store)


def _base_blobs(base: Mapping[str, Any], store: Store) -> Iterator[Digest]:
    if base["index"] is not None:
        yield Digest.parse(base["index"])
    digest = Digest.parse(base["manifest"])
    yield digest
    manifest = Manifest.parse(store.read(digest), at=f"manifest {digest}")
    yield manifest.config.digest
    for layer in manifest.layers:
        if (note := store.note(notes.LAYER, layer.digest.hex)) is not None:
            yield from notes.blobs_of(note)


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
    base: Mapping[str, Any] | None
    settings: Mapping[str, Any]
    steps: tuple[RecordedStep, ...]


def recorded(digest: Digest, store: Store) -> Record:
    """The record of the image with this manifest digest.

    Raises:
        ProjectError: The store has none, or a damaged one: the image was not built here, or was
            collected.
    """
    raw = store.note(notes.IMAGE, digest.hex)
    if raw is None:
        raise ProjectError(
            f"no record of image {digest} in the store", hint="build it again on this machine"
        )
    try:
        value = canonical.decode(raw, at=f"record {digest.short}")
        return Record(
            variant=value["variant"],
            platform=value["platform"],
            digest=Digest.parse(value["digest"]),
            base=value["base"],
            settings=value["settings"],
            steps=tuple(_steps(value["steps"])),
        )
    except notes.MALFORMED as error:
        raise ProjectError(
            f"the record of image {digest} in the store is damaged",
            hint="build it again on this machine",
        ) from error


def _steps(items: list[dict[str, Any]]) -> Iterator[RecordedStep]:
    for item in items:
        yield RecordedStep(
            name=item["name"],
            kind=item["kind"],
            pins=tuple(item["pins"]),
            derivation=Digest.parse(item["derivation"]),
            inputs=item["inputs"],
            output=Output.parse(item["output"]),
        )
