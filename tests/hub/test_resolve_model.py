"""From a revision to the digest of every file (cases 15, 16, 17)."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from builder.adapters.hub import HubClient
from builder.digest import Digest, ObjectId
from builder.errors import GoneError, IntegrityError, ProjectError
from builder.lock.codec import read_models, write_pins
from builder.lock.model import ModelFile, ModelPin
from builder.models.shards import ShardIndex, listed
from builder.resolve import models
from builder.resolve.found import Resolved
from builder.resolve.models import resolve_model
from tests.hub.conftest import NAME
from tests.standin.hub import StandInHub
from tests.standin.registry import Reply

NOW = "2026-06-01T00:00:00Z"
LATER = "2026-07-01T00:00:00Z"
WEIGHTS = {
    "mtp.fc.weight": "model-00002-of-00002.safetensors",
    "model.embed_tokens.weight": "model-00001-of-00002.safetensors",
}
FILES = {
    ".gitattributes": b"*.safetensors filter=lfs\n",
    "README.md": b"# Tiny\n",
    "chat_template.jinja": b"{{ messages }}\n",
    "config.json": b'{"model_type": "tiny"}\n',
    "model-00001-of-00002.safetensors": b"one" * 100,
    "model-00002-of-00002.safetensors": b"two" * 100,
    "model.safetensors.index.json": json.dumps({"weight_map": WEIGHTS}).encode(),
    "modeling_tiny.py": b"class Tiny: ...\n",
    "pytorch_model.bin": b"pickle",
    "tokenizer.json": b"{}" * 50,
}
PINNED = sorted(set(FILES) - {".gitattributes", "README.md", "pytorch_model.bin"})
Resolve = Callable[..., Resolved[ModelPin]]


@pytest.fixture
def resolve(client: HubClient) -> Resolve:
    def call(revision: str | None = None, **given: object) -> Resolved[ModelPin]:
        arguments = {"name": "tiny", "hub": client, "now": NOW} | given
        return resolve_model(NAME, revision, **arguments)  # type: ignore[arg-type]  # the test's

    return call


@pytest.fixture(autouse=True)
def commit(hub: StandInHub) -> str:
    return hub.model(NAME, FILES).refs["main"]


def test_every_file_of_a_deployment_is_pinned_by_sha256(resolve: Resolve, commit: str) -> None:
    found = resolve()
    assert found == Resolved(
        pin=ModelPin(
            name="tiny",
            repository=NAME,
            follows="main",
            commit=ObjectId(commit),
            files=tuple(
                ModelFile(path=path, digest=Digest.of(FILES[path]), size=len(FILES[path]))
                for path in PINNED
            ),
            locked=NOW,
        )
    )
    assert read_models(write_pins(ModelPin, {"tiny": found.pin})) == {"tiny": found.pin}


def test_only_what_the_hub_has_no_sha256_of_is_read_and_the_index(
    hub: StandInHub, resolve: Resolve
) -> None:
    resolve()
    read = [call.path.rpartition("/")[2] for call in hub.calls if "/resolve/" in call.path]
    assert read == [
        "chat_template.jinja",
        "config.json",
        "model.safetensors.index.json",
        "modeling_tiny.py",
    ]


def test_a_commit_is_pinned_and_followed_by_nothing(resolve: Resolve, commit: str) -> None:
    pin = resolve(commit).pin
    assert (pin.follows, pin.commit.hex) == (None, commit)
    with pytest.raises(ProjectError) as caught:
        resolve(before=replace(pin, at="lockfiles/models.yaml:3: models.tiny"))
    assert caught.value.message == (
        "lockfiles/models.yaml:3: models.tiny: the model follows no branch or tag, so nothing newer"
        " is known"
    )


def test_nothing_new_is_the_same_pin(resolve: Resolve) -> None:
    before = resolve().pin
    assert resolve(before=before, now=LATER) == Resolved(pin=before)


def test_an_incomplete_pin_is_completed_at_its_commit(
    hub: StandInHub, resolve: Resolve, commit: str
) -> None:
    whole = resolve().pin
    hub.models[NAME].commit(FILES | {"config.json": b"{}"})
    bare = tuple(ModelFile(path=file.path) for file in whole.files)
    found = resolve(commit, before=replace(whole, files=bare), now=LATER)
    assert found == Resolved(pin=replace(whole, locked=LATER))


def test_a_bump_says_which_files_are_other_ones_and_keeps_what_people_wrote(
    hub: StandInHub, resolve: Resolve, commit: str
) -> None:
    before = replace(
        resolve().pin, require=("mtp.fc.weight",), tensors=2, dtypes=("U8",), failing=("hello",)
    )
    files = FILES | {"config.json": b"{}", "vocab.txt": b"a\n"}
    del files["chat_template.jinja"]
    new = hub.models[NAME].commit(files)
    hub.models[NAME].squash()
    found = resolve(before=before, now=LATER)
    assert found.remarks == (
        "of 7 files 1 different (config.json), 1 new (vocab.txt), 1 gone (chat_template.jinja)",
    )
    assert found.pin.commit.hex == new
    assert found.pin.locked == LATER
    same = replace(found.pin, commit=before.commit, files=before.files, locked=before.locked)
    assert same == before
    with pytest.raises(GoneError, match="no revision"):
        resolve(commit, before=before)


def test_a_commit_with_the_same_files_says_so(hub: StandInHub, resolve: Resolve) -> None:
    before = resolve().pin
    hub.models[NAME].commit(FILES | {"README.md": b"# Tiny, reworded\n"})
    assert resolve(before=before).remarks == ("all 7 files are the same",)


def test_a_renamed_model_keeps_its_name_in_the_lock_and_is_told_of(
    hub: StandInHub, client: HubClient
) -> None:
    hub.renamed["Team/Old"] = NAME
    found = resolve_model("Team/Old", None, name="tiny", hub=client, now=NOW)
    assert found.pin.repository == "Team/Old"
    assert found.remarks == (
        f"the hub calls Team/Old {NAME} now; the old name leads there until somebody else takes it",
    )


def test_other_formats_are_pinned_where_include_names_them(resolve: Resolve) -> None:
    found = resolve(include=("*.bin", "config.json"))
    assert [file.path for file in found.pin.files] == ["config.json", "pytorch_model.bin"]
    assert found.pin.include == ("*.bin", "config.json")
    assert [file.path for file in resolve(before=found.pin).pin.files] == [
        "config.json",
        "pytorch_model.bin",
    ]


def test_a_glob_that_matches_nothing_is_refused(resolve: Resolve) -> None:
    with pytest.raises(ProjectError, match=r"\*\.gguf, \*\.pt under include: none of 10 files"):
        resolve(include=("*.json", "*.gguf", "*.pt"))


@pytest.mark.parametrize(
    "files, hint",
    [
        pytest.param(
            {"tiny-q4.gguf": b"x", "config.json": b"{}"},
            "include names them: tiny-q4.gguf",
            id="gguf",
        ),
        pytest.param({"config.json": b"{}"}, "without weights it is no model", id="none"),
        pytest.param({}, "without weights it is no model", id="empty"),
    ],
)
def test_a_model_without_safetensors_is_not_pinned_by_default(
    hub: StandInHub, resolve: Resolve, files: dict[str, bytes], hint: str
) -> None:
    hub.models[NAME].commit(files)
    with pytest.raises(ProjectError, match="no safetensors among its") as caught:
        resolve()
    assert hint in str(caught.value.hint)


def index(weights: object) -> bytes:
    return json.dumps({"metadata": {"total_size": 1}, "weight_map": weights}).encode()


def test_a_shard_that_the_index_names_must_be_there(hub: StandInHub, resolve: Resolve) -> None:
    files = dict(FILES)
    del files["model-00002-of-00002.safetensors"]
    commit = hub.models[NAME].commit(files)
    with pytest.raises(IntegrityError) as caught:
        resolve()
    assert caught.value.message == (
        f"model {NAME} at {commit[:12]}: model.safetensors.index.json names 2 files, 1 of them are"
        " missing: model-00002-of-00002.safetensors"
    )


def test_shards_are_told_in_the_order_of_their_names() -> None:
    names = [f"{number:02}.safetensors" for number in range(20)]
    weights = {f"t{name}": name for name in reversed(names)}
    assert ShardIndex(path="x", weights=weights).shards == tuple(names)


def test_of_many_names_the_first_are_told_and_the_rest_counted() -> None:
    assert listed(["a", "b"], most=2) == "a, b"
    assert listed(["a", "b", "c"], most=2) == "a, b and 1 more"


def test_weights_that_cannot_be_any_are_not_pinned(hub: StandInHub, resolve: Resolve) -> None:
    shard = "model-00002-of-00002.safetensors"
    hub.model(NAME, {**FILES, shard: b""})
    with pytest.raises(
        IntegrityError, match=f"no safetensors files, for they have no bytes: {shard}"
    ):
        resolve()


def test_a_shard_that_include_leaves_out_is_refused(resolve: Resolve) -> None:
    with pytest.raises(IntegrityError, match=r"as include selects: .* 1 of them are missing"):
        resolve(include=("*00001*", "*.json"))
    assert resolve(include=("*00001*", "config.json")).pin.files


def test_odd_shard_names_and_places_are_taken_as_the_index_has_them(
    hub: StandInHub, resolve: Resolve
) -> None:
    hub.models[NAME].commit(
        {
            "sub/model.safetensors.index.json": index(
                {"a": "deep/b.safetensors", "b": "model.safetensors-00001-of-1.safetensors"}
            ),
            "sub/deep/b.safetensors": b"b",
            "sub/model.safetensors-00001-of-1.safetensors": b"c",
            "extra.safetensors": b"d",
        }
    )
    found = resolve()
    assert len(found.pin.files) == 4
    assert found.remarks == ("no index names extra.safetensors, which is pinned all the same",)


@pytest.mark.parametrize(
    "data, message",
    [
        pytest.param(b"<html>", "not JSON", id="a page"),
        pytest.param(b"[]", "expected an object with weight_map", id="a list"),
        pytest.param(b"{}", "expected an object with weight_map", id="no map"),
        pytest.param(index({}), "expected an object with weight_map", id="empty map"),
        pytest.param(
            b'{"weight_map": ["a"]}', "expected an object with weight_map", id="map is a list"
        ),
        pytest.param(index({"a": "../b.safetensors"}), "leaves", id="a way out"),
        pytest.param(index({"a": "/b.safetensors"}), "not a path below", id="absolute"),
        pytest.param(index({"a": "./b.safetensors"}), "not a path below", id="another spelling"),
        pytest.param(index({"a": 1}), "1 of them are missing: 1", id="a number"),
        pytest.param(b'{"weight_map": {"a": "x", "a": "y"}}', "duplicate key", id="twice"),
    ],
)
def test_an_index_that_is_none_is_refused(
    hub: StandInHub, resolve: Resolve, data: bytes, message: str
) -> None:
    hub.models[NAME].commit(FILES | {"model.safetensors.index.json": data})
    with pytest.raises(IntegrityError, match=message):
        resolve()


def test_the_tensors_must_be_those_that_the_pin_says(resolve: Resolve) -> None:
    before = resolve().pin
    asked = replace(before, require=("mtp.fc.weight",), forbid=("x",))
    assert resolve(before=asked) == Resolved(pin=asked)
    with pytest.raises(IntegrityError) as caught:
        resolve(
            before=replace(
                before, require=("mtp.fc.qweight",), forbid=("mtp.fc.weight", "lm_head.weight")
            )
        )
    assert caught.value.message == (
        f"model {NAME} at {before.commit.short}: of 2 tensors it lacks mtp.fc.qweight, which the"
        " pin requires and it has mtp.fc.weight, which the pin forbids"
    )
    with pytest.raises(IntegrityError, match="of 2 tensors the pin wants 3"):
        resolve(before=replace(before, tensors=3))


def test_without_an_index_the_tensors_are_left_to_verification(
    hub: StandInHub, resolve: Resolve
) -> None:
    before = replace(resolve().pin, require=("a",))
    hub.models[NAME].commit({"model.safetensors": b"x"})
    assert resolve(before=before).remarks[0] == (
        "it has no index: its tensors are looked at when its files are verified"
    )


@pytest.mark.parametrize(
    "body, message",
    [
        pytest.param(b'{"model_type": "tinY"}\n', "listed as git blob", id="other bytes"),
        pytest.param(b"", "listed with 23 bytes, got 0", id="short"),
        pytest.param(b"<html>" * 9, "sends|expected at most 23 bytes", id="a page in its place"),
    ],
)
def test_a_small_file_is_not_pinned_unless_it_is_what_the_listing_says(
    hub: StandInHub, resolve: Resolve, body: bytes, message: str
) -> None:
    hub.on("GET", ".*/config.json", Reply(body=body))
    with pytest.raises(IntegrityError, match=message):
        resolve()


def test_an_index_in_lfs_is_held_to_its_sha256(hub: StandInHub, resolve: Resolve) -> None:
    good = FILES["model.safetensors.index.json"]
    hub.large += (".index.json",)
    digests = {file.path: file.digest for file in resolve().pin.files}
    assert digests["model.safetensors.index.json"] == Digest.of(good)
    hub.storage.on("GET", ".*", Reply(body=good.replace(b"mtp", b"ptm")))
    with pytest.raises(IntegrityError, match=r"index\.json: expected sha256:"):
        resolve()


def test_a_large_file_without_a_sha256_is_refused_unread(
    hub: StandInHub, resolve: Resolve, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(models, "READ_LIMIT", 22)
    with pytest.raises(IntegrityError, match=r"config\.json: the hub knows no sha256 .* 23 bytes"):
        resolve(include=("config.json",))
    assert not [call for call in hub.calls if "/resolve/" in call.path]


def test_code_of_another_repository_is_told(hub: StandInHub, resolve: Resolve) -> None:
    config = {
        "auto_map": {"AutoConfig": "configuration.C", "AutoModel": "Other/Code--modeling.M"},
        "x": 0.5,
    }
    tokenizer = {"auto_map": {"AutoTokenizer": ["Third/Code--tok.T", None]}}
    files = {
        "config.json": json.dumps(config).encode(),
        "tokenizer_config.json": json.dumps(tokenizer).encode(),
        "processor_config.json": b"{",
    }
    hub.model(NAME, FILES | files)
    end = "which is not pinned: with --trust-remote-code it is run as it is there"
    assert resolve().remarks == (
        f"config.json has code of Other/Code, {end}",
        f"tokenizer_config.json has code of Third/Code, {end}",
    )
