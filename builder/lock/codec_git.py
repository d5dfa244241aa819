"""Pins that are commits: pull requests, files of other repositories, the Genesis patch set."""

from collections.abc import Mapping

from builder.lock.codec_fields import (
    by_key,
    escrow,
    escrow_record,
    failing,
    locked,
    optional_text,
    present,
    ref,
    repository,
)
from builder.lock.model import GenesisPin, PullPin, SourceDiff, SourceFile, SourcePin, Subtree
from builder.node import (
    Cursor,
    digest,
    each,
    file_path,
    integer,
    name,
    object_id,
    positive,
    sequence_of,
    target_directory,
)
from builder.strict_yaml import Writable


def pull_pin(key: str, node: Cursor) -> PullPin:
    """One entry under ``pulls``."""
    place, pull = node.take("follows", _pull_follows)
    pin = PullPin(
        name=key,
        repository=place,
        pull=pull,
        base=node.optional("base", object_id),
        head=node.optional("head", object_id),
        published=node.optional("published", _published),
        diff=node.take("diff", digest),
        raw=node.optional("raw", digest),
        root=node.optional("root", target_directory),
        strip=node.optional("strip", integer),
        escrow=node.default("escrow", sequence_of(escrow), ()),
        failing=node.default("failing", failing, ()),
        locked=node.optional("locked", locked),
        at=node.at,
    )
    node.done()
    if (pin.base is None) != (pin.head is None):
        raise node.error("'base' and 'head' go together, got one of them")
    if pin.base is None and pin.published is None:
        raise node.error(
            "neither 'base' and 'head' nor 'published', so that nothing says where the diff is",
            hint="write the full ids of both commits, or where the diff is published",
        )
    return pin


def pull_record(pin: PullPin) -> Mapping[str, Writable]:
    """The entry of a pull request."""
    return present(
        follows={"repository": pin.repository, "pull": pin.pull},
        base=optional_text(pin.base),
        head=optional_text(pin.head),
        published=None if pin.published is None else _published_record(pin.published),
        diff=str(pin.diff),
        raw=optional_text(pin.raw),
        root=pin.root,
        strip=pin.strip,
        escrow=[escrow_record(item) for item in pin.escrow],
        failing=pin.failing,
        locked=pin.locked,
    )


def _pull_follows(node: Cursor) -> tuple[str, int]:
    value = node.take("repository", repository), node.take("pull", positive)
    node.done()
    return value


def _published(node: Cursor) -> SourceDiff:
    value = SourceDiff(source=node.take("source", name), path=node.take("path", file_path))
    node.done()
    return value


def _published_record(value: SourceDiff) -> Mapping[str, Writable]:
    return {"source": value.source, "path": value.path}


def source_pin(key: str, node: Cursor) -> SourcePin:
    """One entry under ``sources``."""
    place, follows = node.take("follows", _git_follows)
    pin = SourcePin(
        name=key,
        repository=place,
        follows=follows,
        commit=node.take("commit", object_id),
        tree=node.take("tree", object_id),
        files=node.take("files", each(file_path, _source_file)),
        escrow=node.default("escrow", sequence_of(escrow), ()),
        failing=node.default("failing", failing, ()),
        locked=node.optional("locked", locked),
        at=node.at,
    )
    node.done()
    if not pin.files:
        raise node.error("'files' is empty, so that nothing is pinned")
    return pin


def source_record(pin: SourcePin) -> Mapping[str, Writable]:
    """The entry of files of another repository."""
    files = by_key((file.path, _source_file_record(file)) for file in pin.files)
    return present(
        follows=present(repository=pin.repository, ref=pin.follows),
        commit=str(pin.commit),
        tree=str(pin.tree),
        files=files,
        escrow=[escrow_record(item) for item in pin.escrow],
        failing=pin.failing,
        locked=pin.locked,
    )


def _git_follows(node: Cursor) -> tuple[str, str | None]:
    value = node.take("repository", repository), node.optional("ref", ref)
    node.done()
    return value


def _source_file(path: str, node: Cursor) -> SourceFile:
    file = SourceFile(
        path=path, digest=node.take("digest", digest), size=node.take("size", integer)
    )
    node.done()
    return file


def _source_file_record(file: SourceFile) -> Mapping[str, Writable]:
    return {"digest": str(file.digest), "size": file.size}


def genesis_pin(key: str, node: Cursor) -> GenesisPin:
    """One entry under ``genesis``."""
    place, follows = node.take("follows", _git_follows)
    pin = GenesisPin(
        name=key,
        repository=place,
        follows=follows,
        commit=node.take("commit", object_id),
        tree=node.take("tree", object_id),
        payload=node.optional("payload", _subtree),
        plugin=node.optional("plugin", _subtree),
        reachable=node.default("reachable", sequence_of(ref), ()),
        escrow=node.default("escrow", sequence_of(escrow), ()),
        failing=node.default("failing", failing, ()),
        locked=node.optional("locked", locked),
        at=node.at,
    )
    node.done()
    return pin


def genesis_record(pin: GenesisPin) -> Mapping[str, Writable]:
    """The entry of a commit of the patch set."""
    return present(
        follows=present(repository=pin.repository, ref=pin.follows),
        commit=str(pin.commit),
        tree=str(pin.tree),
        payload=_subtree_record(pin.payload),
        plugin=_subtree_record(pin.plugin),
        reachable=pin.reachable,
        escrow=[escrow_record(item) for item in pin.escrow],
        failing=pin.failing,
        locked=pin.locked,
    )


def _subtree(node: Cursor) -> Subtree:
    value = Subtree(path=node.take("path", file_path), tree=node.take("tree", object_id))
    node.done()
    return value


def _subtree_record(value: Subtree | None) -> Mapping[str, Writable] | None:
    return None if value is None else {"path": value.path, "tree": str(value.tree)}
