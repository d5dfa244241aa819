"""Real input, end to end: the vLLM wheel of PyPI, a published diff, real registries and engines."""
