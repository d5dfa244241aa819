"""Models: from a revision to a commit and the digest of every file."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from builder.digest import Digest, ObjectId
from builder.errors import IntegrityError, ProjectError
from builder.lock.model import ModelFile, ModelPin
from builder.models import remote_code
from builder.models.published import Published
from builder.models.selection import DEFAULT, OTHER_WEIGHTS, dead, selected
from builder.models.shards import SUFFIX, check_complete, check_tensors, listed, read_index
from builder.models.standing import Standing
from builder.quoting import harmless
from builder.resolve.found import Resolved
from builder.upstream import Hub, HubFile

READ_LIMIT = 64 << 20
"""The largest file that is read to be hashed. The hub wants what is larger than 10 MB in LFS."""

_COMMIT = re.compile(r"[0-9a-f]{40}")


def resolve_model(
    repository: str,
    revision: str | None,
    *,
    name: str,
    hub: Hub,
    now: str,
    include: tuple[str, ...] = (),
    before: ModelPin | None = None,
    published: Published | None = None,
) -> Resolved[ModelPin]:
    """Pin the model at ``revision`` (a branch, tag or commit; ``None`` for what ``before`` follows,
    else ``main``): the files that ``include`` selects, each with digest and size.

    A git blob id is never taken for a sha256: files that the hub does not store by content are
    read, compared with their blob ids, and hashed. What people wrote into ``before`` is kept, also
    what it follows where ``revision`` is a commit; so is its ``locked`` where nothing is different.

    Args:
        include: Globs; empty for ``before``'s, else :data:`builder.models.selection.DEFAULT`.
        published: Digests that the files must have. Of a file that the hub knows no digest of, and
            that is too large to be read, the digest is taken from there.

    Raises:
        ProjectError: ``before`` follows nothing and no revision is given; a glob matches nothing;
            there are no weights in the default selection.
        IntegrityError: A shard that an index names is missing, a tensor is not as the pin says,
            the hub contradicts itself or what is published.
    """
    asked = _asked(revision, name=name, before=before)
    found = hub.revision(repository, asked)
    at = f"model {repository} at {found.commit[:12]}"
    everything = {file.path: file for file in hub.files(repository, found.commit)}
    commit = ObjectId.parse(found.commit)
    pin = replace(
        before or ModelPin(name=name, repository=repository, commit=commit, include=include),
        repository=repository,
        follows=(before.follows if before else None) if _COMMIT.fullmatch(asked) else asked,
        commit=commit,
        include=include or (before.include if before else ()),
    )
    paths = _selection(everything, pin.include, at=at)
    chosen = [everything[path] for path in paths]
    if published is not None:
        chosen = _with_published(chosen, published.of(pin))
    files, texts = _hashed(chosen, hub=hub, pin=pin, at=at)
    remarks = list(_judged(pin, texts, everything, paths, at=at))
    pin = replace(pin, files=files)
    if published is not None:
        remarks.append(published.agree(pin))
    if pin != before:
        pin = replace(pin, locked=now)
    at_the_hub = Standing(pin=pin, repository=found.repository, commit=found.commit)
    return Resolved(pin=pin, remarks=(*at_the_hub.remarks, *remarks, *_differences(before, pin)))


def _asked(revision: str | None, *, name: str, before: ModelPin | None) -> str:
    if revision is not None:
        return revision
    if before is None:
        return "main"
    if before.follows is None:
        raise ProjectError(
            f"{before.at or name}: the model follows no branch or tag, so nothing newer is known",
            hint="name a revision, or write the branch under follows.revision",
        )
    return before.follows


def _selection(
    everything: Mapping[str, HubFile], include: Sequence[str], *, at: str
) -> tuple[str, ...]:
    paths = selected(everything, include or DEFAULT)
    if include and (unused := dead(everything, include)):
        raise ProjectError(
            f"{at}: {listed(unused)} under include: none of {len(everything)} files matches",
            hint="globs are compared with whole paths, * also matches /",
        )
    if not include and not selected(paths, ("*.safetensors",)):
        other = selected(everything, OTHER_WEIGHTS)
        raise ProjectError(
            f"{at}: no safetensors among its {len(everything)} files",
            hint=f"weights in other formats are pinned where include names them: {listed(other)}"
            if other
            else "without weights it is no model; include can pin other files",
        )
    return paths


def _with_published(files: Sequence[HubFile], published: Published) -> list[HubFile]:
    """The files, those with a published digest that nobody else would make."""
    return [
        replace(file, digest=published.digests.get(file.path))
        if file.digest is None and file.size > READ_LIMIT
        else file
        for file in files
    ]


def _hashed(
    files: Sequence[HubFile], *, hub: Hub, pin: ModelPin, at: str
) -> tuple[tuple[ModelFile, ...], dict[str, bytes]]:
    """The files with their digests, and the bytes of indexes and configurations among them."""
    hashed, texts = [], {}
    for file in files:
        digest = file.digest
        if digest is None or file.path.endswith(SUFFIX):
            data = _read(file, hub=hub, pin=pin, at=f"{at}: {file.path}")
            digest = Digest.of(data)
            if file.path.endswith(SUFFIX) or file.path in remote_code.FILES:
                texts[file.path] = data
        hashed.append(ModelFile(path=file.path, digest=digest, size=file.size))
    return tuple(hashed), texts


def _read(file: HubFile, *, hub: Hub, pin: ModelPin, at: str) -> bytes:
    if file.size > READ_LIMIT:
        raise IntegrityError(
            f"{at}: the hub knows no sha256 of it, and {file.size} bytes are over the {READ_LIMIT}"
            " that are read to make one",
            hint="--sums FILE takes it from a checksum file",
        )
    data = hub.read(pin.repository, pin.commit.hex, file.path, limit=max(file.size, 1))
    if len(data) != file.size:
        raise IntegrityError(f"{at}: listed with {file.size} bytes, got {len(data)}")
    if file.digest is not None:
        return file.digest.check(data, at=at)
    blob = ObjectId.of("blob", data, like=file.blob)
    if blob != file.blob:
        raise IntegrityError(f"{at}: listed as git blob {file.blob}, the bytes are {blob}")
    return data


def _judged(
    pin: ModelPin,
    texts: Mapping[str, bytes],
    everything: Mapping[str, HubFile],
    paths: Sequence[str],
    *,
    at: str,
) -> Iterator[str]:
    """Hold the indexes to the files, and the pin's tensors to the indexes.

    Raises:
        IntegrityError: They disagree.
    """
    if empty := [it for it in selected(paths, ("*.safetensors",)) if not everything[it].size]:
        raise IntegrityError(
            f"{at}: no safetensors files, for they have no bytes: {listed(empty)}",
            hint="pin a revision that is whole; include can leave out what is none",
        )
    for path in sorted(remote_code.FILES & texts.keys()):
        if others := remote_code.repositories(texts[path]):
            yield (
                f"{path} has code of {harmless(listed(others))}, which is not pinned: with"
                " --trust-remote-code it is run as it is there"
            )
    indexes = [
        read_index(data, path=path, at=at) for path, data in texts.items() if path.endswith(SUFFIX)
    ]
    for index in indexes:
        check_complete(index, everything.keys(), at=at)
        check_complete(index, set(paths), at=f"{at}, as include selects")
    if not indexes:
        if pin.require or pin.forbid or pin.tensors is not None:
            yield "it has no index: its tensors are looked at when its files are verified"
        return
    names = {tensor for index in indexes for tensor in index.weights}
    check_tensors(names, pin, at=at)
    known = {shard for index in indexes for shard in index.shards}
    if beside := [path for path in selected(paths, ("*.safetensors",)) if path not in known]:
        yield f"no index names {listed(beside)}, which is pinned all the same"


def _differences(before: ModelPin | None, pin: ModelPin) -> Iterator[str]:
    """How many files are other ones, where a commit replaces another."""
    if before is None or before.commit == pin.commit:
        return
    old = {file.path: file for file in before.files}
    new = {file.path: file for file in pin.files}
    common = [path for path in new if path in old]
    kinds = (
        ("different", [path for path in common if new[path].digest != old[path].digest]),
        ("new", [path for path in new if path not in old]),
        ("gone", [path for path in old if path not in new]),
    )
    told = [f"{len(paths)} {kind} ({listed(paths)})" for kind, paths in kinds if paths]
    yield f"of {len(new)} files {', '.join(told)}" if told else f"all {len(new)} files are the same"
