"""Models from the hub to a disk: what is not there as it was locked, and nothing else."""

import logging
import os
from collections.abc import Callable, Mapping, Sequence

from builder.digest import Digest
from builder.errors import EnvironmentFault, GoneError, IntegrityError, ProjectError
from builder.lock.model import ModelFile, ModelPin
from builder.models.hashing import Crew, at_once
from builder.models.place import Place
from builder.models.shards import listed
from builder.models.standing import standing
from builder.models.verify import State, Verified, verify
from builder.ports import Progress, Store
from builder.upstream import Hub, WantedFile

_log = logging.getLogger(__name__)

_FETCHED = frozenset({State.MISSING, State.SHORT, State.WRONG})


def fetch(
    models: Sequence[tuple[ModelPin, Place]],
    *,
    hub: Hub,
    store: Store,
    progress: Progress,
    clock: Callable[[], int],
    threads: int,
) -> tuple[Verified, ...]:
    """Bring models to their places, by commit and digest. Files that are not locked stay.

    What is there already is verified first and not fetched again; the hub is asked only where
    something is lacking. Where it has squashed the commit away, the same bytes are taken from what
    the pin follows, if they are there. At the end everything is verified once more, as it is on
    the disk.

    Args:
        models: Each with where it is to be.
        clock: Nanoseconds since 1970.
        threads: How many files are hashed or fetched at once.

    Raises:
        ProjectError: A file has no digest or no size in the lock: nothing is fetched that could
            not be verified.
        EnvironmentFault: There is not enough space, or a part of the place is another file
            system. Nothing was fetched.
        GoneError: The hub has neither the commit nor these bytes elsewhere.
        IntegrityError: The hub has other bytes under the commit than were locked.
    """
    for pin, _ in models:
        _check_complete(pin)

    def look(pin: ModelPin, place: Place) -> Verified:
        (found,) = verify(
            [(pin, place)], store=store, progress=progress, clock=clock, threads=threads
        )
        return found

    results = []
    for pin, place in models:
        with hub.alone_in(place.scratch):
            found = look(pin, place)
            lacking = {file.path for file in found.files if file.state in _FETCHED}
            if lacking:
                files = [file for file in pin.files if file.path in lacking]
                _bring(pin, place, files, hub=hub, progress=progress, threads=threads)
                found = look(pin, place)
            results.append(found)
    return tuple(results)


def _check_complete(pin: ModelPin) -> None:
    lacking = [file.path for file in pin.files if file.digest is None or file.size is None]
    if lacking:
        raise ProjectError(
            f"{pin.at or pin.name}: {len(lacking)} of {len(pin.files)} files are without digest or"
            f" size, the first is {lacking[0]!r}",
            hint=f"builder lock {pin.name} completes them; nothing is fetched unverified",
        )


def _bring(
    pin: ModelPin,
    place: Place,
    files: Sequence[ModelFile],
    *,
    hub: Hub,
    progress: Progress,
    threads: int,
) -> None:
    commit = _commit(pin, files, hub=hub)
    names = _blob_names(pin, commit, hub) if place.blobs is not None else {}
    wanted = [_wanted(file, place, names) for file in files]
    wanted.sort(key=lambda file: -file.size)
    _check_device(wanted, place)
    _check_space(wanted, place)

    def bring(crew: Crew, file: WantedFile) -> None:
        with progress.task(file.path, total=file.size) as own:

            def advance(count: int) -> None:
                own.advance(count)
                crew.advance(count)

            if place.blobs is None or not _here(crew, file):
                hub.download(pin.repository, commit, file, advance)

    total = sum(file.size for file in wanted)
    with (
        progress.task(f"fetch {pin.name}", total=total) as task,
        at_once(bring, wanted, task=task, threads=threads) as results,
    ):
        for file, _ in zip(wanted, results, strict=True):
            if place.blobs is not None:
                place.link(file.path, file.target)


def _commit(pin: ModelPin, files: Sequence[ModelFile], *, hub: Hub) -> str:
    """The commit to fetch from: the pin's or, where that is gone, another with the same bytes.

    Raises:
        GoneError: There is none.
    """
    found = standing(pin, hub=hub)
    for remark in found.remarks:
        _log.warning("model %s: %s", pin.name, remark)
    if lost := [file.path for file in files if file.path in found.differing]:
        raise GoneError(
            f"model {pin.repository}: commit {pin.commit} is gone from the hub, and so are"
            f" {len(lost)} of the {len(files)} files to be fetched: {listed(lost)}",
            hint="copy them from where they still are (models verify tells whether they are the"
            f" same), or: builder bump model {pin.name}",
        )
    return found.commit


def _wanted(file: ModelFile, place: Place, names: Mapping[str, str]) -> WantedFile:
    if file.digest is None or file.size is None:
        raise ValueError(f"{file.path}: not complete")
    target = place.target(file.path)
    if place.blobs is not None:
        if file.path not in names:
            raise IntegrityError(f"{file.path}: locked, and not among the files of the hub")
        target = place.blobs / names[file.path]
    # Two paths may have the same bytes, and are fetched at once.
    part = f"{file.digest.hex}-{Digest.of(file.path.encode()).short}.part"
    return WantedFile(
        path=file.path,
        digest=file.digest,
        size=file.size,
        target=target,
        part=place.scratch / part,
    )


def _here(crew: Crew, file: WantedFile) -> bool:
    """Whether the hub's cache has these bytes already, from another revision."""
    try:
        with file.target.open("rb", buffering=0) as blob:
            if os.fstat(blob.fileno()).st_size != file.size:
                return False
            return crew.digest(blob) == file.digest
    except OSError:
        return False


def _check_device(files: Sequence[WantedFile], place: Place) -> None:
    """A whole file is moved to its place, which only works on one file system."""
    here = place.scratch.stat().st_dev
    for file in files:
        above = next(one for one in file.target.parents if one.exists())
        if above.stat().st_dev != here:
            raise EnvironmentFault(
                f"{str(above)!r}: another file system than that of {str(place.scratch)!r}, where"
                " files are until they are whole",
                hint="mount neither by itself, or name a directory that is on one file system",
            )


def _check_space(files: Sequence[WantedFile], place: Place) -> None:
    """Hold what is to come to what is free: half a model is of no use to anybody."""
    here = sum(file.part.stat().st_size for file in files if file.part.exists())
    needed = sum(file.size for file in files) - here
    status = os.statvfs(place.scratch)
    free = status.f_bavail * status.f_frsize
    if needed > free:
        raise EnvironmentFault(
            f"{str(place.directory)!r}: {needed} bytes are to be fetched, {free} are free",
            hint="free some space, or name another directory",
        )


def _blob_names(pin: ModelPin, commit: str, hub: Hub) -> Mapping[str, str]:
    """What the hub's cache calls the bytes of each file: the sha256 of an LFS object, the id of a
    git blob otherwise."""
    files = hub.files(pin.repository, commit)
    return {file.path: file.blob.hex if file.digest is None else file.digest.hex for file in files}
