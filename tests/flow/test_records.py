"""Records in a store: which are still read, and when one is written."""

import json

import pytest
from jsonschema import Draft202012Validator

from builder import canonical, notes
from builder.adapters.store import FileStore
from builder.build_record import needed, recorded
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.schema_check import schema
from builder.statements import Kind, statement, statements
from tests.flow.images import serve, write_layout
from tests.flow.worlds import CONFIG, Tiny, base_image
from tests.standin.registry import StandIn
from tests.statements.test_records import version_1


@pytest.fixture
def built(tiny: Tiny, registry: StandIn) -> Tiny:
    made = base_image()
    serve(registry, made)
    tiny.pin(made)
    tiny.overlay("it", files={"vllm/config.py": (CONFIG, b"SIZE = 256\n")})
    tiny.variant("it", "it")
    tiny.bake()
    return tiny


def test_a_record_of_before_still_keeps_what_gc_must_keep(built: Tiny) -> None:
    wanted = set(needed(built.store))
    image = built.references()["it"].removeprefix("sha256:")
    value = json.loads(built.store.note(notes.IMAGE, image) or b"")
    built.store.take_note(notes.IMAGE, image, canonical.encode(version_1(value)))
    assert set(needed(built.store)) == wanted
    done = built.run("manifest", "it")
    assert (done.status, done.out) == (3, "")
    assert "older builder" in done.err
    # The answer that is remembered was given with a record that is no longer there.
    assert built.run("build", "it").status == 0
    assert built.run("manifest", "it").status == 0


def test_a_record_under_another_name_is_refused(built: Tiny) -> None:
    image = built.references()["it"].removeprefix("sha256:")
    other = Digest.of(b"other")
    built.store.take_note(notes.IMAGE, other.hex, built.store.note(notes.IMAGE, image) or b"")
    with pytest.raises(IntegrityError, match="it is that of"):
        recorded(other, built.store)


def test_a_record_is_written_only_where_it_differs(
    built: Tiny, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []
    take = FileStore.take_note

    def spy(self: FileStore, kind: str, key: str, data: bytes) -> None:
        taken.append(kind)
        take(self, kind, key, data)

    monkeypatch.setattr(FileStore, "take_note", spy)
    built.bake()
    assert notes.IMAGE not in taken
    built.variant("it", "it", description="a recipe of other bytes")
    built.bake()
    assert taken.count(notes.IMAGE) == 1


def test_two_variants_of_one_image_are_told_apart(built: Tiny) -> None:
    built.variant("that", "it")
    assert built.run("build", "it").status == 0
    assert built.run("build", "that").status == 0
    assert built.references()["it"] == built.references()["that"]
    done = built.run("manifest", "it")
    assert (done.status, done.out) == (3, "")
    assert done.err == (
        f"builder: error: image {built.references()['it']} was built as variant 'that' after it was"
        " built as 'it', and is remembered as that\n"
        "  hint: builder build it\n"
    )
    assert built.run("build", "it").status == 0
    assert json.loads(built.run("manifest", "it").out)["predicate"]["variant"]["name"] == "it"


@pytest.mark.parametrize("pinned", [True, False], ids=["pinned", "in a layout"])
def test_an_image_on_a_base_says_what_the_base_is(
    tiny: Tiny, registry: StandIn, pinned: bool
) -> None:
    made = base_image()
    if pinned:
        serve(registry, made)
        tiny.pin(made)
        below = None
    else:
        write_layout(tiny.root / "bases/it", made)
        below = {"layout": "bases/it", "digest": str(made.digest)}
    tiny.overlay("it", files={"vllm/config.py": (CONFIG, b"SIZE = 256\n")})
    tiny.variant("it", "it", base=below)
    built = tiny.bake()
    made_of = recorded(built.image.digest, tiny.store)
    said = statement(made_of, Kind.MANIFEST, name="x").predicate
    assert len(statements(made_of, name="x")) == 3
    Draft202012Validator(schema("manifest")).validate(said)
    layers = [layer.digest for layer in built.image.manifest.layers]
    assert [
        *(item["digest"] for item in said["base"]["layers"]),
        *(step["layer"]["digest"] for step in said["steps"]),
    ] == list(map(str, layers))
    diff_ids = [
        *(item["diff_id"] for item in said["base"]["layers"]),
        *(step["layer"]["diff_id"] for step in said["steps"]),
    ]
    assert json.loads(built.image.config)["rootfs"]["diff_ids"] == diff_ids
    assert ("reference" in said["base"], "vllm" in said["pins"]) == (pinned, pinned)
