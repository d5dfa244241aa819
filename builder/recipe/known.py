"""What a variant can name: pins and overlays, looked up while it is read."""

from collections.abc import Callable, Collection
from typing import Protocol

from builder.lock import codec
from builder.lock.kinds import Locked
from builder.node import Cursor, did_you_mean, file_path, name, nearest, shortened


class Known(Locked, Protocol):
    """What a variant can name. Asked only for the kinds that it does name."""

    @property
    def overlays(self) -> Collection[str]:
        """The names of the overlays of the project."""


class Names:
    """The readers of names, each of which must lead somewhere. With ``None`` all do."""

    def __init__(self, known: Known | None) -> None:
        self._known = known

    def image(self, node: Cursor) -> str:
        return self._one_of(node, "vllm", codec.IMAGES, lambda known: known.images)

    def pull(self, node: Cursor) -> str:
        return self._one_of(node, "pull", codec.PULLS, lambda known: known.pulls)

    def overlay(self, node: Cursor) -> str:
        return self._one_of(node, "overlay", "overlays", lambda known: known.overlays)

    def source(self, node: Cursor) -> str:
        return self._one_of(node, "source", codec.SOURCES, lambda known: known.sources)

    def wheel(self, node: Cursor) -> str:
        return self._one_of(node, "wheel", codec.WHEELS, lambda known: known.wheels)

    def genesis(self, node: Cursor) -> str:
        return self._one_of(node, "genesis", codec.GENESIS, lambda known: known.genesis)

    def model(self, node: Cursor) -> str:
        return self._one_of(node, "model", codec.MODELS, lambda known: known.models)

    def file_of(self, source: str) -> Callable[[Cursor], str]:
        """A reader for a file that the source pins."""

        def read(node: Cursor) -> str:
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

        return read

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
