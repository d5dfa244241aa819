"""Limits of one engine."""

MAX_MODEL_LEN = 262_144
MAX_NUM_SEQS = 2


def describe() -> str:
    """The limits, for the log."""
    return f"max_model_len={MAX_MODEL_LEN} max_num_seqs={MAX_NUM_SEQS}"
