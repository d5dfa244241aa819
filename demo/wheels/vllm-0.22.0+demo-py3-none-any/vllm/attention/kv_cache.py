"""How many bytes a token costs in the KV cache."""

BITS = {
    "auto": 16,
    "fp8": 8,
}


def bits_per_value(dtype: str) -> int:
    """Bits of one cached value."""
    try:
        return BITS[dtype]
    except KeyError:
        raise ValueError(f"unknown KV cache dtype: {dtype}") from None


def bytes_per_token(*, layers: int, heads: int, head_size: int, dtype: str) -> int:
    """Bytes of keys and values of one token over all layers."""
    values = 2 * layers * heads * head_size
    return values * bits_per_value(dtype) // 8
