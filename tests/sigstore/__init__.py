"""Tests of builder.sigstore."""
