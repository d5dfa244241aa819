"""Mounts: only 201 means that a blob was mounted (case 25)."""

import pytest

from builder.adapters.registry.client import RegistryClient
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.oci import Descriptor
from builder.reference import Reference
from tests.registry.images import describe
from tests.standin.registry import Reply, StandIn

SMALL = b"a small blob"
UPLOADS = "/v2/team/app/blobs/uploads/"


def target(server: StandIn, tag: str = "t") -> Reference:
    return Reference.parse(f"{server.host}/team/app:{tag}")


def held(server: StandIn, data: bytes) -> bool:
    return server.blobs.get(("team/app", Digest.of(data))) == data


def verbs(server: StandIn) -> str:
    return " ".join(call.method for call in server.calls)


@pytest.fixture
def blob(registry: StandIn) -> Descriptor:
    return registry.add_blob("base/image", SMALL)


def test_a_mount_that_happened(client: RegistryClient, registry: StandIn, blob: Descriptor) -> None:
    source = Reference.parse(f"{registry.host}/base/image")
    assert client.mount(target(registry), blob, source=source)
    assert registry.asked() == [f"POST {UPLOADS}"]
    assert registry.calls[0].query == {"mount": [str(blob.digest)], "from": ["base/image"]}
    assert held(registry, SMALL)


def test_a_mount_of_something_else_is_not_believed(
    client: RegistryClient, registry: StandIn, blob: Descriptor
) -> None:
    other = str(Digest.of(b"other"))
    registry.on("POST", ".*", Reply(status=201, headers={"Docker-Content-Digest": other}))
    source = Reference.parse(f"{registry.host}/base/image")
    with pytest.raises(IntegrityError) as caught:
        client.mount(target(registry), blob, source=source)
    assert caught.value.message == (
        f"{registry.host}/team/app: blob {blob.digest}: expected {blob.digest}, the registry"
        f" answers with '{other}'"
    )


def test_a_mount_answered_with_202_did_not_happen_and_leaves_nothing_open(
    client: RegistryClient, registry: StandIn
) -> None:
    source = Reference.parse(f"{registry.host}/base/image")
    assert not client.mount(target(registry), describe(b"unknown"), source=source)
    assert registry.asked() == [f"POST {UPLOADS}", f"DELETE {UPLOADS}u1"]
    assert (registry.uploads, registry.blobs) == ({}, {})


@pytest.mark.parametrize("status", [400, 403, 404, 405])
def test_a_mount_that_is_refused_did_not_happen(
    client: RegistryClient, registry: StandIn, blob: Descriptor, status: int
) -> None:
    registry.on("POST", ".*", Reply(status=status))
    source = Reference.parse(f"{registry.host}/base/image")
    assert not client.mount(target(registry), blob, source=source)


def test_an_upload_that_cannot_be_cancelled_is_left_to_expire(
    client: RegistryClient, registry: StandIn
) -> None:
    registry.on("DELETE", ".*", Reply(status=500), forever=True)
    source = Reference.parse(f"{registry.host}/base/image")
    assert not client.mount(target(registry), describe(b"unknown"), source=source)
    assert verbs(registry) == "POST DELETE"


def test_between_registries_nothing_is_asked(
    client: RegistryClient, registry: StandIn, other: StandIn, blob: Descriptor
) -> None:
    assert not client.mount(target(other), blob, source=target(registry))
    assert (registry.calls, other.calls) == ([], [])
