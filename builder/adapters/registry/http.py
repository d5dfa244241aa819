"""``requests``, without the charset detector that it would load.

The detector guesses the encoding of text that does not say what it is. Registries speak JSON, which
is UTF-8, and bytes. It is a sixth of what importing ``requests`` costs, and ``requests`` does
without it where there is none (``requests/compat.py``), with a warning that is not for our users.
"""

import sys
import warnings

_DETECTORS = ("chardet", "charset_normalizer")

_hidden = [name for name in _DETECTORS if "requests" not in sys.modules and name not in sys.modules]
for _name in _hidden:
    sys.modules[_name] = None  # type: ignore[assignment] # how Python says: there is no such module
try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import requests
        from requests.adapters import HTTPAdapter
        from requests.auth import AuthBase
        from requests.cookies import RequestsCookieJar
finally:
    for _name in _hidden:
        del sys.modules[_name]

__all__ = ["AuthBase", "HTTPAdapter", "RequestsCookieJar", "requests"]
