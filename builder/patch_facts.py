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
        kept = kept_facts(str(pin.payload.tree), store)
        if kept is not None and kept.payload == pin.payload.path:
            return kept
    payload = materials.payload(pin)  # which refuses a pin without one
    path = "" if pin.payload is None else pin.payload.path
    facts = read_facts(path, {file.path: file.data for file in payload.files})
    if keep:
        store.take_note(notes.FACTS, payload.tree, canonical.encode(facts.record()))
    return facts


def kept_facts(tree: str, store: Store) -> Facts | None:
    """The facts of the payload with this tree, where the store has them."""
    raw = store.note(notes.FACTS, tree)
    if raw is None:
        return None
    try:
        return Facts.parse(canonical.decode(raw, at="facts"))
    except notes.MALFORMED:
        return None
