"""A record, read back: what this version of builder writes, and what the one before wrote."""

from collections.abc import Mapping
from typing import Any

from builder import canonical, notes
from builder.digest import Digest
from builder.errors import BuilderError, IntegrityError, ProjectError
from builder.outcome import Output
from builder.ports import Store
from builder.value import value

_BEFORE_STATEMENTS = 1
"""The version of records that know nothing of pins. They do for ``why``, ``explain`` and ``gc``."""


@value
class RecordedBase:
    """What a record says of the base. ``config`` and ``layers`` are of version 2; each layer has
    ``digest``, ``size``, ``media_type`` and ``diff_id``."""

    manifest: Digest
    index: Digest | None
    reference: str | None
    twin_of: Digest | None = None
    config: Digest | None = None
    layers: tuple[Mapping[str, Any], ...] = ()


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
class Made:
    """What it was made by, and of: all that version 1 did not keep.

    ``files`` are the recipe and the lockfiles by name, ``pins`` as in
    :mod:`builder.build_record.pins`, ``overlays`` the files of each by path.
    """

    builder: str
    assembly: int
    strict: bool
    config: Digest
    files: Mapping[str, Digest]
    pins: Mapping[str, Mapping[str, Mapping[str, Any]]]
    overlays: Mapping[str, Mapping[str, Digest]]
    rulings: tuple[Mapping[str, Any], ...]


@value
class Record:
    """A record, read back. ``made`` is ``None`` in one that an older builder wrote."""

    variant: str
    platform: str
    digest: Digest
    base: RecordedBase | None
    settings: Mapping[str, Any]
    steps: tuple[RecordedStep, ...]
    made: Made | None = None


def recorded(digest: Digest, store: Store) -> Record:
    """The record of the image with this manifest digest.

    Raises:
        ProjectError: The store has none: the image was not built here, or was collected.
        IntegrityError: The one that it has is damaged.
    """
    raw = store.note(notes.IMAGE, digest.hex)
    if raw is None:
        raise ProjectError(
            f"no record of image {digest} in the store", hint="build it again on this machine"
        )
    record = parse(raw, at=f"record of image {digest}")
    if record.digest != digest:
        raise IntegrityError(
            f"record of image {digest}: it is that of {record.digest}",
            hint="build it again on this machine: that writes it anew",
        )
    return record


def parse(raw: bytes, *, at: str) -> Record:
    """The record in these bytes.

    Raises:
        IntegrityError: They are damaged, or a later builder wrote them.
    """
    try:
        value = canonical.decode(raw, at=at)
        if canonical.encode(value) != raw:
            raise ValueError("not as we write it")
        return _record(value)
    except (BuilderError, KeyError, TypeError, ValueError, AttributeError) as error:
        raise IntegrityError(
            f"{at}: damaged, or of another version of builder",
            hint="build it again on this machine: that writes it anew",
        ) from error


def _record(value: dict[str, Any]) -> Record:
    if value["version"] not in (_BEFORE_STATEMENTS, notes.IMAGE_VERSION):
        raise ValueError(value["version"])
    base = value["base"]
    return Record(
        variant=_text(value["variant"]),
        platform=_text(value["platform"]),
        digest=Digest.parse(value["digest"]),
        base=None if base is None else _base(base),
        settings=dict(value["settings"]),
        steps=tuple(_step(item) for item in value["steps"]),
        made=None if value["version"] == _BEFORE_STATEMENTS else _made(value),
    )


def _base(value: Mapping[str, Any]) -> RecordedBase:
    return RecordedBase(
        manifest=Digest.parse(value["manifest"]),
        index=_digest(value["index"]),
        reference=value["reference"],
        twin_of=_digest(value.get("twin_of")),
        config=_digest(value.get("config")),
        layers=tuple(map(dict, value.get("layers", ()))),
    )


def _made(value: Mapping[str, Any]) -> Made:
    overlays = value["overlays"].items()
    return Made(
        builder=_text(value["builder"]),
        assembly=int(value["assembly"]),
        strict=value["strict"] is True,
        config=Digest.parse(value["config"]),
        files=_digests(value["files"]),
        pins={
            kind: {name: dict(pin) for name, pin in pins.items()}
            for kind, pins in value["pins"].items()
        },
        overlays={name: _digests(files) for name, files in overlays},
        rulings=tuple(map(dict, value.get("rulings", ()))),
    )


def _step(item: Mapping[str, Any]) -> RecordedStep:
    return RecordedStep(
        name=item["name"],
        kind=item["kind"],
        pins=tuple(item["pins"]),
        derivation=Digest.parse(item["derivation"]),
        inputs=dict(item["inputs"]),
        output=Output.parse(item["output"]),
    )


def _digests(value: Mapping[str, str]) -> dict[str, Digest]:
    return {name: Digest.parse(text) for name, text in value.items()}


def _digest(text: str | None) -> Digest | None:
    return None if text is None else Digest.parse(text)


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(value)
    return value
