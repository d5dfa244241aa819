"""The trust policy of a project, and what it says of the project's own files."""

import logging
import re
from collections.abc import Callable, Iterable, Mapping
from datetime import date
from functools import cached_property
from typing import TYPE_CHECKING

from builder.digest import Digest
from builder.errors import EnvironmentFault, ExpiredError, SignatureError, UntrustedError
from builder.lock.model import Waiver
from builder.project.pins import Pins
from builder.project_files import Files
from builder.trust.names import FILE, HISTORY, SIGNATURES, WAIVER_SIGNATURES
from builder.value import value

if TYPE_CHECKING:
    from builder.trust.chain import Accepted, Memory, Text, Versions
    from builder.trust.model import Policy

SIGNED = (WAIVER_SIGNATURES,)
"""Signatures among the lockfiles."""
_LIMIT = 4 << 20
_NUMBER = re.compile(r"([1-9][0-9]{0,8})\.yaml")
_log = logging.getLogger(__name__)


@value
class Acceptance:
    """How it is known which policy somebody accepted."""

    memory: "Callable[[], Memory]"
    """What this user accepted of this project."""
    anchor: Digest | None = None
    """The digest of a version that whoever runs this vouches for."""


class Trust(Pins):
    """The pins of a project, and its trust policy."""

    def __init__(self, files: Files, acceptance: Acceptance | None) -> None:
        super().__init__(files)
        self.acceptance = acceptance
        """How it is known which policy was accepted; ``None``: none was, by anybody."""

    @cached_property
    def versions(self) -> "Versions":
        """What there is of the policy. Nothing of it is parsed.

        Raises:
            ProjectError: A file cannot be read.
        """
        from builder.trust.chain import Versions  # noqa: PLC0415 - few projects have a policy

        history = {}
        for name in self._files.names(HISTORY):
            if found := _NUMBER.fullmatch(name):
                history[int(found[1])] = self._text(f"{HISTORY}/{name}")
        kept = {number: text for number, text in history.items() if text is not None}
        return Versions(latest=self._text(FILE), history=kept)

    def policy(self, *, today: date) -> "Policy | None":
        """The policy that holds; ``None`` for a project that has none and never had one here. One
        that leads on from what was accepted is accepted with that, and remembered.

        Raises:
            UntrustedError: Nobody accepted it, or it does not follow from what was accepted.
            ExpiredError: It is over.
            SignatureError, ProjectError: A file of it is not what it must be.
        """
        found = self.accepted()
        if found is None:
            return None
        from builder.trust.chain import check_expiry  # noqa: PLC0415 - as above

        check_expiry(found.policy, today)
        return found.policy

    def accepted(self) -> "Accepted | None":
        """As :meth:`policy`, expired or not."""
        memory = None if self.acceptance is None else self.acceptance.memory()
        anchor = None if self.acceptance is None else self.acceptance.anchor
        known = None if memory is None else memory.recall()
        if self._files.read(FILE, limit=_LIMIT) is None and known is None and anchor is None:
            return None
        from builder.trust.chain import accepted  # noqa: PLC0415 - as above

        found = accepted(self.versions, known=known, anchor=anchor)
        if memory is not None and found.raw != known:
            _remember(memory, found, needed=anchor is None)
            if known is not None:
                _log.info("%s: version %d is accepted now", FILE, found.policy.version)
        return found

    def unvouched(self, waivers: Mapping[str, Waiver], *, today: date) -> Mapping[str, str]:
        """Those waivers that the trust policy does not let count, by name, with the reason; none
        in a project without a policy.

        Raises:
            ProjectError: The policy is none.
        """
        if not waivers:
            return {}
        try:
            policy = self.policy(today=today)
            if policy is None:
                return {}
            from builder.trust.signatures import read_signatures  # noqa: PLC0415 - as above
            from builder.trust.waivers import unvouched  # noqa: PLC0415 - as above

            data = self._files.read(WAIVER_SIGNATURES, limit=_LIMIT)
            envelopes = read_signatures(data, file=WAIVER_SIGNATURES)
            return unvouched(waivers, envelopes, policy=policy, today=today)
        except (UntrustedError, ExpiredError, SignatureError) as error:
            return dict.fromkeys(waivers, error.message)

    @property
    def signatures(self) -> bytes | None:
        """Those of the newest version, unparsed."""
        return self._files.read(FILE + SIGNATURES, limit=_LIMIT)

    def update_trust(
        self,
        files: Iterable[str],
        change: Callable[[Mapping[str, bytes | None]], Mapping[str, bytes]],
    ) -> None:
        """Replace files of the policy together, each whole: see
        :meth:`builder.project_files.Files.replace_all`."""
        self._files.replace_all(files, change, limit=_LIMIT)

    def _text(self, file: str) -> "Text | None":
        from builder.trust.chain import Text  # noqa: PLC0415 - as above

        raw = self._files.read(file, limit=_LIMIT)
        if raw is None:
            return None
        signatures = self._files.read(file + SIGNATURES, limit=_LIMIT)
        return Text(file=file, raw=raw, signatures=signatures)


def _remember(memory: "Memory", found: "Accepted", *, needed: bool) -> None:
    """A CI that names a version each time may have no place to remember it."""
    try:
        memory.remember(found.raw)
    except EnvironmentFault as error:
        if needed:
            raise
        _log.warning("%s: not remembered: %s", FILE, error.message)
