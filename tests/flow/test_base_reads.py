"""When the layers of a base are read, and how often."""

from collections.abc import Iterator

import pytest

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.oci import Descriptor
from builder.origin import Origin
from tests.flow.conftest import Log
from tests.flow.images import MadeImage, image, serve
from tests.flow.worlds import BASE, CONFIG, Tiny, at_packages, cached, content
from tests.standin.registry import Reply, StandIn

PYTHON = {"version": "3.12", "packages": "usr/local/lib/python3.12/dist-packages"}


@pytest.fixture
def base(tiny: Tiny, registry: StandIn) -> MadeImage:
    """Three layers: a system, the package, and a template on top."""
    made = image(
        {"usr/bin/true": b"\x7fELF", "opt/notes.txt": b"old\n", "opt/more.txt": b"old\n"},
        BASE,
        {"opt/chat.jinja": b"{{ hello }}\n"},
    )
    serve(registry, made)
    tiny.pin(made)
    return made


def fetched(registry: StandIn, made: MadeImage) -> list[int]:
    """Which layers were asked for, by number, since the last call."""
    names = {f"/v2/base/blobs/{Digest.of(data)}": n for n, data in enumerate(made.layers)}
    calls = [call for call in registry.calls if call.method == "GET" and call.path in names]
    registry.calls.clear()
    return [names[call.path] for call in calls]


def test_settings_alone_read_no_layer(tiny: Tiny, registry: StandIn, base: MadeImage) -> None:
    tiny.variant("it", image={"env": {"A": "1"}})
    made = tiny.bake()
    assert made.image.manifest.layers == base.manifest.layers
    assert fetched(registry, base) == []


def test_a_plan_reads_no_layer(tiny: Tiny, registry: StandIn, base: MadeImage) -> None:
    tiny.edit("it", "vllm/config.py", "128", "256")
    tiny.variant("it", "it")
    done = tiny.run("plan", "it", "--json")
    assert done.json["steps"][0]["cached"] is False
    assert fetched(registry, base) == []


def test_only_the_layers_above_the_answer_are_read(
    tiny: Tiny, registry: StandIn, base: MadeImage, log: Log
) -> None:
    tiny.edit("it", "/opt/chat.jinja", "hello", "goodbye")
    tiny.variant("it", "it", python=PYTHON)
    made = tiny.bake()
    assert content(made, "opt/chat.jinja", tiny.store) == b"{{ goodbye }}\n"
    assert fetched(registry, base) == [2]
    assert len(log.streamed()) == 1


def test_each_layer_is_read_once_for_all_steps_and_variants(
    tiny: Tiny, registry: StandIn, base: MadeImage, log: Log
) -> None:
    tiny.edit("one", "vllm/config.py", "128", "256")
    tiny.edit("two", "vllm/sub/module.py", "41", "42")
    tiny.overlay("three", files={"vllm/new.py": (None, b"NEW = 1\n")})
    tiny.variant("it", "one", "two")
    tiny.variant("other", "three", "two", "one")
    tiny.bake("it")
    assert sorted(fetched(registry, base)) == [0, 1, 2]
    assert len(log.streamed()) == 3
    tiny.bake("other")
    assert fetched(registry, base) == []
    tiny.bake("other", check=True)
    assert fetched(registry, base) == []
    assert log.streamed() == []


def test_a_file_that_a_step_names_is_kept_when_its_layer_is_read(
    tiny: Tiny, registry: StandIn, base: MadeImage
) -> None:
    """The keep rule knows Python text; what a step asks for is kept in the same pass."""
    tiny.edit("it", "/opt/notes.txt", "old", "new")
    tiny.variant("it", "it", python=PYTHON)
    made = tiny.bake()
    assert content(made, "opt/notes.txt", tiny.store) == b"new\n"
    assert sorted(fetched(registry, base)) == [0, 1, 2]


def test_a_file_that_nobody_thought_of_costs_one_more_read_of_its_layer_and_is_then_kept(
    tiny: Tiny, registry: StandIn, base: MadeImage, log: Log
) -> None:
    tiny.edit("first", "vllm/config.py", "128", "256")
    tiny.variant("it", "first")
    tiny.bake()
    fetched(registry, base)
    log.streamed()
    tiny.edit("late", "/opt/notes.txt", "old", "new")
    tiny.variant("it", "first", "late")
    made = tiny.bake()
    assert content(made, "opt/notes.txt", tiny.store) == b"new\n"
    assert fetched(registry, base) == [0]
    assert log.streamed() == [
        (
            f"{Digest.of(base.layers[0])} again for 'opt/notes.txt', which is no text file of a"
            " Python package"
        )
    ]
    tiny.edit("late", "/opt/notes.txt", "old", "newer")
    again = tiny.bake()
    assert cached(again) == {"first": True, "late": False}
    assert fetched(registry, base) == []


