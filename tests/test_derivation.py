"""Derivations: the id covers every field, and a field that nobody decided about fails here."""

import dataclasses

import pytest

from builder.derivation import Derivation, resolved_id
from builder.digest import Digest

BASE = Derivation(kind="pull", inputs=b'{"diff":"one"}', parent=Digest.of(b"base"))
OTHER: dict[str, object] = {
    "assembly": BASE.assembly + 1,
    "kind": "overlay",
    "inputs": b'{"diff":"two"}',
    "parent": None,
}


@pytest.mark.parametrize("name", [field.name for field in dataclasses.fields(Derivation)])
def test_every_field_is_part_of_the_id(name: str) -> None:
    """A new field without an entry in OTHER fails here until someone decides."""
    assert dataclasses.replace(BASE, **{name: OTHER[name]}).id != BASE.id  # type: ignore[arg-type]  # any field


def test_the_question_covers_everything_but_the_parent() -> None:
    assert dataclasses.replace(BASE, parent=None).question == BASE.question
    for name in ("assembly", "kind", "inputs"):
        other = dataclasses.replace(BASE, **{name: OTHER[name]})  # type: ignore[arg-type]  # any field
        assert other.question != BASE.question


def test_the_id_of_a_derivation_is_what_it_always_was() -> None:
    """Golden: a change of this value throws every store's memory away; raise ASSEMBLY with it."""
    golden = Derivation(assembly=1, kind="pull", inputs=b"{}", parent=None)
    assert str(golden.id) == GOLDEN


GOLDEN = "sha256:59dc55cf082d336120bf298dd8e569bb5760ea88ca22a8435a4260aa118edd32"


def test_a_resolved_id_depends_on_every_answer_and_not_on_their_order() -> None:
    reads = (("stat", "a", None), ("stat", "b", {"kind": "file"}))
    one = resolved_id(BASE.question, reads)
    assert resolved_id(BASE.question, reads[::-1]) == one
    assert resolved_id(BASE.question, reads[:1]) != one
    assert resolved_id(BASE.question, (("stat", "a", {}), reads[1])) != one
    assert resolved_id(Digest.of(b"other"), reads) != one
