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


def wheel(plugin: GitSubtree, *, at: str) -> tuple[str, bytes]:
    """The file name and the bytes of the wheel.

    Every directory beside ``pyproject.toml`` that has an ``__init__.py`` is a package of it.
    Source: packaging.python.org, "Core metadata specifications" and "Entry points specification".

    Raises:
        ProjectError: ``pyproject.toml`` does not state a name and a version, or has fields that
            only its build backend could fill in; ``at`` names the pin.
    """
    files = {item.path: item.data for item in plugin.files if item.mode != "120000"}
    project = _project(files, at=at)
    name, version = _text(project, "name", at=at), _text(project, "version", at=at)
    try:
        version = str(Version(version))
    except InvalidVersion as error:
        raise ProjectError(f"{at}: {_PROJECT}: {version!r} is not a version") from error
    packages = {path.partition("/")[0] for path in files if path.count("/") == 1} & {
        path.removesuffix("/__init__.py") for path in files if path.endswith("/__init__.py")
    }
    if not packages:
        raise ProjectError(f"{at}: no package beside {_PROJECT}")
    stem = f"{re.sub(r'[-_.]+', '_', name).lower()}-{version}"
    info = f"{stem}.dist-info"
    contents = {
        path: data
        for path, data in files.items()
        if path.partition("/")[0] in packages and "__pycache__" not in path
    }
    contents[f"{info}/METADATA"] = _metadata(project, name, version)
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
        f"{info}/METADATA": _metadata({}, "genesis-hook", "1"),
        f"{info}/WHEEL": _WHEEL,
        f"{info}/entry_points.txt": _entry_points(project, at=stem),
    }
    return f"{stem}-py3-none-any.whl", pack_files(contents, info=info)


def _project(files: Mapping[str, bytes], *, at: str) -> Mapping[str, Any]:
    try:
        document = tomllib.loads(files[_PROJECT].decode())
        project = document["project"]
    except (KeyError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ProjectError(f"{at}: no {_PROJECT} with a 'project' table: {error}") from error
    if not isinstance(project, dict):
        raise ProjectError(f"{at}: {_PROJECT}: 'project' is not a table")
    if project.get("dynamic"):
        raise ProjectError(
            f"{at}: {_PROJECT}: 'dynamic' fields, which its build backend fills in",
            hint="build the plugin as a wheel, and pin that",
        )
    return project


def _text(project: Mapping[str, Any], key: str, *, at: str) -> str:
    value = project.get(key)
    if not isinstance(value, str) or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+!-]*", value):
        raise ProjectError(f"{at}: {_PROJECT}: expected a {key}, got {value!r}")
    return value


def _metadata(project: Mapping[str, Any], name: str, version: str) -> bytes:
    lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
    if isinstance(python := project.get("requires-python"), str):
        lines.append(f"Requires-Python: {python}")
    lines += [f"Requires-Dist: {item}" for item in project.get("dependencies", ())]
    return ("\n".join(lines) + "\n").encode()


def _entry_points(project: Mapping[str, Any], *, at: str) -> bytes:
    groups = {"console_scripts": project.get("scripts", {}), **project.get("entry-points", {})}
    lines: list[str] = []
    for group, entries in sorted(groups.items()):
        if not isinstance(entries, dict):
            raise ProjectError(f"{at}: {_PROJECT}: entry points {group!r} are not a table")
        if entries:
            lines += [f"[{group}]", *(f"{key} = {value}" for key, value in sorted(entries.items()))]
    return ("\n".join(lines) + "\n").encode()
