"""Tests of builder.build_record and builder.statements."""
