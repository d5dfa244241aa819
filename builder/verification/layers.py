"""The files of a layer, read from its own bytes: no memo of anybody is believed."""

from collections.abc import Iterable, Iterator

from builder.digest import Digest, Hasher
from builder.errors import IntegrityError
from builder.files import FileIndex
from builder.scan import scan
from builder.verification.chain import SaidLayer


class _Nowhere:
    """A writer that keeps nothing: no content of a layer is wanted, only its digests."""

    def write(self, chunk: bytes | bytearray | memoryview) -> int:
        return len(chunk)

    def commit(self, expected: Digest | None = None, *, size: int | None = None) -> Digest:
        raise AssertionError((expected, size))


def index_of(layer: SaidLayer, chunks: Iterable[bytes], *, at: str) -> FileIndex:
    """The file index of a layer that a statement names.

    Args:
        chunks: The blob, whoever it comes from.

    Raises:
        IntegrityError: It is another blob, inflates to something else, or is no layer.
    """
    found = scan(
        _verified(layer, chunks, at=at),
        keep=lambda _: False,
        kept=_Nowhere(),
        expected_diff_id=layer.diff_id,
        at=f"{at}: layer of step {layer.step!r}",
    )
    return found.index


def _verified(layer: SaidLayer, chunks: Iterable[bytes], *, at: str) -> Iterator[bytes]:
    hasher = Hasher()
    for chunk in chunks:
        hasher.update(chunk)
        yield chunk
    if (got := hasher.digest()) != layer.digest:
        raise IntegrityError(f"{at}: layer of step {layer.step!r}: {got}, wanted {layer.digest}")
