"""Tests of builder.verification."""
