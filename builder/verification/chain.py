"""An image held to its manifest statement: every layer in order, and every file at hand.

The statement is of somebody whom we trust; the image's documents are whoever's. What the statement
does not name must not be in the image, and what it names must be there.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from builder.base import config_of
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.files import FileIndex
from builder.oci import Manifest
from builder.value import value


@value
class SaidLayer:
    """A layer as the statement has it. ``step`` is ``None`` for one of the base; ``files`` are the
    post-images of a step, ``None`` for a file that it removes."""

    digest: Digest
    size: int
    diff_id: Digest
    step: str | None = None
    files: tuple[tuple[str, Digest | None], ...] = ()


def layers_of(predicate: Mapping[str, Any], *, at: str) -> tuple[SaidLayer, ...]:
    """The layers that a manifest statement names, bottom first.

    Raises:
        IntegrityError: It is not what its schema says.
    """
    try:
        return tuple(_layers(predicate))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise IntegrityError(f"{at}: not a manifest statement of builder: {error!r}") from error


def _layers(predicate: Mapping[str, Any]) -> Iterator[SaidLayer]:
    base = predicate.get("base")
    for layer in () if base is None else base["layers"]:
        yield _layer(layer)
    for step in predicate["steps"]:
        if "layer" in step:
            files = tuple((file["path"], _post(file)) for file in step["files"])
            yield _layer(step["layer"], step=step["name"], files=files)


def _layer(
    layer: Mapping[str, Any],
    *,
    step: str | None = None,
    files: tuple[tuple[str, Digest | None], ...] = (),
) -> SaidLayer:
    return SaidLayer(
        digest=_digest(layer["digest"]),
        size=layer["size"],
        diff_id=_digest(layer["diff_id"]),
        step=step,
        files=files,
    )


def _digest(text: str) -> Digest:
    return Digest.parse(text, at="manifest statement", refusal=IntegrityError)


def _post(file: Mapping[str, Any]) -> Digest | None:
    return _digest(file["post"]) if "post" in file else None


def check_documents(
    said: Sequence[SaidLayer],
    predicate: Mapping[str, Any],
    manifest: Manifest,
    config: bytes,
    *,
    at: str,
) -> None:
    """Hold manifest and config to the statement.

    Args:
        config: The bytes that the manifest's config descriptor names, verified.

    Raises:
        IntegrityError: Another manifest or config; a layer more, less, or in another place.
    """
    image = predicate.get("image")
    wanted = {"manifest": str(manifest.digest), "config": str(manifest.config.digest)}
    if image != wanted:
        raise IntegrityError(f"{at}: the statement is about {image}, the image is {wanted}")
    diff_ids = config_of(config, at=f"{at}: config")["rootfs"]["diff_ids"]
    if len(diff_ids) != len(manifest.layers):
        raise IntegrityError(
            f"{at}: {len(manifest.layers)} layers, and {len(diff_ids)} diff_ids in the config"
        )
    got = [
        (str(layer.digest), layer.size, diff_id)
        for layer, diff_id in zip(manifest.layers, diff_ids, strict=True)
    ]
    expected = [(str(layer.digest), layer.size, str(layer.diff_id)) for layer in said]
    if got != expected:
        raise IntegrityError(f"{at}: {_difference(said, expected, got)}")


def _difference(
    said: Sequence[SaidLayer],
    expected: Sequence[tuple[str, int, str]],
    got: Sequence[tuple[str, int, str]],
) -> str:
    if len(expected) != len(got):
        return f"the statement names {len(expected)} layers, the image has {len(got)}"
    number = next(
        n for n, (one, other) in enumerate(zip(expected, got, strict=True)) if one != other
    )
    whose = "the base" if said[number].step is None else f"step {said[number].step!r}"
    return (
        f"layer {number}, of {whose}: the statement names {expected[number][0]} (diff_id"
        f" {expected[number][2]}), the image has {got[number][0]} (diff_id {got[number][2]})"
    )


def check_files(layer: SaidLayer, found: FileIndex, *, at: str) -> int:
    """Hold the files of one layer of ours to the statement; returns how many were looked at.

    Raises:
        IntegrityError: A file is not there, is another one, or was not removed.
    """
    for path, post in layer.files:
        entry = found.lookup(path)
        got = None if entry is None else entry.digest
        if post is None and not found.whiteout(path):
            raise IntegrityError(f"{at}: step {layer.step!r} removes {path!r}, its layer does not")
        if got != post:  # a layer may remove a file, and have it all the same
            raise IntegrityError(
                f"{at}: step {layer.step!r}: {path!r}: the statement names"
                f" {post or 'no such file'}, the layer has {got or 'no such file'}"
            )
    return len(layer.files)
