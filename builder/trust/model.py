"""The policy as a value."""

from collections.abc import Mapping
from datetime import date, timedelta
from enum import StrEnum

from builder.digest import Digest
from builder.keys.public import PublicKey
from builder.trust.names import LONGEST_WAIVER, ROOT
from builder.value import field, value


class KeyState(StrEnum):
    """What the policy says of a key as a whole."""

    ACTIVE = "active"
    RETIRED = "retired"
    """Nothing new by it counts. Nobody else has it, as far as is known."""
    REVOKED = "revoked"
    """Somebody else may have it. Since no signature proves when it was made, none counts."""


@value
class TrustedKey:
    """A key that the policy knows. It is named by people, and is what its SPKI is."""

    name: str
    public: PublicKey
    owner: str
    state: KeyState = KeyState.ACTIVE
    since: date | None = None
    """The first day (UTC) on which it counts."""
    until: date | None = None
    """The last one."""
    at: str = field(default="", compare=False)

    def in_its_days(self, today: date) -> bool:
        """Whether ``today`` (UTC) is not before its first day, and not after its last."""
        return (self.since is None or self.since <= today) and (
            self.until is None or today <= self.until
        )


@value
class Role:
    """So many of these keys, each counted once."""

    name: str
    keys: tuple[str, ...]
    threshold: int
    at: str = field(default="", compare=False)


@value
class Scope:
    """The role that signs the images of some repositories."""

    repositories: tuple[str, ...]
    """See :mod:`builder.trust.scope`."""
    role: str
    at: str = field(default="", compare=False)


@value
class Policy:
    """All of ``trust.yaml``. Keys and roles are by name, in the order of the file."""

    version: int
    expires: date
    """The last day (UTC) on which it holds."""
    keys: Mapping[str, TrustedKey]
    roles: Mapping[str, Role]
    scopes: tuple[Scope, ...]
    grandfathered: frozenset[Digest] = frozenset()
    """What counts although its key is retired or revoked: somebody looked, and signed that here."""
    longest_waiver: timedelta = timedelta(days=LONGEST_WAIVER)

    def keys_of(self, role: Role) -> tuple[TrustedKey, ...]:
        """The keys of a role, in its order."""
        return tuple(self.keys[name] for name in role.keys)

    @property
    def root(self) -> Role:
        """The role that signs the policy."""
        return self.roles[ROOT]

    @property
    def root_keys(self) -> tuple[TrustedKey, ...]:
        """Those that may sign the policy."""
        return tuple(key for key in self.keys_of(self.root) if key.state is KeyState.ACTIVE)
