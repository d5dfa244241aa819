"""``builder.yaml``: what a project says about places and machines, and what it lets pass. It never
changes what is built.

Everything in it is optional, and so is the file.
"""

from builder.settings.model import (
    FILE,
    SANDBOXES,
    ComposeService,
    ExpiryPolicy,
    ForgeSettings,
    GenesisPolicy,
    GitMirror,
    Level,
    ProjectSettings,
    RegistrySettings,
    SandboxSettings,
)
from builder.settings.reader import read_settings

__all__ = [
    "FILE",
    "SANDBOXES",
    "ComposeService",
    "ExpiryPolicy",
    "ForgeSettings",
    "GenesisPolicy",
    "GitMirror",
    "Level",
    "ProjectSettings",
    "RegistrySettings",
    "SandboxSettings",
    "read_settings",
]
