"""Running git so that nothing of the user's, the machine's or the remote's settings shows.

GitPython's runner (3.1.58 to 3.2) starts every command with a copy of ``os.environ`` and can only
add to it. ``GIT_OBJECT_DIRECTORY``, ``GIT_CONFIG_PARAMETERS``, ``GIT_EXTERNAL_DIFF`` and their kin
would reach git (they are set inside every git hook), and an empty value does not mean "unset" to
git. So the processes are started here, with an environment that is written down in full.
"""

import logging
import os
import re
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from builder.address import redacted
from builder.errors import (
    AuthError,
    BuilderError,
    EnvironmentFault,
    GoneError,
    IntegrityError,
    NetworkError,
    RateLimitError,
)

_log = logging.getLogger(__name__)

# What may pass from the user's environment: where programs are, how to get out of this network,
# whom to trust, and the key agent. Everything else stays outside.
_PASSED = (
    *("PATH", "TMPDIR", "SSH_AUTH_SOCK"),
    *("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO", "GIT_SSL_CAPATH"),
)

# A file rather than GIT_CONFIG_COUNT: git drops the latter for the upload-pack that it starts on a
# local repository, and that is where safe.directory is needed.
#
# unpackLimit: a pack appears whole, loose objects one by one; a killed fetch must leave no commit
# without its tree. fsck: malformed objects that old tools wrote and that change no content.
_CONFIG = """\
[safe]
	directory = *
[core]
	hooksPath = /dev/null
	attributesFile = /dev/null
	excludesFile = /dev/null
	quotePath = true
	autocrlf = false
	fsmonitor = false
[protocol]
	version = 2
[transfer]
	fsckObjects = true
[fetch]
	unpackLimit = 1
	recurseSubmodules = false
	writeCommitGraph = false
[fastimport]
	unpackLimit = 1
[fetch "fsck"]
	zeroPaddedFilemode = warn
	badTimezone = warn
	badEmail = warn
	missingSpaceBeforeDate = warn
	missingSpaceBeforeEmail = warn
	missingEmail = warn
[submodule]
	recurse = false
[gc]
	auto = 0
[maintenance]
	auto = false
[credential]
	helper =
[http]
	lowSpeedLimit = 1000
	lowSpeedTime = 60
[uploadpack]
	allowAnySHA1InWant = true
	allowFilter = true
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a finished git process said."""

    status: int
    stdout: bytes
    stderr: str

    @property
    def ok(self) -> bool:
        return self.status == 0

    @property
    def complaint(self) -> str:
        """The lines of stderr that say what is wrong, on one line, without credentials and
        without what a remote may send to steer a terminal."""
        lines = [line.strip() for line in self.stderr.splitlines() if line.strip()]
        told = [line for line in lines if re.match(r"(fatal|error|remote|ssh|\S+@\S+): ", line)]
        text = "; ".join(told or lines[-1:]) or f"git exited with status {self.status}"
        shown = "".join(c if c.isprintable() else " " for c in text)
        return redacted(shown)[:500].strip()


