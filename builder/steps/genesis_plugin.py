"""The plugin of a patch set, as the wheel that its build backend would make of it.

A worker process finds it through its entry points, which is why it has to be installed: a
``.dist-info`` that says so, and no editable link to a directory that the image does not have.
"""

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from packaging.version import InvalidVersion, Version

from builder.errors import ProjectError
from builder.genesis.eras import PLUGIN_GROUP, PLUGIN_NAME
from builder.ports import GitSubtree
from builder.wheel_pack import pack_files

_PROJECT = "pyproject.toml"
_WHEEL = b"Wheel-Version: 1.0\nGenerator: builder\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,99}")
_ANY = re.compile(r".{1,1000}")
# packaging.python.org, "Entry points specification", "Data model".
_GROUP = re.compile(r"\w+(?:\.\w+)*")
_KEY = re.compile(r"\w(?:[\w.-]*\w)?")
_REFERENCE = re.compile(r"\w+(?:\.\w+)*(?:\s*:\s*\w+(?:\.\w+)*)?(?:\s*\[[\w\s,.-]*\])?")


def wheel(plugin: GitSubtree, *, at: str) -> tuple[str, bytes]:
    """The file name and the bytes of the wheel.

    Every directory beside ``pyproject.toml`` that has an ``__init__.py`` is a package of it.
    Source: packaging.python.org, "Core metadata specifications", "Entry points specification" and
    "pyproject.toml specification".

    Raises:
        ProjectError: ``pyproject.toml`` does not state a name and a version, has fields that only
            its build backend could fill in, or texts that are not what they must be; a file has a
            name that no wheel can hold. ``at`` names the pin.
    """
    files = {item.path: item.data for item in plugin.files if item.mode != "120000"}
    project = _project(files, at=at)
    name, version = _name(project, at=at), _version(project, at=at)
    packages = {path.partition("/")[0] for path in files if path.count("/") == 1} & {
        path.removesuffix("/__init__.py") for path in files if path.endswith("/__init__.py")
    }
    packages = {package for package in packages if package.isidentifier()}
    if not packages:
        raise ProjectError(f"{at}: no package beside {_PROJECT}")
    stem = f"{re.sub(r'[-_.]+', '_', name).lower()}-{version}"
    info = f"{stem}.dist-info"
    contents = {
        _member(path, at=at): data
        for path, data in files.items()
        if path.partition("/")[0] in packages and "__pycache__" not in path.split("/")
    }
    contents[f"{info}/METADATA"] = _metadata(project, name, version, at=at)
    contents[f"{info}/WHEEL"] = _WHEEL
    contents[f"{info}/entry_points.txt"] = _entry_points(project, at=at)
    return f"{stem}-py3-none-any.whl", pack_files(contents, info=info)


def hook(entry: str) -> tuple[str, bytes]:
    """The file name and the bytes of a wheel that only says what workers shall call: for payloads
    that hold their plugin. ``entry`` is ``package.module:function``."""
    stem = "genesis_hook-1"
    info = f"{stem}.dist-info"
    project = {"entry-points": {PLUGIN_GROUP: {PLUGIN_NAME: entry}}}
    contents = {
        f"{info}/METADATA": _metadata({}, "genesis-hook", "1", at=stem),
        f"{info}/WHEEL": _WHEEL,
        f"{info}/entry_points.txt": _entry_points(project, at=stem),
    }
    return f"{stem}-py3-none-any.whl", pack_files(contents, info=info)


def _project(files: Mapping[str, bytes], *, at: str) -> Mapping[str, Any]:
    try:
        document = tomllib.loads(files[_PROJECT].decode())
        project = document["project"]
    except (KeyError, ValueError, RecursionError) as error:
        raise ProjectError(f"{at}: no {_PROJECT} with a 'project' table: {error}") from error
    if not isinstance(project, dict):
        raise ProjectError(f"{at}: {_PROJECT}: 'project' is not a table")
    if project.get("dynamic"):
        raise ProjectError(
            f"{at}: {_PROJECT}: 'dynamic' fields, which its build backend fills in",
            hint="build the plugin as a wheel, and pin that",
        )
    return project


def _name(project: Mapping[str, Any], *, at: str) -> str:
    name = _text(project.get("name"), _NAME, what="a name", at=at)
    if re.sub(r"[-_.]+", "-", name).lower() == "vllm":
        raise ProjectError(f"{at}: {_PROJECT}: {name!r} is the name of what it is a plugin of")
    return name


def _version(project: Mapping[str, Any], *, at: str) -> str:
    version = _text(project.get("version"), _NAME, what="a version", at=at)
    try:
        return str(Version(version))
    except InvalidVersion as error:
        raise ProjectError(f"{at}: {_PROJECT}: {version!r} is not a version") from error


def _member(path: str, *, at: str) -> str:
    """A path that RECORD and a zip can hold as it is."""
    if not path.isprintable() or "\\" in path:
        raise ProjectError(f"{at}: {path!r}: no wheel can hold a file of this name")
    return path


def _text(text: object, form: re.Pattern[str], *, what: str, at: str) -> str:
    """A text of this form, on one line: what follows a line feed would say something else."""
    if not isinstance(text, str) or not text.isprintable() or not form.fullmatch(text):
        raise ProjectError(f"{at}: {_PROJECT}: expected {what}, got {text!r:.100}")
    return text


def _metadata(project: Mapping[str, Any], name: str, version: str, *, at: str) -> bytes:
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    if (python := project.get("requires-python")) is not None:
        python = _text(python, _ANY, what="versions as 'requires-python'", at=at)
        lines.append(f"Requires-Python: {python}")
    required = project.get("dependencies", [])
    if not isinstance(required, list):
        raise ProjectError(f"{at}: {_PROJECT}: 'dependencies' are not a list")
    needed = (_text(item, _ANY, what="a dependency", at=at) for item in required)
    lines += [f"Requires-Dist: {item}" for item in needed]
    return ("\n".join(lines) + "\n").encode()


def _entry_points(project: Mapping[str, Any], *, at: str) -> bytes:
    others = _table(project.get("entry-points", {}), "entry-points", at=at)
    groups = {
        "console_scripts": project.get("scripts", {}),
        "gui_scripts": project.get("gui-scripts", {}),
    }
    if twice := sorted(groups.keys() & others.keys()):
        raise ProjectError(
            f"{at}: {_PROJECT}: {twice[0]!r} stand under 'scripts' or 'gui-scripts', not under"
            " 'entry-points'"
        )
    lines: list[str] = []
    for group, entries in sorted({**groups, **others}.items()):
        _text(group, _GROUP, what="a group of entry points", at=at)
        if table := _table(entries, f"entry points {group!r}", at=at):
            lines.append(f"[{group}]")
        for key, reference in sorted(table.items()):
            _text(key, _KEY, what="the name of an entry point", at=at)
            _text(reference, _REFERENCE, what="MODULE:FUNCTION", at=at)
            lines.append(f"{key} = {reference}")
    return ("\n".join(lines) + "\n").encode()


def _table(table: object, what: str, *, at: str) -> dict[str, Any]:
    if not isinstance(table, dict):
        raise ProjectError(f"{at}: {_PROJECT}: {what} are not a table")
    return table
