"""The places in which signatures are kept, each with images in it."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.adapters.store import FileStore
from builder.adapters.store.attachments import LayoutPlace
from builder.ports import Registry
from builder.reference import Reference
from builder.signatures.place import Place
from builder.signatures.registry import RegistryPlace
from tests.registry.images import TinyImage, index_of, tiny_image
from tests.signatures.memory_place import MemoryPlace
from tests.signed_images import push
from tests.standin.referrers import referrers_stand_in
from tests.standin.registry import stand_in

IMAGES = tuple(tiny_image(name) for name in (b"amd64", b"arm64", b"another"))
INDEX = index_of((IMAGES[0].manifest, "linux", "amd64"), (IMAGES[1].manifest, "linux", "arm64"))


@pytest.fixture
def client() -> Iterator[RegistryClient]:
    with RegistryClient(RegistryConfiguration(attempts=1)) as made:
        yield made


def hurried(client: Registry, reference: Reference) -> RegistryPlace:
    """A repository as a place in which nobody waits."""
    return RegistryPlace(
        registry=client, repository=reference, sleep=lambda _: None, clock=lambda: 0.0
    )


@pytest.fixture(params=["memory", "layout", "registry", "registry with the referrers API"])
def place(
    request: pytest.FixtureRequest, client: RegistryClient, tmp_path: Path
) -> Iterator[Place]:
    """Each of the places there are."""
    if request.param == "memory":
        yield MemoryPlace()
    elif request.param == "layout":
        store = FileStore(tmp_path / "layout")
        for image in IMAGES:
            fill(store, image)
        store.put(INDEX.raw)
        store.set_reference("t", INDEX.descriptor)
        yield LayoutPlace(store)
    else:
        serve = stand_in if request.param == "registry" else referrers_stand_in
        with serve() as server:
            reference = Reference.parse(f"{server.host}/team/app:t")
            for image in IMAGES:
                push(client, reference.at(image.manifest.digest), image)
            client.push_manifest(reference, INDEX)
            yield hurried(client, reference)


def fill(store: FileStore, image: TinyImage) -> None:
    """Have an image in a layout, without a name."""
    for blob in (image.config, image.layer, image.manifest.raw):
        store.put(blob)
