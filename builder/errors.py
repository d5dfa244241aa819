"""What can go wrong for a user, and the exit status of each kind.

Every error that a user can mend derives from :class:`BuilderError`. Anything else that escapes is
a bug and keeps its traceback (exit status 1). Only ``builder.cli`` exits.

A message is one sentence without a full stop that says where, what, and got against wanted, with
values quoted; ``hint`` says what to do next.
"""

from collections.abc import Iterable
from typing import Any, ClassVar

LINE_LIMIT = 2000
"""The most characters of a line of a message: documents of others are quoted in messages, and may
be a text of a million letters in the place of a name."""


class BuilderError(Exception):
    """Something the user can mend.

    Args:
        message: Where, what, got against wanted. Of lines over ``LINE_LIMIT`` the rest is counted.
        hint: What the user can do now; ``usual_hint`` of the class where none is given.
    """

    exit_status: ClassVar[int]
    usual_hint: ClassVar[str | None] = None
    """The next step of most errors of this kind, for those whose place knows no better one."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message := _bounded(message))
        self.message = message
        self.hint = self.usual_hint if hint is None else hint

    def record(self) -> dict[str, Any]:
        """What ``--json`` says of it."""
        return {"message": self.message, "hint": self.hint, "exit_status": self.exit_status}


def _bounded(message: str) -> str:
    if len(message) <= LINE_LIMIT:
        return message
    return "\n".join(
        line if (rest := len(line) - LINE_LIMIT) <= 0 else f"{line[:LINE_LIMIT]}... ({rest} more)"
        for line in message.split("\n")
    )


class UsageError(BuilderError):
    """The command line asks for something that does not exist or contradicts itself."""

    exit_status = 2


class ProjectError(BuilderError):
    """A file of the project (lock, variant, overlay, settings) is not what it must be."""

    exit_status = 3


class AbsentMirrorError(ProjectError):
    """A git mirror of builder.yaml is a path of this machine, and nothing is there. ``offline``:
    no other place may be asked, which is a reason to go to a copy of ours."""

    usual_hint: ClassVar[str | None] = (
        "put a repository there, or take the line out of mirrors in builder.yaml: other machines"
        " may not have that path, either"
    )

    def __init__(self, message: str, *, hint: str | None = None, offline: bool = False) -> None:
        super().__init__(message, hint=hint)
        self.offline = offline


class IntegrityError(BuilderError):
    """Bytes are not what their name, their lock or an earlier result says. Never retried."""

    exit_status = 4
    usual_hint: ClassVar[str | None] = (
        "get it again from where it came; if it stays so, pin another"
    )


class PolicyError(BuilderError):
    """A rule of the project forbids this: an allowlist, a waiver."""

    exit_status = 5


class SignatureError(IntegrityError):
    """A signature does not verify over what it stands for, or what carries it is damaged."""

    exit_status = 10
    usual_hint: ClassVar[str | None] = (
        "get what was signed and its signatures again from where they came; if it stays so, tell"
        " whoever signed"
    )


class UntrustedError(PolicyError):
    """What is signed is not signed by those whom the trust policy wants: unknown keys, too few of
    them, revoked or retired ones, a place that no scope has, a policy that nobody accepted."""

    exit_status = 11


class ExpiredError(PolicyError):
    """The trust policy, or the time of a key in it or of a certificate, is over."""

    exit_status = 12


class UnsignedError(BuilderError):
    """Nothing is signed, or not the kind of statement that is asked for."""

    exit_status = 13


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

    def record(self) -> dict[str, Any]:
        return super().record() | {
            "verdict": str(self.verdict),
            "path": self.path,
            "findings": list(self.findings),
            "difference": self.difference,
        }


class SandboxError(PatchError):
    """A program in a sandbox took more than it may, was killed, or left what may not be taken."""

    def __init__(self, message: str, *, hint: str | None = None) -> None:
        super().__init__(message, verdict="refused", hint=hint)


class GoneError(BuilderError):
    """Upstream answered, and what we pinned is no longer there."""

    exit_status = 7
    usual_hint: ClassVar[str | None] = (
        "name a place that has it under mirrors in builder.yaml, or pin another"
    )


class NetworkError(BuilderError):
    """Upstream could not be asked: no route, a time-out, a server error, a broken transfer."""

    exit_status = 8
    usual_hint: ClassVar[str | None] = (
        "try again; builder.yaml can name another place to ask: mirrors, registries, forges"
    )


class AuthError(NetworkError):
    """Upstream refused our credentials, or wants some."""

    exit_status = 14
    usual_hint: ClassVar[str | None] = (
        "registries take what docker login keeps, git takes the keys of ssh-agent"
    )


class RateLimitError(NetworkError):
    """Upstream told us to come back later, for longer than we are willing to wait."""

    exit_status = 15
    usual_hint: ClassVar[str | None] = "wait, or log in: more is allowed to known users"


class OfflineError(NetworkError):
    """The network is needed and ``--offline`` forbids it."""

    usual_hint: ClassVar[str | None] = "run it once without --offline"


class EnvironmentFault(BuilderError):
    """This machine lacks something: no engine, no git, no pip, no space."""

    exit_status = 9


class PasswordError(EnvironmentFault):
    """A private key needs a password: there is none, or it does not open the key. That the key's
    file is damaged cannot be told from that."""

    usual_hint: ClassVar[str | None] = (
        "BUILDER_KEY_PASSWORD_FILE names a file with the password; on a terminal it is asked for"
    )


WORST = (4, 10, 11, 12, 13, 9, 14, 3, 2, 5, 6, 7, 15, 8)
"""Exit statuses, the worst first, where there are several: bytes that are not what they must be,
signatures that are not those that are wanted, what does not get better by itself, what a person has
to decide, what has gone, what may have passed by tomorrow."""


def worst(statuses: Iterable[int]) -> int:
    """The worst of exit statuses, by :data:`WORST`; 0 where all are."""
    return min({*statuses} - {0}, key=WORST.index, default=0)
