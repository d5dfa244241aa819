"""Records in a store: which are still read, and when one is written."""

import json

import pytest

from builder import notes
from builder.adapters.store import FileStore
from builder.build_record import needed, recorded
from builder.digest import Digest
from builder.errors import IntegrityError
from tests.flow.images import serve
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
    built.store.take_note(notes.IMAGE, image, json.dumps(version_1(value)).encode())
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
