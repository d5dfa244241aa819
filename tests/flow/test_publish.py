"""From the store to a registry: in which order, how often, and from where."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, cast

import pytest

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import HostConfiguration, RegistryConfiguration
from builder.cli.progress import NoProgress
from builder.cli.settings import Settings
from builder.cli.site import Site
from builder.digest import Digest
from builder.errors import NetworkError
from builder.oci import DOCKER_MANIFEST, Descriptor, Family
from builder.ports import Registry
from builder.publish import publish, send_blob
from builder.reference import Reference
from tests.flow.images import MadeImage, image, push, serve
from tests.flow.worlds import BASE, REGISTRY, Tiny, base_image, blobs
from tests.services import RunningRegistry
from tests.standin.github import github, pull_document
from tests.standin.registry import Call, Reply, StandIn, stand_in

TARGET = f"{REGISTRY}/out:it"


@pytest.fixture
def base(tiny: Tiny, registry: StandIn) -> MadeImage:
    """A variant on a base of which a build reads only the top."""
    made = image({"usr/lib/big": bytes(5000)}, BASE, {"opt/chat.jinja": b"{{ hello }}\n"})
    serve(registry, made)
    tiny.pin(made)
    tiny.edit("it", "/opt/chat.jinja", "hello", "goodbye")
    tiny.edit("two", "/opt/chat.jinja", "goodbye", "welcome")
    python = {"version": "3.12", "packages": "usr/local/lib/python3.12/dist-packages"}
    tiny.variant("it", "it", "two", python=python)
    return made


@pytest.fixture
def other() -> Iterator[StandIn]:
    """A second registry."""
    with stand_in() as server:
        yield server


def changes(registry: StandIn) -> list[Call]:
    """What was asked of a registry that changes it."""
    return [call for call in registry.calls if call.method in {"POST", "PUT", "PATCH", "DELETE"}]


def reads(registry: StandIn) -> list[str]:
    """The blobs that were fetched from the base's repository."""
    return [
        call.path.removeprefix("/v2/base/blobs/")
        for call in registry.calls
        if call.method == "GET" and call.path.startswith("/v2/base/blobs/")
    ]


@pytest.mark.usefixtures("base")
def test_the_manifest_comes_after_all_blobs_and_under_its_tag(
    tiny: Tiny, registry: StandIn
) -> None:
    done = tiny.run("push", "it", TARGET, "--json")
    build = tiny.bake()
    assert done.json == {
        "variant": "it",
        "digest": str(build.image.digest),
        "reference": f"{TARGET}@{build.image.digest}",
        "blobs": {"present": 0, "mounted": 3, "uploaded": 3},
        "uploaded_bytes": sum(item.size for item in build.image.own) + len(build.image.config),
    }
    writes = changes(registry)
    assert str(writes[-1]) == "PUT /v2/out/manifests/it"
    assert [call for call in writes if "/manifests/" in call.path] == writes[-1:]
    assert writes[-1].body == build.image.manifest.raw
    held = {digest for name, digest in registry.blobs if name == "out"}
    assert held == {item.digest for item in build.image.manifest.layers} | {
        build.image.manifest.config.digest
    }


def test_within_one_registry_the_base_is_mounted_and_not_read(
    tiny: Tiny, registry: StandIn, base: MadeImage
) -> None:
    assert tiny.run("build", "it", "--push", TARGET).status == 0
    mounts = sorted(call.query["mount"][0] for call in changes(registry) if "mount" in call.query)
    assert mounts == sorted(str(Digest.of(data)) for data in base.layers)
    top, config = str(Digest.of(base.layers[2])), str(Digest.of(base.config))
    assert sorted(reads(registry)) == sorted([top, config])


