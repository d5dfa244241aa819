"""The harness, run as the sandbox runs it, on patch sets of a few lines."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from builder.genesis.program import HARNESS
from builder.genesis.said import Said, ended, parse

_LOG = "import logging\nlog = logging.getLogger('genesis.apply_all')\n"


def _bake(
    tmp_path: Path, module: str, *, environment: dict[str, str] | None = None, **told: Any
) -> tuple[subprocess.CompletedProcess[bytes], tuple[Said, ...]]:
    """Run ``module`` as ``vllm._set.apply`` over a package of one file."""
    package = tmp_path / "packages" / "vllm"
    (package / "_set").mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('start-up code')\n")
    (package / "config.py").write_text("SIZE = 1\n")
    (package / "_set" / "__init__.py").write_text("")
    (package / "_set" / "apply.py").write_text(module)
    (tmp_path / "harness.py").write_bytes(HARNESS)
    bake = {
        "packages": str(tmp_path / "packages"),
        "module": "vllm._set.apply",
        "version": "0.22.0",
        "vendor": "cuda",
        "capability": [8, 6],
        "stand_ins": {"torch": "2.11.0"},
        **told,
    }
    (tmp_path / "bake.json").write_text(json.dumps(bake))
    done = subprocess.run(
        [sys.executable, "-s", "-S", "-P", "-B", tmp_path / "harness.py", tmp_path / "bake.json"],
        capture_output=True,
        env=environment or {},
        check=False,
        timeout=60,
    )
    return done, parse(done.stdout)


def test_each_patch_is_told_with_what_was_written_on_its_account(tmp_path: Path) -> None:
    done, said = _bake(
        tmp_path,
        _LOG
        + """
import os, pathlib, vllm
root = pathlib.Path(vllm.__file__).parent
print("printed by the patch set")
(root / "config.py").write_text("SIZE = 2\\n")
log.info("[Genesis] applied: %s — %s", "P1 bigger — much bigger", "done — really")
log.info("[Genesis] skipped: %s — %s", "P2", "opt-in")
(root / "new.tmp").write_text("x")
os.replace(root / "new.tmp", root / "new.py")
log.warning("[Genesis] DRIFT skipped: %s — %s", "P3", "required_anchor_missing")
log.error("[Genesis] FAILED: %s — %s", "P4", "no")
try:
    raise KeyError("k")
except KeyError:
    log.exception("[Genesis] EXCEPTION in %s", "P5")
raise SystemExit(1)
""",
    )
    where = f"{tmp_path}/packages/vllm"[1:]

    assert done.returncode == 1
    assert b"printed by the patch set" in done.stderr
    assert [(item.name, item.says, item.reason) for item in said] == [
        ("P1", "applied", "done — really"),
        ("P2", "skipped", "opt-in"),
        ("P3", "skipped", "required_anchor_missing"),
        ("P4", "failed", "no"),
        ("P5", "failed", "KeyError: 'k'"),
    ]
    assert said[0].title == "P1 bigger — much bigger"
    assert [item.wrote for item in said] == [
        (f"{where}/config.py",),
        (),
        (f"{where}/new.tmp", f"{where}/new.py"),
        (),
        (),
    ]


def test_what_a_patch_set_decides_by_is_what_the_recipe_says(tmp_path: Path) -> None:
    done, said = _bake(
        tmp_path,
        _LOG
        + """
import os, sys, vllm
from vllm.platforms import current_platform as p
facts = [vllm.__version__, p.is_cuda(), p.is_rocm(), tuple(p.get_device_capability()),
         p.get_device_capability().minor,
         p.has_device_capability(80), p.has_device_capability((9, 0)),
         sys.argv, os.environ.get("GENESIS_FORCE_SPEC_DECODE"), sys.flags.dont_write_bytecode]
log.info("[Genesis] applied: %s — %s", "P1", facts)
""",
        environment={"GENESIS_FORCE_SPEC_DECODE": "mtp"},
    )

    assert done.returncode == 0, done.stderr
    assert said[0].reason == str(
        ["0.22.0", True, False, (8, 6), 6, True, False, ["vllm._set.apply"], "mtp", 1]
    )


def test_torch_is_a_stand_in_that_can_be_named_called_and_inherited_from(tmp_path: Path) -> None:
    done, said = _bake(
        tmp_path,
        _LOG
        + """
import torch
from torch.nn import Module
import torch.nn.functional as F

class Layer(Module):
    def __init__(self, width):
        self.width = width

@torch.compile
def one():
    return 1

@torch.library.custom_op("a::b", mutates_args=())
def two():
    return 2

def typed(x: list[int] | torch.Tensor | None = None) -> torch.Tensor:
    return x

with torch.no_grad():
    pass
facts = [torch.__version__, bool(torch.cuda.is_available()), list(torch.cuda.devices()),
         Layer(3).width, one(), two(), isinstance(Layer(1), Module), len(F.x),
         torch.tensor[0] is not None]
try:
    import numpy
except ImportError as error:
    facts.append(type(error).__name__)
log.info("[Genesis] applied: %s — %s", "P1", facts)
""",
    )

    assert done.returncode == 0, done.stderr
    assert said[0].reason == str(
        ["2.11.0", False, [], 3, 1, 2, True, 0, True, "ModuleNotFoundError"]
    )


def test_nothing_is_told_of_what_is_written_elsewhere(tmp_path: Path) -> None:
    _, said = _bake(
        tmp_path,
        _LOG
        + f"""
open({str(tmp_path / "elsewhere")!r}, "w").close()
open({str(tmp_path / "packages/vllm/config.py")!r}).close()
log.info("[Genesis] applied: %s — %s", "P1", "")
""",
    )

    assert said[0].wrote == ()


def test_a_line_without_arguments_of_its_own_is_told_all_the_same(tmp_path: Path) -> None:
    """Whatever begins like the word of a patch is one: what is not told is lost."""
    _, said = _bake(
        tmp_path,
        _LOG
        + """
log.info("[Genesis] applied: P1 wide — done — really")
log.info("[Genesis] skipped: %(name)s — %(why)s", {"name": "P2", "why": "opt-in"})
log.warning("[Genesis] FAILED: %(name)s — %(why)s", {"name": "P3"})
log.error("[Genesis] EXCEPTION in P4")
""",
    )

    assert [(item.title, item.says, item.reason) for item in said] == [
        ("P1 wide", "applied", "done — really"),
        ("P2", "skipped", "opt-in"),
        ("%(name)s", "failed", "%(why)s"),
        ("P4", "failed", ""),
    ]


@pytest.mark.parametrize(
    ("last", "whole"),
    [
        pytest.param("raise SystemExit(2)", True, id="an exit status"),
        pytest.param("raise RuntimeError", True, id="an exception"),
        pytest.param("import os; os.fork() or exit(0); os.wait()", True, id="a child that ends"),
        pytest.param("import os; os._exit(0)", False, id="nobody is asked"),
        pytest.param("import os; os.execv('/bin/true', ['true'])", False, id="another program"),
    ],
)
def test_it_tells_whether_python_came_to_its_end(tmp_path: Path, last: str, whole: bool) -> None:
    done, said = _bake(tmp_path, f"{_LOG}log.info('[Genesis] applied: %s — %s', 'P1', '')\n{last}")

    assert [item.name for item in said] == ["P1"]
    assert ended(done.stdout) is whole
