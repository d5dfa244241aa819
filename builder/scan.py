"""A layer's stream to its file index, its diff_id, and the contents that are worth keeping.

One pass, in constant memory, on two cores: the chunks (which verify their own digest) are
inflated in one thread, hashed whole in another, and taken apart in the caller's.
"""

from collections.abc import Callable, Iterable, Iterator

from builder.ahead import ahead
from builder.digest import Digest, Hasher
from builder.errors import IntegrityError
from builder.files import FileIndex
from builder.inflate import inflate
from builder.kept import Kept, Pack
from builder.lines import Lines
from builder.ports import BlobWriter
from builder.tree import Entry
from builder.untar import Member, read
from builder.value import value

_DEPTH = 4
_WHITEOUT = ".wh."
_OPAQUE = ".wh..wh..opq"
_AUFS = ".wh..wh."


@value
class Scan:
    """What one pass over a layer gave."""

    index: FileIndex
    diff_id: Digest
    kept: Kept


def scan(
    chunks: Iterable[bytes],
    *,
    keep: Callable[[Entry], bool],
    kept: BlobWriter,
    expected_diff_id: Digest | None = None,
    media_type: str | None = None,
    at: str = "layer",
) -> Scan:
    """Read a layer once.

    Args:
        chunks: The blob as served. It is read to its end, in another thread, and verifies itself.
        keep: Which regular files' contents go into the pack. The entry has no digest yet.
        kept: Where the pack is written. Committing it is left to the caller, and is allowed only
            when this function has returned.
        expected_diff_id: What the config says that the layer inflates to.
        media_type: What the descriptor says of the blob.
        at: Which layer it is, for messages.

    Raises:
        IntegrityError: From ``chunks``, or as :func:`builder.inflate.inflate`,
            :func:`builder.untar.read` and :meth:`builder.files.FileIndex.build` say; a whiteout
            of nothing; another diff_id than expected.
    """
    hasher = Hasher()
    pack = Pack(kept)
    lines = Lines(at=at)
    inflated = inflate(chunks, at=at, media_type=media_type)
    with (
        ahead(inflated, depth=_DEPTH) as pieces,
        ahead(_hashed(pieces, hasher), depth=_DEPTH) as hashed,
    ):
        for member in read(hashed, at=at):
            if _WHITEOUT not in member.entry.path or not _mark(member.entry.path, lines, at=at):
                _take(member, keep=keep, pack=pack, lines=lines)
    diff_id = hasher.digest()
    if expected_diff_id not in (None, diff_id):
        raise IntegrityError(f"{at}: expected diff_id {expected_diff_id}, got {diff_id}")
    return Scan(index=FileIndex(lines.raw()), diff_id=diff_id, kept=pack.finish())


def _hashed(pieces: Iterator[bytes], hasher: Hasher) -> Iterator[bytes]:
    for piece in pieces:
        hasher.update(piece)
        yield piece


def _take(member: Member, *, keep: Callable[[Entry], bool], pack: Pack, lines: Lines) -> None:
    entry = member.entry
    if not entry.is_file:
        lines.add(entry)
    elif keep(entry):
        lines.add(entry, pack.keep(member.chunks(), size=entry.size))
    else:
        lines.add(entry, member.digest())


def _mark(path: str, lines: Lines, *, at: str) -> bool:
    """Take note of a whiteout; ``False`` if ``path`` is none.

    OCI image-spec, layer.md, "Whiteouts": ``.wh.NAME`` removes NAME of the lower layers, whatever
    kind of member it is, and ``.wh..wh..opq`` all that they have in the directory. Where in the
    archive they stand does not matter: they never act on their own layer.
    """
    directory, _, name = path.rpartition("/")
    if name == _OPAQUE:
        lines.opaque(directory)
        return True
    parts = path.split("/")
    if any(part.startswith(_AUFS) for part in parts):
        return True  # bookkeeping of aufs (hard links, orphans), which every unpacker skips
    if any(part.startswith(_WHITEOUT) for part in parts[:-1]):
        raise IntegrityError(f"{at}: {path!r} lies below a whiteout")
    if not name.startswith(_WHITEOUT):
        return False
    gone = name[len(_WHITEOUT) :]
    if gone in ("", ".", ".."):
        raise IntegrityError(f"{at}: the whiteout {path!r} names {gone!r}, wanted a file name")
    lines.whiteout(f"{directory}/{gone}" if directory else gone)
    return True
