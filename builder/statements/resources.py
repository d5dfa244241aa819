"""Everything that an image was made of, as resource descriptors (in-toto/attestation,
spec/v1/resource_descriptor.md)."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeAlias
from urllib.parse import quote

from builder.build_record import Record, RecordedBase
from builder.digest import Digest, directory_digest
from builder.statements.said import (
    git_uri,
    hex_of,
    image_purl,
    made_of,
    present,
    purl,
    web_page,
    wheel_purl,
)

Resource: TypeAlias = dict[str, Any]
Pin: TypeAlias = Mapping[str, Any]


def resources(record: Record) -> Iterator[Resource]:
    """The base, then the pins by kind and name, then the overlays."""
    made = made_of(record)
    if record.base is not None:
        yield from _base(record.base, made.pins.get("vllm", {}), record.platform)
    for kind, of in _KINDS.items():
        for name, pin in sorted(made.pins.get(kind, {}).items()):
            yield from of(name, pin)
    for name, files in sorted(made.overlays.items()):
        yield _resource(
            f"overlay {name}",
            uri=f"file:overlays/{quote(name)}",
            digest={"dirHash": directory_digest(files).hex},
        )


def _base(base: RecordedBase, pins: Mapping[str, Pin], platform: str) -> Iterator[Resource]:
    pin = next(iter(pins.values()), {})
    repository, tag = pin.get("image"), pin.get("tag")

    def uri(digest: object, *, member: bool) -> str | None:
        if repository is None or base.twin_of is not None:
            return None
        return image_purl(repository, str(digest), tag=tag, platform=platform if member else None)

    if base.index is not None:
        yield _resource(
            "base index", uri=uri(base.index, member=False), digest={"sha256": base.index.hex}
        )
    yield _resource(
        "base manifest",
        uri=uri(base.manifest, member=True),
        digest={"sha256": base.manifest.hex},
        annotations=_of_vllm(pin) | ({"twin_of": str(base.twin_of)} if base.twin_of else {}),
    )
    if base.config is not None:
        yield _resource("base config", digest={"sha256": base.config.hex})
    for number, layer in enumerate(base.layers):
        yield _resource(
            f"base layer {number}",
            digest={"sha256": hex_of(layer["digest"])},
            media_type=layer["media_type"],
            annotations={"diff_id": layer["diff_id"]},
        )


def _of_vllm(pin: Pin) -> dict[str, Any]:
    """What the pin says of the vLLM inside."""
    vllm = pin.get("vllm", {})
    return {f"vllm_{key}": vllm[key] for key in ("version", "commit") if key in vllm}


def _pull(name: str, pin: Pin) -> Iterator[Resource]:
    """The change as the digest of its meaning: the bytes of a diff differ with who makes it."""
    annotations = {"pull": pin["pull"], "diff": pin["diff"]}
    repository = pin.get("repository")
    for side in ("base", "head"):
        if side in pin:
            yield _resource(
                f"pull {name} {side}",
                uri=git_uri(repository, pin[side]),
                digest={"gitCommit": pin[side]},
                annotations=annotations if side == "head" else {},
            )
    if "published" in pin:
        yield _resource(
            f"pull {name}",
            uri=None if (page := web_page(repository)) is None else f"{page}/pull/{pin['pull']}",
            digest={"sha256": hex_of(pin["raw"])} if "raw" in pin else {},
            media_type="text/x-diff",
            annotations=annotations | {"published": dict(pin["published"])},
        )


def _source(name: str, pin: Pin) -> Iterator[Resource]:
    yield _commit(f"source {name}", pin)
    for path, file in sorted(pin.get("files", {}).items()):
        yield _resource(
            f"source {name}: {path}",
            uri=git_uri(pin.get("repository"), pin["commit"], path),
            digest={"sha256": hex_of(file["digest"])},
        )


def _genesis(name: str, pin: Pin) -> Iterator[Resource]:
    yield _commit(f"genesis {name}", pin)
    for part in ("payload", "plugin"):
        if part in pin:
            yield _resource(
                f"genesis {name} {part}",
                uri=git_uri(pin.get("repository"), pin["commit"], pin[part]["path"]),
                digest={"gitTree": pin[part]["tree"]},
            )


def _commit(name: str, pin: Pin) -> Resource:
    return _resource(
        name,
        uri=git_uri(pin.get("repository"), pin["commit"]),
        digest={"gitCommit": pin["commit"], "gitTree": pin["tree"]},
    )


def _wheel(name: str, pin: Pin) -> Iterator[Resource]:
    """One that the project packs itself is on no index."""
    yield _resource(
        f"wheel {name}",
        uri=None if pin["own"] else wheel_purl(pin["project"], pin["version"]),
        digest={"sha256": hex_of(pin["digest"])},
        annotations={"filename": pin["filename"]},
    )


def _model(name: str, pin: Pin) -> Iterator[Resource]:
    """No part of the image, and pinned with it: what it is to serve."""
    files = {
        path: Digest.parse(file["digest"])
        for path, file in pin["files"].items()
        if "digest" in file
    }
    whole = bool(files) and len(files) == len(pin["files"])
    digest = {"dirHash": directory_digest(files).hex} if whole else {}
    yield _resource(
        f"model {name}",
        uri=model_purl(pin),
        digest={"gitCommit": pin["commit"], **digest},
        annotations={"files": {path: at.hex for path, at in files.items()}} if files else {},
    )


def model_purl(pin: Pin) -> str | None:
    """A model's package URL, where it is on a hub of which the repository alone is said."""
    repository = pin.get("repository")
    if repository is None or "://" in repository or repository.count("/") > 1:
        return None
    return purl("huggingface", repository, pin["commit"])


_KINDS: Mapping[str, Callable[[str, Pin], Iterator[Resource]]] = {
    "genesis": _genesis,
    "pulls": _pull,
    "sources": _source,
    "wheels": _wheel,
    "models": _model,
}


def _resource(
    name: str,
    *,
    uri: str | None = None,
    digest: Mapping[str, str] | None = None,
    media_type: str | None = None,
    annotations: Mapping[str, Any] | None = None,
) -> Resource:
    return present(
        name=name,
        uri=uri,
        digest=dict(digest) if digest else None,
        mediaType=media_type,
        annotations=dict(annotations) if annotations else None,
    )
