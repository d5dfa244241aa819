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
IMAGE_VERSION = 2
"""The version of the records that are written."""

ANSWER = "answer"
"""A command line in a place (hex) to what a build answers there while nothing changes."""

DIFF = "diff"
"""``BASE-HEAD`` (two git object ids) to the diff between them, deflated."""

FACTS = "facts"
"""The tree of a patch set's payload (a git object id) to what the patch set says of itself."""

TREE = "tree"
"""The id of a git tree to its files, packed and deflated."""

MODEL = "model"
"""A directory (the hash of its path) to what its files were when they were hashed last."""


MALFORMED = (
    *(AttributeError, IndexError, KeyError, TypeError, ValueError),
    *(IntegrityError, ProjectError),
)
"""What reading a memo raises that is not of the form in which we write it: it counts as none, since
all that it could say can be found out again."""


def blobs_of(note: bytes) -> tuple[Digest, ...]:
    """The blobs that a memo names: a JSON object with a top-level key ``blobs``, a list of digests.

    ``verify`` and ``gc`` read that key and nothing else. A memo without it, and one that is not
    whole, names none.
    """
    from builder import json_text  # noqa: PLC0415 - the names above are wanted where JSON is not

    try:
        value = json_text.loads(note)
    except ValueError:
        return ()
    names = value.get("blobs") if isinstance(value, dict) else None
    if not isinstance(names, list):
        return ()
    try:
        return tuple(Digest.parse(str(name), refusal=IntegrityError) for name in names)
    except IntegrityError:
        return ()
