"""Who the user says they are, in the configuration of their own git.

Everything else that runs git keeps the user's configuration out (:mod:`builder.adapters
.git_process`); here it is the answer.
"""

import os
import subprocess
from pathlib import Path


def git_author(directory: Path) -> str | None:
    """``NAME <EMAIL>`` as git's configuration has it in ``directory``; ``None`` where it lacks one
    of them, or there is no git. Never what git would guess from the names of the machine."""
    try:
        done = subprocess.run(
            ("git", "-C", directory, "config", "--null", "--get-regexp", r"^user\.(name|email)$"),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=os.environ,
            check=False,
        )
    except OSError:
        return None
    found: dict[str, str] = {}
    for item in done.stdout.decode("utf-8", "replace").split("\0"):
        key, _, value = item.partition("\n")
        found[key] = value.strip()  # the last one wins, as in git
    name, email = found.get("user.name"), found.get("user.email")
    return f"{name} <{email}>" if name and email else None
