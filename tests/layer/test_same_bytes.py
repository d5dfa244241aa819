"""The same layer on every machine: umask, TZ, locale, hash seed, directory, Python, order."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.layer.worlds import INTERPRETERS

HERE = Path(__file__).parents[2]
SCRIPT = """
import io, random, sys
from builder.changes import Inline, Put, Remove, Symlink
from builder.digest import Digest
from builder.hygiene import stale_bytecode
from builder.layer import compose, write
from tests.fakes import File, Link, TreeView

class Writer(io.BytesIO):
    def commit(self, expected=None, *, size=None):
        return Digest.of(self.getvalue())

base = {f"lib/p{n}/m.py": File(b"old", mode=0o640, uid=n) for n in range(20)}
base |= {f"lib/p{n}/__pycache__/m.cpython-3{k}.pyc": b"" for n in range(20) for k in range(3)}
view = TreeView({**base, "l": Link("lib")})
changes = [Put(path=f"l/p{n}/m.py", content=Inline(b"%d" % n)) for n in range(20)]
names = [f"new/{n % 3}/gr\\u00fcn-{n}\\udcff" for n in range(9)]
changes += [Put(path=name, content=Inline(name[:5].encode())) for name in names]
changes += [Symlink(path="new/link", target="\\u00e4")]
changes += [Remove(path=path) for path in stale_bytecode([c.path for c in changes], view)]
random.Random(sys.argv[1]).shuffle(changes)
layer = write(compose(changes, view), Writer())
print(layer.diff_id, layer.digest, layer.size, len(layer.entries), len(layer.whiteouts))
"""


def build(
    python: str = sys.executable,
    *,
    order: str = "0",
    umask: int = 0o022,
    cwd: Path = HERE,
    **env: str,
) -> str:
    done = subprocess.run(
        [python, "-c", SCRIPT, order],
        # No bytecode: under these umasks nobody could read it afterwards.
        env={
            "PYTHONPATH": str(HERE),
            "PATH": os.environ["PATH"],
            "PYTHONDONTWRITEBYTECODE": "1",
            **env,
        },
        cwd=cwd,
        umask=umask,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.fixture(scope="module")
def usual() -> str:
    return build()


def test_the_world_has_something_of_everything(usual: str) -> None:
    assert usual.split()[3:] == ["34", "60"]


@pytest.mark.parametrize("python", INTERPRETERS.values(), ids=INTERPRETERS)
def test_another_python_gives_the_same_bytes(usual: str, python: str) -> None:
    assert build(python) == usual


@pytest.mark.parametrize("order", ["1", "2", "3"])
def test_another_order_gives_the_same_bytes(usual: str, order: str) -> None:
    assert build(order=order, PYTHONHASHSEED=order) == usual


def test_another_machine_gives_the_same_bytes(usual: str, tmp_path: Path) -> None:
    assert build(umask=0o777, cwd=tmp_path, TZ="Asia/Kathmandu", SOURCE_DATE_EPOCH="1") == usual
    assert build(umask=0, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", TZ="UTC+12") == usual
    assert build(LC_ALL="tr_TR.UTF-8", HOME=str(tmp_path), USER="nobody") == usual
