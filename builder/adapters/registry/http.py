"""``urllib3``, without what it would load for HTTP/2: a quarter of what importing it costs.

``urllib3/http2`` loads ``importlib.metadata`` for one function, which asks for the version of
``h2`` when HTTP/2 is switched on. While urllib3 is imported, a function that asks then stands in
its place; afterwards, who imports ``importlib.metadata`` gets the real one.
"""

import sys
from types import ModuleType

_METADATA = "importlib.metadata"


def _version(name: str) -> str:
    from importlib.metadata import version  # noqa: PLC0415 - this is what waits

    return version(name)


_stand_in = ModuleType(_METADATA)
_stand_in.version = _version  # type: ignore[attr-defined]  # a module takes any attribute
_stands_in = sys.modules.setdefault(_METADATA, _stand_in) is _stand_in
try:
    import urllib3
finally:
    if _stands_in:
        del sys.modules[_METADATA]

__all__ = ["urllib3"]
