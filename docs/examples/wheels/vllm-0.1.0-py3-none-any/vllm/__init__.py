"""A stand-in for vLLM, small enough to read."""

__version__ = "0.1.0"
