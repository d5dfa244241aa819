"""Pins as components of a CycloneDX document."""

import re
from collections.abc import Mapping
from typing import Any, TypeAlias

from builder.build_record import Record
from builder.statements.resources import model_purl
from builder.statements.said import hex_of, made_of, present, wheel_purl

Component: TypeAlias = dict[str, Any]
Pin: TypeAlias = Mapping[str, Any]

VLLM = "vllm"
IN_VLLM = re.compile(r".*/(?:dist|site)-packages/vllm/.*")
"""A file of the vLLM that the image's Python imports."""


def vllm_of(record: Record) -> Component | None:
    """The vLLM of the image: the last wheel of it, or what the base has; without a version where
    nobody says it, and ``None`` where nothing is known of one."""
    pins = made_of(record).pins
    for step in reversed(record.steps):
        for used in reversed(step.pins):
            name = used.removeprefix("wheel ")
            pin = pins.get("wheels", {}).get(name) if used != name else None
            if pin is not None and pin["project"].lower() == VLLM:
                return wheel(name, pin)
    for pin in pins.get("vllm", {}).values():
        if "vllm" in pin:
            return _in_base(pin["vllm"])
    touched = (file.path for step in record.steps for file in step.output.files)
    return _in_base({}) if any(map(IN_VLLM.fullmatch, touched)) else None


def _in_base(vllm: Mapping[str, str]) -> Component:
    version, commit = vllm.get("version"), vllm.get("commit")
    return present(
        **{"bom-ref": VLLM},
        type="library",
        name=VLLM,
        version=version,
        purl=None if version is None else wheel_purl(VLLM, version),
        pedigree=None if commit is None else {"commits": [{"uid": commit}]},
    )


def wheel(name: str, pin: Pin) -> Component:
    """A wheel. One that the project packs itself is not what an index has under that name."""
    return present(
        **{"bom-ref": f"wheel {name}"},
        type="library",
        name=pin["project"],
        version=pin["version"],
        purl=None if pin["own"] else wheel_purl(pin["project"], pin["version"]),
        hashes=[{"alg": "SHA-256", "content": hex_of(pin["digest"])}],
    )


def genesis(name: str, pin: Pin) -> Component:
    """A patch set."""
    return _commit(f"genesis {name}", name, pin)


def source(name: str, pin: Pin) -> Component:
    """Another repository, with those of its files that were used."""
    return _commit(f"source {name}", name, pin) | present(
        components=_files(f"source {name}", pin["files"]) or None
    )


def model(name: str, pin: Pin) -> Component:
    """The weights that the image is to serve: pinned with it, and no part of it."""
    return present(
        **{"bom-ref": f"model {name}"},
        type="machine-learning-model",
        name=pin.get("repository", name),
        version=pin["commit"],
        purl=model_purl(pin),
        properties=[{"name": "vllm-image-builder:in-image", "value": "false"}],
        components=_files(f"model {name}", pin["files"]) or None,
    )


def _commit(ref: str, name: str, pin: Pin) -> Component:
    repository = pin.get("repository")
    return present(
        **{"bom-ref": ref},
        type="library",
        name=name,
        version=pin["commit"],
        externalReferences=None if repository is None else [{"type": "vcs", "url": repository}],
        properties=[{"name": "vllm-image-builder:tree", "value": pin["tree"]}],
    )


def _files(above: str, files: Mapping[str, Mapping[str, Any]]) -> list[Component]:
    return [
        present(
            **{"bom-ref": f"{above}: {path}"},
            type="file",
            name=path,
            hashes=[{"alg": "SHA-256", "content": hex_of(file["digest"])}]
            if "digest" in file
            else None,
        )
        for path, file in sorted(files.items())
    ]
