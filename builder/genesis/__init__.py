"""What a commit of the Genesis patch set says of itself, read and never run.

Its allowlist and its patch registry are literals in Python source: they are taken out of the
syntax tree. Nothing of a patch set is ever imported here.
"""
