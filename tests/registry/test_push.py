"""Blobs and manifests on their way out (case 25), against a registry that does as told."""

import io
import random

import pytest

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import HostConfiguration
from builder.adapters.registry.failures import Interrupted
from builder.digest import Digest
from builder.errors import AuthError, IntegrityError, NetworkError
from builder.oci import Descriptor
from builder.reference import Reference
from tests.registry.conftest import Clock, DockerLogin, MakeClient
from tests.registry.images import describe, tiny_image
from tests.standin.registry import Call, Reply, StandIn

SMALL = b"a small blob"
CHUNK = 1000
BIG = random.Random(3).randbytes(3 * CHUNK + 500)
UPLOADS = "/v2/team/app/blobs/uploads/"


def target(server: StandIn, tag: str = "t") -> Reference:
    return Reference.parse(f"{server.host}/team/app:{tag}")


def held(server: StandIn, data: bytes) -> bool:
    return server.blobs.get(("team/app", Digest.of(data))) == data


@pytest.fixture
def chunking(make_client: MakeClient) -> RegistryClient:
    return make_client(chunk_size=CHUNK)


def push(client: RegistryClient, server: StandIn, data: bytes) -> None:
    client.push_blob(target(server), describe(data), io.BytesIO(data))


def verbs(server: StandIn) -> str:
    return " ".join(call.method for call in server.calls)


def test_a_small_blob_takes_one_question_one_post_and_one_put(
    client: RegistryClient, registry: StandIn
) -> None:
    push(client, registry, SMALL)
    assert registry.asked() == [
        f"HEAD /v2/team/app/blobs/{Digest.of(SMALL)}",
        f"POST {UPLOADS}",
        f"PUT {UPLOADS}u1",
    ]
    assert held(registry, SMALL)
    assert registry.calls[2].query == {"digest": [str(Digest.of(SMALL))]}
    assert registry.calls[2].headers["content-type"] == "application/octet-stream"
    assert registry.connections == 1


def test_a_blob_that_is_there_takes_one_question(client: RegistryClient, registry: StandIn) -> None:
    registry.add_blob("team/app", SMALL)
    push(client, registry, SMALL)
    assert verbs(registry) == "HEAD"


def test_an_empty_blob_is_pushed(client: RegistryClient, registry: StandIn) -> None:
    push(client, registry, b"")
    assert held(registry, b"")


def test_a_large_blob_goes_in_chunks_that_say_where_they_belong(
    chunking: RegistryClient, registry: StandIn
) -> None:
    push(chunking, registry, BIG)
    assert verbs(registry) == "HEAD POST PATCH PATCH PATCH PATCH PUT"
    assert [call.headers.get("content-range") for call in registry.calls[2:6]] == [
        "0-999",
        "1000-1999",
        "2000-2999",
        "3000-3499",
    ]
    assert held(registry, BIG)


def test_a_blob_of_whole_chunks_ends_without_an_empty_one(
    chunking: RegistryClient, registry: StandIn
) -> None:
    push(chunking, registry, BIG[: 2 * CHUNK])
    assert verbs(registry) == "HEAD POST PATCH PATCH PUT"


def test_the_registrys_least_chunk_is_respected(
    chunking: RegistryClient, registry: StandIn
) -> None:
    registry.on("POST", ".*", lambda call: started(registry, {"OCI-Chunk-Min-Length": "2000"}))
    push(chunking, registry, BIG)
    assert [len(call.body) for call in registry.calls[2:]] == [2000, 1500, 0]


def test_a_least_chunk_that_does_not_fit_into_memory_is_refused(
    chunking: RegistryClient, registry: StandIn
) -> None:
    registry.on("POST", ".*", lambda call: started(registry, {"OCI-Chunk-Min-Length": "9" * 12}))
    with pytest.raises(NetworkError) as caught:
        push(chunking, registry, BIG)
    assert caught.value.message == (
        f"{registry.host}/team/app: blob {Digest.of(BIG)}: the registry wants chunks of at least"
        " 999999999999 bytes, the limit is 268435456"
    )


def started(server: StandIn, headers: dict[str, str], session: str = "s1") -> Reply:
    server.uploads[session] = bytearray()
    return Reply(status=202, headers={"Location": f"{UPLOADS}{session}"} | headers)


