"""A build, and its record."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from builder import ASSEMBLY, __version__, notes
from builder.base import Base
from builder.build_record.pins import used_pins
from builder.digest import Digest
from builder.image import Image
from builder.lock.model import Lock
from builder.plan import Plan
from builder.realise import Realised
from builder.uses import uses
from builder.value import field, value
from builder.variant import ImageSettings, OverlayStep, Variant

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
    lock: Lock = field(default_factory=Lock, repr=False)
    """The pins that it could use."""
    asked: Mapping[tuple[str, str], Digest | None] = field(default_factory=dict, repr=False)
    """What the project's files said (:attr:`builder.project_files.Files.asked`); those that other
    builds asked for may be among them."""

    @property
    def variant(self) -> Variant:
        return self.plan.variant

    @property
    def until(self) -> tuple[str, ...]:
        """The last days (UTC) of the waivers that let it pass."""
        return tuple(ruling.until for ruling in self.rulings if ruling.until is not None)


def describe(build: Build) -> dict[str, Any]:
    """The record of a build as canonical JSON takes it."""
    rulings = [_ruling(ruling) for ruling in build.rulings]
    pins = used_pins(build.variant, build.lock, build.plan.platform)
    return {
        "version": notes.IMAGE_VERSION,
        **({"rulings": rulings} if rulings else {}),
        "builder": __version__,
        "assembly": ASSEMBLY,
        "strict": build.plan.strict,
        "variant": build.variant.name,
        "platform": str(build.plan.platform),
        "digest": str(build.image.digest),
        "config": str(build.image.manifest.config.digest),
        "base": None if build.base is None else _base(build.base),
        "settings": settings_record(build.variant.image),
        "pins": pins,
        "files": _files(build, pins),
        "overlays": _overlays(build),
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


def _base(base: Base) -> dict[str, Any]:
    """The base's documents as they are, also what the lock does not say of them."""
    layers = zip(base.manifest.layers, base.diff_ids, strict=True)
    return {
        "manifest": str(base.manifest.digest),
        "index": None if base.index is None else str(base.index),
        "reference": None if base.reference is None else str(base.reference),
        **({"twin_of": str(base.twin.of)} if base.twin else {}),
        "config": str(base.manifest.config.digest),
        "layers": [
            {
                "digest": str(layer.digest),
                "size": layer.size,
                "media_type": layer.media_type,
                "diff_id": str(diff_id),
            }
            for layer, diff_id in layers
        ],
    }


def _files(build: Build, pins: Iterable[str]) -> dict[str, str]:
    """The recipe, and the lockfiles with a pin that was used."""
    kinds = [*pins, *(["waivers"] if build.until else [])]
    names = [f"variants/{build.variant.name}.yaml", *(f"lockfiles/{kind}.yaml" for kind in kinds)]
    found = {name: build.asked.get(("read", name)) for name in names}
    return {name: str(digest) for name, digest in found.items() if digest is not None}


def _overlays(build: Build) -> dict[str, dict[str, str]]:
    """The overlays that were used, with the digests of their files."""
    names = [name for kind, name in uses(build.variant, build.lock.pulls) if kind is OverlayStep]
    return {name: _below(f"overlays/{name}/", build.asked) for name in names}


def _below(start: str, asked: Mapping[tuple[str, str], Digest | None]) -> dict[str, str]:
    return {
        about[len(start) :]: str(answer)
        for (question, about), answer in asked.items()
        if question == "read" and about.startswith(start) and answer is not None
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
