"""Files of other repositories: from a commit, a branch or a tag to the digests of the files."""

import difflib
import posixpath
from collections.abc import Mapping

from builder.digest import Digest, ObjectId
from builder.errors import IntegrityError, ProjectError
from builder.lock.model import SourceFile, SourcePin
from builder.ports import Git, GitEntry
from builder.resolve.commits import between, moved_ref, settled
from builder.resolve.found import Resolved
from builder.resolve.targets import find_target
from builder.upstream import History


def resolve_source(
    repository: str,
    target: str | None,
    paths: tuple[str, ...],
    *,
    name: str,
    follows: str | None,
    git: Git,
    history: History,
    now: str,
    before: SourcePin | None = None,
) -> Resolved[SourcePin]:
    """Pin ``paths`` at ``target``: a full commit id, a branch, a tag, a full ref, ``pull/N``;
    ``None`` for what ``follows`` names now. ``before``'s escrow is kept where the files are the
    same.

    Raises:
        ProjectError: No path, or one twice; a short id; a name that is both a branch and a tag.
        GoneError: There is no such commit, branch or tag.
        IntegrityError: A path is not a file there: the hint has the nearest one.
    """
    at = f"source {name!r}"
    if not paths or len({*paths}) != len(paths):
        raise ProjectError(
            f"{at}: expected the paths of files, each once, got {', '.join(paths) or 'none'}"
        )
    found = find_target(repository, follows if target is None else target, history=history, at=at)
    tree = git.tree(repository, found.commit)
    files = _files(repository, found.commit, paths, git=git, at=at)
    same = before is not None and {*before.files} == {*files}
    pin = SourcePin(
        name=name,
        repository=repository,
        follows=follows,
        commit=ObjectId.parse(found.commit),
        tree=ObjectId.parse(tree),
        files=files,
        escrow=before.escrow if before is not None and same else (),
        locked=now,
    )
    if before is None:
        return Resolved(pin=pin)
    distance, remarks = between(repository, before.commit, found.commit, history=history)
    remarks += moved_ref(pin, before, found, distance, history=history)
    if same and before.commit != pin.commit:
        remarks += ("the files are the same at both commits",)
    return Resolved(pin=settled(pin, before), remarks=remarks, distance=distance)


def _files(
    repository: str, commit: str, paths: tuple[str, ...], *, git: Git, at: str
) -> tuple[SourceFile, ...]:
    listing = git.listing(repository, commit)
    gone = [path for path in paths if path not in listing]
    if gone:
        raise IntegrityError(
            f"{at}: {repository} has no {' and no '.join(map(repr, gone))} at {commit}",
            hint="; ".join(_nearest(path, listing) for path in gone),
        )
    found = git.files(repository, commit, paths)
    for file in found:
        if file.mode == "120000":
            raise IntegrityError(
                f"{at}: {file.path!r} at {commit} is a symbolic link, wanted a file",
                hint=f"name the file that it leads to, {file.data.decode('utf-8', 'replace')!r}",
            )
    return tuple(
        SourceFile(path=file.path, digest=Digest.of(file.data), size=len(file.data))
        for file in found
    )


def _nearest(path: str, listing: Mapping[str, GitEntry]) -> str:
    """Where the file may be now: one of its name, else one whose path looks like it."""
    files = [each for each, entry in listing.items() if not entry.is_directory]
    name = posixpath.basename(path)
    named = [each for each in files if posixpath.basename(each) == name]
    near = difflib.get_close_matches(path, named or files, n=1, cutoff=0.0 if named else 0.6)
    return f"the nearest to {path!r} is {near[0]!r}" if near else f"nothing there is like {path!r}"