class GitProcess:
    """Starts git on bare repositories, with a home directory of its own."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._environment: dict[str, str] | None = None

    def run(
        self,
        bare: Path | None,
        *arguments: str,
        stdin: BinaryIO | bytes | None = None,
        protocols: str = "",
        keep: int | None = None,
        extra: Mapping[str, str] | None = None,
    ) -> Answer:
        """Run one command to its end.

        Args:
            bare: The repository, or ``None`` for a command that needs none.
            arguments: The subcommand and its arguments.
            stdin: A real file to read from, or bytes; nothing by default.
            protocols: What ``GIT_ALLOW_PROTOCOL`` permits; nothing by default.
            keep: A file descriptor that git shall hold open (a lock that outlives us).
            extra: More of the environment: another index, an author, a header with credentials.

        Raises:
            EnvironmentFault: There is no git.
        """
        where = () if bare is None else (f"--git-dir={bare}",)
        data, given = (stdin, None) if isinstance(stdin, bytes) else (None, stdin)
        with _git_is_there():
            done = subprocess.run(
                ("git", *where, *arguments),
                stdin=subprocess.DEVNULL if given is None and data is None else given,
                input=data,
                capture_output=True,
                env=self._env() | {"GIT_ALLOW_PROTOCOL": protocols} | dict(extra or {}),
                pass_fds=() if keep is None else (keep,),
                check=False,
            )
        text = done.stderr.decode("utf-8", "replace")
        _log.debug("git %s: status %d", arguments[0], done.returncode)
        return Answer(status=done.returncode, stdout=done.stdout, stderr=text)

    def start(self, bare: Path, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command that is talked to over its stdin and stdout.

        Raises:
            EnvironmentFault: There is no git.
        """
        with _git_is_there():
            return subprocess.Popen(
                ("git", f"--git-dir={bare}", *arguments),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=self._env() | {"GIT_ALLOW_PROTOCOL": ""},
            )

    def _env(self) -> dict[str, str]:
        if self._environment is None:
            self._home.mkdir(parents=True, exist_ok=True)
            config = self._home / ".gitconfig"
            if not config.is_file() or config.read_text() != _CONFIG:
                fresh = self._home / f".gitconfig.{os.getpid()}"
                fresh.write_text(_CONFIG)
                fresh.replace(config)
            passed = {name: os.environ[name] for name in _PASSED if name in os.environ}
            home = str(self._home)
            self._environment = passed | {
                "HOME": home,  # git before 2.32 does not know GIT_CONFIG_GLOBAL
                "XDG_CONFIG_HOME": home,
                "GIT_CONFIG_GLOBAL": str(config),
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_ATTR_NOSYSTEM": "1",
                "GIT_NO_REPLACE_OBJECTS": "1",
                "GIT_NO_LAZY_FETCH": "1",
                "GIT_DEFAULT_REF_FORMAT": "files",
                "GIT_TERMINAL_PROMPT": "0",
                "GIT_ASKPASS": "true",
                "SSH_ASKPASS": "true",
                # As lowSpeedTime of http: a peer that is gone is given up after a minute.
                "GIT_SSH_COMMAND": "ssh -oBatchMode=yes -oConnectTimeout=30"
                " -oServerAliveInterval=15 -oServerAliveCountMax=4",
                "LC_ALL": "C",
            }
        return self._environment


@contextmanager
def _git_is_there() -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise EnvironmentFault(
            "git: no such program on the PATH", hint="install git 2.30 or later"
        ) from error


_REFUSED = ("not our ref", "unadvertised object", "couldn't find remote ref")

_AUTH = (
    r"Authentication failed|could not read (Username|Password)|Permission denied \("
    r"|error: 40[137]|Access denied|Host key verification failed"
)
_GONE = (
    r"Repository not found|repository '.*' not found|does not appear to be a git repository"
    r"|error: 4(04|10)"
)
_NETWORK = (
    r"Could not resolve|Failed to connect|Couldn't connect|timed out|disconnect|early EOF|hung up"
    r"|Connection (refused|reset|closed)|RPC failed|error: 5\d\d|SSL|TLS|transfer closed"
    r"|unreachable|Operation too slow|Empty reply|index-pack failed"
)

# The last two are what git says of a full disk where it does not pass on the system's words.
_FULL = (
    r"No space left on device|Disk quota exceeded|Out of diskspace"
    r"|failed to write new configuration file"
)

# The first kind that matches decides. Auth stands before "not found": hosts that hide private
# repositories say both at once, and then only "who are you" is known.
_KINDS: Sequence[tuple[str, type[BuilderError], str | None]] = (
    (_FULL, EnvironmentFault, "free some space"),
    (r"Read-only file system", EnvironmentFault, "choose another store with --store DIR"),
    (r"fsck error|fatal: bad object|invalid object|repository corruption", IntegrityError, None),
    (r"error: 429", RateLimitError, "try again later, or configure a mirror in builder.yaml"),
    (r"mismatched algorithms", GoneError, "the repository names its objects by another hash"),
    (_AUTH, AuthError, "the repository may be private, renamed or gone; keys come from ssh-agent"),
    (_GONE, GoneError, "where it lives now can be said under mirrors in builder.yaml"),
    (_NETWORK, NetworkError, "try again, or configure a mirror in builder.yaml"),
)


def refused(answer: Answer) -> bool:
    """Whether the remote answered, and said that it does not hand out what was asked for."""
    return any(text in answer.stderr for text in _REFUSED)


def fault(answer: Answer, *, at: str) -> BuilderError | None:
    """The error that a failed transfer stands for; ``None`` where git's words are not known."""
    for pattern, kind, hint in _KINDS:
        if re.search(pattern, answer.stderr):
            return kind(f"{at}: {answer.complaint}", hint=hint)
    return None
