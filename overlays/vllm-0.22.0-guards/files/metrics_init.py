"""Metrics of the V1 engine. What this image was baked with is in ``builder_facts``."""
