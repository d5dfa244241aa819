"""The wheel of a plugin, installed as any other."""

import zipfile
from dataclasses import replace
from io import BytesIO

import pytest

from builder import wheel
from builder.changes import Put
from builder.errors import ProjectError
from builder.oci import Platform
from builder.ports import GitFile, GitSubtree
from builder.python_layout import PythonLayout
from builder.steps import genesis_plugin
from tests.fakes import TreeView

PYTHON = PythonLayout(
    version="3.12",
    packages="usr/lib/python3.12/dist-packages",
    prefix="usr",
    interpreter="/usr/bin/python3",
)
PROJECT = b"""\
[build-system]
requires = ["setuptools"]
[project]
name = "Our.Plugin"
version = "1.0.dev0"
requires-python = ">=3.10"
dependencies = ["packaging"]
[project.entry-points."vllm.general_plugins"]
ours = "our_plugin:register"
[project.scripts]
ours = "our_plugin:main"
"""

NAMED = b"[project]\nname = 'x'\nversion = '1'\n"


def _plugin(project: bytes) -> GitSubtree:
    files = {
        "README.md": b"read me",
        "our_plugin/__init__.py": b"def register(): ...\n",
        "our_plugin/sub/deep.py": b"",
        "our_plugin/__pycache__/x.pyc": b"",
        "tests/test_it.py": b"",
        "pyproject.toml": project,
    }
    return GitSubtree(
        tree="0" * 40,
        files=tuple(GitFile(path=path, mode="100644", data=files[path]) for path in sorted(files)),
    )


def test_packages_metadata_and_entry_points_are_installed() -> None:
    filename, data = genesis_plugin.wheel(_plugin(PROJECT), at="pin")
    changes = wheel.install(
        data,
        filename=filename,
        python=PYTHON,
        platform=Platform("linux", "amd64"),
        view=TreeView({PYTHON.packages + "/x.py": b""}),
    )
    content = {
        change.path.removeprefix(f"{PYTHON.packages}/"): change.content.open().read()
        for change in changes
        if isinstance(change, Put)
    }
    info = "our_plugin-1.0.dev0.dist-info"

    assert filename == "our_plugin-1.0.dev0-py3-none-any.whl"
    assert content["our_plugin/__init__.py"] == b"def register(): ...\n"
    assert content["our_plugin/sub/deep.py"] == b""
    assert content[f"{info}/METADATA"] == (
        b"Metadata-Version: 2.1\nName: Our.Plugin\nVersion: 1.0.dev0\n"
        b"Requires-Python: >=3.10\nRequires-Dist: packaging\n"
    )
    assert content[f"{info}/entry_points.txt"] == (
        b"[console_scripts]\nours = our_plugin:main\n"
        b"[vllm.general_plugins]\nours = our_plugin:register\n"
    )
    assert content["usr/bin/ours"].startswith(b"#!/usr/bin/python3\n")
    assert not [path for path in content if "pycache" in path or "README" in path]
    assert not [path for path in content if path.startswith("tests")]


def test_the_same_files_give_the_same_bytes() -> None:
    assert genesis_plugin.wheel(_plugin(PROJECT), at="") == genesis_plugin.wheel(
        _plugin(PROJECT), at=""
    )


@pytest.mark.parametrize(
    ("project", "message"),
    [
        (b"", "no pyproject.toml with a 'project' table"),
        (b"[project", "no pyproject.toml with a 'project' table"),
        (b"project = 1", "'project' is not a table"),
        (b"[project]\nname = 'x'\ndynamic = ['version']", "'dynamic' fields"),
        (b"[project]\nname = 'x'", "expected a version, got None"),
        (b"[project]\nname = 'x/y'\nversion = '1'", "expected a name, got 'x/y'"),
        (b"[project]\nname = 'x'\nversion = '1_'", "expected a version, got '1_'|not a version"),
        (b"[project]\nname='x'\nversion='1'\n[project.entry-points]\na='b'", "are not a table"),
        (b"\xff", "no pyproject.toml with a 'project' table"),
        (b"x = " + 20_000 * b"[", "no pyproject.toml with a 'project' table"),
        (b"[project]\nname = 'x'\nversion = '%b'" % (5000 * b"1"), "expected a version, got '111"),
        (b"[project]\nname = 'x\\ny'\nversion = '1'", r"expected a name, got 'x\\\\ny'"),
        (
            b"[project]\nname = 'vLLM'\nversion = '1'",
            "'vLLM' is the name of what it is a plugin of",
        ),
        (NAMED + b"entry-points = []", "entry-points are not a table"),
        (NAMED + b"scripts = ['a']", "entry points 'console_scripts' are not a table"),
        (NAMED + b"dependencies = 'torch'", "'dependencies' are not a list"),
        (NAMED + b"dependencies = [1]", "expected a dependency, got 1"),
        (NAMED + b'dependencies = ["a\\nName: b"]', "expected a dependency"),
        (NAMED + b'requires-python = "3\\n\\nx"', "expected versions as 'requires-python'"),
        (NAMED + b"requires-python = 3", "expected versions as 'requires-python', got 3"),
        (NAMED + b'entry-points."a]\\n[b" = {k = "x:y"}', "expected a group of entry points"),
        (NAMED + b'entry-points.a."k\\nl" = "x:y"', "expected the name of an entry point"),
        (NAMED + b'entry-points.a."k = l" = "x:y"', "expected the name of an entry point"),
        (NAMED + b'entry-points.a.k = "x:y\\n[b]"', "expected MODULE:FUNCTION"),
        (NAMED + b"entry-points.a.k = 2020-01-01", "expected MODULE:FUNCTION"),
        (NAMED + b"entry-points.console_scripts.k = 'x:y'", "'console_scripts' stand under"),
    ],
)
def test_what_it_does_not_say_is_not_guessed(project: bytes, message: str) -> None:
    with pytest.raises(ProjectError, match=message):
        genesis_plugin.wheel(_plugin(project), at="pin")


def test_a_plugin_without_a_package_is_refused() -> None:
    only = GitSubtree(
        tree="0" * 40, files=(GitFile(path="pyproject.toml", mode="100644", data=PROJECT),)
    )

    with pytest.raises(ProjectError, match=r"pin: no package beside pyproject\.toml"):
        genesis_plugin.wheel(only, at="pin")


@pytest.mark.parametrize(
    "name", ["our_plugin/\udcff.py", "our_plugin/a\nb.py", "our_plugin/a\\b.py"]
)
def test_a_name_that_no_wheel_can_hold_is_refused(name: str) -> None:
    odd = GitFile(path=name, mode="100644", data=b"")
    plugin = _plugin(PROJECT)

    with pytest.raises(ProjectError, match="no wheel can hold a file of this name"):
        genesis_plugin.wheel(replace(plugin, files=(*plugin.files, odd)), at="pin")


def test_a_directory_that_cannot_be_imported_is_no_package() -> None:
    """Least of all one that a wheel would take for something else."""
    project = GitFile(path="pyproject.toml", mode="100644", data=PROJECT)
    files = (
        GitFile(path=f"{name}/__init__.py", mode="100644", data=b"")
        for name in ("our_plugin", "our_plugin-1.0.dev0.data", "x-1.dist-info")
    )
    _, data = genesis_plugin.wheel(GitSubtree(tree="0" * 40, files=(*files, project)), at="pin")

    with zipfile.ZipFile(BytesIO(data)) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    assert tops == {"our_plugin", "our_plugin-1.0.dev0.dist-info"}
