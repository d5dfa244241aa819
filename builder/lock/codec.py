"""Lockfiles: bytes to pins, and pins to the one text that says them.

``read_*`` and ``write_*`` are inverse: what is written reads back as the same value, and a file
that we wrote is written the same again. The entries of one kind are one module: ``codec_images``,
``codec_git``, ``codec_content``, ``codec_waivers``.
"""

from collections.abc import Callable, Mapping
from typing import Protocol, TypeVar

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
    from builder.lock import codec_waivers  # noqa: PLC0415 - most projects have none

    return _read(data, file, "waivers", codec_waivers.waiver)


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


def write_images(pins: Mapping[str, ImagePin], *, file: str = IMAGES) -> bytes:
    """The text of ``lockfiles/vllm.yaml``. All writers refuse what would not read back."""
    data = _write(pins, file, "vllm", codec_images.image_record)
    return _same(data, pins, read_images(data, file=file), file)


def write_pulls(pins: Mapping[str, PullPin], *, file: str = PULLS) -> bytes:
    """The text of ``lockfiles/pulls.yaml``."""
    data = _write(pins, file, "pulls", codec_git.pull_record)
    return _same(data, pins, read_pulls(data, file=file), file)


def write_sources(pins: Mapping[str, SourcePin], *, file: str = SOURCES) -> bytes:
    """The text of ``lockfiles/sources.yaml``."""
    data = _write(pins, file, "sources", codec_git.source_record)
    return _same(data, pins, read_sources(data, file=file), file)


def write_wheels(pins: Mapping[str, WheelPin], *, file: str = WHEELS) -> bytes:
    """The text of ``lockfiles/wheels.yaml``."""
    data = _write(pins, file, "wheels", codec_content.wheel_record)
    return _same(data, pins, read_wheels(data, file=file), file)


def write_genesis(pins: Mapping[str, GenesisPin], *, file: str = GENESIS) -> bytes:
    """The text of ``lockfiles/genesis.yaml``."""
    data = _write(pins, file, "genesis", codec_git.genesis_record)
    return _same(data, pins, read_genesis(data, file=file), file)


def write_models(pins: Mapping[str, ModelPin], *, file: str = MODELS) -> bytes:
    """The text of ``lockfiles/models.yaml``."""
    data = _write(pins, file, "models", codec_content.model_record)
    return _same(data, pins, read_models(data, file=file), file)


def write_waivers(waivers: Mapping[str, Waiver], *, file: str = WAIVERS) -> bytes:
    """The text of ``lockfiles/waivers.yaml``."""
    from builder.lock import codec_waivers  # noqa: PLC0415 - as above

    data = _write(waivers, file, "waivers", codec_waivers.waiver_record)
    return _same(data, waivers, read_waivers(data, file=file), file)


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


def _write(
    pins: Mapping[str, P], file: str, kind: str, record: Callable[[P], Mapping[str, Writable]]
) -> bytes:
    entries = {key: record(pin) for key, pin in sorted(pins.items())}
    return write({"version": 1, kind: entries}, at=file)


def _same(data: bytes, given: object, found: object, file: str) -> bytes:
    """``data``, which must say what was given: a lock that reads as another is never written."""
    if found != given:
        raise ValueError(f"{file}: {given!r} reads back as {found!r}")
    return data
