"""Multi-token prediction: how many draft tokens are proposed per step."""

DEFAULT_DRAFT_TOKENS = 1


def draft_tokens(configured: int | None) -> int:
    """The number of tokens to draft; nothing configured means the default."""
    if configured is None:
        return DEFAULT_DRAFT_TOKENS
    if configured < 1:
        raise ValueError("at least one draft token")
    return configured
