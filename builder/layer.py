"""Changes to a tree, made into a layer.

``compose`` says what the layer holds (pure); ``write`` makes its bytes. A base is never repeated:
a layer has the files that change, the directories that the base lacks, and whiteouts (OCI
image-spec, layer.md), which are plain empty files, sorted among the rest, never opaque.
"""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from posixpath import basename, dirname, join, normpath

from builder import tar
from builder.changes import Change, Content, Put, Remove, Symlink
from builder.digest import CHUNK, Digest, Hasher
from builder.errors import IntegrityError, PatchError, ProjectError
from builder.framing import StoredGzip, framed_size
from builder.ports import BlobWriter
from builder.tree import Entry, Kind, View, normal, parents
from builder.value import value
from builder.verdict import Verdict

WHITEOUT = ".wh."
"""How the name of a whiteout begins (OCI image-spec, layer.md, "Whiteouts")."""

_NOTHING = Digest.of(b"")
_NAME_LIMIT = 255
_SEALS = ("security.capability", "security.ima")
"""The xattrs that vouch for a file's content. They must not pass to other bytes unasked."""


@value
class LayerEntry:
    """One entry of a layer to be: what its header says, and where its bytes come from."""

    entry: Entry
    content: Content | None = None

    @property
    def removes(self) -> str | None:
        """The path that a whiteout takes away; ``None`` for everything else."""
        name = basename(self.entry.path)
        if not name.startswith(WHITEOUT):
            return None
        return join(dirname(self.entry.path), name.removeprefix(WHITEOUT))


@value
class Layer:
    """A layer that was written: its two names, and its index, so that nobody reads it back."""

    diff_id: Digest
    """Of the tar: what a config lists, and what the layer is known by."""
    digest: Digest
    """Of the gzip frame: what a manifest lists."""
    size: int
    """Of the gzip frame."""
    entries: tuple[Entry, ...]
    """In the order of the tar, without the whiteouts."""
    whiteouts: tuple[str, ...]
    """The paths that the layer takes away (not the names of the whiteouts)."""
    offsets: tuple[tuple[str, int], ...]
    """For each file, where its content begins in the tar (``framing.framed_offset``: in the
    blob)."""


@dataclass(slots=True)
class _Slot:
    """What one step does to one path. Both: the old file goes and a new one takes its place."""

    remove: Remove | None = None
    write: Put | Symlink | None = None


def compose(changes: Iterable[Change], view: View, *, at: str = "layer") -> tuple[LayerEntry, ...]:
    """What a layer with these changes holds, over the tree ``view``; nothing for no changes.

    Paths are resolved through the links of the tree. A file that replaces one keeps its owner and
    xattrs, and its mode unless the change has one (set-id bits included: the mode is what the base
    says). A hard link that is replaced becomes a file of its own; its other names keep the old
    content. A path may change its kind, or lose what it would keep, only where the same step
    removes it as well.

    Args:
        changes: What one step does, in any order.
        view: The parent tree. Asked about entries only; nothing is read.
        at: Where the changes come from, for messages.

    Raises:
        IntegrityError: A path that leaves the image, or that no image can hold.
        ProjectError: Two changes that contradict each other.
        PatchError: The tree does not take a change: ``file-missing`` or ``refused``.
    """
    slots = _slots(changes, view, at)
    directories = set(_directories(slots, view, at))
    new = (Entry(path=path, kind=Kind.DIRECTORY, mode=0o755) for path in directories)
    found = [LayerEntry(entry=entry) for entry in new]
    for path, slot in slots.items():
        old = view.stat(path)
        if slot.remove is not None:
            _check_removable(path, old, at)
        if slot.write is not None:
            found.append(_written(slot.write, path, None if slot.remove else old, view, at))
        elif path not in directories:
            name = join(dirname(path), WHITEOUT + basename(path))
            found.append(LayerEntry(entry=Entry(path=name, kind=Kind.FILE, digest=_NOTHING)))
    return tuple(sorted(found, key=lambda item: tar.raw(item.entry.path)))


