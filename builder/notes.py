"""The kinds of memo that the store holds for us, and what their keys are."""

from builder.digest import Digest
from builder.errors import IntegrityError, ProjectError

DERIVATION = "derivation"
"""A derivation's id (hex) to its output."""

QUESTION = "question"
"""A derivation's question (hex) to pairs of what was read and what came out."""

LAYER = "layer"
"""A base layer's digest (hex) to the blobs with what is known of it: file index, pack, table."""

IMAGE = "image"
"""A manifest's digest (hex) to the record of its build."""

ANSWER = "answer"
"""A command line in a place (hex) to what a build answers there while nothing changes."""

DIFF = "diff"
"""``BASE-HEAD`` (two git object ids) to the diff between them, deflated."""


MALFORMED = (
    *(AttributeError, IndexError, KeyError, TypeError, ValueError),
    *(IntegrityError, ProjectError),
)
"""What reading a memo raises that is not of the form in which we write it: it counts as none, since
all that it could say can be found out again."""


def blobs_of(note: bytes) -> tuple[Digest, ...]:
    """The blobs that a memo names under the key ``blobs``, as all of ours do that name any; none
    where it is malformed."""
    from builder import canonical  # noqa: PLC0415 - the names above are wanted where JSON is not

    try:
        return tuple(Digest.parse(item) for item in canonical.decode(note, at="note")["blobs"])
    except MALFORMED:
        return ()
