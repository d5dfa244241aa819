"""Code of other repositories that a model's configuration names.

With ``trust_remote_code`` transformers runs what ``auto_map`` names: ``module.Class`` of the model
itself, or ``OWNER/NAME--module.Class`` of another repository, which no pin of this one holds.
"""

from collections.abc import Iterator
from typing import Any

from builder import json_text

FILES = frozenset(
    {"config.json", "tokenizer_config.json", "processor_config.json", "preprocessor_config.json"}
)
"""Where an ``auto_map`` stands."""
_BETWEEN = "--"


def repositories(data: bytes) -> tuple[str, ...]:
    """The other repositories that a configuration takes code from, each once. One that is no JSON
    names none: whoever loads it cannot read it either.

    >>> repositories(b'{"auto_map": {"AutoModel": "a/b--m.C", "AutoConfig": "m.D"}}')
    ('a/b',)
    """
    try:
        document = json_text.loads(data)
    except ValueError:
        return ()
    found = document.get("auto_map") if isinstance(document, dict) else None
    named = (text.partition(_BETWEEN)[0] for text in _texts(found) if _BETWEEN in text)
    return tuple(dict.fromkeys(named))


def _texts(value: Any) -> Iterator[str]:
    """A class, or of tokenizers two, one of which may be missing; by name."""
    if isinstance(value, dict):
        value = [*value.values()]
    for item in value if isinstance(value, list) else ():
        yield from (one for one in (item if isinstance(item, list) else [item]) if type(one) is str)
