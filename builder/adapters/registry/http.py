"""``urllib3``, without what it would load for HTTP/2: a quarter of what importing it costs.

``urllib3/http2`` loads ``importlib.metadata`` for one function, which asks for the version of
``h2`` when HTTP/2 is switched on. While urllib3 is imported, a function that asks then stands in
its place; afterwards, who imports ``importlib.metadata`` gets the real one.
"""

import importlib
import sys
from types import ModuleType
from typing import Any

_METADATA = "importlib.metadata"


def _version(name: str) -> str:
    from importlib.metadata import version  # noqa: PLC0415 - this is what waits

    return version(name)


def _other(name: str) -> Any:
    """What another urllib3 may want of the module: it is loaded then."""
    if name.startswith("__"):  # asked by the import itself
        raise AttributeError(name)
    sys.modules.pop(_METADATA, None)
    return getattr(importlib.import_module(_METADATA), name)


_stand_in = ModuleType(_METADATA)
vars(_stand_in).update(version=_version, __getattr__=_other)
sys.modules.setdefault(_METADATA, _stand_in)
try:
    import urllib3
finally:
    if sys.modules.get(_METADATA) is _stand_in:
        del sys.modules[_METADATA]

__all__ = ["urllib3"]
