"""``variants/NAME.yaml``: bytes to a :class:`~builder.variant.Variant`."""

import re
from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from builder.digest import Digest
from builder.lock import codec
from builder.lock.model import ImagePin, ModelPin, PullPin, SourcePin, WheelPin
from builder.node import (
    Cursor,
    absolute_path,
    any_text,
    did_you_mean,
    digest,
    file_path,
    integer,
    mapping_of,
    mode,
    name,
    nearest,
    sequence_of,
    shortened,
    some_of,
    target_directory,
    target_path,
    text,
    text_or_null,
    unique,
    version_1,
    word,
)
from builder.strict_yaml import MappingNode, ScalarNode
from builder.variant import (
    PLANNED,
    Base,
    ImageSettings,
    LayoutBase,
    OverlayStep,
    PinnedBase,
    Placement,
    PullStep,
    Python,
    ScratchBase,
    SourceStep,
    Step,
    Variant,
    WheelsStep,
)

_PYTHON = re.compile(r"3\.[0-9]{1,2}")
# The shell's names, with the dot and the dash that some base images use.
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")


class Known(Protocol):
    """What a variant can name. Asked only for the kinds that it does name."""

    @property
    def images(self) -> Mapping[str, ImagePin]: ...

    @property
    def pulls(self) -> Mapping[str, PullPin]: ...

    @property
    def sources(self) -> Mapping[str, SourcePin]: ...

    @property
    def wheels(self) -> Mapping[str, WheelPin]: ...

    @property
    def models(self) -> Mapping[str, ModelPin]: ...

    @property
    def overlays(self) -> Collection[str]:
        """The names of the overlays of the project."""


def read_variant(data: bytes, *, name: str, file: str, known: Known | None = None) -> Variant:
    """The variant ``name`` that stands in ``file``.

    Args:
        data: The bytes of the file.
        name: The name of the variant: that of the file.
        file: The name of the file in the project, for messages.
        known: Where every name must lead. ``None`` leaves names unchecked.

    Raises:
        ProjectError: The file is not what it must be, or names what is not there.
    """
    root = Cursor.open(data, file=file)
    root.take("version", version_1)
    reader = _Reader(known)
    variant = Variant(
        name=name,
        description=root.default("description", any_text, ""),
        base=root.take("base", reader.base),
        python=root.optional("python", _python),
        steps=root.default("steps", reader.steps, ()),
        image=root.default("image", _image, ImageSettings()),
        models=root.default("models", unique(sequence_of(reader.model)), ()),
        at=root.at,
    )
    root.done()
    return variant


