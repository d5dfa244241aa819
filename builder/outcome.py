"""What a step did: per file, per layer, and as the record that traces and manifests keep."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Any, Self

from builder.changes import Change
from builder.digest import Digest
from builder.value import field, value
from builder.verdict import Verdict


@value
class FileOutcome:
    """What became of one file: pre- and post-image (``None`` where there is no file), verdict,
    and the line offsets at which hunks were placed, when not where they said."""

    path: str
    verdict: Verdict
    pre: Digest | None = None
    post: Digest | None = None
    offsets: tuple[int, ...] = ()

    def record(self) -> dict[str, Any]:
        """As JSON, absent detail left out."""
        value: dict[str, Any] = {"path": self.path, "verdict": str(self.verdict)}
        if self.pre is not None:
            value["pre"] = str(self.pre)
        if self.post is not None:
            value["post"] = str(self.post)
        if any(self.offsets):
            value["offsets"] = list(self.offsets)
        return value

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`record`."""
        return cls(
            path=_text(value["path"]),
            verdict=Verdict(value["verdict"]),
            pre=Digest.parse(value["pre"]) if "pre" in value else None,
            post=Digest.parse(value["post"]) if "post" in value else None,
            offsets=tuple(map(_count, _list(value.get("offsets", [])))),
        )


class PatchState(StrEnum):
    """What became of one patch of a patch set, as its own run and the files say together."""

    APPLIED = "applied"
    """Files are different for it."""
    RUNTIME_ONLY = "runtime-only"
    """It says that it was applied, and no file is different for it: it acts in memory, if at all,
    when the image runs."""
    SKIPPED = "skipped"
    FAILED = "failed"


@value
class PatchOutcome:
    """One patch of a patch set. ``name`` is its id there; ``reason`` is what it says itself."""

    name: str
    state: PatchState
    reason: str = ""
    files: tuple[str, ...] = ()
    """What it wrote to, in the image, sorted."""

    @property
    def why(self) -> str:
        """The reason on one line, without what would colour it."""
        return "".join(filter(str.isprintable, " ".join(self.reason.split())))

    def record(self) -> dict[str, Any]:
        """As JSON."""
        value: dict[str, Any] = {"name": self.name, "state": str(self.state)}
        if self.reason:
            value["reason"] = self.reason
        if self.files:
            value["files"] = list(self.files)
        return value

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`record`."""
        return cls(
            name=_text(value["name"]),
            state=PatchState(value["state"]),
            reason=_text(value.get("reason", "")),
            files=tuple(map(_text, _list(value.get("files", [])))),
        )


@value
class Outcome:
    """What a step wants to change, and what it says about it. ``ignored`` are the paths of a diff
    that the variant told us to leave out; ``summary`` is one line for people where the files are
    too many to list."""

    changes: tuple[Change, ...]
    files: tuple[FileOutcome, ...] = ()
    ignored: tuple[str, ...] = ()
    summary: str | None = None
    patches: tuple[PatchOutcome, ...] = ()
    sandbox: str | None = None
    """Which sandbox ran a program of the step. Another one gives the same bytes."""


@value
class LayerOutput:
    """One layer of ours in the store: the blob, its diff_id, and the digests of its file index
    and of the table of where each content stands in it."""

    digest: Digest
    size: int
    diff_id: Digest
    index: Digest
    table: Digest

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "digest": str(self.digest),
            "size": self.size,
            "diff_id": str(self.diff_id),
            "index": str(self.index),
            "table": str(self.table),
        }

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`record`."""
        return cls(
            digest=Digest.parse(value["digest"]),
            size=_count(value["size"]),
            diff_id=Digest.parse(value["diff_id"]),
            index=Digest.parse(value["index"]),
            table=Digest.parse(value["table"]),
        )


@value
class Output:
    """What a step came to. ``layer`` is ``None`` for a step that was left out because upstream has
    it already (``until: upstream``)."""

    layer: LayerOutput | None
    files: tuple[FileOutcome, ...] = field(default=(), repr=False)
    ignored: tuple[str, ...] = ()
    summary: str | None = None
    patches: tuple[PatchOutcome, ...] = field(default=(), repr=False)
    sandbox: str | None = field(default=None, compare=False)

    @property
    def blobs(self) -> tuple[Digest, ...]:
        """The blobs that must be in the store for this output to be worth anything."""
        if self.layer is None:
            return ()
        return (self.layer.digest, self.layer.index, self.layer.table)

    def record(self) -> dict[str, Any]:
        """As JSON, what few steps have left out where it is absent."""
        value = {
            "layer": None if self.layer is None else self.layer.record(),
            "files": [item.record() for item in self.files],
            "ignored": list(self.ignored),
            "summary": self.summary,
        }
        if self.patches:
            value["patches"] = [item.record() for item in self.patches]
        if self.sandbox is not None:
            value["sandbox"] = self.sandbox
        return value

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`record`."""
        return cls(
            layer=None if value["layer"] is None else LayerOutput.parse(value["layer"]),
            files=tuple(FileOutcome.parse(item) for item in _list(value["files"])),
            ignored=tuple(map(_text, _list(value["ignored"]))),
            summary=None if value["summary"] is None else _text(value["summary"]),
            patches=tuple(PatchOutcome.parse(item) for item in _list(value.get("patches", []))),
            sandbox=_text(value["sandbox"]) if "sandbox" in value else None,
        )


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"expected a text, got {value!r}")
    return value


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"expected a number, got {value!r}")
    return value


def _list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise TypeError(f"expected a list, got {value!r}")
    return value
