"""The manifest: everything that the record has, in the form that the schema says."""

import copy
import json
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from builder import canonical
from builder.derivation import Derivation
from builder.digest import Digest
from builder.schema_check import schema
from builder.statements import manifest
from builder.statements.said import entries_digest
from tests.statements.rich import document, outputs, record

SCHEMA = schema("manifest")
VALIDATOR = Draft202012Validator(SCHEMA)
RECORD = document()
PREDICATE = manifest.predicate(record())
PREDICATE_JSON = json.loads(canonical.encode(PREDICATE))

LEFT_OUT = {
    "version": "of the record's form, not of what it says",
    "blobs": "what the store must keep; each stands with its layer",
    "files lockfiles": "the whole file changes with what is pinned for other variants",
    "steps output layer index": "what the store knows of a layer, made again out of the layer",
    "steps output layer table": "as index",
    "steps output sandbox": "another one gives the same bytes, and there may be another one",
    "steps output patches reason": "of a patch that did something: not held to what was accepted",
}
"""What a record has and a manifest has not, each with its reason."""


def leaves(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The paths of everything in a document that is no object and no list with something in it."""
    items = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in items:
        if isinstance(item, dict | list) and item:
            yield from leaves(item, (*path, key))
        else:
            yield (*path, key)


def at(value: Any, path: tuple[Any, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


WORDS = {"applied-with-offset": "applied", "runtime-only": "applied", "skipped": "failed"}


def other(value: Any, of: tuple[Any, ...] = ()) -> Any:
    """Another value of the same type."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if value is None:
        return "x"
    if value.startswith("sha256:"):
        return str(Digest.of(value.encode()))
    if value == "applied":
        return "skipped" if "state" in of else "refused"
    return WORDS.get(value, f"{value}x")


def changed(value: Any, path: tuple[Any, ...], new: Any) -> Any:
    whole = copy.deepcopy(value)
    at(whole, path[:-1])[path[-1]] = new
    return whole


def words(path: tuple[Any, ...]) -> str:
    """A path without numbers and without the names of lockfiles."""
    return " ".join(str(part).partition("/")[0] for part in path if isinstance(part, str))


def distinct(paths: Iterator[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """One path of each kind: the items of a list, and the steps of a kind, have one schema."""
    found: dict[tuple[str, Any], tuple[Any, ...]] = {}
    for path in paths:
        step = PREDICATE_JSON["steps"][path[1]]["kind"] if path[0] == "steps" else None
        found.setdefault((words(path), step), path)
    return list(found.values())


def told(path: tuple[Any, ...]) -> bool:
    """Whether a value can be another one of its kind: what is empty is full elsewhere."""
    return at(RECORD, path) not in ([], {}) and path[-2:] != ("output", "layer")


def reason_for(path: tuple[Any, ...]) -> str | None:
    """Why a field is not in the manifest; ``None`` for one that is."""
    if path[-1] == "reason" and at(RECORD, path[:-1]).get("state") == "skipped":
        return None
    return LEFT_OUT.get(words(path))


def test_every_field_of_a_record_is_in_the_manifest_or_is_left_out_for_a_reason() -> None:
    """A new field of the record fails here until someone decides."""
    fields = [path for path in leaves(RECORD) if told(path) and path != ("version",)]
    assert len(fields) > 250
    for path in fields:
        said = manifest.predicate(record(changed(RECORD, path, other(at(RECORD, path), path))))
        assert (said == PREDICATE) == (reason_for(path) is not None), path


def test_the_reasons_are_for_what_a_record_has() -> None:
    found = {words(path) for path in leaves(RECORD)}
    assert set(LEFT_OUT) <= found


def test_the_schema_is_a_schema_and_takes_the_manifest() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    VALIDATOR.validate(PREDICATE_JSON)


def test_the_schema_refuses_another_type_in_the_place_of_each_value() -> None:
    for path in distinct(leaves(PREDICATE_JSON)):
        assert not VALIDATOR.is_valid(changed(PREDICATE_JSON, path, 1.5)), path


def objects(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    if isinstance(value, dict):
        yield path
        for key, item in value.items():
            yield from objects(item, (*path, key))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from objects(item, (*path, number))


def test_the_schema_refuses_a_key_that_it_does_not_know() -> None:
    """Where keys are names, the value of a stray one is refused."""
    for path in objects(PREDICATE_JSON):
        strayed = changed(PREDICATE_JSON, (*path, "Stray Key"), 1.5)
        assert not VALIDATOR.is_valid(strayed), path


REQUIRED = [
    *("builder", "variant", "platform", "image", "pins", "overlays", "settings", "rulings"),
    "steps",
]


@pytest.mark.parametrize("key", REQUIRED)
def test_the_schema_misses_what_must_be_there(key: str) -> None:
    assert not VALIDATOR.is_valid({name: PREDICATE_JSON[name] for name in REQUIRED if name != key})


@pytest.mark.parametrize(
    "step",
    [
        pytest.param({"layer": None}, id="null for a layer"),
        pytest.param({"left_out": "already-upstream"}, id="a layer, and left out"),
        pytest.param({"kind": "pull"}, id="the inputs of another kind"),
        pytest.param({"kind": "dockerfile"}, id="a kind that there is not"),
        pytest.param({"derivation": "sha256:12"}, id="a short digest"),
    ],
)
def test_the_schema_refuses_a_step_that_contradicts_itself(step: dict[str, Any]) -> None:
    steps = [item for item in PREDICATE_JSON["steps"] if item["name"] == "own"]
    assert VALIDATOR.is_valid({**PREDICATE_JSON, "steps": steps})
    assert not VALIDATOR.is_valid({**PREDICATE_JSON, "steps": [{**steps[0], **step}]})


def test_a_manifest_of_nothing_is_one() -> None:
    value = {**RECORD, "base": None, "pins": {}, "overlays": {}, "steps": [], "files": {}}
    del value["rulings"]
    value["settings"] = dict.fromkeys(value["settings"]) | {"env": {}, "labels": {}}
    said = manifest.predicate(record(value))
    VALIDATOR.validate(said)
    assert "base" not in said
    assert said["settings"] == {}


def test_a_step_that_was_left_out_says_why() -> None:
    (step,) = (item for item in PREDICATE["steps"] if item["name"] == "pr-2")
    assert "layer" not in step
    assert step["left_out"] == "already-upstream"
    assert outputs()["pr-2"].layer is None


def test_the_derivations_can_be_computed_from_the_manifest() -> None:
    """So that a reader need not believe what the ids stand for."""
    parent = Digest.parse(PREDICATE["base"]["manifest"])
    for step in PREDICATE_JSON["steps"]:
        derivation = Derivation(
            assembly=PREDICATE["builder"]["assembly"],
            kind=step["kind"],
            inputs=canonical.encode(step["inputs"]),
            parent=parent,
        )
        assert str(derivation.id) == step["derivation"]
        parent = derivation.id


def test_the_digest_of_the_entries_used_can_be_computed_from_the_manifest() -> None:
    from builder.statements import provenance

    lock = provenance.predicate(record())["buildDefinition"]["externalParameters"]["lock"]
    assert lock.keys() == {f"lockfiles/{kind}.yaml" for kind in PREDICATE["pins"]}
    for kind, pins in PREDICATE_JSON["pins"].items():
        digest = Digest.of(canonical.encode(pins))
        assert digest == entries_digest(pins)
        assert lock[f"lockfiles/{kind}.yaml"] == {
            "entries": sorted(pins),
            "digest": {"sha256": digest.hex},
        }


def test_every_property_is_described_and_every_definition_is_used() -> None:
    from tests.lock.test_schemas import objects as schema_objects

    for place, rules in schema_objects(SCHEMA, "#"):
        assert rules["additionalProperties"] is not True, place
        for key, value in rules.get("properties", {}).items():
            assert "description" in value, f"{place}.{key}"
    text = json.dumps(SCHEMA)
    for name, definition in SCHEMA["$defs"].items():
        assert definition["description"]
        assert f'"#/$defs/{name}"' in text, name
