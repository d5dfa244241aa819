"""Installing a wheel into an image: from a verified wheel to changes, without running anything.

Source: packaging.python.org, "Binary distribution format", "Installing a wheel", and "Recording
installed projects". Bytecode is neither made nor taken.
"""

import configparser
import posixpath
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from packaging.tags import Tag, compatible_tags, cpython_tags

from builder import record
from builder.changes import Change, Content, Inline, Put
from builder.errors import IntegrityError, PatchError, ProjectError
from builder.oci import Platform
from builder.python_layout import PythonLayout, project_of
from builder.record import Row
from builder.tree import View, parents
from builder.verdict import Verdict
from builder.wheel_archive import Member, Wheel, WheelName, read

_MACHINES = {"amd64": "x86_64", "arm64": "aarch64", "ppc64le": "ppc64le", "s390x": "s390x"}
_MANYLINUX = (*(f"manylinux_2_{minor}" for minor in range(50, 4, -1)), "linux")
_LEGACY = ("manylinux2014", "manylinux2010", "manylinux1")

# What the installer writes itself, or what only another installation could have meant.
_OURS = ("INSTALLER", "REQUESTED", "direct_url.json")

_PYTHON = re.compile(r".*/python[0-9.]*")
_SCRIPT = """\
#!{interpreter}
import sys

from {module} import {name}

if __name__ == "__main__":
    sys.exit({attribute}())
"""


def install(
    source: Path | bytes, *, filename: str, python: PythonLayout, platform: Platform, view: View
) -> tuple[Change, ...]:
    """The changes that install a wheel, sorted by path. Contents stream from ``source``, which
    must stay as it is until they were read.

    Args:
        source: The wheel's file, or its bytes.
        filename: The wheel's own file name; its tags are matched, not those of ``WHEEL``.
        python: Where the image's Python keeps its packages.
        platform: The image's. The version of its C library is not checked.
        view: The image, to see what is installed.

    Raises:
        IntegrityError: The wheel is not sound; see :func:`builder.wheel_archive.read`. It has a
            script with the name of Python.
        PatchError: ``refused``: the tags do not match, another version is installed, a file is
            in the way, or the wheel holds bytecode. ``already-upstream``: the same version is
            installed, with the same bytes.
    """
    _match(WheelName.parse(filename), python, platform, filename=filename)
    wheel = read(source, filename=filename)
    placed = dict(_placed(wheel, python, at=filename))
    for path, content, mode in _scripts(wheel, python, at=filename):
        if path in placed:
            raise IntegrityError(f"{filename}: two scripts for {path!r}")
        placed[path] = (content, mode)
    for path in placed:
        if posixpath.dirname(path) == f"{python.prefix}/bin" and _PYTHON.fullmatch(path):
            raise IntegrityError(f"{filename}: {path!r} would be found for the image's Python")
        if above := next((parent for parent in parents(path) if parent in placed), None):
            raise IntegrityError(f"{filename}: {above!r} is both a file and a directory")
    _check_free(wheel, placed, python, view, filename=filename)
    info = f"{python.packages}/{wheel.dist_info}"
    placed[f"{info}/INSTALLER"] = (Inline(b"builder\n"), 0o644)
    rows = [
        Row(posixpath.relpath(path, python.packages), content.digest, content.size)
        for path, (content, _) in placed.items()
    ]
    rows.append(Row(f"{wheel.dist_info}/RECORD"))
    placed[f"{info}/RECORD"] = (Inline(record.encode(rows)), 0o644)
    return tuple(
        Put(path=path, content=content, mode=mode)
        for path, (content, mode) in sorted(placed.items())
    )


def tags(python: PythonLayout, platform: Platform) -> tuple[Tag, ...]:
    """The wheel tags that fit the image, best first. CPython and glibc are taken for granted.

    Raises:
        ProjectError: No wheels are made for the platform.
    """
    machine = _MACHINES.get(platform.architecture)
    if platform.os != "linux" or machine is None:
        known = ", ".join(f"linux/{name}" for name in _MACHINES)
        raise ProjectError(f"no wheels for platform {str(platform)!r}, wanted one of {known}")
    names = [f"{name}_{machine}" for name in (*_MANYLINUX, *_LEGACY)]
    major, minor = (int(part) for part in python.version.split("."))
    abi = f"cp{major}{minor}"
    exact = cpython_tags((major, minor), abis=[abi], platforms=names)
    return (*exact, *compatible_tags((major, minor), interpreter=abi, platforms=names))


def _match(name: WheelName, python: PythonLayout, platform: Platform, *, filename: str) -> None:
    if name.tags.isdisjoint(tags(python, platform)):
        machine = _MACHINES[platform.architecture]
        abi = f"cp{python.version.replace('.', '')}"
        raise PatchError(
            f"{filename}: tags {', '.join(sorted(map(str, name.tags)))} do not fit Python"
            f" {python.version} on {platform}, which takes {abi}-{abi}-manylinux_2_28_{machine},"
            f" cp38-abi3-manylinux_2_28_{machine}, py3-none-any and the like",
            verdict=Verdict.REFUSED,
            hint="pin the wheel of the image's Python and platform",
        )


