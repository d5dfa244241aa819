"""What is said to do where the registry of a base does not answer."""

import pytest

from builder.digest import Digest
from builder.errors import NetworkError
from builder.lock.model import ImagePin
from builder.oci import Platform
from builder.pinned_base import obtain_pinned
from builder.ports import Registry
from builder.reference import Reference
from tests.memory_store import MemoryStore


def _silent() -> Registry:
    raise NetworkError("its name does not resolve")


@pytest.mark.parametrize(
    ("registry", "hint"),
    [
        ("registry.example", "try again"),
        (
            "registry.example.invalid",
            (
                "registry.example.invalid stands for a registry of yours:"
                " BUILDER_MIRRORS=registry.example.invalid=HOST, or registries in builder.yaml,"
                " says which"
            ),
        ),
    ],
)
def test_to_try_again_is_said_where_it_can_help(registry: str, hint: str) -> None:
    pin = ImagePin(
        name="night",
        follows=Reference.parse(f"{registry}/acme/vllm:1", at="test"),
        index=Digest.of(b"index"),
        at="lockfiles/vllm.yaml:3: vllm.night",
    )
    with pytest.raises(NetworkError) as caught:
        obtain_pinned(
            pin,
            Platform(os="linux", architecture="amd64"),
            store=MemoryStore(),
            registry=_silent,
            open_copy=lambda copy: pytest.fail(str(copy)),
        )
    assert caught.value.message == f"{pin.at}: its name does not resolve"
    assert caught.value.hint == hint
