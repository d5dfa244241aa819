"""What can go wrong for a user, and the exit status of each kind.

Every error that a user can mend derives from :class:`BuilderError`. Anything else that escapes is
a bug and keeps its traceback (exit status 1). Only ``builder.cli`` exits.

A message is one sentence without a full stop that says where, what, and got against wanted, with
values quoted; ``hint`` says what to do next.
"""

from typing import ClassVar


class BuilderError(Exception):
    """Something the user can mend.

    Args:
        message: Where, what, got against wanted.
        hint: What the user can do now.
    """

    exit_status: ClassVar[int]

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class UsageError(BuilderError):
    """The command line asks for something that does not exist or contradicts itself."""

    exit_status = 2


class ProjectError(BuilderError):
    """A file of the project (lock, variant, overlay, settings) is not what it must be."""

    exit_status = 3


class IntegrityError(BuilderError):
    """Bytes are not what their name, their lock or an earlier result says. Never retried."""

    exit_status = 4


class PolicyError(BuilderError):
    """A rule of the project forbids this: allowlist, waiver, trust."""

    exit_status = 5


class PatchError(BuilderError):
    """A step does not apply as declared.

    ``verdict`` is one of the words of :class:`builder.verdict.Verdict`; ``path`` is the file in the
    image (without a leading slash), or ``None`` where no single file is to blame. ``findings`` has
    one line for each file where several are to blame; ``difference`` is a unified diff that shows
    what is wrong.
    """

    exit_status = 6

    def __init__(
        self,
        message: str,
        *,
        verdict: str,
        path: str | None = None,
        hint: str | None = None,
        findings: tuple[str, ...] = (),
        difference: str | None = None,
    ) -> None:
        super().__init__(message, hint=hint)
        self.verdict = verdict
        self.path = path
        self.findings = findings
        self.difference = difference


class GoneError(BuilderError):
    """Upstream answered, and what we pinned is no longer there."""

    exit_status = 7


class NetworkError(BuilderError):
    """Upstream could not be asked: no route, a time-out, a server error, a broken transfer."""

    exit_status = 8


class AuthError(NetworkError):
    """Upstream refused our credentials, or wants some."""


class RateLimitError(NetworkError):
    """Upstream told us to come back later, for longer than we are willing to wait."""


class OfflineError(NetworkError):
    """The network is needed and ``--offline`` forbids it."""


class EnvironmentFault(BuilderError):
    """This machine lacks something: no engine, no git, no pip, no space."""

    exit_status = 9
