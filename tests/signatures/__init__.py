"""Tests of builder.signatures."""
