"""``builder lock`` moves nothing: what it fills in must be of the very thing that is locked."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from builder.completion import completed
from builder.digest import Digest
from builder.errors import BuilderError, GoneError, IntegrityError, NetworkError, RateLimitError
from builder.upstream import FoundWheel
from tests.flow.worlds import AMD64, Tiny
from tests.standin.hub import StandInHub, stand_in_hub

MODEL = "acme/tiny"
FILES = {"config.json": b"{}\n", "model.safetensors": b"weights", "notes.bin": b"more"}
WHEEL = "w-1.0-py3-none-any.whl"


@pytest.fixture
def hub() -> Iterator[StandInHub]:
    with stand_in_hub() as server:
        server.model(MODEL, FILES)
        yield server


def model(tiny: Tiny, hub: StandInHub, **files: Any) -> None:
    """Pin the model, with these of its files; ``_`` in a name is a dot."""
    value = {
        "follows": {"repository": MODEL, "revision": "main"},
        "commit": hub.models[MODEL].refs["main"],
        "files": {name.replace("_", "."): about for name, about in files.items()},
    }
    tiny.lock("models", "tiny", value)


def about(data: bytes) -> dict[str, Any]:
    return {"digest": str(Digest.of(data)), "size": len(data)}


def test_the_digests_that_a_model_lacks_are_filled_in(tiny: Tiny, hub: StandInHub) -> None:
    model(tiny, hub, config_json=about(FILES["config.json"]), model_safetensors={})
    ran = tiny.run("lock", HF_ENDPOINT=hub.endpoint)
    assert ran.status == 0, ran.err
    assert ran.out.splitlines()[0] == "lock model tiny"
    text = (tiny.root / "lockfiles/models.yaml").read_text()
    assert str(Digest.of(FILES["model.safetensors"])) in text


@pytest.mark.parametrize(
    ("files", "status", "said"),
    [
        pytest.param(
            {"config_json": about(b"[]\n"), "model_safetensors": {}},
            4,
            f"'config.json': the hub has digest {Digest.of(FILES['config.json'])}, the lock pins"
            f" {Digest.of(b'[]' + bytes([10]))}",
            id="another digest",
        ),
        pytest.param(
            {"config_json": {"size": 4}, "model_safetensors": {}},
            4,
            "'config.json': the hub has size 3, the lock pins 4",
            id="another size",
        ),
        pytest.param(
            {"notes_bin": about(FILES["notes.bin"]), "model_safetensors": {}},
            3,
            "the lock pins 'notes.bin', which the commit does not have or 'include' does not"
            " select",
            id="a file that would go",
        ),
    ],
)
def test_what_is_locked_of_a_model_is_not_replaced(
    tiny: Tiny, hub: StandInHub, files: dict[str, Any], status: int, said: str
) -> None:
    model(tiny, hub, **files)
    before = tiny.snapshot()
    ran = tiny.run("lock", HF_ENDPOINT=hub.endpoint)
    assert (ran.status, said in ran.err) == (status, True), ran.err
    assert tiny.snapshot() == before


@dataclass
class _Wheels:
    """An index with one wheel."""

    digest: Digest

    def find(self, *, project: str, version: str | None, like: str | None) -> FoundWheel:
        return FoundWheel(filename=WHEEL, version="1.0", digest=self.digest, size=3)


def test_a_wheel_that_is_another_file_now_is_not_taken(tiny: Tiny) -> None:
    locked, other = Digest.of(b"one"), Digest.of(b"two")
    follows = {"project": "w", "version": "1.0"}
    tiny.lock("wheels", "w", {"follows": follows, "filename": WHEEL, "digest": str(locked)})
    project, world = tiny.world()

    def found(digest: Digest) -> Any:
        index: Any = _Wheels(digest)
        at = replace(world, make_wheels=lambda: index)
        (move,) = completed(project, ("w",), world=at, platform=AMD64)
        return move.pin

    assert found(locked).size == 3
    with pytest.raises(IntegrityError) as caught:
        found(other)
    assert caught.value.message.endswith(f": the index has {other}, the lock pins {locked}")


@pytest.mark.parametrize(
    "error",
    [NetworkError("no route"), RateLimitError("later", hint=None), GoneError("gone", hint="see")],
    ids=["no answer", "too often", "gone"],
)
def test_what_cannot_be_asked_says_for_which_pin_and_how_others_are_completed(
    tiny: Tiny, error: BuilderError
) -> None:
    for name in ("v", "w"):
        value = {"follows": {"project": name, "version": "1.0"}, "filename": f"{name}{WHEEL[1:]}"}
        tiny.lock("wheels", name, value | {"digest": str(Digest.of(b"one"))})
    project, world = tiny.world()
    index: Any = _Silent(error)
    at = replace(world, make_wheels=lambda: index)
    pin = project.wheels["v"]
    for names, hint in (
        ((), "; ".join(filter(None, (error.hint, "builder lock NAME completes another pin")))),
        (("v",), error.hint),
    ):
        with pytest.raises(type(error)) as caught:
            completed(project, names, world=at, platform=AMD64)
        assert (caught.value.message, caught.value.hint) == (f"{pin.at}: {error.message}", hint)


@dataclass
class _Silent:
    """An index that answers with an error."""

    error: BuilderError

    def find(self, **_: Any) -> FoundWheel:
        raise self.error
