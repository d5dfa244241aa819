"""Which files of a model are pinned.

Globs are those of huggingface_hub's ``allow_patterns``: ``*`` also matches ``/``, case counts.
"""

from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

DEFAULT = (
    "*.safetensors",
    "*.json",
    "*.jinja",
    "*.model",
    "*.tiktoken",
    "*.txt",
    "*.py",
)
"""What vLLM opens of a model: weights, configurations and indexes, chat templates, tokenizers and
their vocabularies, and the code that ``--trust-remote-code`` runs (which it would get from the hub
otherwise, in whatever version is there). Weights in other formats, some of which run code when they
are loaded, are pinned only by a glob of their own."""

OTHER_WEIGHTS = ("*.bin", "*.ckpt", "*.gguf", "*.h5", "*.msgpack", "*.onnx", "*.pt", "*.pth")
"""Weights that :data:`DEFAULT` leaves out."""


def selected(paths: Iterable[str], include: Sequence[str]) -> tuple[str, ...]:
    """The paths that one of the globs matches, in their order.

    >>> selected(["a/b.json", "README.md", "c.JSON"], ["*.json"])
    ('a/b.json',)
    """
    return tuple(path for path in paths if any(fnmatchcase(path, glob) for glob in include))


def dead(paths: Iterable[str], include: Sequence[str]) -> tuple[str, ...]:
    """The globs that match none of the paths."""
    known = tuple(paths)
    return tuple(glob for glob in include if not selected(known, (glob,)))
