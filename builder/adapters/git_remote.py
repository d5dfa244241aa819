"""A repository that somebody works in, and its remote: asked and pushed to, nothing else moves.

The repository's own configuration holds (addresses, keys, certificates); its hooks and monitors do
not run.
"""

import logging
import tempfile
from base64 import b64encode
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path

from builder.adapters.git_process import Answer, GitProcess, fault
from builder.address import public, redacted
from builder.errors import (
    AuthError,
    BuilderError,
    EnvironmentFault,
    NetworkError,
    OfflineError,
    ProjectError,
)
from builder.value import field, value

_log = logging.getLogger(__name__)
_PROTOCOLS = "file:https:ssh:http"


@value
class Token:
    """Credentials for a remote that is at ``host`` and reached over TLS."""

    host: str
    secret: str = field(repr=False)


class GitRepository:
    """Runs git on a repository by its directory (``.git``, or that of a worktree)."""

    def __init__(self, process: GitProcess, directory: Path) -> None:
        self._process, self.directory = process, directory

    def run(
        self,
        *arguments: str,
        stdin: bytes = b"",
        extra: Mapping[str, str] | None = None,
        protocols: str = "",
    ) -> Answer:
        """Run one command to its end."""
        options = ("-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false")
        with tempfile.TemporaryFile() as file:
            file.write(stdin)
            file.seek(0)
            return self._process.run(
                self.directory, *options, *arguments, stdin=file, protocols=protocols, extra=extra
            )

    def ask(
        self, *arguments: str, stdin: bytes = b"", extra: Mapping[str, str] | None = None
    ) -> bytes:
        """What a command says that cannot fail here.

        Raises:
            EnvironmentFault: It does.
        """
        answer = self.run(*arguments, stdin=stdin, extra=extra)
        if not answer.ok:
            raise fault(answer, at=f"{self.directory}") or EnvironmentFault(
                f"{self.directory}: git {arguments[0]}: {answer.complaint}"
            )
        return answer.stdout

    def has(self, commit: str) -> bool:
        """Whether a commit is here, with its tree."""
        return self.run("cat-file", "-e", f"{commit}^{{tree}}").ok


class GitRemote:
    """A remote of a repository, by its name there.

    ``token`` may be set before the remote is asked; it is for an ``https`` remote at its host.
    Other remotes have keys, or need none.

    Raises:
        ProjectError: There is none of this name.
    """

    def __init__(self, repository: GitRepository, *, name: str, offline: bool) -> None:
        self._repository, self._name, self._offline = repository, name, offline
        self.token: Token | None = None
        answer = repository.run("config", "--get", f"remote.{name}.url")
        if not answer.ok:
            raise ProjectError(
                f"{repository.directory}: no remote {name!r}", hint=f"git remote add {name} URL"
            )
        self.url = answer.stdout.decode("utf-8", "replace").strip()
        """As the repository's configuration spells it."""

    @property
    def shown(self) -> str:
        """:attr:`url` without credentials."""
        return redacted(self.url)

    @cached_property
    def heads(self) -> Mapping[str, str]:
        """The branches of the remote by their short names, asked once."""
        answer = self._ask("ls-remote", "--quiet", "--heads", self._name)
        if not answer.ok:
            raise self._fault(answer, f"remote {self._name}")
        lines = answer.stdout.decode("utf-8", "surrogateescape").split("\n")
        pairs = (line.partition("\t") for line in lines if line)
        return {ref.removeprefix("refs/heads/"): commit for commit, _, ref in pairs}

    def fetch(self, branch: str) -> None:
        """A branch's last commit, without moving any ref; its history where all of it is here."""
        shallow = self._repository.ask("rev-parse", "--is-shallow-repository").strip() == b"true"
        answer = self._ask(
            *("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--refmap="),
            *("--no-auto-gc", "--no-recurse-submodules"),
            *(["--depth=1"] if shallow else []),
            *(self._name, f"refs/heads/{branch}"),
        )
        if not answer.ok:
            raise self._fault(answer, f"fetch of {branch}")

    def push(self, branch: str, commit: str, *, expected: str | None) -> None:
        """See :meth:`builder.upstream.Branches.push`."""
        ref = f"refs/heads/{branch}"
        with tempfile.NamedTemporaryFile() as config:
            # A remote on this machine reads it, too, and its own hooks are to run.
            config.write(b"[safe]\n\tdirectory = *\n")
            config.flush()
            answer = self._ask(
                *("push", "--porcelain", "--no-verify", "--no-signed", "--no-follow-tags"),
                *("--recurse-submodules=no", f"--force-with-lease={ref}:{expected or ''}"),
                *(self._name, f"{commit}:{ref}"),
                config=config.name,
            )
        at = f"push of {branch}"
        if answer.ok:
            _log.info("pushed %s to %s", commit[:12], branch)
            return
        said = answer.stdout.decode("utf-8", "replace")
        if "(stale info)" in said or "(fetch first)" in said:
            raise ProjectError(
                f"{at}: somebody else has pushed to it meanwhile", hint="run it again"
            )
        if in_the_way := _in_the_way(branch, self.heads):
            raise ProjectError(
                f"{at}: {self._name} has a branch {in_the_way!r}, beside which git can have none of"
                " this name",
                hint="rename that branch, or the pin",
            )
        if "[remote rejected]" in said:
            reason = said.partition("[remote rejected]")[2].partition("\n")[0].strip()
            raise AuthError(f"{at}: refused: {reason}", hint="let this token, or key, push there")
        raise self._fault(answer, at)

    def _fault(self, answer: Answer, at: str) -> BuilderError:
        return fault(answer, at=at) or NetworkError(f"{at}: {answer.complaint}")

    def _ask(self, *arguments: str, config: str | None = None) -> Answer:
        if self._offline:
            raise OfflineError(f"remote {self._name}: --offline forbids to ask it")
        extra = {} if config is None else {"GIT_CONFIG_GLOBAL": config}
        extra |= {"GIT_CONFIG_COUNT": "1"} | _setting(0, "http.followRedirects", "false")
        token = self.token
        at = public(self.url) or ""
        if token is not None and at.startswith(f"https://{token.host}/"):
            header = f"http.https://{token.host}/.extraHeader"
            secret = b64encode(f"x-access-token:{token.secret}".encode()).decode()
            extra |= {"GIT_CONFIG_COUNT": "3"}
            extra |= _setting(1, header, "")  # whatever the repository's own configuration adds
            extra |= _setting(2, header, f"Authorization: Basic {secret}")
        return self._repository.run(*arguments, extra=extra, protocols=_PROTOCOLS)


def _in_the_way(branch: str, heads: Iterable[str]) -> str | None:
    """A branch that is a directory of ``branch``, or has it for one: refs are kept as files."""
    return next(
        (head for head in heads if branch.startswith(f"{head}/") or head.startswith(f"{branch}/")),
        None,
    )


def _setting(number: int, key: str, text: str) -> dict[str, str]:
    return {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": text}
