"""A stand-in for the package that your images patch."""

__version__ = "1.0"