@pytest.mark.usefixtures("base")
def test_a_second_push_sends_nothing_but_the_manifest(tiny: Tiny, registry: StandIn) -> None:
    tiny.run("build", "it", "--push", TARGET)
    registry.calls.clear()
    done = tiny.run("push", "it", TARGET, "--json")
    assert done.json["blobs"] == {"present": 6, "mounted": 0, "uploaded": 0}
    assert {str(call) for call in changes(registry)} <= {"PUT /v2/out/manifests/it"}
    assert reads(registry) == []


@pytest.mark.usefixtures("base")
def test_an_edit_uploads_its_layer_and_those_above_and_nothing_else(
    tiny: Tiny, registry: StandIn
) -> None:
    tiny.run("build", "it", "--push", TARGET)
    tiny.edit("two", "/opt/chat.jinja", "goodbye", "farewell")
    done = tiny.run("push", "it", TARGET, "--json")
    assert done.json["blobs"] == {"present": 4, "mounted": 0, "uploaded": 2}
    build = tiny.bake()
    assert done.json["uploaded_bytes"] == build.image.own[1].size + len(build.image.config)
    assert registry.manifests["out", "it"][1] == build.image.manifest.raw


def test_across_registries_the_base_is_copied_once(
    tiny: Tiny, registry: StandIn, base: MadeImage, other: StandIn
) -> None:
    settings = {REGISTRY: {"location": registry.host}, "other.test": {"location": other.host}}
    tiny.document("builder.yaml", {"version": 1, "registries": settings})
    done = tiny.run("push", "it", "other.test/out:it", "--json")
    assert done.json["blobs"] == {"present": 0, "mounted": 0, "uploaded": 6}
    for data in base.layers:
        assert other.blobs["out", Digest.of(data)] == data
    registry.calls.clear()
    again = tiny.run("push", "it", "other.test/out:again", "--json")
    assert again.json["blobs"] == {"present": 6, "mounted": 0, "uploaded": 0}
    assert registry.calls == []
    assert other.manifests["out", "it"] == other.manifests["out", "again"]


def test_a_layer_that_an_image_has_twice_is_sent_once(
    tiny: Tiny, registry: StandIn, other: StandIn
) -> None:
    twice = {"usr/lib/twice": bytes(5000)}
    made = image(twice, BASE, twice)
    serve(registry, made)
    tiny.pin(made)
    tiny.edit("it", "vllm/config.py", "128", "256")
    tiny.variant("it", "it")
    settings = {REGISTRY: {"location": registry.host}, "other.test": {"location": other.host}}
    tiny.document("builder.yaml", {"version": 1, "registries": settings})
    assert made.layers[0] == made.layers[2]
    tiny.bake()
    registry.calls.clear()
    done = tiny.run("push", "it", "other.test/out:it", "--json")
    assert done.json["blobs"] == {"present": 0, "mounted": 0, "uploaded": 4}
    assert sorted(reads(registry)) == sorted({str(Digest.of(data)) for data in made.layers})


