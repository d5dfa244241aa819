"""The JSON Schemas: valid, in step with the codecs and with the types, and readable."""

import dataclasses
import json
from collections.abc import Iterator
from importlib import resources
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from builder import variant
from builder.errors import ProjectError
from builder.lock import model
from builder.schema_check import KINDS, check, kind_of, schema
from builder.settings import model as settings
from builder.trust import model as trust
from tests.lock.bad_documents import BAD_LOCKS, Bad
from tests.lock.bad_recipes import BAD_RECIPES
from tests.lock.bad_waivers import BAD_WAIVERS
from tests.lock.documents import COMMIT, DIGITS, DOCUMENTS, FILES, READERS, A, changed

BAD = [
    pytest.param(bad, id=f"{bad.kind}: {bad.id}") for bad in BAD_LOCKS + BAD_WAIVERS + BAD_RECIPES
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_schema_is_a_valid_schema(kind: str) -> None:
    Draft202012Validator.check_schema(schema(kind))


def test_every_kind_has_a_schema_and_no_schema_is_left_over() -> None:
    files = resources.files("builder").joinpath("schemas").iterdir()
    # That of the manifest is for what we write: tests/statements.
    wanted = {*(f"{kind}.json" for kind in KINDS), "manifest.json"}
    assert {file.name for file in files} == wanted
    assert sorted(KINDS) == sorted(DOCUMENTS)


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_of_a_project_has_its_kind(kind: str) -> None:
    assert kind_of(FILES[kind]) == kind
    assert kind_of(f"other/{FILES[kind]}") is None


@pytest.mark.parametrize("kind", KINDS)
def test_the_schema_accepts_what_the_codec_accepts(kind: str) -> None:
    data = DOCUMENTS[kind].encode()
    READERS[kind](data)
    check(data, kind=kind, file=FILES[kind])


@pytest.mark.parametrize(
    "kind, old, new",
    [
        pytest.param("sources", f'"{DIGITS}"', DIGITS, id="a commit of digits without quotes"),
        pytest.param("vllm", f"nightly-{COMMIT}", "1.10", id="a tag that looks like a number"),
        pytest.param("vllm", '"2026-05-11T00:00:00Z"', "2026-05-11T00:00:00Z", id="a plain time"),
        pytest.param("variant", '"0755"', "0755", id="a mode without quotes"),
        pytest.param("variant", "description: all", "description: yes", id="a text that is yes"),
        pytest.param("variant", "{pin: known-good}", "scratch", id="no base"),
        pytest.param(
            "variant", "{pin: known-good}", f"{{layout: a/b, digest: {A}}}", id="a layout"
        ),
        pytest.param("variant", "OLD: null", "OLD: ~", id="a tilde for null"),
        pytest.param("variant", "to: /opt/marlin.diff", "to: ..a/.b/c..d", id="dots in a path"),
        pytest.param("overlay", 'replace: ""', 'replace: "a"', id="a replacement"),
    ],
)
def test_both_accept_what_is_unusual(kind: str, old: str, new: str) -> None:
    data = changed(kind, old, new)
    READERS[kind](data)
    check(data, kind=kind, file=FILES[kind])


@pytest.mark.parametrize("bad", BAD)
def test_the_schema_refuses_what_the_codec_refuses(bad: Bad) -> None:
    """Rules over several values are the codec's alone, and marked so."""
    if bad.codec_only:
        check(bad.data, kind=bad.kind, file=FILES[bad.kind])
        return
    with pytest.raises(ProjectError) as caught:
        check(bad.data, kind=bad.kind, file=FILES[bad.kind])
    assert caught.value.message.startswith(f"{FILES[bad.kind]}:")


@pytest.mark.parametrize(
    "data, kind, message, hint",
    [
        pytest.param(
            changed("vllm", f"index: {A}", "index: sha256:beef"),
            "vllm",
            "lockfiles/vllm.yaml:7: vllm.known-good.index: 'sha256:beef' does not match"
            " '^sha256:[0-9a-f]{64}$'",
            "A sha256 of content: 'sha256:' and 64 lower-case hex digits.",
            id="a value of another form",
        ),
        pytest.param(
            changed("wheels", "    digest:", "    digset:"),
            "wheels",
            "lockfiles/wheels.yaml:8: wheels.xxhash: unknown key 'digset'",
            "did you mean 'digest'?",
            id="an unknown key",
        ),
        pytest.param(
            changed("pulls", "      pull: 40361\n", ""),
            "pulls",
            "lockfiles/pulls.yaml:4: pulls.vllm-40361.follows: missing key 'pull'",
            "The pull request.",
            id="a missing key",
        ),
        pytest.param(
            changed("pulls", "version: 1", "version: 2"),
            "pulls",
            "lockfiles/pulls.yaml:1: version: 1 was expected, got 2",
            "The version of this format.",
            id="another version",
        ),
        pytest.param(
            changed("vllm", "  known-good:", "  Known:"),
            "vllm",
            "lockfiles/vllm.yaml:3: vllm: 'Known' does not match"
            " '^[a-z0-9]+(?:(?:[._-]|--)[a-z0-9]+)*$'",
            "A name: lower-case letters and digits, joined by single '.', '_' or '-', or by '--'.",
            id="a key of another form",
        ),
        pytest.param(
            changed("settings", "plain_http: true", "plain_http: yes"),
            "settings",
            "builder.yaml:10: registries.docker.io.plain_http: 'yes' is not of type 'boolean'",
            "Whether it is reached without TLS.",
            id="a value of another type",
        ),
        pytest.param(
            changed("vllm", "size: 12", "size: 9007199254740992"),
            "vllm",
            "lockfiles/vllm.yaml:14: vllm.known-good.platforms.linux/amd64.layers[0].size:"
            " 9007199254740992 is greater than the maximum of 9007199254740991",
            "A count of bytes.",
            id="a number that is too large",
        ),
    ],
)
def test_a_refusal_has_its_place_and_the_words_of_the_schema(
    data: bytes, kind: str, message: str, hint: str
) -> None:
    with pytest.raises(ProjectError) as caught:
        check(data, kind=kind, file=FILES[kind])
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_the_schema_sees_no_document_that_is_not_strict() -> None:
    with pytest.raises(ProjectError) as caught:
        check(b"version: 1\nversion: 1\n", kind="vllm", file="lockfiles/vllm.yaml")
    assert (
        caught.value.message == "lockfiles/vllm.yaml:2:1: duplicate key 'version', first on line 1"
    )


# Of each type: schema, definition, fields with another key (None: no key of the entry).
PLACES: dict[type[Any], tuple[str, str, dict[str, str | None]]] = {
    model.Escrow: ("vllm", "escrow", {}),
    model.LayerPin: ("vllm", "layer", {}),
    model.PlatformPin: ("vllm", "platformPin", {}),
    model.VllmBuild: ("vllm", "pin/properties/vllm", {}),
    model.ImagePin: ("vllm", "pin", {"name": None, "tags": "follows", "commits": "follows"}),
    model.SourceFile: ("sources", "sourceFile", {"path": None}),
    model.SourcePin: ("sources", "pin", {"name": None, "repository": None}),
    model.SourceDiff: ("pulls", "pin/properties/published", {}),
    model.PullPin: ("pulls", "pin", {"name": None, "repository": None, "pull": None}),
    model.WheelPin: ("wheels", "pin", {"name": None, "project": None, "version": None}),
    model.Subtree: ("genesis", "subtree", {}),
    model.GenesisPin: ("genesis", "pin", {"name": None, "repository": None}),
    model.ModelFile: ("models", "modelFile", {"path": None}),
    model.ModelPin: ("models", "pin", {"name": None, "repository": None}),
    model.Waiver: ("waivers", "waiver", {"name": None}),
    model.ResultPatch: ("results", "resultPatch", {"name": None}),
    model.ResultFile: ("results", "resultFile", {"path": None}),
    model.Result: ("results", "result", {"variant": None, "platform": None}),
    variant.PinnedBase: ("variant", "baseImage", {}),
    variant.LayoutBase: ("variant", "baseImage", {}),
    variant.Python: ("variant", "python", {}),
    variant.PullStep: ("variant", "pullStep", {"until_upstream": "until"}),
    variant.OverlayStep: ("variant", "overlayStep", {"until_upstream": "until"}),
    variant.Placement: ("variant", "placement", {"source": "from", "target": "to"}),
    variant.SourceStep: ("variant", "sourceStep", {"until_upstream": "until"}),
    variant.WheelsStep: ("variant", "wheelsStep", {}),
    variant.GenesisStep: ("variant", "genesisStep", {}),
    variant.ScriptFile: ("variant", "scriptFile", {}),
    variant.ScriptStep: ("variant", "scriptStep", {}),
    variant.ImageSettings: ("variant", "image", {}),
    variant.Variant: ("variant", "", {"name": None}),
    variant.FileRule: ("overlay", "file", {"target": "path", "data": None}),
    variant.RemoveRule: ("overlay", "removal", {"target": "path"}),
    variant.Edit: ("overlay", "edit", {"action": "replace", "text": "insert_after"}),
    variant.EditRule: ("overlay", "edits", {"target": "path"}),
    variant.PatchRule: ("overlay", "patch", {"data": None}),
    variant.Overlay: ("overlay", "", {"name": None}),
    settings.RegistrySettings: ("settings", "registry", {"host": None}),
    settings.GenesisPolicy: (
        "settings",
        "genesisPolicy",
        {
            "no_list": "no-list",
            "unknown_flag": "unknown-flag",
            "odd_value": "odd-value",
            "no_effect": "no-effect",
            "unmet_requirement": "unmet-requirement",
            "version_range": "version-range",
        },
    ),
    settings.SandboxSettings: ("settings", "sandbox", {}),
    settings.ProjectSettings: (
        "settings",
        "",
        {"git_mirrors": "mirrors", "genesis": "policy", "expiry": "policy"},
    ),
    settings.ExpiryPolicy: ("settings", "expiry", {}),
    settings.ForgeSettings: ("settings", "forge", {"host": None}),
    trust.TrustedKey: ("trust", "key", {"name": None}),
    trust.Role: ("trust", "role", {"name": None}),
    trust.Scope: ("trust", "scope", {}),
    trust.Policy: ("trust", "", {"longest_waiver": "waivers"}),
}
NOT_IN_A_FILE = {
    model.Lock,
    variant.ScratchBase,
    variant.Action,
    variant.Script,
    settings.GitMirror,
    settings.Level,
    settings.ComposeService,
    trust.KeyState,
}


@pytest.mark.parametrize(
    "module", [model, variant, settings, trust], ids=["lock", "recipe", "settings", "trust"]
)
def test_no_type_is_forgotten(module: Any) -> None:
    own = {
        item
        for item in vars(module).values()
        if isinstance(item, type) and item.__module__ == module.__name__
    }
    assert own - NOT_IN_A_FILE <= set(PLACES)


@pytest.mark.parametrize("kind", PLACES, ids=lambda kind: kind.__name__)
def test_every_field_has_a_property_in_the_schema(kind: type[Any]) -> None:
    name, place, renamed = PLACES[kind]
    rules: Any = schema(name)["$defs"] if place else schema(name)
    for part in filter(None, place.split("/")):
        rules = rules[part]
    fields = {field.name for field in dataclasses.fields(kind)} - {"at"}
    assert set(renamed) <= fields
    keys = {renamed.get(field, field) for field in fields} - {None}
    assert keys <= set(rules["properties"])


@pytest.mark.parametrize("kind", KINDS)
def test_every_property_is_described_and_no_object_takes_strays(kind: str) -> None:
    for place, rules in objects(schema(kind), "#"):
        assert "additionalProperties" in rules, place
        assert rules["additionalProperties"] is not True, place
        for key, value in rules.get("properties", {}).items():
            described = "description" in value or "$ref" in value
            assert described, f"{place}.{key} has no description"
    for name, definition in schema(kind)["$defs"].items():
        assert "description" in definition, name


def test_a_definition_that_several_schemas_have_is_the_same_in_all() -> None:
    seen: dict[str, tuple[str, str]] = {}
    own = {"pin", "registry", "file"}
    for kind in KINDS:
        for name, definition in schema(kind)["$defs"].items():
            text = json.dumps(definition)
            first, expected = seen.setdefault(name, (kind, text))
            assert name in own or text == expected, f"{name} differs in {first} and {kind}"


def objects(rules: Any, place: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every schema of an object, below ``rules``; those that only choose are left out."""
    if isinstance(rules, dict):
        if rules.get("type") == "object" and ("properties" in rules or "propertyNames" in rules):
            yield place, rules
        for key, value in rules.items():
            yield from objects(value, f"{place}/{key}")
    elif isinstance(rules, list):
        for number, value in enumerate(rules):
            yield from objects(value, f"{place}/{number}")
