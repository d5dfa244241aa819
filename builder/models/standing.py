"""Whether the hub still has what a pin locks: models are renamed, and histories squashed."""

from builder.digest import Digest
from builder.errors import GoneError
from builder.lock.model import ModelFile, ModelPin
from builder.models.shards import listed
from builder.upstream import Hub, HubFile
from builder.value import value


@value
class Standing:
    """Where the files of a pin can be had. ``commit`` is the pin's own, or what it follows where
    that one is gone; ``differing`` are the locked files that are others there, or are missing."""

    pin: ModelPin
    repository: str
    commit: str
    differing: tuple[str, ...] = ()

    @property
    def gone(self) -> bool:
        """Whether the hub has the pin's commit no more."""
        return self.commit != self.pin.commit.hex

    @property
    def renamed(self) -> str:
        """Of a model that has another name now."""
        return (
            f"the hub calls {self.pin.repository} {self.repository} now; the old name leads there"
            " until somebody else takes it"
        )

    @property
    def squashed(self) -> str:
        """Of a commit that is gone."""
        count, total = len(self.differing), len(self.pin.files)
        differ = f"{count} of {total} files differ: {listed(self.differing)}"
        return (
            f"commit {self.pin.commit.short} is gone from the hub; {self.pin.follows} is at"
            f" {self.commit[:12]}, where {differ if count else f'all {total} files are the same'}"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What there is to tell, as sentences without a full stop."""
        told = [self.renamed] if self.repository != self.pin.repository else []
        return (*told, self.squashed) if self.gone else tuple(told)


def standing(pin: ModelPin, *, hub: Hub) -> Standing:
    """Ask the hub about a pin's commit and, where that is gone, about what it follows.

    Raises:
        GoneError: The model is gone, or its commit is and it follows nothing.
    """
    try:
        found = hub.revision(pin.repository, pin.commit.hex)
    except GoneError:
        if pin.follows is None:
            raise
        found = hub.revision(pin.repository, pin.follows)
    else:
        return Standing(pin=pin, repository=found.repository, commit=found.commit)
    there = {file.path: file for file in hub.files(pin.repository, found.commit)}
    differing = [
        file.path
        for file in pin.files
        if not _same(file, there.get(file.path), pin=pin, commit=found.commit, hub=hub)
    ]
    return Standing(
        pin=pin,
        repository=found.repository,
        commit=found.commit,
        differing=tuple(differing),
    )


def _same(file: ModelFile, other: HubFile | None, *, pin: ModelPin, commit: str, hub: Hub) -> bool:
    if other is None or file.digest is None or file.size != other.size:
        return False
    if other.digest is not None:
        return other.digest == file.digest
    data = hub.read(pin.repository, commit, file.path, limit=other.size)
    return Digest.of(data) == file.digest
