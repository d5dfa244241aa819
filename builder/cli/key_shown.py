"""Keys as people and programs read them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from builder.adapters.keys.directory import KeptKey, KeyDirectory


def line(entry: "KeptKey") -> str:
    """A key on one line."""
    return f"{entry.name}: {entry.public.type} {entry.public.fingerprint} ({state_of(entry)})"


def state_of(entry: "KeptKey") -> str:
    """Its state, with what is said of it."""
    told = str(entry.state)
    if entry.successor:
        told += f", successor {entry.successor}"
    return f"{told}: {entry.reason}" if entry.reason else told


def document(directory: "KeyDirectory", entry: "KeptKey") -> dict[str, Any]:
    """A key as JSON: nothing of it is secret."""
    return {
        "name": entry.name,
        "type": str(entry.public.type),
        "fingerprint": entry.public.fingerprint,
        "state": str(entry.state),
        "successor": entry.successor,
        "reason": entry.reason,
        "public": str(directory.path / f"{entry.name}.pub"),
        "private": str(directory.path / f"{entry.name}.key"),
    }
