"""A reproducible build system for pinned, patched vLLM images.

The stages, in the order in which they run; each takes the frozen value of the one before::

    lock, variant   bytes to values                         (pure)
    plan            values to an ordered chain of steps     (pure)
    realise         each step to a layer the store lacks    (effects, through ports)
    image           base + layers to config and manifest    (pure)
    publish         blobs, then manifest, then tag

``builder.pipeline`` composes them on one page. Imports only go down; ``pyproject.toml`` holds the
order and the linter enforces it. The world is reached through the Protocols of ``builder.ports``,
implemented in ``builder.adapters`` and wired in ``builder.cli``.
"""

__version__ = "0.1.0"

ASSEMBLY = 1
"""The version of the bytes we make. It is part of every derivation: raise it in the commit that
changes any byte of a layer, a config or a manifest, together with the golden digests."""
