"""Lockfiles: bytes to pins, and pins to the one text that says them.

Reading and writing are inverse: what is written reads back as the same value, and a file that we
wrote is written the same again. Files that are there are edited, not written anew:
:mod:`builder.lock.edit`. The entries of one kind are one module: ``codec_images``, ``codec_git``,
``codec_content``, ``codec_waivers``.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, TypeVar

from builder.errors import ProjectError
from builder.lock import codec_content, codec_git, codec_images
from builder.lock.model import (
    GenesisPin,
    ImagePin,
    Lock,
    ModelPin,
    PullPin,
    Result,
    SourcePin,
    Waiver,
    WheelPin,
)
from builder.node import Cursor, did_you_mean, each, name, nearest, version_1
from builder.strict_yaml import Writable, write
from builder.value import value

IMAGES = "lockfiles/vllm.yaml"
PULLS = "lockfiles/pulls.yaml"
SOURCES = "lockfiles/sources.yaml"
WHEELS = "lockfiles/wheels.yaml"
GENESIS = "lockfiles/genesis.yaml"
MODELS = "lockfiles/models.yaml"
WAIVERS = "lockfiles/waivers.yaml"
FILES = (IMAGES, PULLS, SOURCES, WHEELS, GENESIS, MODELS, WAIVERS)
"""The lockfiles of a project, but for those of results, by their names in it."""
_RESULTS = "lockfiles/images/"


class _Named(Protocol):
    @property
    def name(self) -> str: ...


P = TypeVar("P", bound=_Named)


def read_lock(files: Mapping[str, bytes]) -> Lock:
    """All lockfiles of a project, by their names in it. A file that is absent holds no pins.

    Raises:
        ProjectError: A file is not what it must be, or is none of the lockfiles; a published diff
            is of a source that is not pinned.
    """
    for file in files:
        if file not in FILES and not file.startswith(_RESULTS):
            near = nearest(file, FILES)
            raise ProjectError(
                f"{file}: not a lockfile",
                hint=did_you_mean(near) or f"the lockfiles are {', '.join(FILES)}",
            )
    results = [
        read_results(data, file=file) for file, data in files.items() if file.startswith(_RESULTS)
    ]
    lock = Lock(
        images=read_images(files[IMAGES]) if IMAGES in files else {},
        pulls=read_pulls(files[PULLS]) if PULLS in files else {},
        sources=read_sources(files[SOURCES]) if SOURCES in files else {},
        wheels=read_wheels(files[WHEELS]) if WHEELS in files else {},
        genesis=read_genesis(files[GENESIS]) if GENESIS in files else {},
        models=read_models(files[MODELS]) if MODELS in files else {},
        waivers=read_waivers(files[WAIVERS]) if WAIVERS in files else {},
        results=dict(results),
    )
    for pull in lock.pulls.values():
        check_published(pull, lock.sources)
    return lock


def check_published(pull: PullPin, sources: Mapping[str, SourcePin]) -> None:
    """Whether the file that a pull's diff is published as is pinned.

    Raises:
        ProjectError: There is no such source, or it does not pin that file.
    """
    if (published := pull.published) is None:
        return
    source = sources.get(published.source)
    if source is None:
        raise ProjectError(
            f"{pull.at}.published.source: no source {published.source!r} in {SOURCES}",
            hint=did_you_mean(nearest(published.source, sources)),
        )
    if source.file(published.path) is None:
        known = [file.path for file in source.files]
        raise ProjectError(
            f"{pull.at}.published.path: source {published.source!r} pins no file"
            f" {published.path!r}",
            hint=did_you_mean(nearest(published.path, known)),
        )


def read_images(data: bytes, *, file: str = IMAGES) -> Mapping[str, ImagePin]:
    """The base images in ``data``, by name."""
    return _read(data, file, "vllm", codec_images.image_pin)


def read_pulls(data: bytes, *, file: str = PULLS) -> Mapping[str, PullPin]:
    """The pull requests in ``data``, by name."""
    return _read(data, file, "pulls", codec_git.pull_pin)


def read_sources(data: bytes, *, file: str = SOURCES) -> Mapping[str, SourcePin]:
    """The files of other repositories in ``data``, by the pin's name."""
    return _read(data, file, "sources", codec_git.source_pin)


def read_wheels(data: bytes, *, file: str = WHEELS) -> Mapping[str, WheelPin]:
    """The wheels in ``data``, by name."""
    return _read(data, file, "wheels", codec_content.wheel_pin)


