"""The manifest is what others see: it is put last, by the caller, and checked."""

import pytest

from builder.adapters.registry.client import RegistryClient
from builder.digest import Digest
from builder.errors import IntegrityError, NetworkError
from builder.reference import Reference
from tests.registry.conftest import Clock
from tests.registry.images import tiny_image
from tests.standin.registry import Reply, StandIn

IMAGE = tiny_image()


def target(server: StandIn, tag: str = "t") -> Reference:
    return Reference.parse(f"{server.host}/team/app:{tag}")


def test_it_is_put_under_its_tag_with_its_own_bytes_and_type(
    client: RegistryClient, registry: StandIn
) -> None:
    client.push_manifest(target(registry), IMAGE.manifest)
    assert registry.asked() == ["PUT /v2/team/app/manifests/t"]
    assert registry.manifests["team/app", "t"] == (
        IMAGE.manifest.media_type,
        IMAGE.manifest.raw,
    )


def test_without_a_tag_it_is_put_under_its_digest(
    client: RegistryClient, registry: StandIn
) -> None:
    client.push_manifest(Reference.parse(f"{registry.host}/team/app"), IMAGE.manifest)
    assert registry.asked() == [f"PUT /v2/team/app/manifests/{IMAGE.manifest.digest}"]


def test_a_target_that_names_another_digest_is_refused_before_it_is_asked(
    client: RegistryClient, registry: StandIn
) -> None:
    reference = target(registry).at(Digest.of(b"other"))
    with pytest.raises(IntegrityError) as caught:
        client.push_manifest(reference, IMAGE.manifest)
    assert caught.value.message == (
        f"{reference}: expected {Digest.of(b'other')}, the manifest is {IMAGE.manifest.digest}"
    )
    assert registry.calls == []


def test_a_registry_that_stored_another_digest_is_not_believed(
    client: RegistryClient, registry: StandIn
) -> None:
    other = Digest.of(b"other")
    registry.on("PUT", ".*", Reply(status=201, headers={"Docker-Content-Digest": str(other)}))
    with pytest.raises(IntegrityError) as caught:
        client.push_manifest(target(registry), IMAGE.manifest)
    assert caught.value.message == (
        f"{target(registry)}: the bytes are {IMAGE.manifest.digest}, but"
        f" Docker-Content-Digest says '{other}'"
    )


def test_a_repository_that_must_be_created_first_is_not_called_gone(
    client: RegistryClient, registry: StandIn
) -> None:
    body = b'{"errors":[{"code":"NAME_UNKNOWN","message":"no such project"}]}'
    registry.on("PUT", ".*", Reply(status=404, body=body))
    with pytest.raises(NetworkError) as caught:
        client.push_manifest(target(registry), IMAGE.manifest)
    assert caught.value.message == (
        f"{target(registry)}: {registry.host} answered 404 Not Found: NAME_UNKNOWN: no such project"
    )
    assert caught.value.hint == "create the repository first, where registries ask it"


def test_a_write_is_not_redirected(
    client: RegistryClient, registry: StandIn, other: StandIn
) -> None:
    registry.on("PUT", ".*", Reply(status=307, headers={"Location": f"http://{other.host}/"}))
    with pytest.raises(NetworkError) as caught:
        client.push_manifest(target(registry), IMAGE.manifest)
    assert caught.value.message == (
        f"{target(registry)}: {registry.host} answered 307 Temporary Redirect, which cannot"
        " be followed"
    )
    assert other.calls == []


DENIED = Reply(
    status=400,
    body=b'{"errors":[{"code":"DIGEST_INVALID","message":"provided digest did not match"}]}',
)


def test_a_digest_that_is_denied_is_put_again(
    client: RegistryClient, registry: StandIn, clock: Clock
) -> None:
    registry.on("PUT", ".*", DENIED, DENIED)
    client.push_manifest(target(registry), IMAGE.manifest)
    assert registry.asked() == ["PUT /v2/team/app/manifests/t"] * 3
    assert clock.naps == [0.5, 1.0]


def test_a_digest_that_stays_denied_and_any_other_refusal_are_errors(
    client: RegistryClient, registry: StandIn
) -> None:
    registry.on("PUT", ".*/denied", DENIED, forever=True)
    with pytest.raises(NetworkError, match="400 Bad Request: DIGEST_INVALID: provided"):
        client.push_manifest(target(registry, "denied"), IMAGE.manifest)
    assert len(registry.calls) == 4
    registry.on("PUT", ".*/t", Reply(status=400, body=b"[]"), forever=True)
    with pytest.raises(NetworkError, match=r"answered 400 Bad Request$"):
        client.push_manifest(target(registry), IMAGE.manifest)
    assert len(registry.calls) == 5
