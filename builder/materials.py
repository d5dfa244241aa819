"""The pinned bytes that steps work with: from the store by digest, else from where the pin says,
else, where that says that they are gone, from a copy of ours; verified in any case and then kept.
And the place where those that are programs may run."""

import zlib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from builder import notes
from builder.digest import Digest, ObjectId
from builder.errors import (
    AbsentMirrorError,
    GoneError,
    IntegrityError,
    NetworkError,
    OfflineError,
    ProjectError,
)
from builder.lock.model import (
    GenesisPin,
    Lock,
    PullPin,
    SourceFile,
    SourcePin,
    Subtree,
    WheelPin,
)
from builder.origin import OpenCopy, reason, with_copies
from builder.ports import Git, GitFile, GitSubtree, Store, Wheels
from builder.value import field, value

if TYPE_CHECKING:
    from builder.copies import FilePin, PinCopies
    from builder.sandbox import Sandbox

_SOURCE_LIMIT = 64 << 20

T = TypeVar("T")


@value
class PinnedMaterials:
    """:class:`~builder.steps.request.Materials` over a store, git remotes and wheels.

    ``git``, ``wheels`` and ``make_sandbox`` are called to get the adapters when they are needed:
    a build that needs nothing new never loads them.
    """

    lock: Lock
    store: Store
    git: Callable[[], Git]
    wheels: Callable[[], Wheels]
    make_sandbox: "Callable[[], Sandbox]"
    open_copy: OpenCopy
    _lost: "dict[tuple[type, str], PinCopies]" = field(
        default_factory=dict, repr=False, compare=False, hash=False
    )
    """The copies of pins that are gone or out of reach: upstream is not asked for each file."""

    @property
    def sandbox(self) -> "Sandbox":
        """Where programs run.

        Raises:
            EnvironmentFault: This machine has no sandbox.
        """
        return self.make_sandbox()

    def payload(self, pin: GenesisPin) -> GitSubtree:
        """What a patch set puts into the packages directory.

        Raises:
            ProjectError: The pin does not say which directory that is.
            IntegrityError: The commit, or the directory, is not what was pinned.
            GoneError, NetworkError: It is not in the store and cannot be had.
        """
        if pin.payload is None:
            raise ProjectError(
                f"{pin.at}: no 'payload', so that nobody knows what to install",
                hint="write its path in the repository and the id of its tree into the lock",
            )
        return self._subtree(pin, pin.payload, "payload")

    def plugin(self, pin: GenesisPin) -> GitSubtree | None:
        """The plugin of a patch set, where the pin has one. Raises as :meth:`payload`."""
        return None if pin.plugin is None else self._subtree(pin, pin.plugin, "plugin")

    def _subtree(self, pin: GenesisPin, wanted: Subtree, key: str) -> GitSubtree:
        """A directory of the commit: kept by its tree id, of which its files give proof."""
        from builder import git_tree  # noqa: PLC0415 - few variants have a patch set

        if (files := self._kept_files(wanted.tree)) is not None:
            return GitSubtree(tree=str(wanted.tree), files=files)
        found = self._or_copy(
            pin,
            lambda: self._fetched_subtree(pin, wanted.path),
            lambda copies: copies.subtree(key),
        )
        got = git_tree.tree_id(found.files, like=wanted.tree)
        if got != wanted.tree:
            raise IntegrityError(
                f"{pin.at}.{key}: {wanted.path!r} at {pin.commit.short} has tree {got}, the lock"
                f" pins {wanted.tree}"
            )
        from isal import isal_zlib  # noqa: PLC0415 - only where a tree is new

        packed = isal_zlib.compress(git_tree.pack(found.files), 1)
        self.store.take_note(notes.TREE, str(wanted.tree), packed)
        return GitSubtree(tree=str(wanted.tree), files=found.files)

    def _fetched_subtree(self, pin: GenesisPin, path: str) -> GitSubtree:
        git = self.git()
        self._check_commit(git, pin)
        return git.subtree(pin.repository, str(pin.commit), path)

    @staticmethod
    def _check_commit(git: Git, pin: GenesisPin | SourcePin) -> None:
        tree = git.tree(pin.repository, str(pin.commit))
        if tree != str(pin.tree):
            raise IntegrityError(
                f"{pin.at}: commit {pin.commit} has tree {tree}, the lock pins {pin.tree}"
            )

    def _or_copy(
        self, pin: "FilePin", fetch: Callable[[], T], copied: "Callable[[PinCopies], T]"
    ) -> T:
        """What is fetched, or where it is gone, what ``copied`` gets out of a copy of ours."""
        key = (type(pin), pin.name)
        if key in self._lost:
            return copied(self._lost[key])
        try:
            return fetch()
        except (GoneError, OfflineError, AbsentMirrorError) as error:
            absent = reason(error, pin.escrow)
            from builder.copies import PinCopies  # noqa: PLC0415 - only where something is lost

            self._lost[key] = PinCopies(pin, absent, open_copy=self.open_copy)
            return copied(self._lost[key])
        except NetworkError as error:
            hint = with_copies(error.hint, pin.escrow)
            raise type(error)(error.message, hint=hint) from error

    def _kept_files(self, tree: ObjectId) -> tuple[GitFile, ...] | None:
        from builder import git_tree  # noqa: PLC0415 - as above

        packed = self.store.note(notes.TREE, str(tree))
        if packed is None:
            return None
        try:
            files = git_tree.unpack(zlib.decompress(packed))
        except (zlib.error, IntegrityError):
            return None  # half a memo is none
        return files if git_tree.tree_id(files, like=tree) == tree else None

    def source(self, pin: SourcePin, path: str) -> bytes:
        """One file of a source pin.

        Raises:
            IntegrityError: The commit's tree, or the file, is not what was pinned.
            GoneError, NetworkError: It is not in the store and cannot be had.
        """
        file = pin.file(path)
        if file is None:
            raise ProjectError(f"{pin.at}: no pinned file {path!r}")
        if self.store.has(file.digest):
            return self.store.read(file.digest, limit=_SOURCE_LIMIT)
        data = self._or_copy(
            pin,
            lambda: self._fetched_file(pin, file),
            lambda copies: copies.read(file.digest),
        )
        self.store.put(data)
        return data

    def _fetched_file(self, pin: SourcePin, file: SourceFile) -> bytes:
        git = self.git()
        self._check_commit(git, pin)
        (found,) = git.files(pin.repository, str(pin.commit), (file.path,))
        if found.mode == "120000":
            raise IntegrityError(f"{pin.at}: {file.path!r} is a symbolic link, not a file")
        return file.digest.check(found.data, at=f"{pin.at}: {file.path!r} at {pin.commit.short}")

    def pull(self, pin: PullPin) -> bytes:
        """The diff of a pull request, by whichever way the pin has it.

        Raises:
            IntegrityError: The change is not the pinned one.
            GoneError, NetworkError: It is not in the store and cannot be had.
        """
        if pin.raw is not None and self.store.has(pin.raw):
            data = self.store.read(pin.raw, limit=_SOURCE_LIMIT)
        elif pin.published is not None:
            published, source = pin.published, self.lock.sources.get(pin.published.source)
            if source is None:
                raise ProjectError(
                    f"{pin.at}: published.source: no pin {published.source!r} in"
                    " lockfiles/sources.yaml"
                )
            data = self._or_copy(
                pin, lambda: self.source(source, published.path), lambda copies: copies.only()
            )
        else:
            data = self._diff(pin)
        from builder import diff  # noqa: PLC0415 - only a step that runs asks for its diff

        got = diff.canonical(diff.parse(data, at=pin.at))
        if got != pin.diff:
            raise IntegrityError(
                f"{pin.at}: the change is {got}, the lock pins {pin.diff}",
                hint="look at the change; if it is the one that you mean, write its digest"
                " into the lock",
            )
        return data

    def _diff(self, pin: PullPin) -> bytes:
        if pin.base is None or pin.head is None:
            raise ProjectError(f"{pin.at}: neither base and head nor 'published'")
        if (packed := self.store.note(notes.DIFF, f"{pin.base}-{pin.head}")) is not None:
            try:
                return zlib.decompress(packed)
            except zlib.error:
                pass  # a memo is a claim; the change is checked by its caller
        data = self._or_copy(
            pin,
            lambda: self.git().diff(pin.repository, str(pin.base), str(pin.head)),
            lambda copies: copies.only(),
        )
        keep_diff(self.store, pin, data)
        return data

    def wheel(self, pin: WheelPin) -> Path | bytes:
        """A wheel: its file, or its bytes where the project has it unpacked.

        Raises:
            IntegrityError: It is not the pinned one.
            GoneError, NetworkError: It is not at hand and cannot be had.
        """
        if pin.path is not None:
            packed = self.wheels().pack(pin.path)
            if (got := Digest.of(packed)) != pin.digest:
                raise IntegrityError(
                    f"{pin.at}: the wheel in {pin.path!r} is {got}, the lock pins {pin.digest}",
                    hint="if the change is meant, write the new digest into the lock",
                )
            return packed
        wheels = self.wheels()
        return self._or_copy(
            pin,
            lambda: wheels.fetch(
                project=pin.project, version=pin.version, filename=pin.filename, digest=pin.digest
            ),
            lambda copies: wheels.keep(
                copies.stream(pin.digest), filename=pin.filename, digest=pin.digest
            ),
        )


def keep_diff(store: Store, pin: PullPin, data: bytes) -> None:
    """Keep the diff between the commits of a pull request where a build looks for it first."""
    store.take_note(notes.DIFF, f"{pin.base}-{pin.head}", zlib.compress(data))
