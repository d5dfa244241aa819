"""Whoever signs may be killed at any point: what is there can be read, and doing it again completes
it, with nothing twice."""

import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.adapters.registry.transport import Transport
from builder.adapters.store import FileStore
from builder.adapters.store.attachments import LayoutPlace
from builder.adapters.store.verify import verify
from builder.reference import Reference
from builder.signatures.collect import collect
from builder.signatures.place import Place
from builder.signatures.publish import publish
from tests.services import running_registry
from tests.signatures.conftest import IMAGES, fill, hurried
from tests.signed_images import push, signable
from tests.signers import p256
from tests.store.processes import join, killed_at, start

IMAGE = IMAGES[0].manifest.descriptor
FIRST, SECOND = p256("first"), p256("second")
EACH = 4
"""How many signatures one key makes of the image."""


@pytest.fixture
def quick(tmp_path: Path) -> Iterator[Path]:
    """A directory of this test's own in memory where the machine has one: it is written often."""
    shm = Path("/dev/shm")
    with TemporaryDirectory(dir=shm if os.access(shm, os.W_OK) else tmp_path) as name:
        yield Path(name)


def sign(place: Place) -> None:
    publish([signable(IMAGE, "registry.example/acme/app:t")], SECOND, place)


def counts(place: Place) -> tuple[int, int]:
    """How many signatures the two keys have, where all that is there can be read."""
    collected = collect(IMAGE.digest, place)
    assert collected.refused == ()
    assert len(set(collected.found)) == len(collected.found)
    first, second = (
        sum(item.made_by(signer.public) for item in collected.found) for signer in (FIRST, SECOND)
    )
    return first, second


def test_a_layout_is_whole_after_each_call_that_changes_the_disk(quick: Path) -> None:
    root, before = quick / "layout", quick / "before"
    store = FileStore(before)
    fill(store, IMAGES[0])
    publish([signable(IMAGE, "registry.example/acme/app:t")], FIRST, LayoutPlace(store))
    seen = set()
    for number in range(0, 2000, 8):
        shutil.copytree(before, root)
        if not killed_at(number, lambda: sign(LayoutPlace(FileStore(root)))):
            break
        report = verify(FileStore(root))
        assert report.ok, report
        first, second = counts(LayoutPlace(FileStore(root)))
        assert first == EACH, "another's signature is never lost"
        seen.add(second)
        sign(LayoutPlace(FileStore(root)))
        assert counts(LayoutPlace(FileStore(root))) == (EACH, EACH)
        shutil.rmtree(root)
    assert seen == set(range(EACH + 1)), "each of the states between was met"
    assert number > 50


@pytest.mark.requires("docker-registry")
def test_a_registry_is_whole_after_a_request(tmp_path: Path, client: RegistryClient) -> None:
    """A real registry, without the referrers API: three lists, each of which is another's, too. The
    requests are those of which every ninth is looked at, before it and before its answer in
    turn; tests/signatures/test_interrupted.py has all writes, at one that stands in."""
    with running_registry(tmp_path) as running:
        for number in range(0, 200, 9):
            reference = Reference.parse(f"{running.host}/team/app{number}:t")
            push(client, reference, IMAGES[0])
            place = hurried(client, reference)
            publish([signable(IMAGE, "registry.example/acme/app:t")], FIRST, place)
            if not killed_at_request(number, reference, answered=number % 2 == 1):
                break
            assert counts(place)[0] == EACH, "another's signature is never lost"
            sign(place)
            assert counts(place) == (EACH, EACH)
    assert number > 15


def killed_at_request(number: int, reference: Reference, *, answered: bool) -> bool:
    """Sign in a child that is killed instead of its request of that number, or before the answer is
    read; whether it came so far."""

    def work() -> None:
        with RegistryClient(RegistryConfiguration(attempts=1)) as client:
            sign(hurried(client, reference))

    def armed() -> None:
        setattr(Transport, "send", dying(Transport.send, number, answered=answered))  # noqa: B010 - a method, to mypy
        work()

    (status,) = join(start(armed))
    assert status in {0, -signal.SIGKILL}
    return status != 0


def dying(real: Callable[..., Any], at: int, *, answered: bool) -> Callable[..., Any]:
    left = [at]

    def send(*arguments: Any, **options: Any) -> Any:
        left[0] -= 1
        if left[0] < 0 and answered:
            real(*arguments, **options)
        if left[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return real(*arguments, **options)

    return send
