"""What became of one file under one step: the words that the users of vLLM patches already use."""

from enum import StrEnum


class Verdict(StrEnum):
    """The outcome of a step for one file. The values appear in tables, manifests and ``--json``."""

    APPLIED = "applied"
    APPLIED_WITH_OFFSET = "applied-with-offset"
    ALREADY_UPSTREAM = "already-upstream"
    DRIFT_ANCHOR = "drift-anchor"
    AMBIGUOUS_ANCHOR = "ambiguous-anchor"
    FILE_MOVED = "file-moved"
    FILE_MISSING = "file-missing"
    REFUSED = "refused"
