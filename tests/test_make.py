"""What a newcomer meets first: ``make`` alone, and make with a Python that is too old."""

import os
import re
import signal
import subprocess
import sys
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


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ((), ["build", "demo"]),
        (
            ("SIGN=1", "PUSH=r.test/x:1"),
            ["build", "demo", "--push", "r.test/x:1", "--sign", "release"],
        ),
        (
            ("SIGN=ci.pem", "OUT=a layout", "ARGS=--locked", "VARIANT=it"),
            ["build", "it", "--out", "a layout", "--sign", "ci.pem", "--locked"],
        ),
        (
            ("SIGN=key1", "OUT=it's; echo $$HOME"),
            ["build", "demo", "--out", "it's; echo $HOME", "--sign", "key1"],
        ),
        (("SIGN=exec:sign 1",), ["build", "demo", "--sign", "exec:sign 1"]),
        (
            ("SIGN=1", "OUT=o", "NOTATION=it's; a.crt", "ARGS=--locked"),
            ["build", "demo", "--out", "o", "--sign", "release"]
            + ["--notation", "it's; a.crt", "--locked"],
        ),
    ],
)
def test_an_image_goes_where_it_is_told_and_is_signed_there(
    given: tuple[str, ...], wanted: list[str], tmp_path: Path
) -> None:
    venv = tmp_path / "venv"
    program = venv / "bin/builder"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@"\n')
    program.chmod(0o755)
    # As if it were prepared: what make wants to be newer than all that it is made of.
    old = [f"--old-file={venv / name}" for name in (".bytecode", ".run", ".python")]
    done = make("image", f"VENV={venv}", *old, *given)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == wanted


def test_what_the_environment_calls_the_same_sends_no_image_anywhere(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("PUSH", "OUT", "SIGN", "NOTATION"):
        monkeypatch.setenv(name, "somewhere")
    done = make("-n", "image")
    assert "somewhere" not in done.stdout


HEEDING = (
    "import os, signal, sys\n"
    "signal.signal(int(sys.argv[1]), signal.SIG_DFL)\n"
    "os.execvp(sys.argv[2], sys.argv[2:])\n"
)
"""A shell cannot trap what was ignored when it started, as SIGHUP is under nohup."""


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_ended_leaves_no_key(number: signal.Signals, tmp_path: Path) -> None:
    temporary, program = tmp_path / "temporary", tmp_path / "builder"
    temporary.mkdir()
    program.write_text("#!/bin/sh\necho here; read line\n")
    program.chmod(0o755)
    with subprocess.Popen(
        [sys.executable, "-c", HEEDING, str(int(number)), "sh", "tools/demo.sh", program],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "TMPDIR": str(temporary)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as running:
        assert running.stdout is not None
        assert running.stdout.readline() == b"here\n"
        assert len(list(temporary.iterdir())) == 1
        os.killpg(running.pid, number)
        assert running.wait(10) == 128 + number
    assert list(temporary.iterdir()) == []


@pytest.mark.requires("git", "unshare")
def test_the_demo_is_baked_signed_and_verified(tmp_path: Path) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        ["sh", "tools/demo.sh", Path(sys.executable).with_name("builder"), "--quiet"],
        cwd=ROOT,
        env={
            "PATH": os.environ["PATH"],
            "HOME": str(tmp_path),
            "TMPDIR": str(temporary),
            "BUILDER_STORE": str(tmp_path / "store"),
        },
        check=False,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    image = re.findall(r"^image (sha256:[0-9a-f]{64})$", done.stdout, re.MULTILINE)
    assert image
    assert f"oci:layout:demo: {image[0]} is verified" in done.stdout
    assert [line.split(":")[0] for line in done.stdout.splitlines()[-6:]] == [
        *("  image", "  manifest", "  provenance", "  sbom", "  layers", "  files")
    ]
    assert "SHA256:" in done.stdout
    assert list(temporary.iterdir()) == []  # neither key nor layout stays
