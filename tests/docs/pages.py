"""The pages of documentation, and a terminal that runs what they show.

Three kinds of block are held to the truth:

- ``<!-- file: PATH -->`` before a block: it shows that file of docs/examples;
- a block of ``console``: each line that starts with ``$`` is run, and what it prints is shown below
  it. A command that fails is followed by ``$ echo $?``, or the test fails;
- ``<!-- not run: REASON -->`` before a block of ``console``: it is what it says;
  ``<!-- with PROGRAM -->``: it is run where that program is installed, in a directory of its own.

``make golden`` writes what is missing or has changed into the pages.
"""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
PAGES = (
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "CHANGELOG.md",
    *sorted((ROOT / "docs").rglob("*.md")),
)
_FILE = re.compile(r"^<!-- file: (\S+) -->\n```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_CONSOLE = re.compile(
    r"^(?P<mark><!-- (?P<when>not run|with \w+)[^\n]* -->\n)?```console\n(?P<body>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
_PROJECT = (
    "builder.yaml",
    "composes",
    "demo",
    "docs/examples",
    "lockfiles",
    "overlays",
    "variants",
)


def files_of(page: str) -> dict[str, str]:
    """The files that a page shows, by their path in the project."""
    return {path: text for path, _, text in _FILE.findall(page)}


def with_files(page: str, project: Path) -> str:
    """The page with its files as they are in ``project``."""

    def shown(found: "re.Match[str]") -> str:
        path, language, _ = found.groups()
        text = (project / path).read_text(encoding="utf-8")
        return f"<!-- file: {path} -->\n```{language}\n{text}```"

    return _FILE.sub(shown, page)


def copy_project(target: Path) -> Path:
    """This repository as far as it is a project of builder's, without the program."""
    target.mkdir()
    for name in _PROJECT:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, target / name)
        else:
            shutil.copy(source, target / name)
    return target


@dataclass(kw_only=True)
class Terminal:
    """Runs commands one after the other, in bash, as a person at a terminal would.

    ``builder`` is the program under test. What the commands print on stdout and on stderr comes
    together, as on a screen.
    """

    directory: Path
    home: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        programs = self.home / "bin"
        programs.mkdir(parents=True)
        program = programs / "builder"
        program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m builder "$@"\n')
        program.chmod(0o755)
        self._environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),
            "HOME": str(self.home),
            "BUILDER_STORE": str(self.home / "store"),
            "LC_ALL": "C.UTF-8",
            **self.environment,
        }

    def replay(self, page: str, *, when: str | None = None) -> str:
        """The page with what its commands print now; ``when`` is the mark of the blocks to run."""

        def shown(found: "re.Match[str]") -> str:
            if found["when"] != when:
                return found[0]
            return f"{found['mark'] or ''}```console\n{self.play(found['body'])}```"

        return _CONSOLE.sub(shown, page)

    def play(self, block: str) -> str:
        """Run the commands of a block; returns them with what they print."""
        commands = [line[2:] for line in block.splitlines() if line.startswith("$ ")]
        here = self.home / "directory"
        # The status of the command before stands between NULs, and is there for the next one.
        mark = "s=$?; printf '\\0%s\\0' $s; (exit $s)\n"
        script = "".join(f"{mark}{command}\n" for command in commands) + mark + f"pwd >'{here}'\n"
        done = subprocess.run(
            ["bash", "-c", script],
            cwd=self.directory,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=True,
        )
        self.directory = Path(here.read_text().rstrip("\n"))
        _, _, *parts = done.stdout.decode().split("\0")
        outputs, statuses = parts[0::2], parts[1::2]
        for command, status, following in zip(commands, statuses, [*commands[1:], ""], strict=True):
            assert status == "0" or following == "echo $?", (
                f"$ {command}\nstatus {status}:\n{done.stdout.decode()}"
            )
        return "".join(
            f"$ {command}\n{output}" for command, output in zip(commands, outputs[:-1], strict=True)
        )
