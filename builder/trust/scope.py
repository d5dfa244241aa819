"""Which repositories a scope covers.

A pattern is a repository with its registry (``registry.example/acme/vllm``), everything below a
place (``registry.example/acme/*``, at any depth), or ``*``: everything, images of no repository
too. A star stands nowhere else, so that what two patterns share is always the whole of one, and the
policies of other tools can say the same.
"""

import re

from builder.errors import UsageError
from builder.node import Cursor, shortened, text
from builder.reference import HUB_ALIASES, Reference, without_user
from builder.trust.model import Policy, Scope

EVERYTHING = "*"
_PORT = re.compile(r"(?P<host>\[[^]]*\]|[^:]*)(?::0*(?P<port>[0-9]+))?")
_BELOW = "/*"


def pattern(node: Cursor) -> str:
    """A reader for a pattern, in its one spelling."""
    written = text(node)
    if written == EVERYTHING:
        return written
    base = written.removesuffix(_BELOW)
    probe = written if base == written else f"{base}/a/b"
    hint = "REGISTRY/REPOSITORY, REGISTRY/*, REGISTRY/PATH/*, or * for everything"
    if "*" in base:
        raise node.error(
            f"a star stands alone or behind the last slash, got {shortened(written)!r}", hint=hint
        )
    try:
        found = Reference.parse(probe)
    except UsageError as error:
        told = shortened(without_user(written))
        raise node.error(f"not a repository: {told!r}", hint=hint) from error
    if (spelt := _one_spelling(found)) != probe:
        if base != written:  # what begins with no registry was taken for one of Docker Hub's
            own = found.name == probe or probe.partition("/")[0] in HUB_ALIASES
            spelt = f"{spelt.removesuffix('/a/b') if own else f'REGISTRY/{base}'}/*"
        raise node.error(
            f"not the one spelling of a repository: {shortened(written)!r}",
            hint=f"with its registry, in lower case, without tag and digest: {spelt}",
        )
    return written


def covers(pattern: str, repository: Reference | None) -> bool:
    """Whether a pattern has the repository; ``None`` is the one of an image that lies in none.

    >>> covers("registry.example/acme/*", Reference.parse("registry.example/acme/a/b:tag"))
    True
    >>> covers("registry.example/acme/*", Reference.parse("registry.example/acme-evil/a"))
    False
    """
    if pattern == EVERYTHING:
        return True
    if repository is None:
        return False
    name = _one_spelling(repository)
    if pattern.endswith(_BELOW):
        return name.startswith(pattern.removesuffix("*"))
    return name == pattern


def _one_spelling(repository: Reference) -> str:
    """Hosts know no case, ports no zeros before them, and 443 is where a registry is that names
    none. Only then is it seen whether it is Docker Hub."""
    found = _PORT.fullmatch(repository.registry.lower())
    assert found is not None
    host, port = found["host"], found["port"] or "443"
    written = f"{host}{'' if port == '443' else f':{port}'}/{repository.repository}"
    return Reference.parse(written).name


def scope_of(policy: Policy, repository: Reference | None) -> Scope | None:
    """The scope that decides about a repository: of those that cover it, the narrowest."""
    found = [
        (len(item), not item.endswith("*"), scope)
        for scope in policy.scopes
        for item in scope.repositories
        if covers(item, repository)
    ]
    return max(found, key=lambda each: each[:2], default=(0, False, None))[2]
