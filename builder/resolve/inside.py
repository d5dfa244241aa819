"""What a base image says of itself: the vLLM in it, and the files of its layers.

Tags, labels and versions are claims of whoever wrote them. What is in the image decides; a claim
may complete it (the rest of an abbreviated commit) and is told of where it contradicts.
"""

import re
from collections.abc import Iterator

from packaging.version import InvalidVersion, Version

from builder.bake import base_layers
from builder.base import Base, labels_of
from builder.digest import Digest, ObjectId
from builder.errors import IntegrityError, ProjectError
from builder.lock.model import VllmBuild
from builder.merged import MergedView
from builder.ports import Progress, Store
from builder.python_layout import VllmFound, discover, vllm_build
from builder.value import value

_LABELS = ("org.opencontainers.image.revision", "org.label-schema.vcs-ref")
_COMMIT = re.compile(r"[0-9a-f]{40}(?:[0-9a-f]{24})?")
_NAMED = re.compile(r"(?:^|[-_.])([0-9a-f]{64}|[0-9a-f]{40})(?=$|[-_.])")
_RELEASE = re.compile(r"v(\d+(?:\.\d+)+)")


@value
class Inside:
    """What was read of an image. ``files`` are the digests of its layers' file indexes, bottom
    first."""

    vllm: VllmFound | None
    files: tuple[Digest, ...]
    remarks: tuple[str, ...] = ()


def look_inside(base: Base, *, store: Store, progress: Progress) -> Inside:
    """Read every layer of a base, each once on this machine, and find its vLLM.

    Raises:
        IntegrityError: The image is a mixture of two builds of vLLM; a layer is not what the
            manifest, the config or the lock says.
    """
    layers = base_layers(base, store=store, progress=progress)
    view = MergedView(layers)
    found: VllmFound | None = None
    remarks: tuple[str, ...] = ()
    try:
        found = vllm_build(view, discover(view))
        if found is None:
            remarks = ("there is no vLLM in the image",)
    except ProjectError as error:  # no Python, or several: not for us to choose
        remarks = (f"which vLLM is in the image is not to be seen: {error.message}",)
    return Inside(vllm=found, files=tuple(layer.index_digest for layer in layers), remarks=remarks)


def build_of(
    found: VllmFound, base: Base, *, tag: str | None, told: VllmBuild | None, at: str
) -> tuple[VllmBuild, tuple[str, ...]]:
    """The vLLM as a lock holds it, and remarks on what contradicts it.

    An abbreviated commit is completed by the one full id that the tag, a label or the lock
    (``told``) has for it. Where the image names no commit, tag and label must agree on one.

    Raises:
        IntegrityError: ``told`` is another vLLM than that of the image.
    """
    _check_told(found, told, at=at)
    claims = list(_claims(tag, base))
    remarks = [
        f"{who} names commit {claim[:12]}, the vLLM in the image is of {found.commit[:12]}"
        for who, claim in claims
        if found.commit is not None and not _same(claim, found.commit)
    ]
    remarks += _other_release(found, tag)
    known = {claim for _, claim in claims if found.commit and _same(claim, found.commit)}
    if found.commit is None:
        by_all = {claim for _, claim in claims}
        known = by_all if len(claims) > 1 and len(by_all) == 1 else set()
    if told is not None and told.commit is not None:
        known = {told.commit.hex}
    if found.commit is not None and _COMMIT.fullmatch(found.commit):
        known = {found.commit}
    if len(known) != 1:
        remarks.append(_no_commit(found, known))
    commit = ObjectId(known.pop()) if len(known) == 1 else None
    build = VllmBuild(version=found.version, commit=commit, package=found.package)
    return build, tuple(remarks)


def _no_commit(found: VllmFound, known: set[str]) -> str:
    if found.commit is None:
        return f"vLLM {found.version} does not say of which commit it is"
    if known:
        return f"{found.commit} is the start of several commits that tag and labels name"
    return f"neither tag nor label has commit {found.commit} in full, so the lock has none"


def _claims(tag: str | None, base: Base) -> Iterator[tuple[str, str]]:
    """Who names a full commit."""
    if tag is not None and (match := _NAMED.search(tag)):
        yield f"the tag {tag}", match[1]
    labels = labels_of(base.config)
    for name in _LABELS:
        if _COMMIT.fullmatch(labels.get(name, "")):
            yield f"the label {name}", labels[name]


def _same(claim: str, commit: str) -> bool:
    return claim.startswith(commit)


def _other_release(found: VllmFound, tag: str | None) -> list[str]:
    match = _RELEASE.match(tag or "")
    try:
        if match is None or Version(match[1]) == Version(Version(found.version).base_version):
            return []
    except InvalidVersion:
        pass
    return [f"the tag {tag} holds vLLM {found.version}"]


def _check_told(found: VllmFound, told: VllmBuild | None, *, at: str) -> None:
    if told is None:
        return
    commit = None if told.commit is None else told.commit.hex
    pairs = [
        ("version", told.version, found.version, told.version == found.version),
        ("package", told.package, found.package, told.package in (None, found.package)),
        ("commit", commit, found.commit, _agree(commit, found.commit)),
    ]
    for what, ours, theirs, fits in pairs:
        if not fits:
            raise IntegrityError(
                f"{at}.vllm.{what}: the lock says {ours!r}, the image says {theirs!r}",
                hint="take 'vllm' out of the entry, and let builder lock write it anew",
            )


def _agree(commit: str | None, found: str | None) -> bool:
    return commit is None or found is None or commit.startswith(found)
