"""What a newcomer meets first: ``make`` alone, and make with a Python that is too old."""

import os
import re
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.requires("make")
ROOT = Path(__file__).parents[1]


def make(*arguments: str) -> "subprocess.CompletedProcess[str]":
    # Run by make itself, these tests must not hand its flags to the inner one.
    environment = {key: value for key, value in os.environ.items() if "MAKE" not in key}
    return subprocess.run(
        ["make", *arguments],
        cwd=ROOT,
        env=environment,
        check=False,
        capture_output=True,
        text=True,
    )


def test_make_alone_lists_every_target() -> None:
    done = make()
    listed = re.findall(r"^  make ([a-z-]+) +\S", done.stdout, re.MULTILINE)
    phony = re.findall(r"^\.PHONY: ([a-z-]+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert listed == phony
    assert done.stderr == ""


def test_an_old_python_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text('#!/bin/sh\n[ "$1" = --version ] && echo Python 3.9.2\nexit 1\n')
    old.chmod(0o755)
    done = make("venv", f"PYTHON={old}", f"VENV={tmp_path / 'venv'}")
    assert done.stderr.splitlines()[:2] == [
        f"make: builder needs Python 3.11 or newer, {old} is Python 3.9.2",
        "  hint: install one, or name it: make PYTHON=/path/to/python3.12 ...",
    ]
    assert done.returncode == 2
    assert not (tmp_path / "venv").exists()
