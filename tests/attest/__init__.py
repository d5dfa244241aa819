"""Tests of builder.attest."""
