"""An image in a layout, as people write it: ``oci:DIR``, ``oci:DIR:NAME``, ``oci:DIR@DIGEST``,
``oci:DIR:NAME@DIGEST``.

Names of images may have ``:`` and ``@`` in them, and so may directories. What follows the last
``@`` and begins as a digest is one. The directory ends at the first colon behind which a name may
follow and before which there is a layout, or at none.
"""

import re
from collections.abc import Callable
from typing import Self

from builder.digest import Digest
from builder.errors import ProjectError, UsageError
from builder.value import value

PREFIX = "oci:"
_LIMIT = 5000
"""More than the longest path, name and digest come to."""
_DIGEST = re.compile(r"@((?:sha-?[0-9]+|blake[0-9][0-9a-z]*|md5):[^@/]*)\Z", re.IGNORECASE)
"""A digest, or what was meant as one."""
_NUMBER = re.compile(r"@[0-9]+\Z")
"""What containers/image has for the entries of index.json."""


@value
class LayoutReference:
    """A layout, and which image of it; neither ``name`` nor ``digest`` where none was written."""

    directory: str
    name: str = ""
    digest: Digest | None = None

    @classmethod
    def parse(cls, text: str, *, is_layout: Callable[[str], bool], at: str) -> Self:
        """Read what a person wrote, with or without ``oci:``.

        Args:
            is_layout: Whether there is a layout in a directory.

        Raises:
            UsageError: A part is empty, the digest is none.
            ProjectError: There is no layout.
        """
        text = text.removeprefix(PREFIX)
        if len(text) > _LIMIT:
            raise UsageError(f"{at}: {len(text)} characters, the limit is {_LIMIT}")
        if text.endswith("@"):
            raise UsageError(
                f"{at}: {text!r} ends where its digest should be", hint="a variable may be empty"
            )
        found = _DIGEST.search(text)
        rest = text if found is None else text[: found.start()]
        directory = _directory(rest, is_layout, at=at)
        name = rest[len(directory) + 1 :]
        if len(directory) < len(rest):
            _check_name(name, text, directory, at=at)
        if found is None:
            return cls(directory=directory, name=name)
        digest = Digest.parse(found[1], at=f"{at}: {text!r}", refusal=UsageError)
        return cls(directory=directory, name=name, digest=digest)

    @property
    def is_plain(self) -> bool:
        """Whether it can be told to a person, and read again as the same."""
        if not str(self).isprintable():
            return False
        try:
            return self == self.parse(str(self), is_layout=self.directory.__eq__, at="")
        except (UsageError, ProjectError):
            return False

    def __str__(self) -> str:
        name = f":{self.name}" if self.name else ""
        return f"{PREFIX}{self.directory}{name}{'' if self.digest is None else f'@{self.digest}'}"


def _directory(rest: str, is_layout: Callable[[str], bool], *, at: str) -> str:
    ends = [n for n, character in enumerate(rest) if character == ":"]
    directories = [rest[:end] for end in (*ends, len(rest))]
    if not directories[0]:
        raise UsageError(
            f"{at}: {PREFIX + rest!r} names no directory", hint="oci:. is the one you are in"
        )
    for directory in directories:
        if is_layout(directory):
            return directory
    told = " or ".join(dict.fromkeys(map(repr, (directories[0], directories[-1]))))
    raise ProjectError(
        f"{at}: {told} is not an OCI image layout: it has no file 'oci-layout'",
        hint="an image is named oci:DIR@sha256:HEX or oci:DIR:NAME"
        if "@" in rest
        else "builder build V --out DIR makes one",
    )


def _check_name(name: str, text: str, directory: str, *, at: str) -> None:
    if _NUMBER.match(name):
        raise UsageError(
            f"{at}: {name!r} counts the entries of index.json, and is no name",
            hint=f"{PREFIX}{directory}@sha256:HEX names an image by its digest",
        )
    if not name:
        raise UsageError(
            f"{at}: {text!r}: there is nothing where the name should be",
            hint=f"a variable may be empty; without a name: {PREFIX}{directory}, or"
            f" {PREFIX}{directory}@sha256:HEX",
        )
