"""Wheels: what a pin becomes of what an index offers."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from builder.digest import Digest
from builder.errors import ProjectError
from builder.lock.model import Escrow, WheelPin
from builder.resolve.wheels import resolve_wheel
from builder.upstream import FoundWheel

NOW = "2026-06-01T12:00:00Z"
NAME = "demo-1.0-py3-none-any.whl"
OTHER = Digest.of(b"two")
FOUND = FoundWheel(filename=NAME, version="1.0", digest=Digest.of(b"one"))
PIN = WheelPin(
    name="demo-pin",
    project="demo",
    version="1.0",
    filename=NAME,
    digest=FOUND.digest,
    size=7,
    escrow=(Escrow(layout="escrow", digest=FOUND.digest),),
    failing=("it",),
    locked="2026-01-01T00:00:00Z",
    at="lockfiles/wheels.yaml:3: wheels.demo-pin",
)


@dataclass
class Index:
    """The Wheels port, with one offer."""

    offer: FoundWheel
    asked: list[tuple[str, str | None, str | None]] = field(default_factory=list)

    def find(self, *, project: str, version: str | None, like: str | None) -> FoundWheel:
        self.asked.append((project, version, like))
        return self.offer

    def fetch(self, *, project: str, version: str, filename: str, digest: Digest) -> Path:
        raise AssertionError("a wheel is fetched when it is tried")

    def keep(self, chunks: Iterator[bytes], *, filename: str, digest: Digest) -> Path:
        raise AssertionError(filename)

    def pack(self, path: str) -> bytes:
        raise AssertionError(path)


def test_a_new_pin_holds_what_the_index_offers_and_invents_nothing() -> None:
    index = Index(FOUND)
    made = resolve_wheel("demo", None, name="demo-pin", wheels=index, now=NOW)
    assert made.pin == WheelPin(
        name="demo-pin",
        project="demo",
        version="1.0",
        filename=NAME,
        digest=FOUND.digest,
        locked=NOW,
    )
    assert (made.remarks, index.asked) == ((), [("demo", None, None)])


def test_the_same_file_leaves_the_pin_as_it_was() -> None:
    index = Index(FOUND)
    made = resolve_wheel("demo", "1.0", name="demo-pin", wheels=index, now=NOW, before=PIN)
    assert (made.pin, made.pin.at, made.remarks) == (PIN, PIN.at, ())
    assert index.asked == [("demo", "1.0", NAME)]
    bare = replace(PIN, locked=None, size=None)
    sized = Index(replace(FOUND, size=9))
    again = resolve_wheel("demo", "1.0", name="demo-pin", wheels=sized, now=NOW, before=bare).pin
    assert again == replace(PIN, locked=NOW, size=9)


@pytest.mark.parametrize(
    ("offer", "remarks"),
    [
        pytest.param(
            replace(FOUND, version="1.1", filename="demo-1.1-py3-none-any.whl"), (), id="newer"
        ),
        pytest.param(
            replace(FOUND, version="0.9", filename="demo-0.9-py3-none-any.whl"),
            ("0.9 is older than 1.0, which was pinned",),
            id="older",
        ),
        pytest.param(
            replace(FOUND, filename="demo-1.0-1-py3-none-any.whl"),
            (f"1.0 is another file now: demo-1.0-1-py3-none-any.whl, was {NAME}",),
            id="another build",
        ),
        pytest.param(
            FOUND,
            (f"the index has other bytes now for {NAME}: {OTHER}, pinned was {FOUND.digest}",),
            id="other bytes",
        ),
    ],
)
def test_another_file_takes_nothing_over_from_the_old_one(
    offer: FoundWheel, remarks: tuple[str, ...]
) -> None:
    offer = replace(offer, digest=OTHER)
    made = resolve_wheel("demo", None, name="demo-pin", wheels=Index(offer), now=NOW, before=PIN)
    assert made.remarks == remarks
    assert made.pin == WheelPin(
        name="demo-pin",
        project="demo",
        version=offer.version,
        filename=offer.filename,
        digest=offer.digest,
        locked=NOW,
    )


def test_a_wheel_of_the_projects_own_does_not_move() -> None:
    index = Index(FOUND)
    with pytest.raises(ProjectError) as caught:
        resolve_wheel(
            "demo", None, name="demo-pin", wheels=index, now=NOW, before=replace(PIN, path="own")
        )
    assert caught.value.message == (
        "lockfiles/wheels.yaml:3: wheels.demo-pin: a wheel of the project's own, unpacked in 'own'"
    )
    assert index.asked == []
