"""Each class of failure has its exit status, and changes nothing."""

import json
from collections.abc import Callable

import pytest

from builder.adapters.store.verify import verify
from builder.digest import Digest
from tests.flow.images import image, serve
from tests.flow.worlds import BASE, CONFIG, Tiny, base_image
from tests.standin.registry import Reply, StandIn

Breaking = Callable[[Tiny, StandIn], None]
BUILD = ("build", "it")


@pytest.fixture
def built(tiny: Tiny, registry: StandIn) -> Tiny:
    """A variant that was built, so that there is a reference to be left alone."""
    made = base_image()
    serve(registry, made)
    tiny.pin(made)
    tiny.edit("it", "vllm/config.py", "128", "256")
    tiny.variant("it", "it")
    tiny.bake()
    return tiny


def _typo(tiny: Tiny, registry: StandIn) -> None:
    tiny.document("variants/it.yaml", {"version": 1, "base": {"pin": "base"}, "stepz": []})


def _twice(tiny: Tiny, registry: StandIn) -> None:
    (tiny.root / "variants" / "it.yaml").write_text("version: 1\nversion: 1\n")


def _unpinned(tiny: Tiny, registry: StandIn) -> None:
    tiny.variant("it", "it", base={"pin": "bass"})


def _other_config(tiny: Tiny, registry: StandIn) -> None:
    made = base_image()
    pin = made.pin() | {"config": str(Digest.of(b"other"))}
    tiny.pin(made, platforms={"linux/amd64": pin})


def _unaccepted(tiny: Tiny, registry: StandIn) -> None:
    """Nothing needs to be broken for --locked to refuse."""


def _drift(tiny: Tiny, registry: StandIn) -> None:
    tiny.overlay("it", files={"vllm/config.py": (b"SIZE = 64\n", b"SIZE = 256\n")})


def _upstream(tiny: Tiny, registry: StandIn) -> None:
    tiny.overlay("it", files={"vllm/config.py": (b"SIZE = 64\n", CONFIG)})


def _new_base(tiny: Tiny) -> None:
    tiny.pin(image(BASE, {"etc/new": b""}))


def _gone(tiny: Tiny, registry: StandIn) -> None:
    _new_base(tiny)


def _closed(tiny: Tiny, registry: StandIn) -> None:
    _new_base(tiny)
    registry.on("GET", "/v2/base/manifests/.*", Reply(status=403), forever=True)


def _nobody(tiny: Tiny, registry: StandIn) -> None:
    _new_base(tiny)


@pytest.mark.parametrize(
    ("breaking", "arguments", "status"),
    [
        pytest.param(_unaccepted, ("build",), 2, id="no variant is named"),
        pytest.param(_unaccepted, ("build", "it", "--no-such-option"), 2, id="no such option"),
        pytest.param(_unaccepted, ("build", "it", "--push", "Not A Reference"), 2, id="push where"),
        pytest.param(_unaccepted, ("build", "other"), 3, id="no such variant"),
        pytest.param(_typo, BUILD, 3, id="a key that nobody knows"),
        pytest.param(_twice, BUILD, 3, id="a key twice"),
        pytest.param(_unpinned, BUILD, 3, id="a base that is not pinned"),
        pytest.param(_other_config, BUILD, 4, id="a lock that contradicts the image"),
        pytest.param(_unaccepted, ("build", "it", "--locked"), 4, id="no accepted result"),
        pytest.param(_drift, BUILD, 6, id="another file than the overlay was made for"),
        pytest.param(_upstream, BUILD, 6, id="already upstream"),
        pytest.param(_gone, BUILD, 7, id="a base that is gone"),
        pytest.param(_closed, BUILD, 14, id="a base that we may not read"),
        pytest.param(_nobody, ("--offline", *BUILD), 8, id="offline, and not at hand"),
    ],
)
def test_a_failure_has_its_status_and_leaves_everything_as_it_was(
    built: Tiny,
    registry: StandIn,
    breaking: Breaking,
    arguments: tuple[str, ...],
    status: int,
) -> None:
    references = built.references()
    assert list(references) == ["it"]
    breaking(built, registry)
    before = built.snapshot()
    done = built.run("--json", *arguments)
    assert done.status == status, done.err
    assert "Traceback" not in done.err
    assert built.references() == references
    assert built.snapshot() == before
    assert verify(built.store).ok
    if status != 2:
        error = json.loads(done.out)["error"]
        assert error["exit_status"] == status
        assert done.first == f"builder: error: {error['message']}"


def test_a_store_that_is_a_file_is_this_machines_fault(built: Tiny) -> None:
    (built.root.parent / "file").write_text("no store")
    done = built.run("build", "it", store=built.root.parent / "file")
    assert done.status == 9
    assert "Traceback" not in done.err