class _Reader:
    """The readers of what names pins, with the pins at hand."""

    def __init__(self, known: Known | None) -> None:
        self._known = known

    def base(self, node: Cursor) -> Base:
        if isinstance(node.node, ScalarNode):
            word("scratch")(node)
            return ScratchBase()
        base: Base
        if node.choice("pin", "layout") == "pin":
            base = PinnedBase(pin=node.take("pin", self._image))
        else:
            base = LayoutBase(
                layout=node.take("layout", file_path), digest=node.take("digest", digest)
            )
        node.done()
        return base

    def steps(self, node: Cursor) -> tuple[Step, ...]:
        steps: dict[str, Step] = {}
        for item in node.elements():
            step = self._step(item)
            if (first := steps.setdefault(step.name, step)) is not step:
                raise item.error(
                    f"a second step with the name {step.name!r}, the first is {first.at}",
                    hint="give one of them another name with 'name'",
                )
        return tuple(steps.values())

    def model(self, node: Cursor) -> str:
        return self._one_of(node, "model", codec.MODELS, lambda known: known.models)

    def _step(self, node: Cursor) -> Step:
        keys = node.node.entries if isinstance(node.node, MappingNode) else ()
        for planned in filter(PLANNED.get, keys):
            raise node.error(f"there is no step {planned!r} yet", hint=PLANNED[planned])
        kind = node.choice("pull", "overlay", "source", "wheels")
        step = {
            "pull": self._pull,
            "overlay": self._overlay,
            "source": self._source,
            "wheels": self._wheels,
        }[kind](node)
        node.done()
        return step

    def _pull(self, node: Cursor) -> Step:
        pull = node.take(
            "pull",
            lambda child: self._one_of(child, "pull", codec.PULLS, lambda known: known.pulls),
        )
        return PullStep(
            name=node.default("name", name, pull),
            pull=pull,
            ignore=node.default("ignore", sequence_of(text), ()),
            root=node.optional("root", target_directory),
            strip=node.optional("strip", integer),
            until_upstream=_until_upstream(node),
            at=node.at,
        )

    def _overlay(self, node: Cursor) -> Step:
        overlay = node.take(
            "overlay",
            lambda child: self._one_of(child, "overlay", "overlays", lambda known: known.overlays),
        )
        return OverlayStep(
            name=node.default("name", name, overlay),
            overlay=overlay,
            until_upstream=_until_upstream(node),
            at=node.at,
        )

    def _source(self, node: Cursor) -> Step:
        source = node.take(
            "source",
            lambda child: self._one_of(child, "source", codec.SOURCES, lambda known: known.sources),
        )
        return SourceStep(
            name=node.default("name", name, source),
            source=source,
            files=node.take("files", some_of(lambda child: self._placement(child, source))),
            until_upstream=_until_upstream(node),
            at=node.at,
        )

    def _wheels(self, node: Cursor) -> Step:
        return WheelsStep(
            name=node.default("name", name, "wheels"),
            wheels=node.take("wheels", unique(some_of(self._wheel))),
            at=node.at,
        )

    def _wheel(self, node: Cursor) -> str:
        return self._one_of(node, "wheel", codec.WHEELS, lambda known: known.wheels)

    def _image(self, node: Cursor) -> str:
        return self._one_of(node, "vllm", codec.IMAGES, lambda known: known.images)

    def _placement(self, node: Cursor, source: str) -> Placement:
        placement = Placement(
            source=node.take("from", lambda child: self._pinned_file(child, source)),
            target=node.take("to", target_path),
            replaces=node.take("replaces", replaces),
            mode=node.optional("mode", mode),
            at=node.at,
        )
        node.done()
        return placement

    def _pinned_file(self, node: Cursor, source: str) -> str:
        path = file_path(node)
        if self._known is not None:
            pin = self._known.sources[source]
            if pin.file(path) is None:
                raise node.error(
                    f"source {source!r} pins no file {shortened(path)!r}",
                    hint=did_you_mean(nearest(path, [file.path for file in pin.files]))
                    or "add the file to the pin, in lockfiles/sources.yaml",
                )
        return path

    def _one_of(
        self,
        node: Cursor,
        kind: str,
        place: str,
        names: Callable[[Known], Collection[str]],
    ) -> str:
        value = name(node)
        if self._known is not None and value not in (known := names(self._known)):
            raise node.error(
                f"no {kind} {value!r} in {place}",
                hint=did_you_mean(nearest(value, known)) or _first_step(kind, value, place),
            )
        return value


def _first_step(kind: str, value: str, place: str) -> str:
    if kind == "overlay":
        return f"write overlays/{value}/overlay.yaml"
    return f"write the pin into {place}"


def replaces(node: Cursor) -> Digest | None:
    """The pre-image of a file, or the word ``nothing``: there must be no such file."""
    if isinstance(node.node, ScalarNode) and node.node.text == "nothing":
        return None
    if isinstance(node.node, ScalarNode) and not node.node.text.startswith("sha256:"):
        word("nothing", "sha256:...")(node)
    return digest(node)


def _until_upstream(node: Cursor) -> bool:
    return node.optional("until", word("upstream")) is not None


def _python(node: Cursor) -> Python:
    value = Python(
        version=node.take("version", _python_version), packages=node.take("packages", file_path)
    )
    node.done()
    return value


def _python_version(node: Cursor) -> str:
    value = text(node)
    if not _PYTHON.fullmatch(value):
        raise node.error(
            f"expected the version of a Python, got {shortened(value)!r}", hint="for example 3.12"
        )
    return value


def _image(node: Cursor) -> ImageSettings:
    settings = ImageSettings(
        env=node.default("env", mapping_of(_variable, text_or_null), ()),
        labels=node.default("labels", mapping_of(text, text_or_null), ()),
        entrypoint=node.optional("entrypoint", sequence_of(any_text)),
        command=node.optional("command", sequence_of(any_text)),
        workdir=node.optional("workdir", absolute_path),
        user=node.optional("user", text),
    )
    node.done()
    return settings


def _variable(node: Cursor) -> str:
    value = text(node)
    if not _VARIABLE.fullmatch(value):
        raise node.error(f"{value!r} is not the name of an environment variable")
    return value
