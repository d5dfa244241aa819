"""Many who sign the same image at the same time lose nothing of each other's."""

import multiprocessing
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.adapters.store import FileStore
from builder.adapters.store.attachments import LayoutPlace
from builder.errors import NetworkError
from builder.notation.attach import Attached, attach
from builder.notation.self_signed import self_signed
from builder.oci import Index, Manifest
from builder.reference import Reference
from builder.signatures.collect import collect
from builder.signatures.place import Listed, Place
from builder.signatures.publish import Signable, publish
from builder.signatures.registry import ATTEMPTS, SETTLE, RegistryPlace
from builder.sigstore import carriers
from builder.sigstore.listing import Form
from tests.notation.authorities import NOW
from tests.services import running_registry
from tests.signatures.conftest import IMAGES, fill, hurried
from tests.signed_images import place as in_real_time
from tests.signed_images import push, signable
from tests.signers import p256
from tests.standin.referrers import referrers_stand_in
from tests.standin.registry import Call, Reply, StandIn, stand_in

IMAGE = IMAGES[0].manifest.descriptor
TOGETHER = 20
NAME = "example.com/team/app:t"


def sign(place: Place, number: int) -> None:
    publish([signable(IMAGE, NAME)], p256(str(number)), place)


def sign_name(place: Place, number: int) -> None:
    """The name alone: a list of layers and a list of referrers."""
    publish([Signable(image=IMAGE, reference=NAME)], p256(str(number)), place)


def lost(place: Place) -> list[tuple[int, int]]:
    """Who has not both signatures, and how many."""
    found = collect(IMAGE.digest, place).found
    counts = {}
    for number in range(TOGETHER):
        key = p256(str(number)).public
        counts[number] = sum(item.made_by(key) for item in found)
    return [(number, count) for number, count in counts.items() if count != 2]


def sign_in_registry(host: str, number: int) -> None:
    """What one process does."""
    with RegistryClient(RegistryConfiguration()) as client:
        sign_name(in_real_time(client, Reference.parse(f"{host}/team/app:t")), number)


def sign_in_layout(directory: str, number: int) -> None:
    """What one process does."""
    sign_name(LayoutPlace(FileStore(Path(directory))), number)


def at_once(target: Callable[[str, int], None], where: str) -> None:
    """Twenty processes, none of which begins before the last one has started."""
    context = multiprocessing.get_context("fork")
    gate = context.Barrier(TOGETHER)

    def begin(number: int) -> None:
        gate.wait(60)
        target(where, number)

    processes = [context.Process(target=begin, args=(number,)) for number in range(TOGETHER)]
    for process in processes:
        process.start()
    for process in processes:
        process.join(timeout=120)
    assert [process.exitcode for process in processes] == [0] * TOGETHER


@pytest.mark.requires("docker-registry")
def test_twenty_processes_at_a_registry_without_the_referrers_api(tmp_path: Path) -> None:
    with running_registry(tmp_path) as running, RegistryClient(RegistryConfiguration()) as client:
        reference = Reference.parse(f"{running.host}/team/app:t")
        push(client, reference, IMAGES[0])
        at_once(sign_in_registry, running.host)
        assert lost(in_real_time(client, reference)) == []


