"""Addresses as everybody may read them: what is signed and published has no secrets."""

import re

# Compiled when they are first looked for: nearly every address is a plain one.
_SCHEME = r"([A-Za-z][A-Za-z0-9+.-]*)://(.*)"
_HOST = r"(?:[\w.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?"
_SCP = r"(?:[^/@:]*@)?([\w.-]+|\[[0-9A-Fa-f:.]+\]):(.+)"
_OWNED = r"[\w-][\w.-]*(?:/[\w-][\w.-]*)*"
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._/")
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
    start, _, rest = address.partition("https://")
    if not start and rest[:1] not in ("", "/") and _PLAIN.issuperset(rest):
        return address
    if match := re.fullmatch(_SCHEME, address, re.DOTALL):
        return _url(match[1].lower(), match[2])
    if "\\" in address or "::" in address.partition("[")[0]:
        return None  # another system's path; a helper of git's, which runs what it is given
    plain = re.split(r"[?#]", address, maxsplit=1)[0]
    if match := re.fullmatch(_SCP, plain, re.DOTALL):
        path = match[2].lstrip("/")
        if not path or "@" in path or match[1].lower() in _SCHEMES:
            return None
        return f"ssh://{match[1]}/{path}"
    return plain if re.fullmatch(_OWNED, plain) else None


def redacted(text: str) -> str:
    """What others say of addresses, for people: git's and pip's messages, a configured URL.

    Whatever may be a user, a password or a token is left out, up to the last ``@`` of a word and
    from the first ``?`` or ``#`` on. Where a path may be gone with it, three asterisks say so.

    >>> redacted("fatal: no access to 'https://me:s@cret@git.example/acme/vllm?token=x'")
    "fatal: no access to 'https://git.example/acme/vllm'"
    >>> redacted("https://me:se/cret@git.example/acme/vllm")
    'https://***@git.example/acme/vllm'
    """
    text = re.sub(r"://(\S*)@", lambda said: "://***@" if "/" in said[1] else "://", text)
    return re.sub(r"(://[^\s'\"?#]*)[?#][^\s'\"]*", r"\1", text)


def _url(scheme: str, rest: str) -> str | None:
    plain = re.split(r"[?#]", rest, maxsplit=1)[0]
    authority, slash, path = plain.partition("/")
    host = authority.rpartition("@")[2]
    # An "@" behind the host: a password with a slash in it looks like that.
    if scheme == "file" or "@" in path or not re.fullmatch(_HOST, host):
        return None
    return f"{scheme}://{host}{slash}{path}"
