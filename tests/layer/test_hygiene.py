"""``builder.hygiene``: which compiled files go, and which modules stand in the way."""

import importlib.util
import sys

import pytest

from builder.errors import PatchError, ProjectError
from builder.hygiene import refuse_shadows, stale_bytecode
from builder.tree import Entry, Kind
from tests.fakes import Link, TreeView


def tree(*paths: str) -> TreeView:
    return TreeView(dict.fromkeys(paths, b""))


def test_every_compiled_file_of_a_changed_module_goes_and_no_other() -> None:
    view = tree(
        "p/m.py",
        "p/m.pyc",
        "p/m.pyo",
        "p/__pycache__/m.cpython-311.pyc",
        "p/__pycache__/m.cpython-312.opt-1.pyc",
        "p/__pycache__/m.cpython-312.opt-2.pyc",
        "p/__pycache__/m.cpython-312.pyc",
        "p/__pycache__/m.cpython-312-pytest-8.0.0.pyc",
        "p/__pycache__/m.pypy310.pyc",
        "p/__pycache__/m.fill-3.py312.1.nbc",
        "p/__pycache__/m.fill-3.py312.nbi",
        "p/__pycache__/m.txt",
        "p/__pycache__/m2.cpython-312.pyc",
        "p/__pycache__/n.cpython-312.pyc",
        "p/n.pyc",
        "__pycache__/m.cpython-312.pyc",
    )
    assert stale_bytecode(["p/m.py"], view) == (
        "p/__pycache__/m.cpython-311.pyc",
        "p/__pycache__/m.cpython-312-pytest-8.0.0.pyc",
        "p/__pycache__/m.cpython-312.opt-1.pyc",
        "p/__pycache__/m.cpython-312.opt-2.pyc",
        "p/__pycache__/m.cpython-312.pyc",
        "p/__pycache__/m.fill-3.py312.1.nbc",
        "p/__pycache__/m.fill-3.py312.nbi",
        "p/__pycache__/m.pypy310.pyc",
        "p/m.pyc",
        "p/m.pyo",
    )


def test_a_package_is_its_init() -> None:
    view = tree("p/__pycache__/__init__.cpython-312.pyc", "p/__init__.pyc", "p/__init__.py")
    assert stale_bytecode(["p/__init__.py"], view) == (
        "p/__init__.pyc",
        "p/__pycache__/__init__.cpython-312.pyc",
    )


def test_a_new_module_takes_the_place_of_one_without_source() -> None:
    assert stale_bytecode(["p/m.py"], tree("p/m.pyc")) == ("p/m.pyc",)


def test_a_module_in_the_root_and_one_in_a_new_directory_are_no_exceptions() -> None:
    view = tree("__pycache__/m.cpython-312.pyc")
    assert stale_bytecode(["m.py", "q/r/m.py"], view) == ("__pycache__/m.cpython-312.pyc",)


def test_what_the_step_itself_writes_or_removes_is_not_named_again() -> None:
    view = tree("p/m.py", "p/__pycache__/m.cpython-312.pyc", "p/m.pyc")
    changed = ["p/m.py", "p/__pycache__/m.cpython-312.pyc"]
    assert stale_bytecode(changed, view) == ("p/m.pyc",)


@pytest.mark.parametrize("path", ["p/m.txt", "p/m.pyi", "p/m.so", "p/.py", "p/m"])
def test_files_that_are_no_modules_have_no_bytecode(path: str) -> None:
    view = tree("p/__pycache__/m.cpython-312.pyc", "p/m.pyc", "p/__pycache__/.cpython-312.pyc")
    assert stale_bytecode([path], view) == ()


def test_links_are_followed_to_where_the_files_are() -> None:
    view = TreeView(
        {
            "lib": Link("usr/lib"),
            "usr/lib/m.py": b"",
            "usr/lib/__pycache__": Link("/var/pyc"),
            "var/pyc/m.cpython-312.pyc": b"",
            "var/pyc/m.cpython-313.pyc": Link("elsewhere"),
            "var/pyc/m.cpython-314.pyc": Entry(path="", kind=Kind.DIRECTORY),
        }
    )
    assert stale_bytecode(["lib/m.py"], view) == (
        "var/pyc/m.cpython-312.pyc",
        "var/pyc/m.cpython-313.pyc",
    )