@pytest.mark.parametrize(
    "location",
    [
        pytest.param("../uploads/s1?_state=a%3D", id="relative with a query"),
        pytest.param("s1", id="relative"),
        pytest.param(f"{UPLOADS}s1?_state=a%3D", id="a path with a query"),
        pytest.param(f"//{{host}}{UPLOADS}s1", id="without a scheme"),
        pytest.param(f"http://{{host}}{UPLOADS}s1?_state=a%3D", id="absolute"),
    ],
)
def test_a_location_is_read_as_a_reference_and_its_query_is_kept(
    client: RegistryClient, registry: StandIn, location: str
) -> None:
    where = location.format(host=registry.host)
    registry.on("POST", ".*", lambda call: started(registry, {"Location": where}))
    push(client, registry, SMALL)
    assert registry.asked()[-1] == f"PUT {UPLOADS}s1"
    state = {"_state": ["a="]} if "?" in location else {}
    assert registry.calls[-1].query == state | {"digest": [str(Digest.of(SMALL))]}
    assert held(registry, SMALL)


def test_each_chunk_goes_where_the_answer_to_the_one_before_says(
    chunking: RegistryClient, registry: StandIn
) -> None:
    count = 0

    def moving(call: Call) -> Reply:
        nonlocal count
        count += 1
        session = call.path.rpartition("/")[2]
        data = registry.uploads.pop(session)
        data += call.body
        registry.uploads[f"m{count}"] = data
        return Reply(status=202, headers={"Location": f"m{count}?step={count}"})

    registry.on("PATCH", ".*", moving, forever=True)
    push(chunking, registry, BIG)
    assert registry.asked()[3:] == [
        f"PATCH {UPLOADS}m1",
        f"PATCH {UPLOADS}m2",
        f"PATCH {UPLOADS}m3",
        f"PUT {UPLOADS}m4",
    ]
    assert registry.calls[-1].query["step"] == ["4"]
    assert held(registry, BIG)


def test_a_chunk_that_was_partly_taken_goes_on_where_the_registry_stands(
    chunking: RegistryClient, registry: StandIn, clock: Clock
) -> None:
    def broken(call: Call) -> Reply:
        registry.uploads["u1"] += call.body[:300]
        return Reply(status=500)

    registry.on("PATCH", ".*", lambda call: None, broken)
    push(chunking, registry, BIG)
    assert verbs(registry) == "HEAD POST PATCH PATCH GET PATCH PATCH PATCH PUT"
    assert registry.calls[5].headers["content-range"] == "1300-1999"
    assert held(registry, BIG)
    assert clock.naps == [0.5]


def test_a_chunk_whose_answer_is_lost_is_not_sent_again(
    chunking: RegistryClient, registry: StandIn
) -> None:
    def broken(call: Call) -> Reply:
        registry.uploads["u1"] += call.body
        return Reply(status=504)

    registry.on("PATCH", ".*", broken)
    push(chunking, registry, BIG)
    assert verbs(registry) == "HEAD POST PATCH GET PATCH PATCH PATCH PUT"
    assert held(registry, BIG)


def test_a_first_chunk_of_which_nothing_arrived_is_sent_whole(
    chunking: RegistryClient, registry: StandIn
) -> None:
    registry.on("PATCH", ".*", Reply(status=500))
    push(chunking, registry, BIG)
    assert verbs(registry) == "HEAD POST PATCH GET PATCH PATCH PATCH PATCH PUT"
    assert registry.calls[4].headers["content-range"] == "0-999"
    assert held(registry, BIG)


def test_a_chunk_of_which_the_registry_keeps_a_part_is_completed(
    chunking: RegistryClient, registry: StandIn
) -> None:
    def partial(call: Call) -> Reply:
        registry.uploads["u1"] += call.body[:400]
        return Reply(status=202, headers={"Location": call.path, "Range": "bytes=0-399"})

    registry.on("PATCH", ".*", partial)
    push(chunking, registry, BIG)
    assert [call.headers.get("content-range") for call in registry.calls[2:4]] == [
        "0-999",
        "400-999",
    ]
    assert held(registry, BIG)


