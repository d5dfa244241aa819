"""The same variants under other conditions: one digest, or the first file that differs."""
