"""An OCI image layout on disk as the origin of a base. It is only read."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from builder import canonical
from builder.digest import CHUNK, Digest, Hasher
from builder.errors import (
    BuilderError,
    EnvironmentFault,
    GoneError,
    IntegrityError,
    ProjectError,
)
from builder.oci import MANIFEST_LIMIT, Descriptor

_LISTED = 3


class LayoutOrigin:
    """:class:`builder.base.Origin` over ``root``/blobs (image-spec, image-layout.md).

    Raises:
        ProjectError: ``root`` is no layout.
    """

    def __init__(self, root: Path) -> None:
        if not (root / "oci-layout").is_file():
            raise ProjectError(
                f"{root}: not an OCI image layout: it has no file 'oci-layout'",
                hint="skopeo copy SOURCE oci:DIR makes one",
            )
        self._root = root

    def document(self, digest: Digest) -> bytes:
        """An index or manifest, verified."""
        try:
            path = self._path(digest)
        except GoneError as error:
            if named := self._named():
                error.hint = f"the image was made anew, or copied in part; the layout names {named}"
            raise
        with _reading(path), path.open("rb") as file:
            data = file.read(MANIFEST_LIMIT + 1)
        if len(data) > MANIFEST_LIMIT:
            raise IntegrityError(f"{path}: over {MANIFEST_LIMIT} bytes, no manifest")
        return digest.check(data, at=str(path))

    def blob(self, descriptor: Descriptor) -> Iterator[bytes]:
        """A blob in chunks, verified at its end."""
        path = self._path(descriptor.digest)
        hasher = Hasher()
        with _reading(path), path.open("rb") as file:
            while chunk := file.read(CHUNK):
                hasher.update(chunk)
                if hasher.size > descriptor.size:
                    break
                yield chunk
        if (hasher.digest(), hasher.size) != (descriptor.digest, descriptor.size):
            raise IntegrityError(
                f"{path}: expected {descriptor.digest} ({descriptor.size} bytes), got"
                f" {hasher.digest()} ({hasher.size} bytes)"
            )

    def _path(self, digest: Digest) -> Path:
        path = self._root / "blobs" / "sha256" / digest.hex
        with _reading(path):
            there = path.is_file()
        if not there:
            raise GoneError(
                f"{self._root}: no blob {digest} in the layout", hint="copy the image again"
            )
        return path

    def _named(self) -> str:
        """The images that the layout names, for people; nothing where that cannot be read."""
        try:
            with (self._root / "index.json").open("rb") as file:
                document = canonical.decode(file.read(MANIFEST_LIMIT + 1), at="index.json")
            named = document["manifests"]
            return ", ".join(str(Digest.parse(item["digest"])) for item in named[:_LISTED])
        except (OSError, TypeError, LookupError, BuilderError):
            return ""


@contextmanager
def _reading(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentFault(f"{path}: cannot be read: {error.strerror}") from error
