"""What is not done twice: memos, early cut-off, and the same bytes without any of them."""

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder import notes
from builder.build_record import needed
from builder.errors import IntegrityError, PatchError
from tests.flow.conftest import Log
from tests.flow.images import image, serve
from tests.flow.worlds import (
    BASE,
    CONFIG,
    Tiny,
    at_packages,
    base_image,
    blobs,
    cached,
    content,
)
from tests.standin.registry import StandIn

TWICE = b"SIZE = 256\n"
THRICE = b"SIZE = 384\n"


@pytest.fixture
def three_steps(tiny: Tiny, registry: StandIn) -> Tiny:
    """Two overlays of one file below one of another."""
    made = base_image()
    serve(registry, made)
    tiny.pin(made)
    tiny.overlay("first", files={"vllm/config.py": (CONFIG, TWICE)})
    tiny.overlay("second", files={"vllm/config.py": (TWICE, THRICE)})
    tiny.edit("third", "vllm/sub/module.py", "41", "42")
    tiny.variant("it", "first", "second", "third")
    return tiny


def test_a_second_build_runs_nothing_asks_nobody_and_gives_the_same_digest(
    three_steps: Tiny, registry: StandIn, log: Log
) -> None:
    first = three_steps.bake()
    assert log.runs() == ["first", "second", "third"]
    asked = len(registry.calls)
    second = three_steps.bake()
    assert second.image == first.image
    assert cached(first) == {"first": False, "second": False, "third": False}
    assert cached(second) == {"first": True, "second": True, "third": True}
    assert (log.runs(), len(registry.calls)) == ([], asked)


def test_a_build_without_its_memos_gives_the_same_digest(three_steps: Tiny, log: Log) -> None:
    first = three_steps.bake()
    log.runs()
    shutil.rmtree(three_steps.store_path / "notes")
    again = three_steps.bake()
    assert again.image == first.image
    assert log.runs() == ["first", "second", "third"]


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[:-7], id="half"),
        pytest.param(lambda data: b"[]", id="no object"),
        pytest.param(lambda data: b'{"output":[],"traces":[1,{"output":1}]}', id="other types"),
        pytest.param(lambda data: data.replace(b"sha256:", b"sha512:"), id="other digests"),
        pytest.param(
            lambda data: data.replace(b'["stat",', b'["see",').replace(b'"digest"', b'"Digest"', 1),
            id="another version's questions",
        ),
        pytest.param(lambda data: data.replace(b'"reads":[', b'"reads":[1,'), id="other reads"),
    ],
)
def test_half_a_memo_is_no_memo(
    three_steps: Tiny, log: Log, damage: Callable[[bytes], bytes]
) -> None:
    first = three_steps.bake()
    log.runs()
    for key in list(three_steps.store.notes(notes.DERIVATION)):
        Path(three_steps.store.paths.note(notes.DERIVATION, key)).write_bytes(b"{")
    for kind in (notes.DERIVATION, notes.QUESTION):
        for key in list(three_steps.store.notes(kind)):
            path = Path(three_steps.store.paths.note(kind, key))
            path.write_bytes(damage(path.read_bytes()))
    again = three_steps.bake()
    assert again.image == first.image
    assert log.runs() == ["first", "second", "third"]


def test_a_cold_store_gives_what_a_warm_one_gives(
    three_steps: Tiny, tmp_path: Path, log: Log
) -> None:
    warm = three_steps.bake()
    cold = three_steps.bake(store=tmp_path / "cold")
    assert cold.image == warm.image
    assert blobs(cold) == blobs(warm)
    assert log.runs() == 2 * ["first", "second", "third"]


def test_the_order_in_which_two_variants_are_built_changes_no_blob(
    three_steps: Tiny, tmp_path: Path
) -> None:
    three_steps.variant("other", "third", "first")
    there = {name: three_steps.bake(name) for name in ("it", "other")}
    back = {name: three_steps.bake(name, store=tmp_path / "back") for name in ("other", "it")}
    for name in ("it", "other"):
        assert back[name].image == there[name].image
        assert blobs(back[name]) == blobs(there[name])
    # The layers themselves do not know what lies below them.
    assert blobs(there["other"]) == [blobs(there["it"])[2], blobs(there["it"])[0]]


def test_a_step_is_not_run_on_another_base_whose_files_are_those_it_reads(
    tiny: Tiny, registry: StandIn, log: Log
) -> None:
    old = base_image()
    neighbours = {
        at_packages("vllm/new.py"): b"NEW = 1\n",
        at_packages("vllm/__pycache__/new.cpython-312.pyc"): b"compiled",
    }
    new = image({"etc/hostname": b"newer\n"}, BASE | neighbours)
    serve(registry, old)
    serve(registry, new)
    tiny.overlay("it", files={"vllm/config.py": (CONFIG, TWICE)})
    tiny.variant("it", "it")
    tiny.pin(old)
    first = tiny.bake()
    assert log.runs() == ["it"]
    tiny.pin(new)
    second = tiny.bake()
    assert log.runs() == []
    assert cached(second) == {"it": True}
    assert blobs(second) == blobs(first)
    assert second.image.digest != first.image.digest
    # What was found out is kept under the new name, too: the next build looks at no file.
    key = second.steps[0].step.derivation.id.hex
    assert tiny.store.note(notes.DERIVATION, key) is not None