def test_a_cache_prefix_holds_what_python_files_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "pycache_prefix", "/var/cache/pyc")
    cached = importlib.util.cache_from_source("/lib/q/m.py").lstrip("/")
    by_real_name = importlib.util.cache_from_source("/usr/lib/q/m.py").lstrip("/")
    view = TreeView({"lib": Link("usr/lib"), "usr/lib/q/m.py": b"", cached: b"", by_real_name: b""})
    prefixes = ("/var/cache/pyc/",)
    assert cached.startswith("var/cache/pyc/lib/q/m.")
    assert stale_bytecode(["lib/q/m.py"], view) == ()
    assert stale_bytecode(["lib/q/m.py"], view, prefixes=prefixes) == (cached, by_real_name)


def test_a_relative_cache_prefix_is_refused() -> None:
    with pytest.raises(ProjectError) as caught:
        stale_bytecode(["m.py"], tree(), prefixes=("cache",))
    assert caught.value.message == "PYTHONPYCACHEPREFIX: expected an absolute path, got 'cache'"


SHADOWS = [
    "p/m.so",
    "p/m.abi3.so",
    "p/m.cpython-312-x86_64-linux-gnu.so",
    "p/m/__init__.py",
    "p/m/__init__.pyc",
    "p/m/__init__.abi3.so",
]


@pytest.mark.parametrize("shadow", SHADOWS)
def test_a_module_that_python_would_pass_over_is_refused(shadow: str) -> None:
    with pytest.raises(PatchError) as caught:
        refuse_shadows(["p/m.py"], tree("p/m.py", shadow), at="step 3")
    error = caught.value
    assert error.message == (
        f"step 3: 'p/m.py' would never be imported, {shadow!r} comes before it"
    )
    assert error.hint == f"change or remove {shadow!r} in the same step, or leave 'p/m.py' alone"
    assert (error.verdict, error.path) == ("refused", "p/m.py")


@pytest.mark.parametrize("shadow", SHADOWS)
def test_what_the_step_itself_replaces_or_removes_is_no_shadow(shadow: str) -> None:
    view = tree("p/m.py", shadow)
    refuse_shadows(["p/m.py", shadow], view)
    refuse_shadows(["p/m.py"], view, removed=[shadow])


def test_bytecode_that_goes_with_its_source_is_no_shadow() -> None:
    view = tree("p/m/__init__.py", "p/m/__init__.pyc")
    changed = ("p/m.py", "p/m/__init__.py")
    refuse_shadows(changed[:1], view, removed=changed[1:])
    assert stale_bytecode(changed, view) == ("p/m/__init__.pyc",)


@pytest.mark.parametrize(
    "neighbour",
    ["p/m.x.y.so", "p/m2.abi3.so", "p/libm.so", "p/m.so.1", "p/m/data.txt", "p/m/__init__.pyi"],
)
def test_a_neighbour_that_python_does_not_prefer_is_no_shadow(neighbour: str) -> None:
    refuse_shadows(["p/m.py"], tree("p/m.py", neighbour))


def test_a_compiled_package_is_a_shadow_of_its_own_init() -> None:
    with pytest.raises(PatchError, match=r"'p/__init__.abi3.so' comes before it"):
        refuse_shadows(["p/__init__.py"], tree("p/__init__.py", "p/__init__.abi3.so"))


def test_an_extension_may_remain_where_its_source_goes() -> None:
    refuse_shadows([], tree("p/m.py", "p/m.abi3.so"), removed=["p/m.py"])


def test_a_new_extension_beside_an_old_source_is_what_the_step_means() -> None:
    refuse_shadows(["p/m.abi3.so"], tree("p/m.py"))


def test_a_directory_named_init_is_no_package_for_an_init() -> None:
    refuse_shadows(["p/__init__.py"], tree("p/__init__.py", "p/__init__/__init__.py"))
