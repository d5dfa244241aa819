"""What a pinned patch set says of itself: read once, then kept by the tree of its payload."""

from builder import canonical, notes
from builder.genesis.facts import Facts, read_facts
from builder.lock.model import GenesisPin
from builder.ports import Store
from builder.steps.request import Materials


def facts_of(pin: GenesisPin, materials: Materials, *, store: Store, keep: bool = True) -> Facts:
    """The facts of a commit, from the store or from its payload. Without ``keep`` nothing is
    written.

    Raises:
        ProjectError: The pin has no payload, or it is not one that can be read.
        GoneError, NetworkError: The payload is not at hand and cannot be had.
    """
    if pin.payload is not None:
        raw = store.note(notes.FACTS, str(pin.payload.tree))
        if raw is not None and (kept := _parsed(raw, pin.payload.path)) is not None:
            return kept
    payload = materials.payload(pin)  # which refuses a pin without one
    path = "" if pin.payload is None else pin.payload.path
    facts = read_facts(path, {file.path: file.data for file in payload.files})
    if keep:
        store.take_note(notes.FACTS, payload.tree, canonical.encode(facts.record()))
    return facts


def _parsed(raw: bytes, payload: str) -> Facts | None:
    try:
        facts = Facts.parse(canonical.decode(raw, at="facts"))
    except notes.MALFORMED:
        return None
    return facts if facts.payload == payload else None
