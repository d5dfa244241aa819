"""The program as a process: pipes, signals, terminals, completion."""

import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from builder.cli import main
from tests.cli.conftest import DEMO, Builder

PROGRAM = [sys.executable, "-m", "builder"]


@pytest.fixture
def surroundings(environment: dict[str, str]) -> dict[str, str]:
    return environment | {"PYTHONPATH": str(DEMO)}


@pytest.mark.parametrize(
    "arguments", [["--help"], ["variants"], ["variants", "--json"], ["plan", "--help"]]
)
def test_a_reader_that_goes_away_is_no_bug(
    arguments: list[str], project: Path, surroundings: dict[str, str]
) -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [*PROGRAM, *arguments],
        cwd=project,
        env=surroundings,
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--help"], "builder: error: stdout: No space left on device\n"),
        (["variants"], "builder: error: stdout, or a file under way: No space left on device\n"),
        (
            ["plan", "hello", "--json"],
            "builder: error: stdout, or a file under way: No space left on device\n",
        ),
        (["plan", "nobody", "--json"], None),
    ],
)
def test_a_full_disk_behind_stdout_is_no_bug(
    arguments: list[str], said: str | None, project: Path, surroundings: dict[str, str]
) -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [*PROGRAM, *arguments],
            cwd=project,
            env=surroundings,
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
    if said is None:  # the error itself could not be written: its status stays
        assert (done.returncode, done.stderr.partition("\n")[0]) == (
            3,
            "builder: error: no variant 'nobody' in variants",
        )
    else:
        assert (done.returncode, done.stderr) == (9, said)


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_streams_that_were_closed_get_no_file_of_ours(
    closed: str, project: Path, store: Path, surroundings: dict[str, str]
) -> None:
    for _ in range(2):  # the second one answers from memory
        done = subprocess.run(
            ["sh", "-c", f"'{sys.executable}' -m builder build hello {closed}"],
            cwd=project,
            env=surroundings,
            capture_output=True,
            check=False,
        )
        assert (done.returncode, done.stderr) == (0, b"")
    from builder.adapters.store import FileStore
    from builder.adapters.store.verify import verify

    assert verify(FileStore(store)).errors == ()


