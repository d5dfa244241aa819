"""pip as a process: what it is always told, and what its failures stand for.

Which index is asked, and with which credentials, is the user's pip configuration's affair. What
that says about installing (constraints, ``user``, ``pre``) is about this machine, and is left out:
the wheels are for images.
"""

import os
import re
import subprocess
import sys
from collections.abc import Sequence

from builder.address import redacted
from builder.errors import (
    AuthError,
    BuilderError,
    EnvironmentFault,
    GoneError,
    IntegrityError,
    NetworkError,
    ProjectError,
    RateLimitError,
)

INDEX_HINT = "which index is asked is said by: pip config list"

# What pip says, and what it stands for; the first that matches decides. An index that cannot be
# reached looks to pip like one without the project, so connections stand before "no match".
_KINDS: Sequence[tuple[str, type[BuilderError], str]] = (
    (r"No module named pip", EnvironmentFault, "install pip into this Python: python -m ensurepip"),
    (r"^no such option: ", EnvironmentFault, "upgrade pip in this Python: pip install -U pip"),
    (r"No space left on device", EnvironmentFault, "free some space"),
    (r"DO NOT MATCH THE HASHES", IntegrityError, f"the index has another file now; {INDEX_HINT}"),
    (r"\b40[137] Client Error|HTTP error 40[137]", AuthError, INDEX_HINT),
    (r"\b429 Client Error|HTTP error 429", RateLimitError, "try again later"),
    (r"Could not fetch URL \S+ (?!404 )|HTTP error 5", NetworkError, f"try again; {INDEX_HINT}"),
    (r"No matching distribution|Could not find a version", GoneError, INDEX_HINT),
)

_ALWAYS = {
    "LC_ALL": "C",
    "PIP_NO_COLOR": "1",
    "PIP_CONSTRAINT": os.devnull,
    "PIP_PRE": "0",
    "PIP_USER": "0",
    "PIP_QUIET": "0",
    "PIP_REQUIRE_HASHES": "0",  # where they are demanded, the command line says so
    "PIP_REQUIRE_VIRTUALENV": "0",
}


def check_words(*, project: str, version: str | None, at: str) -> None:
    """Let nothing but names and versions reach pip.

    Raises:
        ProjectError: One of them is something else: an option, a path, a second line.
    """
    for what, text in (("project", project), ("version", version)):
        if text is not None and not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._+!-]*", text):
            raise ProjectError(f"{at}: not a {what}: {text!r}")


def pip(command: str, *arguments: str, at: str) -> str:
    """Run one of pip's commands on wheels alone, without their dependencies; gives back what it
    said.

    Raises:
        EnvironmentFault: This Python has no pip, or one that is too old.
        GoneError, AuthError, RateLimitError, NetworkError, IntegrityError: What it says.
    """
    done = subprocess.run(
        (
            # Only with -vv does pip say why it could not read an index.
            *(sys.executable, "-m", "pip", command, "-vv", "--no-deps", "--only-binary=:all:"),
            *("--no-input", "--no-cache-dir", "--disable-pip-version-check"),
            *arguments,
        ),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        env=os.environ | _ALWAYS,
        check=False,
    )
    said = (done.stdout + done.stderr).decode("utf-8", "replace")
    if done.returncode != 0:
        raise _fault(said, command=command, at=at)
    return said


def _fault(said: str, *, command: str, at: str) -> BuilderError:
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR:")]
    text = redacted("; ".join(errors or lines[-1:]))[:500]
    for pattern, kind, hint in _KINDS:
        if re.search(pattern, said, re.MULTILINE):
            return kind(f"{at}: {text}", hint=hint)
    return NetworkError(f"{at}: pip {command}: {text}", hint=INDEX_HINT)
