"""``python -m vllm``: say what this build can do."""

from vllm import __version__
from vllm.attention.kv_cache import bytes_per_token
from vllm.engine.limits import describe
from vllm.spec_decode.mtp import draft_tokens


def main() -> None:
    """Print the facts that the demo's patches change."""
    cost = bytes_per_token(layers=64, heads=4, head_size=128, dtype="auto")
    print(f"vllm {__version__}: {cost} bytes per token, {draft_tokens(None)} draft tokens")
    print(describe())


if __name__ == "__main__":
    main()
