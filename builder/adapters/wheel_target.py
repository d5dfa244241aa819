"""For which Python and platform pip looks for a wheel, as its options.

pip compares tags word by word when it is told a platform: what a platform runs is listed here in
full (PEP 600, 656).
"""

import re
from collections.abc import Iterator

from packaging.tags import Tag

from builder.value import value

_PYTHON = (3, 12)
_MACHINE = "x86_64"
_GLIBC = 35
"""glibc 2.35, that of Ubuntu 22.04, which the published images of vLLM are made of."""
_MUSL = 2
_LEGACY = {17: "manylinux2014", 12: "manylinux2010", 5: "manylinux1"}
_GLIBC_TAG = re.compile(r"manylinux(?:_2_(?P<minor>\d{1,2})|1|2010|2014)_(?P<machine>\w+)")
_MUSL_TAG = re.compile(r"musllinux_1_(?P<minor>\d{1,2})_(?P<machine>\w+)")


@value
class Target:
    """A Python on a platform."""

    implementation: str
    python: str
    """``3.12``"""
    abis: tuple[str, ...]
    platforms: tuple[str, ...]

    def options(self) -> tuple[str, ...]:
        """Pip's options."""
        return (
            *("--implementation", self.implementation, "--python-version", self.python),
            *(word for abi in self.abis for word in ("--abi", abi)),
            *(word for platform in self.platforms for word in ("--platform", platform)),
        )


def usual() -> Target:
    """CPython 3.12 on x86-64 Linux with glibc."""
    return target_of(frozenset())


def target_of(tags: frozenset[Tag]) -> Target:
    """The usual target, as far as a wheel's tags allow, else another that takes this wheel: one
    for ``cp38-abi3`` or ``py3`` goes on to be looked for under Python 3.12, one for ``cp313``
    under 3.13.

    glibc is 2.35, or newer where the wheel needs it: the next release may need more of it than
    the last one did.
    """
    interpreter = max((tag.interpreter for tag in tags), key=_rank, default="")
    abis = sorted({tag.abi for tag in tags} - {"abi3", "none"})
    match = re.fullmatch(r"([a-z]+?)(3)(?:_?(\d{1,3}))?", interpreter)
    family, least = (match[1], int(match[3] or 0)) if match else ("py", 0)
    stable = family == "cp" and "abi3" in {tag.abi for tag in tags} and not abis
    at_least = family == "py" or stable or not least
    minor = max(_PYTHON[1], least) if at_least else least
    if family == "py":
        family = "cp"
    if not abis and family == "cp":
        abis = [f"cp3{minor}"]
    return Target(
        implementation=family,
        python=f"3.{minor}",
        abis=tuple(abis),
        platforms=tuple(_platforms({tag.platform for tag in tags})),
    )


def _rank(interpreter: str) -> tuple[bool, int]:
    """Of ``py2.py3`` and the like the highest stands for all; a named implementation first."""
    digits = re.sub(r"\D", "", interpreter)
    return not interpreter.startswith("py"), int(digits[:4] or 0)


def _platforms(tags: set[str]) -> Iterator[str]:
    """Best first, as pip wants them."""
    named = tags - {"any"}
    for pattern, expand, least in ((_GLIBC_TAG, _glibc, _GLIBC), (_MUSL_TAG, _musl, _MUSL)):
        found = [match for tag in named if (match := pattern.fullmatch(tag))]
        if found:
            newest = max(int(match["minor"] or 0) for match in found)
            for machine in sorted({match["machine"] for match in found}):
                yield from expand(machine, max(newest, least))
            return
    linux = next((tag for tag in sorted(named) if tag.startswith("linux_")), None)
    if linux is None and named:
        yield from sorted(named)
    else:
        yield from _glibc(linux.removeprefix("linux_") if linux else _MACHINE, _GLIBC)


def _glibc(machine: str, newest: int) -> Iterator[str]:
    for minor in range(newest, 4, -1):
        yield f"manylinux_2_{minor}_{machine}"
        if minor in _LEGACY:
            yield f"{_LEGACY[minor]}_{machine}"
    yield f"linux_{machine}"


def _musl(machine: str, newest: int) -> Iterator[str]:
    for minor in range(newest, -1, -1):
        yield f"musllinux_1_{minor}_{machine}"
    yield f"linux_{machine}"
