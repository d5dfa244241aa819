"""Pins as records have them: what each *is*, and where it can be had.

What a newer pin would be looked for by, when this one was made and where we keep copies are left
out: all that changes while the image does not. Of a lockfile only the entries that were used are
recorded, and of their files only those that were used. Addresses are public
(:func:`builder.address.public`).
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from builder.address import public
from builder.lock.model import (
    GenesisPin,
    ImagePin,
    Lock,
    ModelPin,
    PullPin,
    SourcePin,
    WheelPin,
)
from builder.oci import Platform
from builder.uses import uses
from builder.variant import PullStep, ScriptStep, SourceStep, Variant

PinRecord: TypeAlias = dict[str, Any]


def used_pins(variant: Variant, lock: Lock, platform: Platform) -> dict[str, dict[str, PinRecord]]:
    """The pins that a variant uses: by the name of their lockfile, then by their own."""
    kinds: dict[type, tuple[str, Mapping[str, Any], Callable[[Any], PinRecord]]] = {
        ImagePin: ("vllm", lock.images, lambda pin: image(pin, platform)),
        PullPin: ("pulls", lock.pulls, pull),
        SourcePin: (
            "sources",
            lock.sources,
            lambda pin: source(pin, _used_files(variant, pin, lock)),
        ),
        WheelPin: ("wheels", lock.wheels, wheel),
        GenesisPin: ("genesis", lock.genesis, genesis),
        ModelPin: ("models", lock.models, model),
    }
    found: dict[str, dict[str, PinRecord]] = {}
    for kind, name in uses(variant, lock.pulls):
        if kind in kinds:
            file, pins, record = kinds[kind]
            if name in pins:
                found.setdefault(file, {})[name] = record(pins[name])
    return found


def image(pin: ImagePin, platform: Platform) -> PinRecord:
    """A base. Its config and layers stand in the record of the base, which is held to the pin."""
    known = pin.platform(platform)
    vllm = pin.vllm
    return _present(
        image=pin.follows.name,
        tag=pin.follows.tag,
        index=_text(pin.index),
        manifest=None if known is None else str(known.manifest),
        vllm=None
        if vllm is None
        else _present(version=vllm.version, commit=_text(vllm.commit), package=vllm.package),
    )


def pull(pin: PullPin) -> PinRecord:
    """A pull request. Root and strip stand among the inputs of its step."""
    published = pin.published
    return _present(
        repository=public(pin.repository),
        pull=pin.pull,
        base=_text(pin.base),
        head=_text(pin.head),
        published=None
        if published is None
        else {"source": published.source, "path": published.path},
        diff=str(pin.diff),
        raw=_text(pin.raw),
    )


def source(pin: SourcePin, used: frozenset[str]) -> PinRecord:
    """Files of another repository, as far as they are ``used``."""
    return _present(
        repository=public(pin.repository),
        commit=str(pin.commit),
        tree=str(pin.tree),
        files={
            file.path: {"digest": str(file.digest), "size": file.size}
            for file in pin.files
            if file.path in used
        },
    )


def wheel(pin: WheelPin) -> PinRecord:
    """A wheel. ``own`` is whether the project packs it; where it has it is no matter."""
    return _present(
        project=pin.project,
        version=pin.version,
        filename=pin.filename,
        digest=str(pin.digest),
        size=pin.size,
        own=pin.path is not None,
    )


def genesis(pin: GenesisPin) -> PinRecord:
    """A commit of a patch set, with the directories of it that are used."""
    parts = {"payload": pin.payload, "plugin": pin.plugin}
    return _present(
        repository=public(pin.repository),
        commit=str(pin.commit),
        tree=str(pin.tree),
        **{
            name: {"path": part.path, "tree": str(part.tree)}
            for name, part in parts.items()
            if part is not None
        },
    )


def model(pin: ModelPin) -> PinRecord:
    """A model at a revision. What its files were chosen by is told by the files."""
    return _present(
        repository=public(pin.repository),
        commit=str(pin.commit),
        files={
            file.path: _present(digest=_text(file.digest), size=file.size) for file in pin.files
        },
    )


def _used_files(variant: Variant, pin: SourcePin, lock: Lock) -> frozenset[str]:
    found: set[str] = set()
    for step in variant.steps:
        match step:
            case SourceStep(source=pin.name, files=files):
                found |= {file.source for file in files}
            case ScriptStep(script=script) if script.source == pin.name:
                found.add(script.path)
            case PullStep(pull=name):
                published = lock.pulls[name].published if name in lock.pulls else None
                if published is not None and published.source == pin.name:
                    found.add(published.path)
            case _:
                pass
    return frozenset(found)


def _text(item: object | None) -> str | None:
    return None if item is None else str(item)


def _present(**fields: Any) -> PinRecord:
    """The fields that are known."""
    return {key: item for key, item in fields.items() if item is not None}