def _slots(changes: Iterable[Change], view: View, at: str) -> dict[str, _Slot]:
    """The changes by resolved path, in the order of the paths."""
    slots: dict[str, _Slot] = {}
    for change in changes:
        path = view.resolve(_checked(change.path, at))
        _checked(path, at)
        slot = slots.setdefault(path, _Slot())
        if (other := slot.remove if isinstance(change, Remove) else slot.write) is not None:
            names = " and ".join(sorted({repr(change.path), repr(other.path)}))
            raise ProjectError(
                f"{at}: {path!r}: two changes to one file (written as {names})",
                hint="put them into two steps, whose order the variant gives",
            )
        if isinstance(change, Remove):
            slot.remove = change
        else:
            slot.write = change
    return dict(sorted(slots.items()))


def _checked(path: str, at: str) -> str:
    """``path``, fit to be the name of an entry."""
    if normal(path, at=at) != path:
        raise IntegrityError(f"{at}: expected a plain path from the image's root, got {path!r}")
    parts = _encoded(path, at).split(b"/")
    if any(len(part) > _NAME_LIMIT for part in parts):
        raise IntegrityError(f"{at}: a name over {_NAME_LIMIT} bytes: {path!r}")
    if any(part.startswith(WHITEOUT.encode()) for part in parts):
        raise IntegrityError(
            f"{at}: {path!r}: a name that starts with {WHITEOUT!r} would delete files",
            hint="the prefix is reserved by the OCI image-spec; no file of an image can have it",
        )
    return path


def _encoded(text: str, at: str) -> bytes:
    try:
        data = tar.raw(text)
    except UnicodeEncodeError:
        data = b""
    # Also where surrogates spell out what is UTF-8: one name must not have two spellings.
    if data.decode("utf-8", "surrogateescape") != text:
        raise IntegrityError(f"{at}: a name that is not text: {text!r}")
    return data


def _directories(slots: dict[str, _Slot], view: View, at: str) -> Iterator[str]:
    """The directories that the layer has to make, after a check that each may be made."""
    writes = {path: slot.write.path for path, slot in slots.items() if slot.write}
    one_each = {dirname(spelled): (path, spelled) for path, spelled in writes.items()}
    for path, spelled in one_each.values():
        real = parents(path)
        links = {view.resolve(parent) for parent in parents(spelled)}.difference(real)
        for parent in (*sorted(links), *real):
            own, old = slots.get(parent), view.stat(parent)
            if own is not None and (own.write or parent in links):
                raise ProjectError(
                    f"{at}: {spelled!r} stands below {parent!r}, which the same step"
                    f" {'writes' if own.write else 'removes'}",
                    hint="name the directory that is meant, or use two steps",
                )
            if parent in links or (old and old.is_directory):
                continue
            if old and not own:
                raise _refused(at, spelled, f"{parent!r} is {_a(old.kind)}, not a directory")
            yield parent


def _check_removable(path: str, old: Entry | None, at: str) -> None:
    if old is None:
        raise PatchError(
            f"{at}: {path!r} is to be removed and does not exist",
            verdict=Verdict.FILE_MISSING,
            path=path,
            hint="drop the removal if the base no longer has the file",
        )
    if old.kind not in (Kind.FILE, Kind.SYMLINK):
        raise _refused(at, path, f"it is {_a(old.kind)}, and only files and links are removed")


def _written(
    change: Put | Symlink, path: str, old: Entry | None, view: View, at: str
) -> LayerEntry:
    """The entry of a new file or link, with what it keeps of the ``old`` one."""
    kind = Kind.FILE if isinstance(change, Put) else Kind.SYMLINK
    if old is not None and old.kind is not kind:
        raise _other_kind(path, old, kind, view, at)
    kept = Entry(path=path, kind=kind) if old is None else replace(old, path=path, target=None)
    if isinstance(change, Symlink):
        target = _target(change, path, at)
        return LayerEntry(entry=replace(kept, mode=0o777, target=target))
    mode = kept.mode if change.mode is None else change.mode
    if not 0 <= mode <= 0o7777:
        raise ProjectError(f"{at}: {path!r}: expected a mode of at most 07777, got {mode:#o}")
    size, digest = change.content.size, change.content.digest
    seals = [name for name, _ in kept.xattrs if name in _SEALS]
    if seals and digest != kept.digest:
        what = f"its {seals[0]} vouches for the old content and must not pass to a new one"
        hint = "remove the file and add it anew in the same step, which drops its xattrs"
        raise _refused(at, path, what, hint=hint)
    entry = replace(kept, mode=mode, size=size, digest=digest)
    return LayerEntry(entry=entry, content=change.content)


