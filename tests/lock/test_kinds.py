"""Kinds of pins: every one has its word, and a project is asked for no other."""

from typing import get_args

import pytest

from builder.lock import codec
from builder.lock.kinds import KINDS, every_pin, pins_of, word_of
from builder.lock.model import Lock, Pin
from tests.lock.documents import DOCUMENTS


def test_every_kind_of_pin_has_its_word() -> None:
    assert set(KINDS.values()) == set(get_args(Pin))


def test_a_lock_gives_each_pin_under_the_word_of_its_kind() -> None:
    found = map(codec.kind_of, KINDS.values())
    lock = codec.read_lock({item.file: DOCUMENTS[item.key].encode() for item in found})
    for word, kind in KINDS.items():
        pins = pins_of(lock, word).values()
        assert {type(pin) for pin in pins} == {kind}
        assert {word_of(pin) for pin in pins} == {word}
    assert len(list(every_pin(lock))) == sum(len(pins_of(lock, word)) for word in KINDS)


def test_what_is_no_kind_is_a_bug() -> None:
    with pytest.raises(ValueError, match="'wheels' is no kind of pin"):
        pins_of(Lock(), "wheels")
