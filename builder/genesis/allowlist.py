"""The vLLM builds that a commit of the patch set knows, and whether a base is one of them.

A build of vLLM is its commit. The patch set compares whole version strings, in which the commit
has nine digits or more; its lists also hold the tags of images, and releases. An entry names a
base when its digits begin the commit of the base and its public version, where it has one, is that
of the base. Nothing shorter, and nothing that is merely compatible.
"""

import re
from collections.abc import Mapping
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Self

from builder.errors import ProjectError
from builder.genesis.eras import Era
from builder.value import value

if TYPE_CHECKING:
    from packaging.version import Version

KNOWN_GOOD = "KNOWN_GOOD_VLLM_PINS"
PENDING = "PROMOTION_PENDING_VLLM_PINS"

_LOCAL = re.compile(r"g([0-9a-f]{9,40})(?:\.cu\d+)?")
"""The local part of the version of a nightly: git's digits, and the CUDA that it was built for.
Something else behind the digits (``.d20260505``) is a build of changed sources."""
_TAG = re.compile(r"nightly-([0-9a-f]{9,40})")
_TOO_SHORT = re.compile(r"(?:nightly-|.*\+g)([0-9a-f]{7,8})")
_NEAREST = 3


class Presence(StrEnum):
    """Whether a commit of the patch set has an allowlist."""

    PRESENT = "present"
    NONE = "no-list"
    """Its guards have none: it is older than the lists."""
    MISSING = "module-missing"
    """The module that should have it is not there, or takes it from elsewhere."""


@value
class Allowlist:
    """The allowlist of a commit, as written."""

    presence: Presence
    file: str | None = None
    """Where it stands, relative to the payload."""
    good: tuple[str, ...] = ()
    pending: tuple[str, ...] = ()
    """Builds that are to be promoted when they have been measured. One can be in both lists."""

    def record(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "presence": str(self.presence),
            "file": self.file,
            "good": list(self.good),
            "pending": list(self.pending),
        }

    @classmethod
    def parse(cls, value: Mapping[str, Any]) -> Self:
        """The inverse of :meth:`record`."""
        return cls(
            presence=Presence(value["presence"]),
            file=value["file"],
            good=tuple(value["good"]),
            pending=tuple(value["pending"]),
        )


def read_allowlist(era: Era, files: Mapping[str, bytes]) -> Allowlist:
    """The allowlist in the payload ``files``.

    Raises:
        NotLiteral: It is there and is not literal.
        ProjectError: It is no list of texts.
    """
    from builder.genesis.literals import literals  # noqa: PLC0415 - facts that are kept need no ast

    file = next((path for path in era.guards if path in files), None)
    if file is None:
        return Allowlist(presence=Presence.MISSING)
    at = f"{era.payload}/{file}"
    found = literals(files[file], (KNOWN_GOOD, PENDING), file=at)
    if KNOWN_GOOD not in found:
        absent = Presence.MISSING if era.always_listed else Presence.NONE
        return Allowlist(presence=absent, file=file)
    return Allowlist(
        presence=Presence.PRESENT,
        file=file,
        good=_texts(found[KNOWN_GOOD], at=f"{at}: {KNOWN_GOOD}"),
        pending=_texts(found.get(PENDING, ()), at=f"{at}: {PENDING}"),
    )


def _texts(entries: object, *, at: str) -> tuple[str, ...]:
    if not isinstance(entries, tuple | list | frozenset):
        raise ProjectError(f"{at}: expected a list of versions, got {entries!r:.60}")
    for entry in entries:
        if not isinstance(entry, str):
            raise ProjectError(f"{at}: expected a version, got {entry!r:.60}")
    return tuple(sorted(entries) if isinstance(entries, frozenset) else entries)


class Listing(StrEnum):
    """What an allowlist says of a base."""

    LISTED = "listed"
    PENDING = "listed-as-pending"
    BOTH = "listed-and-pending"
    NOT_LISTED = "not-listed"
    NO_LIST = "no-list"
    MODULE_MISSING = "module-missing"


@value
class Judgement:
    """What an allowlist says of a base, and why."""

    listing: Listing
    vllm: str
    """The base, for messages: its version, and its commit where that is known."""
    entries: tuple[str, ...] = ()
    """The entries that name it."""
    nearest: tuple[str, ...] = ()
    """Where none does: the entries that come closest, the closest first."""


def judge(allowlist: Allowlist, *, version: str, commit: str | None) -> Judgement:
    """Whether the build of vLLM that has this version and this full commit is listed.

    Without a commit the digits in the version count as far as they go.
    """
    vllm = f"{version} ({commit})" if commit is not None else version
    if allowlist.presence is not Presence.PRESENT:
        return Judgement(listing=Listing(str(allowlist.presence)), vllm=vllm)
    base = _Build.of_base(version, commit)
    good = tuple(entry for entry in allowlist.good if base.is_named_by(entry))
    pending = tuple(entry for entry in allowlist.pending if base.is_named_by(entry))
    entries = tuple(dict.fromkeys(good + pending))
    if entries:
        listing = Listing.BOTH if good and pending else Listing.LISTED if good else Listing.PENDING
        return Judgement(listing=listing, vllm=vllm, entries=entries)
    every = dict.fromkeys(allowlist.good + allowlist.pending)
    nearest = sorted(every, key=base.distance)[:_NEAREST]
    return Judgement(listing=Listing.NOT_LISTED, vllm=vllm, nearest=tuple(nearest))


@value
class _Build:
    """A base: its version as it says it, the public part of that, and what is known of its
    commit."""

    version: str
    public: str
    commit: str

    @classmethod
    def of_base(cls, version: str, commit: str | None) -> Self:
        public, _, local = version.partition("+")
        digits = _LOCAL.fullmatch(local)
        known = commit or (digits[1] if digits else "")
        return cls(version=version, public=public, commit=known.lower())

    def is_named_by(self, entry: str) -> bool:
        """The rule of this module."""
        if tag := _TAG.fullmatch(entry):
            return self.commit.startswith(tag[1])
        public, plus, local = entry.partition("+")
        if not plus:
            return entry == self.version
        digits = _LOCAL.fullmatch(local)
        if digits is None:  # a build of somebody's own, which has nothing but its whole name
            return entry == self.version and not self.commit
        return public == self.public and self.commit.startswith(digits[1])

    def distance(self, entry: str) -> tuple[int, ...]:
        """How far an entry is that does not name this build: first the same commit under another
        version or with too few digits, then versions by number, then what has none."""
        from packaging.version import Version  # noqa: PLC0415 - only refusals need it

        public, _, local = entry.partition("+")
        digits = _LOCAL.fullmatch(local) or _TAG.fullmatch(entry) or _TOO_SHORT.fullmatch(entry)
        if digits and self.commit and self.commit.startswith(digits[1]):
            return (0,)
        try:
            return (1, *_apart(Version(self.public), Version(public)))
        except ValueError:  # no version, or one with more digits than Python reads as a number
            return (2,)


def _apart(one: "Version", other: "Version") -> tuple[int, ...]:
    """How far two versions are apart: by the numbers of the release, then by what leads to it."""
    pairs = [(one.major, other.major), (one.minor, other.minor), (one.micro, other.micro)]
    pairs += [((one.pre or ("", 0))[1], (other.pre or ("", 0))[1]), (one.dev or 0, other.dev or 0)]
    return tuple(abs(left - right) for left, right in pairs)
