"""The pins of a project: each lockfile is read once, when something asks for what it holds."""

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TypeVar

from builder.lock import codec
from builder.lock.model import (
    GenesisPin,
    ImagePin,
    ModelPin,
    PullPin,
    Result,
    SourcePin,
    Waiver,
    WheelPin,
)
from builder.project_files import Files
from builder.strict_yaml import SIZE_LIMIT

PinT = TypeVar("PinT")


class Pins:
    """The lockfiles among the files of a project. A file that is absent holds no pins.

    Raises:
        ProjectError: From every member: the file is not what it must be.
    """

    def __init__(self, files: Files) -> None:
        self._files = files
        self._results: dict[str, tuple[Result, ...]] = {}

    @cached_property
    def images(self) -> Mapping[str, ImagePin]:
        """The base images."""
        return self._pins(codec.IMAGES, codec.read_images)

    @cached_property
    def pulls(self) -> Mapping[str, PullPin]:
        """The pull requests."""
        return self._pins(codec.PULLS, codec.read_pulls)

    @cached_property
    def sources(self) -> Mapping[str, SourcePin]:
        """The files of other repositories."""
        return self._pins(codec.SOURCES, codec.read_sources)

    @cached_property
    def wheels(self) -> Mapping[str, WheelPin]:
        """The wheels."""
        return self._pins(codec.WHEELS, codec.read_wheels)

    @cached_property
    def genesis(self) -> Mapping[str, GenesisPin]:
        """The commits of the patch set."""
        return self._pins(codec.GENESIS, codec.read_genesis)

    @cached_property
    def models(self) -> Mapping[str, ModelPin]:
        """The models."""
        return self._pins(codec.MODELS, codec.read_models)

    @cached_property
    def waivers(self) -> Mapping[str, Waiver]:
        """The exceptions that people made."""
        return self._pins(codec.WAIVERS, codec.read_waivers)

    def results(self, variant: str) -> tuple[Result, ...]:
        """What ``variant`` was accepted to bake to; empty where nobody accepted anything."""
        if variant not in self._results:
            file = codec.results_file(variant)
            data = self._read(file)
            self._results[variant] = () if data is None else codec.read_results(data, file=file)[1]
        return self._results[variant]

    def _pins(self, file: str, read: Callable[[bytes], Mapping[str, PinT]]) -> Mapping[str, PinT]:
        data = self._read(file)
        return {} if data is None else read(data)

    def _read(self, file: str) -> bytes | None:
        return self._files.read(file, limit=SIZE_LIMIT)