def test_a_chunk_that_is_out_of_order_to_the_registry_goes_on_where_that_stands(
    chunking: RegistryClient, registry: StandIn
) -> None:
    registry.on("PATCH", ".*", lambda _: None, Reply(status=416))
    push(chunking, registry, BIG)
    assert verbs(registry) == "HEAD POST PATCH PATCH GET PATCH PATCH PATCH PUT"
    assert held(registry, BIG)


@pytest.mark.parametrize(
    "said", ["0-2000", "0-499"], ids=["more than was sent", "less than it had"]
)
def test_a_registry_that_cannot_stand_where_it_says_gets_a_new_upload(
    chunking: RegistryClient, registry: StandIn, said: str
) -> None:
    odd = Reply(status=202, headers={"Range": said})
    registry.on("PATCH", ".*", lambda _: None, odd)
    push(chunking, registry, BIG)
    again = "HEAD POST PATCH PATCH PATCH PATCH PUT"
    assert verbs(registry) == f"HEAD POST PATCH PATCH {again}"
    assert held(registry, BIG)


def test_a_busy_registry_gets_the_same_chunk_later(
    chunking: RegistryClient, registry: StandIn, clock: Clock
) -> None:
    registry.on("PATCH", ".*", Reply(status=429, headers={"Retry-After": "3"}))
    push(chunking, registry, BIG)
    assert verbs(registry) == "HEAD POST PATCH PATCH PATCH PATCH PATCH PUT"
    assert (clock.naps, held(registry, BIG)) == ([3.0], True)


@pytest.mark.parametrize("method", ["PATCH", "PUT"])
def test_an_upload_that_is_lost_starts_over(
    chunking: RegistryClient, registry: StandIn, method: str
) -> None:
    registry.on(method, UPLOADS + ".*", lambda call: Reply(status=404))
    push(chunking, registry, BIG)
    assert verbs(registry).count("POST") == 2
    assert held(registry, BIG)


def test_an_upload_that_is_always_lost_is_an_error_in_the_end(
    chunking: RegistryClient, registry: StandIn
) -> None:
    registry.on("PATCH", ".*", Reply(status=404), forever=True)
    with pytest.raises(NetworkError) as caught:
        push(chunking, registry, BIG)
    assert caught.value.message == (
        f"{registry.host}/team/app: blob {Digest.of(BIG)}:"
        f" http://{registry.host}{UPLOADS}u4: the registry has lost the upload"
    )


