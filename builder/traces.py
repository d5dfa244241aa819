"""What the store remembers of steps: traces, from a derivation or a question to an output.

A trace is a memo, never a fact: it may be deleted at any time, and what it names is checked to be
there before it is believed.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from builder import canonical, notes
from builder.derivation import OPERATIONS, Derivation, Read, resolved_id
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.outcome import Output
from builder.ports import Store

_TRACES_PER_QUESTION = 32
"""How many bases' answers are remembered for one question; the oldest goes first."""


def recall(derivation: Derivation, store: Store) -> Output | None:
    """The output of a derivation that was realised before, if it is still whole."""
    value = _note(store, notes.DERIVATION, derivation.id)
    return None if value is None else _output(value.get("output"), store)


def remember(derivation: Derivation, output: Output, store: Store) -> None:
    """Keep the output of a derivation."""
    value = {"output": output.record(), "blobs": [str(digest) for digest in output.blobs]}
    store.take_note(notes.DERIVATION, derivation.id.hex, canonical.encode(value))


def alike(derivation: Derivation, store: Store) -> list[tuple[tuple[Read, ...], Output]]:
    """What the same question came to elsewhere: what was read then, and the output."""
    found = []
    for trace in _traces(store, derivation.question):
        output = _output(trace.get("output"), store)
        if output is not None and (reads := _reads(trace.get("reads"))) is not None:
            found.append((reads, output))
    return found


def _read(item: Any) -> Read:
    operation, path, answer = item
    if not isinstance(path, str) or operation not in OPERATIONS:
        raise ValueError(f"no question: {item!r}")
    return operation, path, answer


def remember_reads(
    derivation: Derivation, reads: Sequence[Read], output: Output, store: Store
) -> None:
    """Keep what a step read and came to, so that another parent with the same answers need not
    run it."""
    question = derivation.question
    trace = {
        "id": str(resolved_id(question, reads)),
        "reads": [list(read) for read in reads],
        "output": output.record(),
    }
    with store.lock(f"question-{question.hex}"):
        others = [item for item in _traces(store, question) if item.get("id") != trace["id"]]
        kept = [*others, trace][-_TRACES_PER_QUESTION:]
        store.take_note(notes.QUESTION, question.hex, canonical.encode({"traces": kept}))


def _traces(store: Store, question: Digest) -> list[dict[str, Any]]:
    value = _note(store, notes.QUESTION, question)
    traces = None if value is None else value.get("traces")
    return [item for item in traces if isinstance(item, dict)] if isinstance(traces, list) else []


def _reads(record: Any) -> tuple[Read, ...] | None:
    try:
        return tuple((str(operation), str(path), answer) for operation, path, answer in record)
    except notes.MALFORMED:
        return None


def _note(store: Store, kind: str, key: Digest) -> Mapping[str, Any] | None:
    raw = store.note(kind, key.hex)
    if raw is None:
        return None
    try:
        value = canonical.decode(raw, at=f"note {kind}/{key.hex}")
    except IntegrityError:
        return None  # half a memo is none
    return value if isinstance(value, dict) else None


def _output(record: Any, store: Store) -> Output | None:
    try:
        output = Output.parse(record)
    except notes.MALFORMED:
        return None
    if output.layer is not None and not store.has(output.layer.digest, size=output.layer.size):
        return None
    return output if all(store.has(digest) for digest in output.blobs) else None
