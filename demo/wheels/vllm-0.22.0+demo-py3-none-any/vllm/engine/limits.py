"""Limits of one engine."""

MAX_MODEL_LEN = 32_768
MAX_NUM_SEQS = 256


def describe() -> str:
    """The limits, for the log."""
    return f"max_model_len={MAX_MODEL_LEN} max_num_seqs={MAX_NUM_SEQS}"
