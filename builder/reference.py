"""Image references: ``[registry/]repository[:tag][@digest]``, with docker.io's normalisation.

The grammar is that of distribution/reference (``reference.go``): the first component is a registry
if it has a dot or a colon, or is ``localhost``, or has an upper-case letter; otherwise the registry
is docker.io, and a one-component repository there lives under ``library/``.
"""

import re
from dataclasses import replace
from typing import Self

from builder.digest import Digest
from builder.errors import UsageError
from builder.value import value

DOCKER_HUB = "docker.io"
HUB_ALIASES = frozenset({"docker.io", "index.docker.io", "registry-1.docker.io"})
"""The hosts that are Docker Hub."""
_COMPONENT = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_REPOSITORY = re.compile(rf"{_COMPONENT}(?:/{_COMPONENT})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_REGISTRY = re.compile(rf"(?:{_LABEL}(?:\.{_LABEL})*|\[[0-9a-fA-F:]+\])(?::[0-9]+)?")
_REPOSITORY_LIMIT = 255
_LIMIT = 1024
"""More than the longest of all parts come to: what is longer is not looked at."""
_USER = re.compile(r".*@(?=[^@]*[./])", re.DOTALL)
"""What stands before a host: of a URL the user, often with a password."""


@value
class Reference:
    """A place in a registry. Equal references name the same place, however they were spelt."""

    registry: str
    repository: str
    tag: str | None = None
    digest: Digest | None = None

    @classmethod
    def parse(cls, text: str, *, at: str = "image reference") -> Self:
        """Read a reference as people write it. No tag is added where none was written.

        Raises:
            UsageError: It does not follow the grammar; the message names the part.
        """
        if len(text) > _LIMIT:
            raise UsageError(f"{at}: {len(text)} characters, the limit is {_LIMIT}")
        _refuse_user(text, at=at)
        rest, separator, encoded = text.partition("@")
        digest = (
            Digest.parse(encoded, at=f"{at}: {text!r}", refusal=UsageError) if separator else None
        )
        head, slash, tail = rest.partition("/")
        if slash and ("." in head or ":" in head or head == "localhost" or head != head.lower()):
            registry, path = head, tail
        else:
            registry, path = DOCKER_HUB, rest
        repository, colon, tag = path.partition(":")
        if colon and not _TAG.fullmatch(tag):
            raise UsageError(f"{at}: {text!r}: {tag!r} is not a tag")
        if tag.endswith("-"):
            # The grammar allows it, but what it nearly always is: nightly-$SHA with nothing in SHA.
            raise UsageError(
                f"{at}: {text!r}: the tag {tag!r} ends where its suffix should be",
                hint="a variable may have been empty; a tag that is really so is pinned by digest",
            )
        if not _REGISTRY.fullmatch(registry):
            raise UsageError(
                f"{at}: {text!r}: {registry!r} is not a registry",
                hint="REGISTRY/REPOSITORY:TAG is meant; on disk, builder build V --out DIR makes a"
                " layout"
                if registry.endswith(":")
                else None,
            )
        if not _REPOSITORY.fullmatch(repository) or len(repository) > _REPOSITORY_LIMIT:
            raise UsageError(
                f"{at}: {text!r}: {repository!r} is not a repository",
                hint="repositories are lower case, with single separators",
            )
        if registry in HUB_ALIASES:
            registry = DOCKER_HUB
            if "/" not in repository:
                repository = f"library/{repository}"
        return cls(registry=registry, repository=repository, tag=tag or None, digest=digest)

    @property
    def name(self) -> str:
        """Registry and repository."""
        return f"{self.registry}/{self.repository}"

    def at(self, digest: Digest) -> Self:
        """The same repository at a digest, the tag dropped: what a machine should fetch."""
        return replace(self, tag=None, digest=digest)

    def __str__(self) -> str:
        tag = f":{self.tag}" if self.tag else ""
        return f"{self.name}{tag}{f'@{self.digest}' if self.digest else ''}"


def _refuse_user(text: str, *, at: str) -> None:
    if (told := without_user(text)) != text:
        raise UsageError(
            f"{at}: {told!r}: credentials do not belong in a reference",
            hint="docker login keeps them, and there they are found",
        )


def without_user(text: str) -> str:
    """What somebody wrote for a place in a registry, as messages may show it.

    >>> without_user("https://me:secret@registry.example/a"), without_user("a/b@sha256:0")
    ('...@registry.example/a', 'a/b@sha256:0')
    """
    return _USER.sub("...@", text, count=1)


def is_tag(text: str) -> bool:
    """Whether a registry may hold a tag of this name (distribution/reference, ``tag``).

    >>> is_tag("nightly-01d4d1ad"), is_tag("a/b")
    (True, False)
    """
    return _TAG.fullmatch(text) is not None
