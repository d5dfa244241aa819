"""Against Debian's docker-registry, with skopeo as the witness."""

import io
import json
import random
import shutil
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import requests

from builder.adapters.registry.client import RegistryClient
from builder.digest import Digest
from builder.errors import AuthError, GoneError, NetworkError
from builder.oci import Index
from builder.reference import Reference
from tests.registry.conftest import DockerLogin, MakeClient
from tests.registry.images import TinyImage, describe, index_of, tiny_image
from tests.services import PASSWORD, RunningRegistry, running_registry

pytestmark = pytest.mark.skipif(
    shutil.which("docker-registry") is None, reason="docker-registry is not installed"
)


@pytest.fixture(scope="module")
def open_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegistry]:
    with running_registry(tmp_path_factory.mktemp("open")) as running:
        yield running


@pytest.fixture(scope="module")
def closed_registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningRegistry]:
    with running_registry(tmp_path_factory.mktemp("closed"), password=True) as running:
        yield running


def push_image(client: RegistryClient, target: Reference, image: TinyImage) -> None:
    client.push_blob(target, image.manifest.config, io.BytesIO(image.config))
    client.push_blob(target, image.manifest.layers[0], io.BytesIO(image.layer))
    client.push_manifest(target, image.manifest)


@pytest.mark.skipif(shutil.which("skopeo") is None, reason="skopeo is not installed")
def test_skopeo_reads_what_was_pushed_and_gets_the_same_digests(
    client: RegistryClient, open_registry: RunningRegistry, tmp_path: Path
) -> None:
    image = tiny_image()
    target = Reference.parse(f"{open_registry.host}/team/app:t")
    push_image(client, target, image)
    skopeo = ["skopeo", "--insecure-policy"]
    inspected = subprocess.run(
        [*skopeo, "inspect", "--tls-verify=false", f"docker://{target}"],
        check=True,
        capture_output=True,
    )
    assert json.loads(inspected.stdout)["Digest"] == str(image.manifest.digest)
    layout = tmp_path / "layout"
    subprocess.run(
        [*skopeo, "copy", "-q", "--src-tls-verify=false", f"docker://{target}", f"oci:{layout}"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    blobs = {path.name: path.read_bytes() for path in (layout / "blobs/sha256").iterdir()}
    assert blobs == {
        Digest.of(data).hex: data for data in (image.manifest.raw, image.config, image.layer)
    }


@pytest.mark.skipif(shutil.which("skopeo") is None, reason="skopeo is not installed")
def test_what_skopeo_pushed_is_read_byte_for_byte(
    client: RegistryClient, open_registry: RunningRegistry
) -> None:
    source = Reference.parse(f"{open_registry.host}/team/source:t")
    copied = Reference.parse(f"{open_registry.host}/team/copied:t")
    image = tiny_image(b"for skopeo")
    push_image(client, source, image)
    subprocess.run(
        ["skopeo", "--insecure-policy", "copy", "-q", "--src-tls-verify=false"]
        + ["--dest-tls-verify=false", f"docker://{source}", f"docker://{copied}"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    assert client.resolve(copied) == image.manifest.descriptor
    assert client.manifest(copied) == image.manifest
    assert b"".join(client.blob(copied, image.manifest.layers[0])) == image.layer


def test_a_blob_in_chunks_arrives_and_parts_of_it_can_be_read(
    make_client: MakeClient, open_registry: RunningRegistry
) -> None:
    client = make_client(chunk_size=1 << 20)
    target = Reference.parse(f"{open_registry.host}/team/big")
    data = random.Random(5).randbytes((3 << 20) + 17)
    blob = describe(data)
    client.push_blob(target, blob, io.BytesIO(data))
    assert b"".join(client.blob(target, blob)) == data
    assert client.blob_range(target, blob, start=1 << 20, length=99) == data[1 << 20 :][:99]


def test_a_mount_happens_where_the_source_has_the_blob_and_leaves_no_upload_where_not(
    client: RegistryClient, open_registry: RunningRegistry
) -> None:
    source = Reference.parse(f"{open_registry.host}/team/mounted-from")
    target = Reference.parse(f"{open_registry.host}/team/mounted-to")
    blob = describe(b"a layer to mount")
    assert not client.mount(target, blob, source=source)
    client.push_blob(source, blob, io.BytesIO(b"a layer to mount"))
    assert not client.has_blob(target, blob)
    assert client.mount(target, blob, source=source)
    assert client.has_blob(target, blob)
    # distribution 2.8 leaves an empty directory of hash states behind; what makes an upload open
    # is the time at which it was started.
    repository = open_registry.storage / "docker/registry/v2/repositories/team/mounted-to"
    assert (repository / "_uploads").is_dir()
    assert list(repository.glob("_uploads/*/startedat")) == []


def test_an_index_is_pushed_and_read_with_its_children(
    client: RegistryClient, open_registry: RunningRegistry
) -> None:
    target = Reference.parse(f"{open_registry.host}/team/multi:t")
    images = tiny_image(b"amd64"), tiny_image(b"arm64")
    for image in images:
        push_image(client, target.at(image.manifest.digest), image)
    index = index_of((images[0].manifest, "linux", "amd64"), (images[1].manifest, "linux", "arm64"))
    client.push_manifest(target, index)
    assert client.resolve(target).digest == index.digest
    found = client.manifest(target)
    assert isinstance(found, Index)
    assert [item.digest for item in found.manifests] == [i.manifest.digest for i in images]


def test_a_manifest_without_its_blobs_is_refused_in_the_registrys_words(
    client: RegistryClient, open_registry: RunningRegistry
) -> None:
    target = Reference.parse(f"{open_registry.host}/team/empty:t")
    with pytest.raises(NetworkError) as caught:
        client.push_manifest(target, tiny_image(b"never pushed").manifest)
    assert caught.value.message == (
        f"{target}: {open_registry.host} answered 400 Bad Request: MANIFEST_BLOB_UNKNOWN: blob"
        " unknown to registry"
    )


def test_a_deleted_manifest_is_gone(client: RegistryClient, open_registry: RunningRegistry) -> None:
    image = tiny_image(b"soon deleted")
    target = Reference.parse(f"{open_registry.host}/team/deleted:t")
    push_image(client, target, image)
    url = f"http://{open_registry.host}/v2/team/deleted/manifests/{image.manifest.digest}"
    assert requests.delete(url, timeout=10).status_code == 202
    for reference in (target, target.at(image.manifest.digest)):
        with pytest.raises(GoneError, match="MANIFEST_UNKNOWN: "):
            client.resolve(reference)


def test_a_pool_of_threads_shares_one_client(
    client: RegistryClient, open_registry: RunningRegistry
) -> None:
    target = Reference.parse(f"{open_registry.host}/team/pool")
    blobs = [b"blob %d" % number for number in range(24)]
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda b: client.push_blob(target, describe(b), io.BytesIO(b)), blobs))
        assert all(pool.map(lambda b: client.has_blob(target, describe(b)), blobs))


class TestWithPassword:
    """The registry that wants a login."""

    def test_the_right_password_pushes_and_pulls(
        self, make_client: MakeClient, closed_registry: RunningRegistry, docker_config: DockerLogin
    ) -> None:
        path = docker_config({closed_registry.host: f"alice:{PASSWORD}"})
        client = make_client(docker_config=path, chunk_size=100)
        target = Reference.parse(f"{closed_registry.host}/team/app:t")
        image = tiny_image()
        push_image(client, target, image)
        assert client.manifest(target) == image.manifest
        assert b"".join(client.blob(target, image.manifest.layers[0])) == image.layer

    @pytest.mark.parametrize(
        ("pair", "message"),
        [
            pytest.param("alice:wrong", "are not accepted", id="a wrong password"),
            pytest.param(None, "wants a user name and a password", id="none"),
        ],
    )
    def test_another_is_an_auth_error(
        self,
        make_client: MakeClient,
        closed_registry: RunningRegistry,
        docker_config: DockerLogin,
        pair: str | None,
        message: str,
    ) -> None:
        path = docker_config({closed_registry.host: pair} if pair else {})
        with pytest.raises(AuthError, match=message):
            make_client(docker_config=path).resolve(
                Reference.parse(f"{closed_registry.host}/team/app:t")
            )
