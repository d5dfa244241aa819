"""The ports of ``builder.ports`` over real things. Only ``builder.cli`` imports from here."""
