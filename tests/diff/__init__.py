"""Tests of builder.diff."""
