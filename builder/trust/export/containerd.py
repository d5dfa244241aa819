"""containerd: the plugin ``io.containerd.image-verifier.v1.bindir`` runs every program of a
directory for each image that it pulls, and takes 0 for yes (docs/image-verification.md there).

What is asked and answered is :mod:`builder.trust.image_verifier`.
"""

import shlex
from datetime import date
from pathlib import PurePosixPath

from builder.digest import Digest
from builder.trust.export.chosen import Export, chosen
from builder.trust.model import Policy

DIRECTORY = "/opt/containerd/image-verifier/bin"
"""Where containerd looks if its configuration says nothing."""
_ALL = (
    "containerd passes over programs beyond max_verifiers, in the order of their names: -1 has it"
    " ask all"
)
_CONFIGURATION = """\
version = 3

[plugins."io.containerd.image-verifier.v1.bindir"]
  bin_dir = {directory}
  max_verifiers = -1
  per_verifier_timeout = "30s"
"""


def containerd(
    policy: Policy, *, program: PurePosixPath, project: PurePosixPath, anchor: Digest, today: date
) -> Export:
    """A program for ``bin_dir``, and the part of config.toml that names the directory.

    Args:
        program: builder on that machine: containerd's PATH is its own.
        project: The project, as the machine that runs containerd has it.
        anchor: The version that is accepted: nobody accepts one there by hand.

    Raises:
        PolicyError: A role has too few keys.
    """
    chosen(policy, today)
    command = f"exec {shlex.quote(str(program))} -C {shlex.quote(str(project))} image-verifier"
    script = f'#!/bin/sh\nexport BUILDER_TRUST={anchor}\n{command} "$@"\n'
    return Export(
        files={
            "bin/builder": script.encode(),
            "config.toml": _CONFIGURATION.format(directory=f'"{DIRECTORY}"').encode(),
        },
        remarks=(
            f"bin/builder goes to {DIRECTORY}: with nothing there, containerd pulls everything",
            _ALL,
            "containerd's transfer service asks it, and ctr image pull --local does not",
            f"it runs {program}, which has to be there",
            f"it asks the project in {project}, which leads on from this version",
        ),
    )