def test_a_step_is_run_again_where_a_file_that_it_reads_differs(
    tiny: Tiny, registry: StandIn, log: Log
) -> None:
    tiny.edit("it", "vllm/config.py", "SIZE", "LENGTH")
    tiny.variant("it", "it")
    made = []
    for text in (CONFIG, CONFIG + b"MORE = 1\n", CONFIG):
        base = image(BASE | {at_packages("vllm/config.py"): text})
        serve(registry, base)
        tiny.pin(base)
        made.append(tiny.bake())
    assert log.runs() == ["it", "it"]
    assert [cached(item)["it"] for item in made] == [False, False, True]
    assert blobs(made[0]) == blobs(made[2])
    path = at_packages("vllm/config.py")
    assert content(made[1], path, tiny.store) == b"LENGTH = 128\nMORE = 1\n"


@pytest.mark.parametrize(
    "tree",
    [
        pytest.param({at_packages("vllm/__pycache__/config.cpython-312.pyc"): b"pyc"}, id="a pyc"),
        pytest.param({at_packages("vllm/config.cpython-312.so"): b""}, id="a shadow"),
    ],
)
def test_a_step_is_asked_again_where_more_than_its_files_differs(
    tiny: Tiny, registry: StandIn, log: Log, tree: dict[str, bytes]
) -> None:
    """What a step looked at without finding anything is part of its question."""
    tiny.overlay("it", files={"vllm/config.py": (CONFIG, TWICE)})
    tiny.variant("it", "it")
    for base in (image(BASE), image(BASE | tree)):
        serve(registry, base)
        tiny.pin(base)
        with suppress(PatchError):
            tiny.bake()
    assert log.runs() == ["it", "it"]


def test_another_base_is_refused_with_the_same_words_whatever_is_remembered(
    tiny: Tiny, registry: StandIn, tmp_path: Path
) -> None:
    """A remembered run asked for things that this tree cannot be asked for."""
    old = image(BASE)
    new = image(
        BASE | {at_packages("vllm/config.py"): b"SIZE = 1\n", at_packages("vllm/new"): b"a file"}
    )
    tiny.overlay("it", files={"vllm/config.py": (CONFIG, TWICE), "vllm/new/it.py": (None, b"")})
    tiny.variant("it", "it")
    for base in (old, new):
        serve(registry, base)
    tiny.pin(old)
    tiny.bake()
    tiny.pin(new)
    said = []
    for store in (tiny.store_path, tmp_path / "cold"):
        with pytest.raises(PatchError) as caught:
            tiny.bake(store=store)
        said.append((caught.value.verdict, caught.value.message))
    assert said == 2 * [("refused", "variants/it.yaml:7: steps[0]: 1 of 2 files do not apply")]


def test_editing_an_overlay_makes_only_its_layer_and_those_that_read_it(
    three_steps: Tiny, log: Log
) -> None:
    first = three_steps.bake()
    log.runs()
    three_steps.overlay("second", files={"vllm/config.py": (TWICE, b"SIZE = 512\n")})
    second = three_steps.bake()
    assert log.runs() == ["second"]
    assert cached(second) == {"first": True, "second": False, "third": True}
    assert [one == two for one, two in zip(blobs(first), blobs(second), strict=True)] == [
        True,
        False,
        True,
    ]
    three_steps.edit("tail", "vllm/config.py", "SIZE", "LENGTH")
    three_steps.variant("it", "first", "second", "third", "tail")
    three_steps.bake()
    assert log.runs() == ["tail"]
    three_steps.overlay("second", files={"vllm/config.py": (TWICE, b"SIZE = 640\n")})
    three_steps.bake()
    assert log.runs() == ["second", "tail"]


def test_a_change_that_ends_in_the_same_bytes_stops_there(three_steps: Tiny, log: Log) -> None:
    """The derivation of the changed step is new and so are all above it; its output is not."""
    first = three_steps.bake()
    log.runs()
    three_steps.edit("second", "vllm/config.py", "256", "384")
    second = three_steps.bake()
    assert log.runs() == ["second"]
    assert second.image == first.image
    ids = [[item.step.derivation.id for item in made.steps][1:] for made in (first, second)]
    assert not set(ids[0]) & set(ids[1])


