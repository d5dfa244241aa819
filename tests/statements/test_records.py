"""Records: what they keep of each pin, which versions there are, and when they are written."""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from builder.build_record import pins as records
from builder.digest import ObjectId
from builder.errors import IntegrityError, ProjectError
from builder.lock.model import (
    Escrow,
    GenesisPin,
    ImagePin,
    ModelFile,
    ModelPin,
    PlatformPin,
    PullPin,
    SourceDiff,
    SourceFile,
    SourcePin,
    Subtree,
    VllmBuild,
    WheelPin,
)
from builder.reference import Reference
from builder.statements import statements
from tests.statements.rich import AMD64, LOCK, base, build, digest, document, record

RECORDS: Mapping[type, tuple[Any, Callable[[Any], Any]]] = {
    ImagePin: (LOCK.images["nightly"], lambda pin: records.image(pin, AMD64)),
    PullPin: (
        dataclasses.replace(LOCK.pulls["pr-1"], published=LOCK.pulls["pr-2"].published),
        records.pull,
    ),
    SourcePin: (
        LOCK.sources["club"],
        lambda pin: records.source(pin, frozenset({"template", "other"})),
    ),
    WheelPin: (LOCK.wheels["pandas"], records.wheel),
    GenesisPin: (LOCK.genesis["gen"], records.genesis),
    ModelPin: (LOCK.models["qwen"], records.model),
}
TREE = ObjectId("e" * 40)
KEPT: Mapping[type, Mapping[str, Any]] = {
    ImagePin: {
        "follows": Reference.parse("docker.io/other/other:t"),
        "index": digest("other"),
        "platforms": ((AMD64, PlatformPin(manifest=digest("other"))),),
        "vllm": VllmBuild(version="other"),
    },
    PullPin: {
        "repository": "https://example.invalid/x",
        "pull": 3,
        "base": TREE,
        "head": TREE,
        "published": SourceDiff(source="other", path="other"),
        "diff": digest("other"),
        "raw": digest("other"),
    },
    SourcePin: {
        "repository": "https://example.invalid/x",
        "commit": TREE,
        "tree": TREE,
        "files": (SourceFile(path="template", digest=digest("other"), size=8),),
    },
    WheelPin: {
        "project": "other",
        "version": "other",
        "filename": "other",
        "digest": digest("other"),
        "size": 3,
        "path": "wheels/other",
    },
    GenesisPin: {
        "repository": "https://example.invalid/x",
        "commit": TREE,
        "tree": TREE,
        "payload": Subtree(path="p", tree=TREE),
        "plugin": None,
    },
    ModelPin: {
        "repository": "other/other",
        "commit": TREE,
        "files": (ModelFile(path="other"),),
    },
}
"""Another value of each field that is recorded."""
NAME = "the key that it stands under"
HISTORY = "what a newer pin would be looked for by, and when this one was made"
COPIES = "where we keep copies, which can be moved"
PLACE = "the place in a file, for messages"
OF_ALL = {"name": NAME, "escrow": COPIES, "failing": HISTORY, "locked": HISTORY, "at": PLACE}
NOT_KEPT: Mapping[type, Mapping[str, str]] = {
    ImagePin: {"tags": HISTORY, "commits": HISTORY},
    PullPin: {"root": "among the inputs of the step", "strip": "as root"},
    SourcePin: {"follows": HISTORY},
    WheelPin: {},
    GenesisPin: {"follows": HISTORY, "reachable": HISTORY},
    ModelPin: {
        "follows": HISTORY,
        "include": "what the files were chosen by; they are there",
        "require": "as include",
        "forbid": "as include",
        "tensors": "what is in the files, which are pinned by content",
        "dtypes": "as tensors",
    },
}
OTHER = {
    "escrow": (Escrow(layout="other", digest=digest("other")),),
    "strip": 9,
    "failing": ("other",),
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        pytest.param(kind, field.name, id=f"{kind.__name__} {field.name}")
        for kind in RECORDS
        for field in dataclasses.fields(kind)
    ],
)
def test_every_field_of_a_pin_is_recorded_or_is_left_out_for_a_reason(
    kind: type, name: str
) -> None:
    """A new field fails here until someone decides."""
    pin, made = RECORDS[kind]
    if name in KEPT[kind]:
        assert made(dataclasses.replace(pin, **{name: KEPT[kind][name]})) != made(pin)
    else:
        assert {**NOT_KEPT[kind], **OF_ALL}[name]
        changed = dataclasses.replace(pin, **{name: OTHER.get(name, "other")})
        assert made(changed) == made(pin)


