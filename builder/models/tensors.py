"""The files of a model together: shards that its index names, tensors that its pin speaks of."""

import posixpath
from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from contextlib import contextmanager
from io import FileIO

from builder import canonical
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.lock.model import ModelPin
from builder.models.place import Place
from builder.models.safetensors import Header, read_header
from builder.models.shards import (
    LIMIT,
    SUFFIX,
    ShardIndex,
    check_complete,
    check_tensors,
    listed,
    read_index,
)

_VERSION = 2
"""Raised where the same files would be judged otherwise."""


def question(pin: ModelPin) -> Digest:
    """What :func:`judge` answers, by content: the same files and assertions, the same findings."""
    files = {file.path: file.digest and str(file.digest) for file in pin.files}
    asked = [_VERSION, files, pin.require, pin.forbid, pin.tensors, pin.dtypes]
    return Digest.of(canonical.encode(asked))


def judge(
    pin: ModelPin,
    place: Place,
    good: AbstractSet[str],
    *,
    damaged: AbstractSet[str] = frozenset(),
) -> tuple[str, ...]:
    """What is wrong with a model beyond the bytes of single files.

    1. Each safetensors file has a header that fits it.
    2. Each index names locked files that are here, and each tensor is where it says.
    3. The tensors are those that the pin speaks of: names, count, dtypes. What lies beside an index
       that does not name it is not loaded, and has none that a pin could require.

    Args:
        good: The files that are what was locked; no other is looked into.
        damaged: Those that are there, and are not: they are not called missing.
    """
    findings: list[str] = []
    headers: dict[str, Header] = {}
    for path in sorted(good):
        if path.endswith(".safetensors"):
            try:
                headers[path] = _header(place, path, at=pin.name)
            except IntegrityError as error:
                findings.append(error.message)
    indexes: list[ShardIndex] = []
    for path in sorted(good):
        if path.endswith(SUFFIX):
            try:
                indexes.append(_index(place, path, at=pin.name))
                check_complete(indexes[-1], good | damaged, at=pin.name)
            except IntegrityError as error:
                findings.append(error.message)
            else:
                findings += _lost(pin, indexes[-1], headers)
    weights = {file.path for file in pin.files if file.path.endswith(".safetensors")}
    if weights == headers.keys():  # of half a model it would not be known what it lacks
        findings += _named(pin, headers, indexes)
        dtypes = {dtype for header in headers.values() for dtype in header.dtypes.values()}
        if pin.dtypes and dtypes != set(pin.dtypes):
            findings.append(
                f"{pin.name}: its tensors are {listed(sorted(dtypes)) or 'none'}, the pin wants"
                f" {listed(pin.dtypes)}"
            )
    return tuple(findings)


@contextmanager
def _opened(place: Place, path: str, *, at: str) -> Iterator[tuple[FileIO, int]]:
    """A file of the model, with its size."""
    real = place.find(path)
    if real is None:
        raise IntegrityError(f"{at}: {path}: gone while the model was verified")
    with place.open(real) as (file, identity):
        yield file, identity.size


def _header(place: Place, path: str, *, at: str) -> Header:
    with _opened(place, path, at=at) as (file, size):
        return read_header(file, size=size, at=f"{at}: {path}")


def _named(
    pin: ModelPin, headers: Mapping[str, Header], indexes: Collection[ShardIndex]
) -> Iterator[str]:
    """Whether the tensors that are loaded are those that the pin speaks of."""
    known = {shard for index in indexes for shard in index.shards}
    indexed = {posixpath.dirname(index.path) for index in indexes}
    beside = [p for p in headers if p not in known and posixpath.dirname(p) in indexed]
    names = {name for path, it in headers.items() if path not in beside for name in it.dtypes}
    try:
        check_tensors(names, pin, at=pin.name)
    except IntegrityError as error:
        yield error.message + (f"; no index names {listed(beside)}" if beside else "")
    unread = {name for path in beside for name in headers[path].dtypes} - names
    if banned := [name for name in pin.forbid if name in unread]:
        yield f"{pin.name}: {listed(beside)} has {listed(banned)}, which the pin forbids"


def _lost(pin: ModelPin, index: ShardIndex, headers: Mapping[str, Header]) -> Iterator[str]:
    lost = sorted(
        f"{name} in {shard}"
        for name, shard in index.weights.items()
        if shard in headers and name not in headers[shard].dtypes
    )
    if lost:
        yield f"{pin.name}: {index.path} names tensors that are not there: {listed(lost)}"


def _index(place: Place, path: str, *, at: str) -> ShardIndex:
    with _opened(place, path, at=at) as (file, size):
        if size > LIMIT:
            raise IntegrityError(f"{at}: {path}: {size} bytes, the limit is {LIMIT}")
        return read_index(file.read(), path=path, at=at)
