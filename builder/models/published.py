"""Digests that somebody publishes of a model's files: compared with a pin, and taken where nobody
else can be asked."""

from collections.abc import Mapping
from dataclasses import replace

from builder.digest import Digest
from builder.errors import ProjectError
from builder.lock.model import ModelFile, ModelPin
from builder.models.checksums import compare
from builder.models.selection import DEFAULT, selected
from builder.models.shards import listed
from builder.value import field, value


@value
class Published:
    """The digests by path, and where they are from."""

    at: str
    digests: Mapping[str, Digest] = field(repr=False)

    def of(self, pin: ModelPin) -> "Published":
        """Those of one model: below a directory of the pin's name, where the file speaks of several
        models as ``builder models sums`` does."""
        below = f"{pin.name}/"
        if any(file.path.startswith(below) for file in pin.files):
            return self
        own = {
            path.removeprefix(below): digest
            for path, digest in self.digests.items()
            if path.startswith(below)
        }
        return replace(self, digests=own) if own else self

    def agree(self, pin: ModelPin) -> str:
        """Hold a pin to them; returns what there is to tell.

        Raises:
            IntegrityError: One is another than is locked, or they speak of no locked file.
        """
        digests, total = self.of(pin).digests, len(pin.files)
        count = compare(pin, digests, at=self.at)
        beside = sorted(digests.keys() - {file.path for file in pin.files})
        more = f"; {len(beside)} that are not pinned: {listed(beside)}" if beside else ""
        return f"{self.at} has {count} of its {total} files, each as it is pinned{more}"


def pinned_by(published: Published, pin: ModelPin) -> ModelPin:
    """The pin with the digests that it lacks, by what is published alone. A pin without files gets
    those that its ``include`` selects. Sizes stay unknown where they are.

    Raises:
        ProjectError: A file has no digest there, or no file is selected.
        IntegrityError: As :meth:`Published.agree`.
    """
    digests = published.of(pin).digests
    chosen = selected(sorted(digests), pin.include or DEFAULT)
    files = pin.files or tuple(ModelFile(path=path) for path in chosen)
    if not files:
        raise ProjectError(
            f"{published.at}: 'include' selects none of its {len(digests)} files",
            hint="globs are compared with whole paths, * also matches /",
        )
    lacking = [file.path for file in files if file.digest is None and file.path not in digests]
    if lacking:
        raise ProjectError(
            f"{published.at}: no digest of {len(lacking)} files of {pin.name}: {listed(lacking)}",
            hint="without the hub every digest that the pin lacks must be there",
        )
    whole = replace(
        pin,
        files=tuple(
            replace(file, digest=digests[file.path]) if file.digest is None else file
            for file in files
        ),
    )
    published.agree(whole)
    return whole
