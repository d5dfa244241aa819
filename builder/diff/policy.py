"""Which paths of a diff are applied, which are left out by name, and which may not be there.

A pull request also touches tests, documents and native sources. Nothing is left out unless a glob
names it, and what an installed package never reads is refused: it would apply and change nothing.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

from builder.diff.model import Diff, FileChange, stripped
from builder.errors import PatchError, ProjectError
from builder.verdict import Verdict

_BUILD_ONLY = (
    "**/csrc/**",
    "cmake/**",
    "docker/**",
    "requirements/**",
    "**/CMakeLists.txt",
    "**/*.cmake",
    "**/*.cu",
    "**/*.cuh",
    "**/*.c",
    "**/*.cc",
    "**/*.cpp",
    "**/*.h",
    "**/*.hpp",
    "**/setup.py",
    "**/pyproject.toml",
    "**/requirements*.txt",
    "**/Dockerfile*",
)
_TOKENS = re.compile(r"\*\*/|\*\*|\*|\?|[^*?]+")
_MEANING = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """A diff's changes at one strip level. ``short`` are changes whose path has too few
    components for it; ``ignored`` are stripped paths."""

    kept: tuple[FileChange, ...]
    build_only: tuple[FileChange, ...]
    short: tuple[FileChange, ...]
    ignored: tuple[str, ...]
    dead: tuple[str, ...]
    """Globs that match no path of the diff."""


def matches(glob: str, path: str) -> bool:
    """Whether ``glob`` covers all of ``path``. ``*`` and ``?`` stay within a component, ``**``
    crosses components; every other character stands for itself.

    >>> matches("tests/**", "tests/v1/test_a.py"), matches("tests/*", "tests/v1/test_a.py")
    (True, False)
    """
    return _compiled(glob).fullmatch(path) is not None


@cache
def _compiled(*globs: str) -> re.Pattern[str]:
    """One pattern for all of ``globs``."""
    patterns = (
        "".join(_MEANING.get(token) or re.escape(token) for token in _TOKENS.findall(glob))
        for glob in globs
    )
    return re.compile("|".join(patterns), re.DOTALL)


def sort_out(diff: Diff, *, strip: int, ignore: Sequence[str]) -> Selection:
    """Sort the changes at a strip level. A change is ignored when all of its paths are."""
    kept, build_only, short = [], [], []
    ignored: set[str] = set()
    used: set[str] = set()
    for change in diff.changes:
        paths = [path for path in (change.old_path, change.new_path) if path is not None]
        names = [name for path in paths if (name := stripped(path, strip)) is not None]
        hits = [[glob for glob in ignore if matches(glob, name)] for name in names]
        used.update(glob for globs in hits for glob in globs)
        if len(names) < len(paths):
            short.append(change)
        elif all(hits):
            ignored.update(names)
        elif any(_is_build_only(path, strip) for path in paths):
            build_only.append(change)
        else:
            kept.append(change)
    return Selection(
        kept=tuple(kept),
        build_only=tuple(build_only),
        short=tuple(short),
        ignored=tuple(sorted(ignored)),
        dead=tuple(glob for glob in ignore if glob not in used),
    )


def select(diff: Diff, *, strip: int, ignore: Sequence[str]) -> Selection:
    """The changes to apply at a strip level, all doubts raised.

    Raises:
        ProjectError: A glob that matches nothing, a path with too few components, a change that
            moves a file across the border of what is ignored.
        PatchError: ``refused``: native sources, build files, binary files, links, submodules; or
            nothing is left.
    """
    chosen = sort_out(diff, strip=strip, ignore=ignore)
    refuse_build_only(diff, chosen)
    if chosen.dead:
        raise ProjectError(
            f"{diff.at}: ignore {chosen.dead[0]!r} matches no path of the diff",
            hint="remove the glob, or correct it; it is matched against the path after the strip",
        )
    if chosen.short:
        change = chosen.short[0]
        raise ProjectError(
            f"{diff.at}:{change.line}: {change.path!r} has too few components for strip {strip}"
        )
    for change in chosen.kept:
        names = [stripped(p, strip) or "" for p in (change.old_path, change.new_path) if p]
        if len({any(matches(glob, name) for glob in ignore) for name in names}) == 2:
            raise ProjectError(
                f"{diff.at}:{change.line}: {names[0]!r} becomes {names[1]!r}, "
                "and only one of them is ignored",
                hint="ignore both or none",
            )
        if change.unfit:
            raise PatchError(
                f"{diff.at}:{change.line}: {names[-1]!r} is {change.unfit}, "
                "which a diff cannot bring into an image",
                verdict=Verdict.REFUSED,
                hint="ignore it with a glob if the package does not need it, "
                "or place the file with an overlay or a source step",
            )
    if not chosen.kept:
        raise PatchError(
            f"{diff.at}: every path of the diff is ignored, nothing is left to apply",
            verdict=Verdict.REFUSED,
        )
    return chosen


def refuse_build_only(diff: Diff, chosen: Selection) -> None:
    """Refuse native sources and build files, naming all of them.

    Raises:
        PatchError: ``refused``.
    """
    if not chosen.build_only:
        return
    first = chosen.build_only[0]
    names = ", ".join(repr(change.path) for change in chosen.build_only)
    raise PatchError(
        f"{diff.at}:{first.line}: native sources and build files have no effect on an installed "
        f"package: {names}",
        verdict=Verdict.REFUSED,
        hint="if the rest of the change works without a rebuild, ignore them with a glob",
    )


def _is_build_only(path: str, strip: int) -> bool:
    # At every level up to the strip: a/csrc/k.py with strip 2 is still a native source.
    names = [stripped(path, level) for level in range(max(strip, 1) + 1)]
    pattern = _compiled(*_BUILD_ONLY)
    return any(pattern.fullmatch(name) for name in names if name is not None)
