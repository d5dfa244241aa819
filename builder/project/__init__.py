"""A project directory: the values in its files, read when they are asked for."""

from builder.project.project import Project
from builder.project.trust import Acceptance

__all__ = ["Acceptance", "Project"]