def test_a_dropped_index_is_made_again_and_is_the_same(
    tiny: Tiny, registry: StandIn, base: MadeImage
) -> None:
    tiny.edit("it", "vllm/config.py", "128", "256")
    tiny.variant("it", "it")
    first = tiny.bake()
    fetched(registry, base)
    key = Digest.of(base.layers[1]).hex
    note = tiny.store.note("layer", key)
    assert note is not None
    (tiny.store_path / "notes" / "layer" / key).unlink()
    assert tiny.bake(check=True).image == first.image
    assert fetched(registry, base) == [1]
    assert tiny.store.note("layer", key) == note


@pytest.mark.parametrize(
    ("harm", "said"),
    [
        pytest.param(
            lambda data: data[:-1] + bytes([data[-1] ^ 1]), "Incorrect checksum", id="a flipped bit"
        ),
        pytest.param(lambda data: data + b"\0", " bytes", id="a byte too many"),
    ],
)
def test_a_layer_that_is_not_what_it_is_called_is_refused_and_not_remembered(
    tiny: Tiny, registry: StandIn, base: MadeImage, harm: object, said: str
) -> None:
    tiny.edit("it", "vllm/config.py", "128", "256")
    tiny.variant("it", "it")
    data = base.layers[1]
    assert callable(harm)
    bad = Reply(body=harm(data))
    registry.on("GET", f"/v2/base/blobs/{Digest.of(data)}", bad)
    with pytest.raises(IntegrityError, match=said):
        tiny.bake()
    assert tiny.references() == {}
    assert tiny.store.note("layer", Digest.of(data).hex) is None
    made = tiny.bake()  # the registry has come to its senses
    assert content(made, at_packages("vllm/config.py"), tiny.store) == b"SIZE = 256\n"


def test_a_layer_that_inflates_to_something_else_than_the_config_says_is_refused(
    tiny: Tiny, registry: StandIn
) -> None:
    right = image(BASE)
    lying = image(BASE | {"etc/more": b""})
    wrong = MadeImage(
        manifest=right.manifest,
        config=right.config,
        layers=right.layers,
        diff_ids=lying.diff_ids,
    )
    config = right.config.replace(str(right.diff_ids[0]).encode(), str(lying.diff_ids[0]).encode())
    raw = right.manifest.raw.replace(
        str(Digest.of(right.config)).encode(), str(Digest.of(config)).encode()
    )
    registry.add_blob("base", config)
    registry.add_blob("base", right.layers[0])
    digest = registry.add_manifest(
        "base", raw, media_type=right.manifest.descriptor.media_type, tag="t"
    )
    pin = wrong.pin() | {"manifest": str(digest), "config": str(Digest.of(config))}
    tiny.pin(right, platforms={"linux/amd64": pin})
    tiny.edit("it", "vllm/config.py", "128", "256")
    tiny.variant("it", "it")
    with pytest.raises(IntegrityError) as caught:
        tiny.bake()
    assert caught.value.message == (
        f"layer {Digest.of(right.layers[0])}: expected diff_id {lying.diff_ids[0]}, got"
        f" {right.diff_ids[0]}"
    )
    assert tiny.references() == {}


class _Counting:
    """An origin that counts what is asked of it."""

    def __init__(self, made: MadeImage) -> None:
        self._made = made
        self.asked: list[str] = []

    def document(self, digest: Digest) -> bytes:
        self.asked.append("document")
        return digest.check(self._made.manifest.raw, at="counting")

    def blob(self, descriptor: Descriptor) -> Iterator[bytes]:
        layers = [Digest.of(data) for data in self._made.layers]
        known = descriptor.digest in layers
        self.asked.append(f"layer {layers.index(descriptor.digest)}" if known else "config")
        yield self._made.blobs[descriptor.digest]


def test_any_origin_is_asked_for_each_thing_once(tiny: Tiny) -> None:
    made = image(BASE, {"opt/chat.jinja": b"{{ hello }}\n"})
    origin: Origin = _Counting(made)
    tiny.overlay("it", files={"vllm/config.py": (CONFIG, b"SIZE = 256\n")})
    tiny.variant("it", "it", base={"layout": "base", "digest": str(made.digest)})
    tiny.variant("other", "it", base={"layout": "base", "digest": str(made.digest)})
    for name in ("it", "other", "it"):
        tiny.bake(name, origin=origin)
    assert isinstance(origin, _Counting)
    assert sorted(origin.asked) == ["config", "document", "layer 0", "layer 1"]
