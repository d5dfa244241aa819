"""Who the user says they are, in the configuration of their own git.

Everything else that runs git keeps the user's configuration out (:mod:`builder.adapters
.git_process`); here it is the answer.
"""

import os
import subprocess
from pathlib import Path

from builder.value import value


@value
class Identity:
    """A person, as git has them in a commit."""

    name: str
    email: str

    @property
    def shown(self) -> str:
        return f"{self.name} <{self.email}>"


def git_author(directory: Path) -> Identity | None:
    """Whom git's configuration has in ``directory``; ``None`` where it lacks the name or the email,
    or there is no git. Never what git would guess from the names of the machine."""
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
        key, _, text = item.partition("\n")
        found[key] = text.strip()  # the last one wins, as in git
    name, email = found.get("user.name"), found.get("user.email")
    return Identity(name=name, email=email) if name and email else None
