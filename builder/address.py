"""Addresses as everybody may read them: what is signed and published has no secrets."""

import re

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)", re.DOTALL)
_HOST = re.compile(r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?")
_SCP = re.compile(r"(?:[^/@:]*@)?([\w.-]+|\[[0-9A-Fa-f:.]+\]):(.+)", re.DOTALL)
_OWNED = re.compile(r"[\w-][\w.-]*(?:/[\w-][\w.-]*)*")
_SCHEMES = frozenset({"file", "ftp", "ftps", "git", "http", "https", "ssh"})
"""No hosts, though "https:" with too few slashes looks like one."""


def public(address: str) -> str | None:
    """The address of a repository without user, password, query and fragment.

    Returns ``None`` for a place on one machine (a path, ``file:``), and for whatever cannot be
    told apart from an address with a secret in it: the content is named by its id all the same.
    What is returned has none of ``@``, ``?`` and ``#``.

    >>> public("https://me:secret@git.example/acme/vllm?token=x")
    'https://git.example/acme/vllm'
    >>> public("git@git.example:acme/vllm.git")
    'ssh://git.example/acme/vllm.git'
    >>> public("/home/me/vllm") is None
    True
    """
    if match := _SCHEME.fullmatch(address):
        return _url(match[1].lower(), match[2])
    if "\\" in address or "::" in address.partition("[")[0]:
        return None  # another system's path; a helper of git's, which runs what it is given
    plain = re.split(r"[?#]", address, maxsplit=1)[0]
    if match := _SCP.fullmatch(plain):
        path = match[2].lstrip("/")
        if not path or "@" in path or match[1].lower() in _SCHEMES:
            return None
        return f"ssh://{match[1]}/{path}"
    return plain if _OWNED.fullmatch(plain) else None


def _url(scheme: str, rest: str) -> str | None:
    plain = re.split(r"[?#]", rest, maxsplit=1)[0]
    authority, slash, path = plain.partition("/")
    host = authority.rpartition("@")[2]
    # An "@" behind the host: a password with a slash in it looks like that.
    if scheme == "file" or "@" in path or not _HOST.fullmatch(host):
        return None
    return f"{scheme}://{host}{slash}{path}"
