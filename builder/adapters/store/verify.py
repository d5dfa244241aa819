"""Is the store what it says it is?"""

import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass

from builder.adapters.store import disk
from builder.adapters.store.layout import FileStore
from builder.adapters.store.walk import (
    BlobFile,
    Node,
    Role,
    Roots,
    blobs,
    entries,
    leftovers,
    notes,
    walk,
)
from builder.digest import CHUNK, Digest, Hasher
from builder.errors import IntegrityError
from builder.notes import blobs_of
from builder.ports import Progress

_WORKERS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """Something wrong, and where: a path below the store, or an entry of index.json."""

    at: str
    problem: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What ``verify`` saw.

    ``absent`` and ``stale`` are no errors: layers of a base are only named until their bytes are
    needed, and a memo is a claim. ``leftovers`` are files under way, or what a kill left.
    """

    blobs: int
    size: int
    errors: tuple[Finding, ...]
    corrupt: tuple[Digest, ...]
    absent: tuple[Digest, ...]
    stale: tuple[str, ...]
    leftovers: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return not self.errors


def verify(
    store: FileStore, *, required: Roots | None = None, progress: Progress | None = None
) -> Report:
    """Look at everything, change nothing, and say all that is wrong.

    1. index.json is an index, and each entry of it a descriptor.
    2. Each entry's manifest is there with its size, is well-formed, and has its config.
    3. ``required`` (our own layers, as the caller's traces know them) are there.
    4. Each blob is a regular file with the bytes that its name says.
    5. Memos that name missing blobs, and what lies in ``tmp/``, are told.

    Needs no permission to write. A blob that a ``gc`` takes away meanwhile is passed over.
    """
    errors: list[Finding] = []
    absent = _check_references(store, errors)
    errors.extend(
        Finding(at=f"blobs/sha256/{digest.hex}", problem="missing")
        for digest in (required() if required is not None else ())
        if not store.has(digest)
    )
    files = list(blobs(store))
    corrupt = _check_blobs(store, files, errors, progress)
    stale = tuple(
        f"notes/{note.kind}/{note.key}"
        for note in notes(store)
        if not all(store.has(digest) for digest in blobs_of(note.data))
    )
    return Report(
        blobs=len(files),
        size=sum(file.size for file in files),
        errors=tuple(errors),
        corrupt=corrupt,
        absent=absent,
        stale=stale,
        leftovers=leftovers(store),
    )


def repair(store: FileStore, report: Report) -> tuple[Digest, ...]:
    """Drop the corrupt blobs of a report, so that the next build makes or fetches them again.

    Each is hashed once more, alone with the store: one that was mended meanwhile stays. What the
    report says of directories, links and index.json is for a person to mend.
    """
    dropped: list[Digest] = []
    with store.guards.alone(), disk.faults(store.paths.at):
        for digest in report.corrupt:
            if store.has(digest) and _problem(store, digest, advance=_ignore) is not None:
                os.unlink(store.paths.blob(digest))
                dropped.append(digest)
    return tuple(dropped)


def _check_references(store: FileStore, errors: list[Finding]) -> tuple[Digest, ...]:
    """Append what is wrong; return the blobs that are only named."""
    absent: dict[Digest, None] = {}
    try:
        found = list(entries(store))
    except IntegrityError as error:
        errors.append(Finding(at="index.json", problem=error.message))
        return ()
    try:
        store.references()
    except IntegrityError as error:  # a name that stands for two manifests
        errors.append(Finding(at="index.json", problem=error.message))
    for name, descriptor in found:
        at = f"index.json: {name or descriptor.digest}"
        try:
            for node in walk(store, descriptor, at=at):
                _check_node(store, node, errors)
                if not node.present and not _must_be_there(node):
                    absent[node.descriptor.digest] = None
        except IntegrityError as error:
            errors.append(Finding(at=at, problem=error.message))
    return tuple(absent)


def _check_node(store: FileStore, node: Node, errors: list[Finding]) -> None:
    digest, size = node.descriptor.digest, node.descriptor.size
    if not node.present and _must_be_there(node):
        errors.append(Finding(at=node.at, problem=f"{node.role} {digest} is missing"))
    elif node.present and not store.has(digest, size=size):
        problem = f"{node.role} {digest}: the blob does not have the {size} bytes named"
        errors.append(Finding(at=node.at, problem=problem))


def _must_be_there(node: Node) -> bool:
    return node.root or node.role is Role.CONFIG


def _check_blobs(
    store: FileStore, files: list[BlobFile], errors: list[Finding], progress: Progress | None
) -> tuple[Digest, ...]:
    """Append what is wrong, in the order of names; return the blobs with other bytes."""
    whole = [file.digest for file in files if file.digest is not None and file.regular]
    total = sum(file.size for file in files)
    task = None if progress is None else progress.task("verifying the store", total=total)
    telling = threading.Lock()
    with nullcontext() if task is None else task as shown:

        def advance(count: int) -> None:
            if shown is not None:
                with telling:
                    shown.advance(count)

        with ThreadPoolExecutor(min(_WORKERS, os.cpu_count() or 1)) as pool:
            hashed = dict(
                zip(
                    whole,
                    pool.map(lambda digest: _problem(store, digest, advance=advance), whole),
                    strict=True,
                )
            )
    for file in files:
        if file.digest is None:
            errors.append(Finding(at=file.path, problem="the name is not a sha256 digest"))
        elif not file.regular:
            errors.append(Finding(at=file.path, problem="not a regular file"))
        elif (problem := hashed[file.digest]) is not None:
            errors.append(Finding(at=file.path, problem=problem))
    return tuple(digest for digest, problem in hashed.items() if problem is not None)


def _problem(store: FileStore, digest: Digest, *, advance: Callable[[int], None]) -> str | None:
    """What is wrong with the bytes of a blob."""
    hasher = Hasher()
    try:
        fd = disk.open_regular(store.paths.blob(digest))
        try:
            while chunk := os.read(fd, CHUNK):
                hasher.update(chunk)
                advance(len(chunk))
        finally:
            os.close(fd)
    except FileNotFoundError:
        return None
    except OSError as error:
        return f"cannot be read: {os.strerror(error.errno or 0)}"
    if (got := hasher.digest()) == digest:
        return None
    return f"the bytes ({hasher.size}) are {got}"


def _ignore(count: int) -> None:
    """Nobody wants to know."""