def test_names_and_descriptions_are_no_inputs(three_steps: Tiny, log: Log) -> None:
    first = three_steps.bake()
    log.runs()
    steps = [{"overlay": name, "name": f"step-{name}"} for name in ("first", "second", "third")]
    three_steps.variant("renamed", *steps, description="another name for the same")
    again = three_steps.bake("renamed")
    assert log.runs() == []
    assert blobs(again) == blobs(first)
    ids = [[item.step.derivation.id for item in made.steps] for made in (first, again)]
    assert ids[0] == ids[1]


def test_a_missing_layer_blob_is_made_again(three_steps: Tiny, log: Log) -> None:
    first = three_steps.bake()
    log.runs()
    layer = first.steps[1].output.layer
    assert layer is not None
    Path(three_steps.store.paths.blob(layer.digest)).unlink()
    again = three_steps.bake()
    assert log.runs() == ["second"]
    assert again.image == first.image
    assert three_steps.store.has(layer.digest)


def test_check_runs_everything_again_and_compares(three_steps: Tiny, log: Log) -> None:
    first = three_steps.bake()
    log.runs()
    again = three_steps.bake(check=True)
    assert log.runs() == ["first", "second", "third"]
    assert again.image == first.image
    assert cached(again) == {"first": False, "second": False, "third": False}


def test_check_refuses_a_step_that_was_something_else_before(three_steps: Tiny) -> None:
    made = three_steps.bake()
    store = three_steps.store
    key = made.steps[0].step.derivation.id.hex
    memo = json.loads(store.note(notes.DERIVATION, key) or b"")
    other = made.steps[2].output.layer
    assert other is not None
    memo["output"]["layer"] = other.record()
    store.take_note(notes.DERIVATION, key, json.dumps(memo).encode())
    before = three_steps.references()
    with pytest.raises(IntegrityError) as caught:
        three_steps.bake(check=True)
    right = made.steps[0].output.layer
    assert right is not None
    assert caught.value.message == (
        f"step 'first': running it again gave layer {right.diff_id}, it was layer {other.diff_id}"
    )
    assert three_steps.references() == before


def test_the_same_step_twice_is_refused_and_not_answered_from_memory(three_steps: Tiny) -> None:
    """A derivation knows what lies below it: the second one is another question."""
    made = three_steps.bake()
    three_steps.variant("it", "first", {"overlay": "first", "name": "once-more"})
    ids = {item.step.derivation.id for item in made.steps}
    done = three_steps.run("build", "it")
    assert done.status == 6
    assert done.first == (
        "builder: error: overlays/first/overlay.yaml:4: files[0]:"
        f" {at_packages('vllm/config.py')!r} is already upstream: the image has these bytes"
    )
    assert len(ids) == 3


def test_another_assembly_version_asks_another_question(three_steps: Tiny) -> None:
    derivation = three_steps.bake().steps[0].step.derivation
    other = replace(derivation, assembly=derivation.assembly + 1)
    assert other.id != derivation.id
    assert other.question != derivation.question


def _others(value: Any) -> Iterator[Any]:
    """The same JSON with one part of another type, or gone, for every part of it."""
    parts = list(value.items()) if isinstance(value, dict) else list(enumerate(value))
    for key, part in parts:
        for other in (None, 5, "x", [], {}, [5], {"x": 5}):
            if isinstance(value, dict):
                yield value | {key: other}
            else:
                yield [*value[:key], other, *value[key + 1 :]]
        if isinstance(value, dict):
            yield {name: item for name, item in value.items() if name != key}
        if isinstance(part, dict | list):
            for inner in _others(part):
                if isinstance(value, dict):
                    yield value | {key: inner}
                else:
                    yield [*value[:key], inner, *value[key + 1 :]]


@pytest.mark.parametrize("kind", [notes.DERIVATION, notes.QUESTION, notes.LAYER])
def test_a_memo_of_another_form_is_no_memo(kind: str, tiny: Tiny, registry: StandIn) -> None:
    made = image(BASE)
    serve(registry, made)
    tiny.pin(made)
    tiny.overlay("first", files={"vllm/config.py": (CONFIG, TWICE)})
    tiny.variant("it", "first")
    first = tiny.bake()
    (key,) = tiny.store.notes(kind)
    whole = json.loads(tiny.store.note(kind, key) or b"")
    # Where every memo before it is gone, this one is asked.
    kinds = [notes.DERIVATION, notes.QUESTION, notes.LAYER]
    earlier = kinds[: kinds.index(kind)]
    forms = [[], 5, None, "x", *list(_others(whole))[::11]]
    for form in forms:
        for other in earlier:
            shutil.rmtree(Path(tiny.store.paths.notes, other))
        tiny.store.take_note(kind, key, json.dumps(form).encode())
        assert tiny.bake().image == first.image, form
        assert list(needed(tiny.store))
