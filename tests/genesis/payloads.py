"""Payloads of a patch set of our own, in the shape of the real one."""

from typing import Any

from builder.genesis import Facts, read_facts

V7 = "vllm/_genesis"
V8 = "vllm/sndr_core"

FIRST = "0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c"
"""A full commit of vLLM."""
LISTED = f"0.20.2rc1.dev9+g{FIRST[:9]}"


def guards(good: tuple[str, ...] | None, pending: tuple[str, ...] = ()) -> bytes:
    """A guards module that cannot be imported."""
    lines = ['"""Where this may run."""', "import nothing_that_exists", "raise SystemExit(2)"]
    if good is not None:
        lines += [f"KNOWN_GOOD_VLLM_PINS: tuple[str, ...] = {good!r}"]
    if pending:
        lines += [f"PROMOTION_PENDING_VLLM_PINS: tuple[str, ...] = {pending!r}"]
    return "\n".join(lines).encode()


def registry(**patches: dict[str, Any]) -> bytes:
    """A module with a registry, one entry for each patch. A flag is made of the id where none is
    given."""
    entries = {
        name: {"title": f"about {name}", "env_flag": f"GENESIS_ENABLE_{name}", "default_on": False}
        | entry
        for name, entry in patches.items()
    }
    return f"import os\n\nPATCH_REGISTRY: dict[str, dict] = {entries!r}\n".encode()


def v7(source: bytes = b"", /, **patches: dict[str, Any]) -> Facts:
    """The facts of a payload that is read as 7.x decides. ``source`` is one more module."""
    return read_facts(
        V7,
        {
            "guards.py": guards((LISTED,)),
            "dispatcher.py": registry(**patches),
            "wiring/more.py": source,
        },
    )


def v8(source: bytes = b"", deciding: bytes = b"", /, **patches: dict[str, Any]) -> Facts:
    """The facts of a payload of the second era; ``deciding`` is its module that decides."""
    return read_facts(
        V8,
        {
            "detection/guards.py": guards((LISTED,)),
            "dispatcher/registry.py": registry(**patches),
            "dispatcher/decision.py": deciding,
            "more.py": source,
        },
    )
