"""No old code may run: layers over compiled trees, imported by real interpreters.

Sizes and mtimes are equal throughout, as they are in an image whose files have a fixed mtime:
that is what makes a compiled file of the old text pass for one of the new. Each test first shows
that the old code runs without the care that it is about.
"""

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

import pytest

from builder.changes import Change, Inline, Put, Remove
from builder.errors import PatchError
from builder.hygiene import refuse_shadows, stale_bytecode
from builder.tree import EPOCH
from tests.fakes import Link, TreeView
from tests.layer.worlds import INTERPRETERS, extract, made, view_of

COMPILE = """
import py_compile, sys
from importlib.util import cache_from_source
mode, optimization, where = sys.argv[1:]
cached = "site/m.pyc" if where == "legacy" else cache_from_source(
    "site/m.py", optimization=optimization)
py_compile.compile("site/m.py", cfile=cached, doraise=True, optimize=int(optimization or 0),
    invalidation_mode=py_compile.PycInvalidationMode[mode])
"""
NEW = Put(path="site/m.py", content=Inline(b"X = 640\n"))
GONE = Remove(path="site/m.py")

pytestmark = pytest.mark.parametrize("python", INTERPRETERS.values(), ids=INTERPRETERS)


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A tree with one module, old enough to be in an image."""
    module = tmp_path / "base/site/m.py"
    module.parent.mkdir(parents=True)
    module.write_text("X = 128\n")
    os.utime(module, (EPOCH, EPOCH))
    return tmp_path / "base"


def run(python: str, root: Path, *arguments: str, **more: str) -> str:
    """Run an interpreter that writes and reads bytecode, whatever our own environment says."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(root / "site"), **more}
    assert "PYTHONDONTWRITEBYTECODE" not in environment
    done = subprocess.run(
        [python, *arguments],
        cwd=root,
        check=False,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    return "".join(done.stdout.splitlines()[-1:])


def imported(python: str, root: Path, *flags: str, **more: str) -> str:
    return run(python, root, *flags, "-c", "import m; print(m.X)", **more)


def compile_base(
    python: str, base: Path, mode: str, optimization: str = "", where: str = "", **more: str
) -> None:
    assert run(python, base, "-c", COMPILE, mode, optimization, where, **more) == ""
    assert len(list(base.rglob("m.*pyc"))) == 1


def over(base: Path, name: str, *changes: Change) -> Path:
    """A copy of the base with a layer of these changes over it."""
    root = base.with_name(name)
    shutil.copytree(base, root, symlinks=True)
    _, blob = made(changes, view_of(base))
    extract(blob, root)
    return root


def clean(changes: tuple[Change, ...], view: TreeView) -> tuple[Change, ...]:
    """The changes, and the removal of what is compiled from what they change."""
    stale = stale_bytecode([change.path for change in changes], view)
    return (*changes, *(Remove(path=path) for path in stale))


CACHES = [
    pytest.param("TIMESTAMP", "", (), "128", id="timestamp"),
    pytest.param("UNCHECKED_HASH", "", (), "128", id="unchecked hash"),
    pytest.param("CHECKED_HASH", "", (), "640", id="checked hash, which is harmless"),
    pytest.param("TIMESTAMP", "1", ("-O",), "128", id="optimised"),
    pytest.param("UNCHECKED_HASH", "2", ("-OO",), "128", id="optimised more"),
]


@pytest.mark.parametrize("mode, optimization, flags, careless", CACHES)
def test_an_edit_that_keeps_the_size_is_what_runs(
    python: str, base: Path, mode: str, optimization: str, flags: tuple[str, ...], careless: str
) -> None:
    compile_base(python, base, mode, optimization)
    assert imported(python, over(base, "careless", NEW), *flags) == careless
    root = over(base, "clean", *clean((NEW,), view_of(base)))
    assert list(root.rglob("*.pyc")) == []
    assert imported(python, root, *flags) == "640"
    assert (root / "site/m.py").stat().st_mtime == EPOCH


def test_a_module_that_is_removed_is_gone(python: str, base: Path) -> None:
    compile_base(python, base, "TIMESTAMP", where="legacy")
    assert imported(python, over(base, "careless", GONE)) == "128"
    root = over(base, "clean", *clean((GONE,), view_of(base)))
    assert imported(python, root) == "ModuleNotFoundError: No module named 'm'"


def test_a_module_without_source_gives_way_to_a_new_one(python: str, base: Path) -> None:
    compile_base(python, base, "UNCHECKED_HASH", where="legacy")
    (base / "site/m.py").unlink()
    assert imported(python, base) == "128"
    root = over(base, "clean", *clean((NEW,), view_of(base)))
    assert list(root.rglob("*.pyc")) == []
    assert imported(python, root) == "640"


def test_a_cache_under_a_prefix_is_no_hiding_place(python: str, base: Path) -> None:
    """The prefix files a source under its absolute path. The image's root is not that of this
    machine, so a link in the view makes the two names of the directory one."""
    prefix = base / "pyc"
    environment: Mapping[str, str] = {"PYTHONPYCACHEPREFIX": str(prefix)}
    compile_base(python, base, "UNCHECKED_HASH", **environment)
    assert not list((base / "site").rglob("*.pyc"))
    careless = over(base, "careless", NEW)
    here = str(base / "site").lstrip("/")
    view = TreeView({**view_of(base).tree, here: Link("/site")})
    stale = stale_bytecode([f"{here}/m.py"], view, prefixes=("/pyc",))
    assert [path.startswith(f"pyc/{here}/m.") for path in stale] == [True]

    def runs_in_place_of_the_base(root: Path) -> str:
        shutil.rmtree(base)
        shutil.copytree(root, base)
        return imported(python, base, **environment)

    cleaned = over(base, "clean", NEW, *(Remove(path=path) for path in stale))
    assert runs_in_place_of_the_base(careless) == "128"
    assert runs_in_place_of_the_base(cleaned) == "640"


def test_what_python_prefers_to_a_source_is_what_is_refused(python: str, base: Path) -> None:
    """The interpreter's own finder is asked, for each name that it takes for an extension."""
    suffixes = run(python, base, "-c", "import _imp; print(*_imp.extension_suffixes())").split()
    assert len(suffixes) >= 3
    find = "import importlib.util as u; print(u.find_spec('m').origin)"
    packages = ["m/__init__.py", *(f"m/__init__{suffix}" for suffix in suffixes)]
    for shadow in (*packages, *(f"m{suffix}" for suffix in suffixes)):
        file = base / "site" / shadow
        file.parent.mkdir(exist_ok=True)
        file.touch()
        assert run(python, base, "-c", find) == str(file)
        with pytest.raises(PatchError) as caught:
            refuse_shadows(["site/m.py"], view_of(base))
        assert f"'site/{shadow}' comes before it" in caught.value.message
        file.unlink()
    assert run(python, base, "-c", find) == str(base / "site/m.py")
    refuse_shadows(["site/m.py"], view_of(base))
