"""Keys that count for something, of those that signed it."""

from builder.keys.public import PublicKey
from builder.value import value


@value
class Counted:
    """The keys that count, and sentences about the others: that somebody signed who does not count
    is told, and is no reason to name him as one who vouches."""

    keys: tuple[PublicKey, ...]
    remarks: tuple[str, ...] = ()
