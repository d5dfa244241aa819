"""Locked inputs: the pins as values (``model``), and the files that hold them (``codec``)."""