def test_a_layer_that_the_target_has_is_not_read_from_the_origin(
    tiny: Tiny, registry: StandIn, base: MadeImage, other: StandIn
) -> None:
    settings = {REGISTRY: {"location": registry.host}, "other.test": {"location": other.host}}
    tiny.document("builder.yaml", {"version": 1, "registries": settings})
    tiny.bake()
    for data in base.layers:
        other.add_blob("out", data)
    registry.calls.clear()
    done = tiny.run("push", "it", "other.test/out:it", "--json")
    assert done.json["blobs"] == {"present": 3, "mounted": 0, "uploaded": 3}
    assert registry.calls == []


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        pytest.param("POST", "/v2/out/blobs/uploads/", 500, id="no upload starts"),
        pytest.param("PUT", "/v2/out/blobs/uploads/.*", 500, id="no upload ends"),
        pytest.param("PUT", "/v2/out/manifests/.*", 500, id="no manifest is taken"),
        pytest.param("HEAD", "/v2/out/blobs/.*", 403, id="no access"),
    ],
)
@pytest.mark.usefixtures("base")
def test_a_push_that_fails_leaves_the_tag_as_it_was(
    tiny: Tiny, registry: StandIn, method: str, path: str, status: int
) -> None:
    client = RegistryClient(
        RegistryConfiguration(hosts={REGISTRY: HostConfiguration(location=registry.host)}),
        sleep=lambda _: None,
    )

    def send() -> None:
        build = tiny.bake()
        publish(
            build.image,
            build.base,
            Reference.parse(TARGET),
            store=tiny.store,
            registry=client,
            progress=NoProgress(),
        )

    send()
    before = registry.manifests["out", "it"]
    tiny.edit("two", "/opt/chat.jinja", "goodbye", "farewell")
    tiny.bake()
    kept = tiny.references(), tiny.snapshot()
    registry.on(method, path, Reply(status=status), forever=True)
    with pytest.raises(NetworkError) as caught:
        send()
    client.close()
    assert caught.value.exit_status == (14 if status == 403 else 8)
    assert registry.manifests["out", "it"] == before
    assert (tiny.references(), tiny.snapshot()) == kept


def test_a_base_layer_that_its_origin_garbled_is_not_passed_on(
    tiny: Tiny, registry: StandIn, base: MadeImage
) -> None:
    with stand_in() as other:
        settings = {REGISTRY: {"location": registry.host}, "other.test": {"location": other.host}}
        tiny.document("builder.yaml", {"version": 1, "registries": settings})
        tiny.bake()
        lost = Digest.of(base.layers[0])
        data = bytearray(base.layers[0])
        data[20] ^= 1
        registry.blobs["base", lost] = bytes(data)
        done = tiny.run("push", "it", "other.test/out:it")
        assert done.status == 4, done.err
        assert str(lost) in done.first
        assert ("out", "it") not in other.manifests
        assert ("out", lost) not in other.blobs


class OneBlob:
    """As much of a registry as a copy asks. It answers once it has read the first bytes."""

    def __init__(self, answer: bool | NetworkError) -> None:
        self._answer = answer

    def has_blob(self, _reference: Reference, _descriptor: Descriptor) -> bool:
        return False

    def push_blob(self, _target: Reference, _descriptor: Descriptor, content: BinaryIO) -> bool:
        assert content.read(1)
        if isinstance(self._answer, NetworkError):
            raise self._answer
        return self._answer


@pytest.mark.parametrize(
    ("answer", "way"),
    [(True, "uploaded"), (False, "present"), (NetworkError("no"), None)],
    ids=["taken", "there meanwhile", "refused"],
)
def test_a_copy_says_what_became_of_it_and_leaves_its_source_closed(
    answer: bool | NetworkError, way: str | None
) -> None:
    closed = []

    def source() -> Iterator[bytes]:
        try:
            while True:
                yield b"bytes"
        finally:
            closed.append(True)

    def send() -> str:
        return send_blob(
            Descriptor(media_type="x", digest=Digest.of(b""), size=9),
            Reference.parse(TARGET),
            sources=(),
            chunks=source,
            registry=cast("Registry", OneBlob(answer)),
            progress=NoProgress(),
        )

    if way is None:
        with pytest.raises(NetworkError):  # whoever has the error has its frames, too
            send()
    else:
        assert send() == way
    assert closed == [True]


# --- real registries -----------------------------------------------------------------------------


def _skopeo(*arguments: str) -> bytes:
    done = subprocess.run(
        ["skopeo", "--insecure-policy", *arguments], stdout=subprocess.PIPE, check=True
    )
    return done.stdout


