"""A stand-in for the vLLM package, for the demo variant: the shape of the real one, none of its
code."""

from vllm._version import __version__

__all__ = ["__version__"]