def _placed(
    wheel: Wheel, python: PythonLayout, *, at: str
) -> Iterator[tuple[str, tuple[Content, int]]]:
    """Each member with its place in the image, its content and its mode."""
    include = f"{python.prefix}/include/python{python.version}/{wheel.name.project}"
    schemes = {
        "purelib": python.packages,
        "platlib": python.packages,
        "headers": include,
        "scripts": f"{python.prefix}/bin",
        "data": python.prefix,
    }
    seen: set[str] = set()
    for member in wheel.members:
        if member.path.endswith((".pyc", ".pyo")) or "__pycache__" in member.path.split("/"):
            raise PatchError(
                f"{at}: {member.path!r}: bytecode in a wheel",
                verdict=Verdict.REFUSED,
                path=member.path,
                hint="pin a wheel without bytecode; Python makes its own",
            )
        top, _, rest = member.path.partition("/")
        if top == wheel.dist_info and rest in _OURS:
            continue
        if top.endswith(".data") and top != wheel.data:
            raise IntegrityError(f"{at}: {member.path!r}: wanted {wheel.data!r} for its data")
        path, scheme = f"{python.packages}/{member.path}", "purelib"
        if top == wheel.data:
            scheme, _, rest = rest.partition("/")
            if scheme not in schemes or not rest:
                raise IntegrityError(
                    f"{at}: {member.path!r}: no such scheme, wanted one of {sorted(schemes)}"
                )
            path = f"{schemes[scheme]}/{rest}"
        if path in seen:
            raise IntegrityError(f"{at}: {member.path!r}: two members for {path!r}")
        seen.add(path)
        if scheme == "scripts":
            yield path, (_rewritten(member, python), 0o755)
        else:
            yield path, (member, 0o755 if member.executable else 0o644)


def _rewritten(member: Member, python: PythonLayout) -> Content:
    """A script, its first line made to name the image's Python where it says ``#!python``."""
    with member.open() as stream:
        start = stream.read(8)
    if start != b"#!python":
        return member
    _, newline, rest = member.read().partition(b"\n")
    return Inline(f"#!{python.interpreter}".encode() + newline + rest)


def _scripts(wheel: Wheel, python: PythonLayout, *, at: str) -> Iterator[tuple[str, Content, int]]:
    """The scripts that ``entry_points.txt`` declares."""
    data = wheel.metadata("entry_points.txt")
    if data is None:
        return
    at = f"{at}: entry_points.txt"
    parser = configparser.ConfigParser(delimiters=("=",), interpolation=None)
    parser.optionxform = str  # type: ignore[assignment]  # names are case-sensitive
    try:
        parser.read_string(data.decode())
    except (configparser.Error, UnicodeDecodeError) as error:
        raise IntegrityError(f"{at}: cannot be read: {error}") from error
    for section in ("console_scripts", "gui_scripts"):
        for name, value in parser.items(section) if parser.has_section(section) else ():
            match = re.fullmatch(r"([\w.]+)\s*:\s*([\w.]+)\s*(?:\[.*\])?", value.strip())
            if not match or not re.fullmatch(r"[\w][\w.+-]*", name):
                raise IntegrityError(f"{at}: {section}: not an entry point: {name} = {value}")
            module, attribute = match.groups()
            text = _SCRIPT.format(
                interpreter=python.interpreter,
                module=module,
                name=attribute.partition(".")[0],
                attribute=attribute,
            )
            yield f"{python.prefix}/bin/{name}", Inline(text.encode()), 0o755


def _check_free(
    wheel: Wheel,
    placed: dict[str, tuple[Content, int]],
    python: PythonLayout,
    view: View,
    *,
    filename: str,
) -> None:
    """Refuse to write over what is there."""
    project = wheel.name.project
    infos = [name for name in view.children(python.packages) if project_of(name) == project]
    if infos == [wheel.dist_info] and _same(wheel, placed, python, view):
        raise PatchError(
            f"{filename}: {project} {wheel.name.version} is in the image already, with the same"
            " bytes",
            verdict=Verdict.ALREADY_UPSTREAM,
            path=f"{python.packages}/{infos[0]}",
            hint="leave this wheel out",
        )
    if infos:
        raise PatchError(
            f"{filename}: {project} is installed already: {', '.join(map(repr, infos))}",
            verdict=Verdict.REFUSED,
            path=f"{python.packages}/{infos[0]}",
            hint="a wheel replaces nothing; patch the installed files with an overlay",
        )
    for path in _obstacles(placed, view):
        raise PatchError(
            f"{filename}: {path!r} exists in the image and is not of {project}",
            verdict=Verdict.REFUSED,
            path=path,
            hint="a wheel replaces nothing; patch the installed files with an overlay",
        )


def _same(
    wheel: Wheel, placed: dict[str, tuple[Content, int]], python: PythonLayout, view: View
) -> bool:
    """Whether all that the wheel itself holds outside of its ``.dist-info`` is there, unchanged."""
    info = f"{python.packages}/{wheel.dist_info}/"
    for path, (content, _) in placed.items():
        if path.startswith(info) or isinstance(content, Inline):
            continue
        entry = view.stat(path)
        if entry is None or not entry.is_file or entry.digest != content.digest:
            return False
    return True


def _obstacles(paths: Iterable[str], view: View) -> Iterator[str]:
    checked: set[str] = set()
    for path in sorted(paths):
        if view.stat(path) is not None:
            yield path
        for parent in parents(path):
            if parent not in checked:
                checked.add(parent)
                entry = view.stat(parent)
                if entry is not None and entry.is_file:
                    yield parent