def read_genesis(data: bytes, *, file: str = GENESIS) -> Mapping[str, GenesisPin]:
    """The commits of the patch set in ``data``, by name."""
    return _read(data, file, "genesis", codec_git.genesis_pin)


def read_models(data: bytes, *, file: str = MODELS) -> Mapping[str, ModelPin]:
    """The models in ``data``, by name."""
    return _read(data, file, "models", codec_content.model_pin)


def read_waivers(data: bytes, *, file: str = WAIVERS) -> Mapping[str, Waiver]:
    """The exceptions in ``data``, by name."""
    return _read(data, file, "waivers", _waiver)


def results_file(variant: str) -> str:
    """The lockfile of what ``variant`` bakes to."""
    return f"{_RESULTS}{variant}.yaml"


def read_results(data: bytes, *, file: str) -> tuple[str, tuple[Result, ...]]:
    """A variant's name and its results, one a platform.

    Raises:
        ProjectError: The file is not what it must be, or is not named for its variant.
    """
    root = Cursor.open(data, file=file)
    root.take("version", version_1)
    variant = root.take("variant", name)
    found = root.take("results", lambda node: codec_images.results(variant, node))
    root.done()
    if file != results_file(variant):
        raise root.error(f"results of {variant!r} belong in {results_file(variant)!r}")
    return variant, found


@value(kw_only=False)
class Kind:
    """A lockfile of pins: its name, the key that they stand under, its entries both ways."""

    file: str
    key: str
    entry: Callable[[str, Cursor], Any]
    record: Callable[[Any], Mapping[str, Writable]]

    def read(self, data: bytes) -> Mapping[str, Any]:
        """The pins in ``data``, by name.

        Raises:
            ProjectError: It is not what the lockfile must be.
        """
        return _read(data, self.file, self.key, self.entry)


def kind_of(pin: type) -> Kind:
    """The kind of lockfile that holds pins (or waivers) of this type."""
    return _KINDS[pin]


def write_pins(pin: type, pins: Mapping[str, Any]) -> bytes:
    """The text of a whole new lockfile for pins of this type, sorted by name. One that is there
    is edited: :mod:`builder.lock.edit`.

    Raises:
        ValueError: It would read back as other pins.
    """
    kind = _KINDS[pin]
    entries = {name: kind.record(pin) for name, pin in sorted(pins.items())}
    data = write({"version": 1, kind.key: entries}, at=kind.file)
    return _same(data, pins, kind.read(data), kind.file)


def write_results(variant: str, results: tuple[Result, ...]) -> bytes:
    """The text of ``lockfiles/images/VARIANT.yaml``."""
    file = results_file(variant)
    record = codec_images.results_record(results)
    data = write({"version": 1, "variant": variant, "results": record}, at=file)
    return _same(data, (variant, results), read_results(data, file=file), file)


def _read(data: bytes, file: str, kind: str, reader: Callable[[str, Cursor], P]) -> Mapping[str, P]:
    root = Cursor.open(data, file=file)
    root.take("version", version_1)
    pins = root.take(kind, each(name, reader))
    root.done()
    return {pin.name: pin for pin in pins}


def _same(data: bytes, given: object, found: object, file: str) -> bytes:
    """``data``, which must say what was given: a lock that reads as another is never written."""
    if found != given:
        raise ValueError(f"{file}: {given!r} reads back as {found!r}")
    return data


def _waiver(key: str, node: Cursor) -> Waiver:
    from builder.lock import codec_waivers  # noqa: PLC0415 - few projects have one

    return codec_waivers.waiver(key, node)


def _waiver_record(item: Waiver) -> Mapping[str, Writable]:
    from builder.lock import codec_waivers  # noqa: PLC0415 - as above

    return codec_waivers.waiver_record(item)


_KINDS: Mapping[type, Kind] = {
    ImagePin: Kind(IMAGES, "vllm", codec_images.image_pin, codec_images.image_record),
    PullPin: Kind(PULLS, "pulls", codec_git.pull_pin, codec_git.pull_record),
    SourcePin: Kind(SOURCES, "sources", codec_git.source_pin, codec_git.source_record),
    WheelPin: Kind(WHEELS, "wheels", codec_content.wheel_pin, codec_content.wheel_record),
    GenesisPin: Kind(GENESIS, "genesis", codec_git.genesis_pin, codec_git.genesis_record),
    ModelPin: Kind(MODELS, "models", codec_content.model_pin, codec_content.model_record),
    Waiver: Kind(WAIVERS, "waivers", _waiver, _waiver_record),
}
