"""Steps as the pedigree of what they patch (CycloneDX, component pedigree).

A patch of CycloneDX has a type, a place and the issues that it resolves, and no room for a digest:
that stands among the properties of the component.
"""

from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote

from builder.build_record import Record, RecordedStep
from builder.outcome import PatchState
from builder.statements.components import IN_VLLM, Component
from builder.statements.said import git_uri, made_of, present, web_page
from builder.value import value

Patch: TypeAlias = dict[str, Any]
Pins: TypeAlias = Mapping[str, Mapping[str, Mapping[str, Any]]]

_PATCHES = ("pull", "overlay", "source", "script", "genesis")
"""The kinds of step that change what is there already, or add to it."""


@value
class Patches:
    """The steps that patch, and for each whether it is vLLM that it patches."""

    steps: tuple[tuple[RecordedStep, bool], ...]
    left_out: tuple[RecordedStep, ...]
    pins: Pins

    def on(self, component: Component) -> Component:
        """A component of vLLM with its patches."""
        own = component.get("pedigree", {})
        found = self.pedigree(vllm=True) or {}
        told = [
            {"name": f"vllm-image-builder:{name}", "value": text}
            for name, text in self.properties(vllm=True)
        ]
        return component | present(pedigree={**own, **found} or None, properties=told or None)

    def pedigree(self, *, vllm: bool) -> dict[str, Any] | None:
        """The patches of vLLM, or those of everything else in the image."""
        found = [
            patch
            for step, is_vllm in self.steps
            if is_vllm == vllm
            for patch in _patches(step, self.pins)
        ]
        return {"patches": found} if found else None

    def properties(self, *, vllm: bool) -> Iterator[tuple[str, str]]:
        """What a patch has no room for: a name and a value each."""
        for step, is_vllm in self.steps:
            if is_vllm == vllm:
                yield f"step:{step.name}", str(step.derivation)
                yield from ((f"step:{step.name}:{key}", text) for key, text in _digests(step))
        if not vllm:
            yield from (
                (f"step:{step.name}", "left out: already upstream") for step in self.left_out
            )


def patches_of(record: Record) -> Patches:
    """The patches of an image, in the order of the steps."""
    steps = [step for step in record.steps if step.kind in _PATCHES]
    return Patches(
        steps=tuple((step, _of_vllm(step)) for step in steps if step.output.layer is not None),
        left_out=tuple(step for step in steps if step.output.layer is None),
        pins=made_of(record).pins,
    )


def _of_vllm(step: RecordedStep) -> bool:
    """A patch set is one of vLLM whether or not it changed a file."""
    paths = (file.path for file in step.output.files)
    return step.kind == "genesis" or any(map(IN_VLLM.fullmatch, paths))


def _digests(step: RecordedStep) -> Iterator[tuple[str, str]]:
    if step.kind == "pull":
        yield "diff", step.inputs["diff"]
    for patch in step.output.patches:
        yield f"patch:{patch.name}", str(patch.state)


def _patches(step: RecordedStep, pins: Pins) -> Iterator[Patch]:
    kind, _, name = step.pins[0].partition(" ") if step.pins else ("", "", "")
    if kind == "pull":
        yield _pull(pins["pulls"][name], pins)
    elif kind == "genesis":
        yield from _genesis(step, pins["genesis"][name])
    elif kind == "source":
        pin = pins["sources"][name]
        yield _unofficial(git_uri(pin.get("repository"), pin["commit"]))
    else:
        yield _unofficial(f"overlays/{quote(name)}")


def _pull(pin: Mapping[str, Any], pins: Pins) -> Patch:
    """A pull request is commits of the project itself; as a file, somebody has made them fit."""
    issue: dict[str, Any] = {"type": "enhancement", "id": str(pin["pull"])}
    page = web_page(pin.get("repository"))
    if page is not None:
        issue["source"] = {"url": f"{page}/pull/{pin['pull']}"}
    place = _place_of(pin, page, pins)
    return present(
        type="backport" if "published" in pin else "cherry-pick",
        diff=None if place is None else {"url": place},
        resolves=[issue],
    )


def _place_of(pin: Mapping[str, Any], page: str | None, pins: Pins) -> str | None:
    """Where the diff of a pull request can be read."""
    if "published" in pin:
        published = pin["published"]
        source = pins["sources"][published["source"]]
        return git_uri(source.get("repository"), source["commit"], published["path"])
    if page is not None and page.startswith("https://github.com/"):
        return f"{page}/compare/{pin['base']}...{pin['head']}.diff"
    return git_uri(pin.get("repository"), pin["head"])


def _genesis(step: RecordedStep, pin: Mapping[str, Any]) -> Iterator[Patch]:
    """What was written into files, and what acts when the image runs."""
    place = git_uri(pin.get("repository"), pin["commit"])
    states = {patch.state for patch in step.output.patches}
    if PatchState.APPLIED in states:
        yield _unofficial(place)
    if PatchState.RUNTIME_ONLY in states:
        yield _unofficial(place) | {"type": "monkey"}


def _unofficial(place: str | None) -> Patch:
    return present(type="unofficial", diff=None if place is None else {"url": place})