def test_of_a_lock_only_what_was_used_is_recorded() -> None:
    value = document()
    assert value["pins"]["sources"]["club"]["files"].keys() == {"pr-2.patch", "template", "fix.sh"}
    wider = dataclasses.replace(
        LOCK, pulls={**LOCK.pulls, "more": LOCK.pulls["pr-1"]}, models={**LOCK.models}
    )
    assert document(build(lock=wider)) == value


def test_the_files_are_those_of_the_variant_and_not_of_what_else_was_built() -> None:
    value = document()
    assert value["files"] == {
        "variants/rich.yaml": str(digest("recipe")),
        **{
            f"lockfiles/{kind}.yaml": str(digest(f"lock {kind}"))
            for kind in ("vllm", "pulls", "sources", "wheels", "genesis", "models", "waivers")
        },
    }
    assert value["overlays"] == {
        "own": {"overlay.yaml": str(digest("overlay.yaml")), "fix.py": str(digest("fix.py"))}
    }
    without = dataclasses.replace(build(), rulings=())
    assert "lockfiles/waivers.yaml" not in document(without)["files"]


def test_the_base_is_recorded_as_its_documents_say() -> None:
    below = base()
    assert document()["base"] == {
        "manifest": str(below.manifest.digest),
        "index": str(digest("index")),
        "reference": "docker.io/vllm/vllm-openai:nightly",
        "config": str(below.manifest.config.digest),
        "layers": [
            {
                "digest": str(digest(f"layer {number + 1}")),
                "size": number + 1,
                "media_type": "application/vnd.docker.image.rootfs.diff.tar.gzip",
                "diff_id": str(digest(f"diff id {number}")),
            }
            for number in (0, 1)
        ],
    }


def version_1(value: dict[str, Any]) -> dict[str, Any]:
    """The record as the builder of before wrote it."""
    new = ("builder", "assembly", "strict", "config", "pins", "files", "overlays")
    old = {key: item for key, item in value.items() if key not in new} | {"version": 1}
    old["base"] = {key: old["base"][key] for key in ("manifest", "index", "reference")}
    return old


def test_a_record_of_before_is_read_and_no_statement_is_made_of_it() -> None:
    old = record(version_1(document()))
    assert old.made is None
    assert old.steps == record().steps
    with pytest.raises(ProjectError) as raised:
        statements(old, name="x")
    assert raised.value.message == (
        f"the record of image {old.digest} was written by an older builder, and does not say what"
        " the image was made of"
    )
    assert raised.value.hint == "build it again on this machine: builder build rich"


@pytest.mark.parametrize("version", [0, 3, "2", None, [2]])
def test_a_record_of_another_version_is_refused(version: object) -> None:
    with pytest.raises(IntegrityError, match="damaged, or of another version of builder"):
        record({**document(), "version": version})


@pytest.mark.parametrize(
    "pins",
    [
        {"pulls": {"pr-1": {}}},
        {"wheels": {"ours": {"digest": 7}}},
        {"wheels": {"pandas": {"digest": "sha256:12", "project": "p", "version": "1"}}},
        {},
    ],
)
def test_a_record_with_damaged_pins_is_said_to_be_damaged(pins: dict[str, Any]) -> None:
    damaged = record({**document(), "pins": pins})
    with pytest.raises(IntegrityError, match="no statement can be made of it"):
        statements(damaged, name="x")
