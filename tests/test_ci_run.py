"""How ``.ci/run`` ends, with a ``make`` that does what it is told."""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
TOOLS = (
    "bsdtar busybox docker-registry dockerd dot faketime locale-gen openssl skopeo ssh-keygen umoci"
)
MAKE = """#!/bin/sh
echo "$1" >>"$ASKED"
case $1 in
check) echo '==== 1 passed in 1s ====' ;;
real) {real} ;;
reproduce) echo "$$" >"$ASKED.pid"; {reproduce} ;;
esac
"""


def run(directory: Path, *, real: str, reproduce: str) -> "subprocess.CompletedProcess[str]":
    """Run a copy of it, where all that it needs is there."""
    shutil.copytree(ROOT / ".ci", directory / ".ci")
    programs, logs = directory / "bin", directory / "tmp"
    programs.mkdir()
    logs.mkdir()
    for name in TOOLS.split():
        (programs / name).symlink_to("/bin/true")
    (programs / "make").write_text(MAKE.format(real=real, reproduce=reproduce))
    (programs / "make").chmod(0o755)
    done = subprocess.run(
        [directory / ".ci/run"],
        env={
            "PATH": f"{programs}:{os.environ['PATH']}",
            "ASKED": str(directory / "asked"),
            "TMPDIR": str(logs),
        },
        check=False,
        capture_output=True,
        text=True,
        timeout=30,
    )
    assert list(logs.iterdir()) == []
    return done


@pytest.mark.parametrize(
    ("real", "reproduce", "status"),
    [("exit 0", "exit 0", 0), ("exit 3", "exit 0", 3), ("exit 0", "exit 4", 4)],
)
def test_what_failed_beside_the_other_fails_the_run_and_both_are_shown(
    tmp_path: Path, real: str, reproduce: str, status: int
) -> None:
    done = run(tmp_path, real=f"echo R; {real}", reproduce=f"echo D; {reproduce}")
    assert (done.returncode, done.stderr) == (status, "")
    assert "--- make real\nR\n--- make reproduce\nD\n" in done.stdout
    asked = (tmp_path / "asked").read_text().split()
    assert ("bench" in asked) == (status == 0)
    assert done.stdout.endswith("1 passed in 1s ====\n") == (status == 0)


def test_a_run_that_is_ended_leaves_nothing_running(tmp_path: Path) -> None:
    wait = 'until [ -s "$ASKED.pid" ]; do sleep 0.01; done'
    done = run(tmp_path, real=f"{wait}; kill $PPID", reproduce="exec sleep 60")
    assert done.returncode == -15
    process = Path("/proc", (tmp_path / "asked.pid").read_text().strip())
    for _ in range(100):
        if not process.exists():
            return
        time.sleep(0.05)
    pytest.fail("make reproduce goes on")
