"""What can be had without asking anybody: what ``check`` goes by."""

from collections.abc import Callable

from builder.base import Base
from builder.genesis.facts import Facts
from builder.lock.model import GenesisPin, Lock
from builder.ports import Store
from builder.steps.request import Materials
from builder.value import value
from builder.variant import Variant


@value
class AtHand:
    """Each raises OfflineError for what is not at hand; of that, nothing is said."""

    store: Store
    """Only read."""
    materials: Callable[[Lock], Materials]
    """The bytes of pins."""
    facts: Callable[[GenesisPin, Materials], Facts]
    """What a patch set says of itself."""
    base: Callable[[Variant], Base | None]
    """The documents of a base; ``None`` for ``scratch``."""
