import os


def tile(n):
    return max(n, 16)


class Draft:
    LIMIT = 4


class Prefill:
    LIMIT = 4


def cache_root():
    return os.environ.get("VLLM_CACHE_ROOT", "/var/cache/vllm")