def _target(change: Symlink, path: str, at: str) -> str:
    """The text of a link, checked: a relative one must not climb above the image's root."""
    target = change.target
    if not target or b"\0" in _encoded(target, at):
        raise IntegrityError(f"{at}: {path!r}: expected the target of a link, got {target!r}")
    landing = normpath(join("d/" * path.count("/"), target))
    if landing.split("/")[0] == "..":
        raise _refused(at, path, f"as a link to {target!r} it would lead out of the image")
    return target


def _other_kind(path: str, old: Entry, kind: Kind, view: View, at: str) -> PatchError:
    if old.kind is Kind.SYMLINK:
        target = normpath(join("/", dirname(path), old.target or "")).lstrip("/")
        named = view.resolve(target) if target else "/"
        what = f"it is a link to {named!r}, which would stay as it is"
        hint = "change what the link names, or remove the link in the same step"
        return _refused(at, path, what, hint=hint)
    what = f"it is {_a(old.kind)} and cannot become {_a(kind)}"
    removable = old.kind is Kind.FILE
    return _refused(at, path, what, hint="remove it in the same step" if removable else None)


def _refused(at: str, path: str, what: str, *, hint: str | None = None) -> PatchError:
    return PatchError(f"{at}: {path!r}: {what}", verdict=Verdict.REFUSED, path=path, hint=hint)


def _a(kind: Kind) -> str:
    nouns = {Kind.FILE: "a file", Kind.DIRECTORY: "a directory", Kind.SYMLINK: "a link"}
    return nouns.get(kind, "a device or pipe")


def write(entries: Iterable[LayerEntry], writer: BlobWriter) -> Layer:
    """Stream ``entries`` into ``writer`` as a tar in a stored gzip frame, and commit it.

    Takes the entries as ``compose`` gives them: sorted, no path twice. Content is copied in
    chunks and checked on its way, in constant memory.

    Raises:
        IntegrityError: Content that is not of the size or digest that it claims; nothing is
            committed.
    """
    hasher, frame = Hasher(), StoredGzip(writer)

    def emit(chunk: bytes) -> None:
        hasher.update(chunk)
        frame.write(chunk)

    written: list[Entry] = []
    whiteouts: list[str] = []
    offsets: list[tuple[str, int]] = []
    for item in entries:
        entry = item.entry
        emit(tar.header(entry))
        if item.removes is not None:
            whiteouts.append(item.removes)
            continue
        written.append(entry)
        if item.content is not None:
            offsets.append((entry.path, hasher.size))
            _copy(entry, item.content, emit)
            emit(tar.padding(entry.size))
    emit(tar.END)
    frame.close()
    size = framed_size(hasher.size)
    return Layer(
        diff_id=hasher.digest(),
        digest=writer.commit(size=size),
        size=size,
        entries=tuple(written),
        whiteouts=tuple(whiteouts),
        offsets=tuple(offsets),
    )


def _copy(entry: Entry, content: Content, emit: Callable[[bytes], None]) -> None:
    """Copy the content that ``entry`` promises: so many bytes, of that digest, and no more."""
    hasher = Hasher()
    with content.open() as stream:
        while chunk := stream.read(min(CHUNK, entry.size - hasher.size)):
            hasher.update(chunk)
            emit(chunk)
        surplus = stream.read(1)
    if hasher.size != entry.size or surplus:
        got = f"more than {entry.size}" if surplus else str(hasher.size)
        raise IntegrityError(f"{entry.path!r}: expected {entry.size} bytes of content, got {got}")
    if (digest := hasher.digest()) != entry.digest:
        raise IntegrityError(f"{entry.path!r}: expected content {entry.digest}, got {digest}")
