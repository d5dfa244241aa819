"""A project directory: the values in its files, read when they are asked for."""

from builder.project.project import Project

__all__ = ["Project"]
