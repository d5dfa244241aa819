"""What pyproject.toml says of the packages that builder needs, against what builder imports."""

import ast
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def _imported(directory: str) -> dict[str, Path]:
    """The top-level names that a directory imports from outside the project and the standard
    library."""
    found: dict[str, Path] = {}
    template = ROOT / "builder/cli/template"  # a project that init writes, none of our program
    for path in sorted((ROOT / directory).rglob("*.py")):
        if path.is_relative_to(template):
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module is not None:
                names = [node.module]
            else:
                continue
            for name in names:
                found.setdefault(name.partition(".")[0], path.relative_to(ROOT))
    # compression is of the standard library from 3.14 on, and imported only there.
    ours = {"builder", "tests", "tools"}
    for name in {*ours, "_typeshed", "compression", *sys.stdlib_module_names}:
        found.pop(name, None)
    return found


def _declared(*extras: str) -> set[str]:
    project = PROJECT["project"]
    lines = [*project["dependencies"]]
    for extra in extras:
        lines += project["optional-dependencies"][extra]
    return {canonicalize_name(Requirement(line).name) for line in lines}


def test_every_package_that_is_imported_is_declared() -> None:
    providers = packages_distributions()
    for directory, declared in (("builder", _declared()), ("tests", _declared("test"))):
        for name, path in _imported(directory).items():
            owners = {canonicalize_name(owner) for owner in providers.get(name, [name])}
            assert owners & declared, f"{path} imports {name}: declare it in pyproject.toml"


def test_every_package_that_builder_declares_is_imported() -> None:
    providers = packages_distributions()
    used = {owner for name in _imported("builder") for owner in providers.get(name, [name])}
    assert _declared() <= {canonicalize_name(owner) for owner in used}


def test_what_builds_the_project_is_locked_with_what_runs_it() -> None:
    locked = (ROOT / "requirements/build.in").read_text().splitlines()
    wanted = [line for line in locked if not line.startswith("#")]
    assert PROJECT["build-system"]["requires"] == wanted


def test_the_lock_of_the_checks_agrees_with_the_lock_of_the_program() -> None:
    """Installing one after the other must not change what builder runs on."""
    run = _pins(ROOT / "requirements/run.txt")
    dev = _pins(ROOT / "requirements/dev.txt")
    assert {name: dev.get(name) for name in run} == run


def test_the_locks_name_no_package_index() -> None:
    for path in (ROOT / "requirements").glob("*.txt"):
        lines = path.read_text().splitlines()
        assert not [line for line in lines if "://" in line or line.startswith("--")], path.name


def _pins(path: Path) -> dict[str, str]:
    """Each locked package and its version, whatever its marker."""
    lines = [line for line in path.read_text().splitlines() if "==" in line and line[0].isalnum()]
    return dict(line.split()[0].split("==", 1) for line in lines)