def test_a_working_directory_that_is_gone_is_no_bug(
    tmp_path: Path, surroundings: dict[str, str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", f"rmdir '{gone}' && '{sys.executable}' -m builder build hello"],
        cwd=gone,
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr.partition("\n")[0]) == (
        3,
        "builder: error: .: no project here, there is no directory 'variants'",
    )


def test_head_takes_one_line_and_nobody_complains(
    project: Path, surroundings: dict[str, str]
) -> None:
    done = subprocess.run(
        ["sh", "-c", f"'{sys.executable}' -m builder graph hello | head -1"],
        cwd=project,
        env=surroundings,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "digraph variant {\n", "")


def test_an_interruption_ends_with_130_and_no_traceback(
    project: Path, store: Path, surroundings: dict[str, str], builder: Builder
) -> None:
    """The process waits for a lock of the store that we hold."""
    from builder.adapters.store import FileStore

    plan = builder("plan", "hello", "--json").json
    with FileStore(store).lock(f"derivation-{plan['steps'][0]['derivation'].partition(':')[2]}"):
        process = subprocess.Popen(
            [*PROGRAM, "build", "hello", "--json"],
            cwd=project,
            env=surroundings,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert process.stderr is not None
        assert "waiting for the lock" in process.stderr.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=20)
    assert (process.returncode, out) == (130, "")
    assert err.strip() == "builder: interrupted"


def test_an_interruption_while_modules_are_imported_has_no_traceback_either(
    project: Path, tmp_path: Path, surroundings: dict[str, str]
) -> None:
    (tmp_path / "early").mkdir()
    (tmp_path / "early/click.py").write_text("raise KeyboardInterrupt\n")
    path = f"{tmp_path / 'early'}{os.pathsep}{DEMO}"
    done = subprocess.run(
        [*PROGRAM, "variants"],
        cwd=project,
        env=surroundings | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "builder: interrupted\n")


def on_terminal(
    arguments: list[str], *, cwd: Path, environment: dict[str, str]
) -> tuple[int, bytes]:
    """Run with stdout and stderr on a terminal of its own; the status, and what it showed."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, *arguments],
        cwd=cwd,
        env=environment | {"TERM": "xterm-256color"},
        stdin=subprocess.DEVNULL,
        stdout=slave,
        stderr=slave,
    )
    os.close(slave)
    shown = b""
    limit = time.monotonic() + 30
    while time.monotonic() < limit:
        if select.select([master], [], [], 0.2)[0]:
            try:
                shown += os.read(master, 65536)
            except OSError:
                break  # Linux: everyone at the other end has gone
        elif process.poll() is not None:
            break
    os.close(master)
    return process.wait(timeout=10), shown


COLOUR = b"\x1b[3"


def test_bars_are_drawn_on_a_terminal_and_wiped_before_the_result(
    builder: Builder, project: Path, surroundings: dict[str, str]
) -> None:
    builder("build", "hello")
    del surroundings["NO_COLOR"]
    status, shown = on_terminal(["store", "verify"], cwd=project, environment=surroundings)
    assert status == 0
    assert b"verifying the store" in shown
    assert COLOUR in shown
    assert b"verifying" not in shown.rpartition(b"\x1b[?25h")[2], "wiped, the cursor is back"
    assert b": 0 errors" in shown.rpartition(b"\x1b[?25h")[2]


def test_no_color_leaves_bars_without_colours(
    builder: Builder, project: Path, surroundings: dict[str, str]
) -> None:
    builder("build", "hello")
    _, shown = on_terminal(["store", "verify"], cwd=project, environment=surroundings)
    assert b"verifying the store" in shown
    assert COLOUR not in shown


def test_quiet_draws_nothing(builder: Builder, project: Path, surroundings: dict[str, str]) -> None:
    builder("build", "hello")
    _, shown = on_terminal(["-q", "store", "verify"], cwd=project, environment=surroundings)
    assert b"\x1b" not in shown
    assert b"verifying" not in shown


def test_nothing_is_drawn_into_a_pipe(builder: Builder, command: Builder) -> None:
    builder("build", "hello")
    ran = command("store", "verify")
    assert (ran.status, ran.err) == (0, "")
    assert "\x1b" not in ran.out


def test_the_script_for_a_shell_is_printed(command: Builder) -> None:
    for shell in ("bash", "zsh", "fish"):
        ran = command(_BUILDER_COMPLETE=f"{shell}_source")
        if shell == "bash" and ran.status:
            continue  # click asks the shell for its version, and there may be none
        assert ran.status == 0
        assert "_BUILDER_COMPLETE" in ran.out


COMPLETIONS = {
    "commands": ("builder p", ["patches", "plan", "push"]),
    "sub-commands": ("builder store ", ["verify", "gc", "du"]),
    "variants": ("builder build he", ["hello"]),
    "variants of another project": ("builder -C ../other plan ", ["second"]),
    "more variants": ("builder build hello ", ["hello"]),
    "either of two": ("builder explain hello h", ["hello"]),
    "no variant": ("builder plan x", []),
    "styles": ("builder graph hello --format ", ["dot", "mermaid", "svg"]),
}


@pytest.mark.parametrize(("line", "wanted"), COMPLETIONS.values(), ids=COMPLETIONS)
def test_shells_complete_commands_and_names(
    line: str,
    wanted: list[str],
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = project.parent / "other/variants"
    other.mkdir(parents=True)
    (other / "second.yaml").write_text("not read")
    monkeypatch.chdir(project)
    monkeypatch.setenv("_BUILDER_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", line)
    monkeypatch.setenv("COMP_CWORD", str(line.count(" ")))
    with pytest.raises(SystemExit) as ended:
        main([])
    out, err = capsys.readouterr()
    assert (ended.value.code, err) == (0, "")
    assert sorted(item.partition(",")[2] for item in out.split()) == sorted(wanted)