@pytest.mark.requires("docker-registry", "skopeo")
def test_everyone_sees_the_same_digest(tmp_path: Path, real_registry: RunningRegistry) -> None:
    """Pushed, exported, and exported again by skopeo from where it was pushed."""
    tiny = Tiny.make(tmp_path)
    host = real_registry.host
    made = base_image()
    push(made, f"{host}/digests/base:t")
    tiny.pin(made, repository=f"{host}/digests/base")
    tiny.edit("it", "vllm/config.py", "128", "256")
    tiny.variant("it", "it")
    layout = tmp_path / "layout"
    done = tiny.run(
        "build", "it", "--json", "--push", f"{host}/digests/out:it", "--out", str(layout)
    )
    digest = done.json["images"][0]["digest"]
    there = f"docker://{host}/digests/out:it"
    inspected = json.loads(_skopeo("inspect", "--tls-verify=false", there))
    assert inspected["Digest"] == digest
    assert inspected["Layers"] == [str(Digest.of(data)) for data in made.layers] + blobs(
        tiny.bake()
    )
    assert json.loads(_skopeo("inspect", f"oci:{layout}:it"))["Digest"] == digest
    _skopeo("copy", "-q", "--src-tls-verify=false", there, f"oci:{tmp_path / 'copy'}:it")
    index = json.loads((tmp_path / "copy" / "index.json").read_bytes())
    assert [entry["digest"] for entry in index["manifests"]] == [digest]
    assert json.loads(_skopeo("inspect", f"oci:{tiny.store_path}:it", "--raw")) == json.loads(
        tiny.bake().image.manifest.raw
    )


@pytest.mark.requires("docker-registry", "skopeo")
def test_a_docker_base_stays_docker_for_every_reader(
    tmp_path: Path, real_registry: RunningRegistry
) -> None:
    tiny = Tiny.make(tmp_path)
    host = real_registry.host
    made = image(BASE, family=Family.DOCKER)
    push(made, f"{host}/docker/base:t")
    tiny.pin(made, repository=f"{host}/docker/base")
    tiny.edit("it", "vllm/config.py", "128", "256")
    tiny.variant("it", "it")
    done = tiny.run("build", "it", "--json", "--push", f"{host}/docker/out:it")
    there = f"docker://{host}/docker/out:it"
    raw = _skopeo("inspect", "--tls-verify=false", "--raw", there)
    assert str(Digest.of(raw)) == done.json["images"][0]["digest"]
    assert json.loads(raw)["mediaType"] == DOCKER_MANIFEST


def _sockets() -> set[str]:
    """The sockets that this process holds."""
    links = (str(path.readlink()) for path in _there(Path("/proc/self/fd")))
    return {link for link in links if link.startswith("socket:")}


def _there(directory: Path) -> Iterator[Path]:
    for path in directory.iterdir():
        with suppress(FileNotFoundError):  # that of the listing itself
            path.readlink()
            yield path


def test_a_command_closes_the_connections_that_it_opened(tiny: Tiny, base: MadeImage) -> None:
    site = Site(Settings(directory=tiny.root, store=tiny.store_path))
    before = _sockets()
    with site.at_work("it") as world:
        assert world.registry.resolve(Reference.parse(f"{REGISTRY}/base:t")).digest == base.digest
        assert len(_sockets() - before) == 2  # and the stand-in's end of it, in this process
    _check_closed(before)


def test_a_command_closes_the_connections_to_the_forge(tiny: Tiny) -> None:
    with github() as forge:
        forge.pulls["acme/vllm", 7] = pull_document(7, head="a" * 40)
        forges = {"github.com": {"api": forge.api}}
        tiny.document("builder.yaml", {"version": 1, "forges": forges})
        site = Site(Settings(directory=tiny.root, store=tiny.store_path))
        before = _sockets()
        with site.looking() as world:
            assert world.forge.pull("https://github.com/acme/vllm", 7) is not None
            assert len(_sockets() - before) == 2
        _check_closed(before)


def _check_closed(before: set[str]) -> None:
    deadline = time.monotonic() + 10
    while (left := _sockets() - before) and time.monotonic() < deadline:
        time.sleep(0.01)  # until the stand-in has noticed
    assert not left
