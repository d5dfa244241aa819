"""Copies of the project in other places, and Pythons to build them with."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.commands import ROOT, clean_environment, run
from tests.reproduce.pythons import (
    MINORS,
    Interpreter,
    environment_of,
    interpreters,
    runs_for,
)

_PARTS = ("builder.yaml", "variants", "lockfiles", "overlays", "demo", "dockerfiles", "composes")

_GITCONFIG = """\
[core]
    autocrlf = true
    eol = crlf
    quotePath = false
    attributesFile = {home}/attributes
    abbrev = 4
[diff]
    noprefix = true
    mnemonicPrefix = true
    algorithm = patience
    context = 1
    external = /bin/false
    renames = copies
    orderFile = {home}/attributes
[color]
    ui = always
[apply]
    whitespace = fix
    ignoreWhitespace = change
[filter "shout"]
    clean = tr a-z A-Z
    smudge = tr a-z A-Z
    required = true
[protocol]
    allow = never
[url "https://nowhere.invalid/"]
    insteadOf = https://
[init]
    templateDir = {home}/nothing
    defaultObjectFormat = sha256
"""
_ATTRIBUTES = "* text=auto eol=crlf ident filter=shout export-subst diff=nonsense\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """A scratch directory that other users can look into."""

    scratch: Path

    @property
    def is_root(self) -> bool:
        return os.geteuid() == 0

    def program(self) -> Path:
        """A copy of the program, where everybody can read it and nobody writes bytecode."""
        copy = self.scratch / "program"
        if not copy.exists():
            ignored = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / "builder", copy / "builder", ignore=ignored)
        return copy

    def copy(
        self,
        name: str,
        *,
        mode: int = 0o644,
        mtime: int | None = None,
        backwards: bool = False,
    ) -> Path:
        """A copy of the project; its files get ``mode`` and, with ``mtime``, that age."""
        target = self.scratch / name
        files = [
            file
            for part in _PARTS
            for file in (ROOT / part, *sorted((ROOT / part).rglob("*")))
            if file.is_file()
        ]
        for file in reversed(files) if backwards else files:
            copy = target / file.relative_to(ROOT)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(file.read_bytes())
            copy.chmod(mode | (0o111 if file.stat().st_mode & 0o100 else 0))
            if mtime is not None:
                os.utime(copy, (mtime, mtime))
        return target

    def hostile_git(self) -> dict[str, str]:
        """A home directory whose git settings would change every diff and file."""
        home = self.scratch / "home"
        home.mkdir()
        (home / ".gitconfig").write_text(_GITCONFIG.format(home=home))
        (home / "attributes").write_text(_ATTRIBUTES)
        return {"HOME": str(home), "GIT_CONFIG_GLOBAL": str(home / ".gitconfig")}

    def outer_checkout(self) -> Path:
        """The project as a directory of another repository, with hostile attributes."""
        outer = self.scratch / "outer"
        project = self.copy("outer/project")
        plain = clean_environment(GIT_CONFIG_GLOBAL="/dev/null", GIT_CONFIG_NOSYSTEM="1")
        identity = ("-c", "user.name=outer", "-c", "user.email=outer@example.invalid")
        for command in (
            ("init", "--quiet"),
            ("add", "--all"),
            (*identity, "commit", "--quiet", "--message", "everything"),
        ):
            run(("git", "-C", outer, *command), environment=plain)
        (outer / ".gitattributes").write_text(_ATTRIBUTES)
        return project

    def interpreters(self) -> list[tuple[int, Interpreter | None]]:
        """For each version that builder supports the newest Python of this machine."""
        found = {item.version[1]: item for item in interpreters()}
        return [(minor, found.get(minor)) for minor in MINORS]

    def python_of(self, interpreter: Interpreter) -> Path:
        """An environment of that interpreter.

        Raises:
            CommandError: It cannot be made.
        """
        return environment_of(interpreter)

    def python_for(self, user: int) -> Path | None:
        """An environment that another user can run; ``None`` where there is none."""
        for interpreter in interpreters():
            if runs_for(interpreter.path, user, needs=""):
                python = environment_of(interpreter)
                if runs_for(python, user):
                    return python
                return environment_of(interpreter, below=self.scratch / "venvs")
        return None