def test_content_that_cannot_be_rewound_is_not_sent_twice(
    chunking: RegistryClient, registry: StandIn
) -> None:
    class Pipe(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def read(self, size: int | None = -1) -> bytes:
            return super().read(min(size or 0, 333))  # short reads, as pipes give them

    chunking.push_blob(target(registry), describe(BIG), Pipe(BIG))
    assert held(registry, BIG)
    other = BIG + b"!"
    registry.on("PATCH", ".*", Reply(status=404))
    with pytest.raises(NetworkError):
        chunking.push_blob(target(registry), describe(other), Pipe(other))


def test_an_answer_to_the_last_put_that_is_lost_is_made_up_for_by_a_question(
    client: RegistryClient, registry: StandIn
) -> None:
    def stored(call: Call) -> Reply:
        registry.add_blob("team/app", call.body)
        return Reply(status=500)

    registry.on("PUT", ".*", stored)
    push(client, registry, SMALL)
    assert verbs(registry) == "HEAD POST PUT HEAD"


@pytest.mark.parametrize(
    ("method", "status", "data"),
    [
        pytest.param("PUT", 201, SMALL, id="whole"),
        pytest.param("PUT", 201, BIG, id="in chunks"),
        pytest.param("HEAD", 200, SMALL, id="already"),
    ],
)
def test_a_registry_that_stored_something_else_is_not_believed(
    chunking: RegistryClient, registry: StandIn, method: str, status: int, data: bytes
) -> None:
    other = str(Digest.of(b"other"))
    registry.on(method, ".*", Reply(status=status, headers={"Docker-Content-Digest": other}))
    with pytest.raises(IntegrityError) as caught:
        push(chunking, registry, data)
    assert caught.value.message == (
        f"{registry.host}/team/app: blob {Digest.of(data)}: expected {Digest.of(data)}, the"
        f" registry answers with '{other}'"
    )


@pytest.mark.parametrize(
    ("size", "calls"),
    [(len(SMALL), "HEAD"), (len(BIG), "HEAD POST PATCH PATCH PATCH PATCH DELETE")],
    ids=["whole", "in chunks"],
)
def test_content_that_is_not_what_its_descriptor_says_is_not_stored(
    chunking: RegistryClient, registry: StandIn, size: int, calls: str
) -> None:
    digest = Digest.of(b"another")
    descriptor = Descriptor(media_type="x", digest=digest, size=size)
    with pytest.raises(IntegrityError) as caught:
        chunking.push_blob(target(registry), descriptor, io.BytesIO(BIG[:size]))
    assert caught.value.message == (
        f"{registry.host}/team/app: blob {digest}: the content to push is not what its descriptor"
        f" says: expected {digest} ({size} bytes), got {Digest.of(BIG[:size])} ({size} bytes)"
    )
    assert verbs(registry) == calls
    assert (registry.blobs, registry.uploads) == ({}, {})


def test_content_that_is_too_long_or_too_short_is_not_stored(
    chunking: RegistryClient, registry: StandIn
) -> None:
    for data, wanted in ((SMALL, len(SMALL) - 1), (SMALL, len(SMALL) + 1), (BIG, len(BIG) + 1)):
        descriptor = Descriptor(media_type="x", digest=Digest.of(data[:wanted]), size=wanted)
        with pytest.raises(IntegrityError, match="the content to push"):
            chunking.push_blob(target(registry), descriptor, io.BytesIO(data))
    assert (registry.blobs, registry.uploads) == ({}, {})


@pytest.mark.parametrize("kind", [IntegrityError, NetworkError, Interrupted, OSError])
def test_an_upload_whose_content_does_not_come_is_not_left_open(
    chunking: RegistryClient, registry: StandIn, kind: type[Exception]
) -> None:
    class Broken(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            if self.tell() >= 2 * CHUNK:
                raise kind("the source has no more")
            return super().read(size)

        def seekable(self) -> bool:
            return False

    with pytest.raises(kind, match="the source has no more"):
        chunking.push_blob(target(registry), describe(BIG), Broken(BIG))
    assert verbs(registry).startswith("HEAD POST PATCH PATCH DELETE")
    assert (registry.blobs, registry.uploads) == ({}, {})


def test_a_registry_that_holds_another_size_under_the_digest_is_not_believed(
    client: RegistryClient, registry: StandIn
) -> None:
    registry.on("HEAD", ".*", Reply(announce=99))
    with pytest.raises(IntegrityError) as caught:
        client.has_blob(target(registry), describe(SMALL))
    assert caught.value.message == (
        f"{registry.host}/team/app: blob {Digest.of(SMALL)}: expected 12 bytes, the registry"
        " holds 99"
    )


def test_mirrors_are_not_written_to_and_not_asked_what_the_origin_holds(
    make_client: MakeClient, registry: StandIn, other: StandIn
) -> None:
    client = make_client(hosts={registry.host: HostConfiguration(mirrors=(other.host,))})
    push(client, registry, SMALL)
    client.push_manifest(target(registry), tiny_image().manifest)
    assert other.calls == []


def test_a_push_without_the_right_is_an_auth_error(
    client: RegistryClient, registry: StandIn
) -> None:
    registry.on("POST", ".*", Reply(status=403))
    with pytest.raises(AuthError) as caught:
        push(client, registry, SMALL)
    assert caught.value.exit_status == 14
    assert registry.blobs == {}


def test_an_upload_that_moves_to_another_origin_gets_no_authorisation_of_ours(
    make_client: MakeClient, registry: StandIn, other: StandIn, docker_config: DockerLogin
) -> None:
    registry.on("HEAD", ".*", Reply(status=401, headers={"WWW-Authenticate": "Basic"}))
    location = f"http://{other.host}{UPLOADS}s1?signature=x"
    registry.on("POST", ".*", Reply(status=202, headers={"Location": location}))
    other.uploads["s1"] = bytearray()
    push(make_client(docker_config=docker_config({registry.host: "alice:secret"})), registry, SMALL)
    assert "authorization" in registry.calls[-1].headers
    assert other.asked() == [f"PUT {UPLOADS}s1"]
    assert "authorization" not in other.calls[0].headers
