"""Base images (``lockfiles/vllm.yaml``) and what variants bake to (``lockfiles/images/``)."""

import re
from collections.abc import Iterable, Mapping

from builder.errors import ProjectError, UsageError
from builder.lock.codec_fields import (
    by_key,
    escrow,
    escrow_record,
    failing,
    locked,
    optional_text,
    present,
    repository,
)
from builder.lock.model import (
    ImagePin,
    LayerPin,
    PlatformPin,
    Result,
    ResultFile,
    ResultPatch,
    VllmBuild,
)
from builder.node import (
    Cursor,
    digest,
    each,
    file_path,
    integer,
    mapping_of,
    object_id,
    platform,
    reference,
    sequence_of,
    text,
    word,
)
from builder.oci import Platform
from builder.reference import Reference
from builder.strict_yaml import Writable

# The words of builder.outcome.PatchState, which is above.
_WITH_REASON = ("skipped", "failed")
_TAGS = re.compile(r"[A-Za-z0-9_.-]*\*[A-Za-z0-9_.-]*")
_outcome = word("applied", "runtime-only", *_WITH_REASON)


def image_pin(name: str, node: Cursor) -> ImagePin:
    """One entry under ``vllm``."""
    follows, tags, commits = node.take("follows", _follows)
    pin = ImagePin(
        name=name,
        follows=follows,
        tags=tags,
        commits=commits,
        index=node.optional("index", digest),
        platforms=node.default("platforms", mapping_of(platform, _platform), ()),
        vllm=node.optional("vllm", _vllm),
        escrow=node.default("escrow", sequence_of(escrow), ()),
        failing=node.default("failing", failing, ()),
        locked=node.optional("locked", locked),
        at=node.at,
    )
    node.done()
    if pin.index is None and not pin.platforms:
        raise node.error(
            "neither 'index' nor 'platforms', so that nothing is pinned",
            hint="write the digest of the index, or of a manifest for each platform",
        )
    return pin


def image_record(pin: ImagePin) -> Mapping[str, Writable]:
    """The entry of a base image."""
    if pin.follows.digest is not None:
        raise ValueError(f"{pin.name}: a pin follows a tag, got {str(pin.follows)!r}")
    return present(
        follows=present(
            image=pin.follows.name, tag=pin.follows.tag, tags=pin.tags, commits=pin.commits
        ),
        index=optional_text(pin.index),
        platforms=by_key((str(key), _platform_record(item)) for key, item in pin.platforms),
        vllm=None if pin.vllm is None else _vllm_record(pin.vllm),
        escrow=[escrow_record(item) for item in pin.escrow],
        failing=pin.failing,
        locked=pin.locked,
    )


def _follows(node: Cursor) -> tuple[Reference, str | None, str | None]:
    image = node.take("image", _image)
    tagged = node.optional("tag", lambda child: _tagged(image, child))
    tags, commits = node.optional("tags", _tags), node.optional("commits", repository)
    node.done()
    return tagged or image, tags, commits


def _tags(node: Cursor) -> str:
    value = text(node)
    if not _TAGS.fullmatch(value):
        raise node.error(f"{value!r} does not say which tags", hint="a tag with one '*': nightly-*")
    return value


def _image(node: Cursor) -> Reference:
    value = reference(node)
    if value.tag is not None or value.digest is not None:
        raise node.error(
            f"expected an image without tag and digest, got {str(value)!r}",
            hint="write the tag under 'tag', the digest under 'index'",
        )
    return value


def _tagged(image: Reference, node: Cursor) -> Reference:
    value = text(node)
    try:
        found = Reference.parse(f"{image.name}:{value}", at=node.at)
    except UsageError as error:
        raise ProjectError(error.message, hint=error.hint) from error
    if found.tag != value:
        raise node.error(f"{value!r} is not a tag")
    return found


def _platform(node: Cursor) -> PlatformPin:
    pin = PlatformPin(
        manifest=node.take("manifest", digest),
        config=node.optional("config", digest),
        layers=node.default("layers", sequence_of(_layer), ()),
    )
    node.done()
    return pin


def _layer(node: Cursor) -> LayerPin:
    pin = LayerPin(
        digest=node.take("digest", digest),
        size=node.take("size", integer),
        diff_id=node.optional("diff_id", digest),
        files=node.optional("files", digest),
    )
    node.done()
    return pin


def _platform_record(pin: PlatformPin) -> Mapping[str, Writable]:
    return present(
        manifest=str(pin.manifest),
        config=optional_text(pin.config),
        layers=[
            present(
                digest=str(layer.digest),
                size=layer.size,
                diff_id=optional_text(layer.diff_id),
                files=optional_text(layer.files),
            )
            for layer in pin.layers
        ],
    )


def _vllm(node: Cursor) -> VllmBuild:
    build = VllmBuild(
        version=node.take("version", text),
        commit=node.optional("commit", object_id),
        package=node.optional("package", file_path),
    )
    node.done()
    return build


def _vllm_record(build: VllmBuild) -> Mapping[str, Writable]:
    return present(version=build.version, commit=optional_text(build.commit), package=build.package)


def results(variant: str, node: Cursor) -> tuple[Result, ...]:
    """What a variant bakes to, one entry a platform."""
    return each(platform, lambda key, child: _result(variant, key, child))(node)


def results_record(items: Iterable[Result]) -> Mapping[str, Writable]:
    """The entries of one variant's results."""
    return by_key((str(item.platform), _result_record(item)) for item in items)


def _result_record(item: Result) -> Mapping[str, Writable]:
    record: dict[str, Writable] = {
        "digest": str(item.digest),
        **present(derivation=optional_text(item.derivation)),
        "diff_ids": [str(diff_id) for diff_id in item.diff_ids],
    }
    return record | present(
        patches=by_key((patch.name, _patch_record(patch)) for patch in item.patches),
        files=by_key((file.path, _file_record(file)) for file in item.files),
    )


def _result(variant: str, key: Platform, node: Cursor) -> Result:
    value = Result(
        variant=variant,
        platform=key,
        digest=node.take("digest", digest),
        derivation=node.optional("derivation", digest),
        diff_ids=node.take("diff_ids", sequence_of(digest)),
        patches=node.default("patches", each(text, _patch), ()),
        files=node.default("files", each(file_path, _file), ()),
        at=node.at,
    )
    node.done()
    return value


def _patch(name: str, node: Cursor) -> ResultPatch:
    value = ResultPatch(
        name=name, outcome=node.take("outcome", _outcome), reason=node.optional("reason", text)
    )
    node.done()
    if value.reason is not None and value.outcome not in _WITH_REASON:
        raise node.error(f"a reason for a patch that is {value.outcome!r}", hint="leave it out")
    return value


def _patch_record(patch: ResultPatch) -> Mapping[str, Writable]:
    return present(outcome=patch.outcome, reason=patch.reason)


def _file(path: str, node: Cursor) -> ResultFile:
    value = ResultFile(
        path=path, pre=node.optional("pre", digest), post=node.optional("post", digest)
    )
    node.done()
    if value.pre is None and value.post is None:
        raise node.error("neither 'pre' nor 'post', so that nothing changed")
    return value


def _file_record(file: ResultFile) -> Mapping[str, Writable]:
    return present(pre=optional_text(file.pre), post=optional_text(file.post))