@pytest.mark.requires("docker-registry")
def test_without_reading_back_they_would_lose_some(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the test above would prove nothing."""

    def once(_: RegistryPlace, lists: list[Any]) -> None:
        for each in lists:
            each.put()

    monkeypatch.setattr(RegistryPlace, "_settle", once)
    with running_registry(tmp_path) as running, RegistryClient(RegistryConfiguration()) as client:
        reference = Reference.parse(f"{running.host}/team/app:t")
        push(client, reference, IMAGES[0])
        at_once(sign_in_registry, running.host)
        assert len(lost(in_real_time(client, reference))) > 0


def test_twenty_threads_at_a_registry_with_the_referrers_api() -> None:
    with referrers_stand_in() as api, RegistryClient(RegistryConfiguration()) as client:
        reference = Reference.parse(f"{api.host}/team/app:t")
        push(client, reference, IMAGES[0])
        place = in_real_time(client, reference)
        with ThreadPoolExecutor(TOGETHER) as pool:
            list(pool.map(lambda number: sign_name(place, number), range(TOGETHER)))
        assert lost(place) == []
        assert ("team/app", carriers.referrers_tag(IMAGE.digest)) not in api.manifests


def test_who_signs_for_notation_and_who_does_not_share_a_list() -> None:
    with stand_in() as server, RegistryClient(RegistryConfiguration()) as client:
        reference = Reference.parse(f"{server.host}/team/app:t")
        push(client, reference, IMAGES[0])
        place = in_real_time(client, reference)

        def sign_either(number: int) -> None:
            if number % 2:
                sign_name(place, number)
            else:
                assert notarised(place, number).added

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(sign_either, range(6)))
        for number in range(0, 6, 2):
            assert notarised(place, number).present == 1
        collected = collect(IMAGE.digest, place)
        assert (len(collected.found), collected.refused) == (6, ())


def notarised(place: Place, number: int) -> Attached:
    signer = p256(str(number))
    chain = self_signed(signer, "CN=it,O=Acme,ST=Berlin,C=DE", now=NOW, days=2)
    return attach([IMAGE], signer, chain, place=place, again=place, now=NOW)


def test_twenty_processes_at_a_layout(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "layout")
    fill(store, IMAGES[0])
    at_once(sign_in_layout, str(tmp_path / "layout"))
    assert lost(LayoutPlace(store)) == []


@contextmanager
def contested(rounds: int) -> Iterator[tuple[StandIn, list[str]]]:
    """A registry where somebody puts back what was there before, ``rounds`` times a tag, just after
    each put: the worst that another signer can do. Also, what was put back."""
    undone: list[str] = []
    with stand_in() as server:

        def undo(call: Call) -> Reply | None:
            tag = call.path.rpartition("/")[2]
            if tag.startswith("sha256-") and undone.count(tag) < rounds:
                undone.append(tag)
                return Reply(status=201)  # as if replaced in the same moment
            return None

        server.on("PUT", "/v2/team/app/manifests/.*", undo, forever=True)
        yield server, undone


def test_what_another_undid_is_put_again(client: RegistryClient) -> None:
    with contested(3) as (server, undone):
        reference = Reference.parse(f"{server.host}/team/app:t")
        push(client, reference, IMAGES[0])
        sign(hurried(client, reference), 1)
        assert len(undone) == 9
        found = collect(IMAGE.digest, hurried(client, reference)).found
        assert sum(item.made_by(p256("1").public) for item in found) == 4


def test_who_never_gets_through_is_told(client: RegistryClient) -> None:
    with contested(1000) as (server, undone):
        reference = Reference.parse(f"{server.host}/team/app:t")
        push(client, reference, IMAGES[0])
        with pytest.raises(NetworkError) as caught:
            sign(hurried(client, reference), 1)
        assert caught.value.message == (
            f"{reference.name}:sha256-{IMAGE.digest.hex}.sig: put {ATTEMPTS} times, and each time"
            " replaced by others"
        )
        assert len(undone) == 3 * ATTEMPTS


def test_what_was_there_once_is_put_again_too(client: RegistryClient) -> None:
    """Another's entry that a third one's put has lost is not given up by whoever saw it."""
    with stand_in() as server:
        reference = Reference.parse(f"{server.host}/team/app:t")
        push(client, reference, IMAGES[0])
        sign(hurried(client, reference), 1)
        tag = carriers.signature_tag(IMAGE.digest)
        seen = server.manifests["team/app", tag]

        place = hurried(client, reference)
        sign(place, 2)
        mine = place.tagged(tag)
        assert isinstance(mine, Manifest)
        server.manifests["team/app", tag] = seen
        # The third signer's put leaves only its own: 1's, which was there, is gone.
        third = Manifest.parse(mine.raw.replace(b"dev.cosignproject.cosign/signature", b"odd"))
        server.on("PUT", f".*/{tag}", lambda call: left_alone(server, tag, third))
        sign(place, 3)
        found = collect(IMAGE.digest, place).found
        for number in (1, 3):
            assert sum(item.made_by(p256(str(number)).public) for item in found) == 4


def left_alone(server: StandIn, tag: str, document: Manifest | Index) -> Reply:
    """Another's put comes right behind ours."""
    server.manifests["team/app", tag] = (document.media_type, document.raw)
    return Reply(status=201)


def test_the_wait_before_reading_back_follows_the_registry(client: RegistryClient) -> None:
    naps: list[float] = []
    clock = Ticking(0.04)
    with stand_in() as server:
        reference = Reference.parse(f"{server.host}/team/app:t")
        push(client, reference, IMAGES[0])
        place = RegistryPlace(
            registry=client, repository=reference, sleep=naps.append, clock=clock.read
        )
        sign(place, 1)
        assert len(naps) == 1
        assert max(SETTLE, 4 * 0.08) <= naps[0] <= 20 * 4 * 0.08
        sign(place, 1)
        assert len(naps) == 1  # nothing was put


def put_one(
    client: RegistryClient, signature: str, *moments: float, undone: int = 0
) -> tuple[int, list[float]]:
    """Put one list, by a clock that shows ``moments``, where the first puts are undone at once; how
    often it was read, and the waits."""
    naps: list[float] = []
    shown = iter(moments)
    layer = carriers.simple_signing_layer(b"{}", signature.encode())
    wanted = Listed(tag="list", form=Form.LAYERS, entries=(layer,), blobs=(carriers.CONFIG, b"{}"))
    with stand_in() as server:
        server.on("PUT", ".*/manifests/list", *[Reply(status=201)] * undone)
        place = RegistryPlace(
            registry=client,
            repository=Reference.parse(f"{server.host}/team/app"),
            sleep=naps.append,
            clock=lambda: next(shown),
        )
        place.add([wanted])
        read = [call for call in server.asked() if call.startswith("GET /v2/team/app/manifests/")]
    return len(read), naps


def test_a_reading_that_took_long_is_done_again_before_it_is_used(client: RegistryClient) -> None:
    once, _ = put_one(client, "a", 0.0, 0.01, 0.02, 1.0, 1.01)
    again, _ = put_one(client, "a", 0.0, 0.5, 1.0, 1.01, 1.02, 2.0, 2.01)
    assert (once, again) == (2, 3)


def test_signers_that_met_do_not_meet_again(client: RegistryClient) -> None:
    """Whose entries differ waits another time, and the same each time; who met nobody waits for no
    longer than it must."""
    moments = (0.0, 0.01, 0.02, 1.0, 1.01, 1.02, 2.0, 2.01)
    waits = [put_one(client, signature, *moments, undone=1)[1] for signature in ("a", "b", "a")]
    assert waits[0] == waits[2] != waits[1]
    assert [wait[0] for wait in waits] == [SETTLE] * 3
    assert all(SETTLE <= wait[1] <= 2 * SETTLE for wait in waits)


class Ticking:
    """A clock that goes on a little each time that somebody looks."""

    def __init__(self, step: float) -> None:
        self._now, self._step, self._lock = 0.0, step, threading.Lock()

    def read(self) -> float:
        with self._lock:
            self._now += self._step
            return self._now
