"""What ``git ls-remote --symref`` says, as values."""

import re
from collections.abc import Mapping

from builder.value import value

_LINE = re.compile(rb"([0-9a-f]{40}|[0-9a-f]{64})\t(.+)", re.DOTALL)
_KEPT = re.compile(r"HEAD|refs/heads/.+|refs/tags/.+|refs/pull/[1-9][0-9]*/head")
_BRANCH = "refs/heads/"


@value
class Refs:
    """The refs of a remote: branches, tags, heads of pull requests, and ``HEAD``."""

    objects: Mapping[str, str]
    """The object that each one names, as it is: for an annotated tag the tag object."""
    commits: Mapping[str, str]
    """The same, with what is behind a tag in its place."""
    branch: str | None
    """The branch that ``HEAD`` is, where the remote says so, or only one branch can be it."""


def read_refs(output: bytes) -> Refs:
    """Read the output. Refs of other kinds, and those whose names nobody can write down (not UTF-8,
    control characters, blanks beyond ASCII), are left out; so are lines that are none."""
    objects: dict[str, str] = {}
    behind: dict[str, str] = {}
    branch = None
    for line in output.split(b"\n"):
        if line.startswith(b"ref: ") and line.endswith(b"\tHEAD"):
            branch = _name(line[5:-5])
        elif found := _LINE.fullmatch(line):
            name = _name(found[2])
            place = behind if name.endswith("^{}") else objects
            if _KEPT.fullmatch(name.removesuffix("^{}")):
                place[name.removesuffix("^{}")] = found[1].decode()
    commits = {name: behind.get(name, objects[name]) for name in sorted(objects)}
    if branch is None or branch not in objects or not branch.startswith(_BRANCH):
        branch = _only_branch(commits)
    return Refs(objects=objects, commits=commits, branch=branch)


def _name(raw: bytes) -> str:
    name = raw.decode("utf-8", "surrogateescape")
    return name if name.isprintable() else ""


def _only_branch(commits: Mapping[str, str]) -> str | None:
    """``HEAD`` without a name, as old servers and bundles give it."""
    head = commits.get("HEAD")
    fit = [name for name in commits if name.startswith(_BRANCH) and head in (None, commits[name])]
    return fit[0] if len(fit) == 1 else None
