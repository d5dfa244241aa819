"""Names of files, types and roles: known without loading anything."""

from typing import Final

FILE: Final = "trust.yaml"
"""The policy of a project, in its root."""
SIGNATURES: Final = ".sig.jsonl"
"""What the name of a signed file ends with where it is that of its signatures."""
HISTORY: Final = "trust"
"""The directory of earlier versions: ``trust/N.yaml`` with its signatures."""
WAIVER_SIGNATURES: Final = f"lockfiles/waivers.yaml{SIGNATURES}"

PAYLOAD_TYPE: Final = "application/vnd.vllm-image-builder.trust.v1+yaml"
WAIVER_TYPE: Final = "application/vnd.vllm-image-builder.waiver.v1+json"

ROOT: Final = "root"
"""The role that signs the policy itself."""
WAIVER: Final = "waiver"
MODEL: Final = "model"
RESERVED: Final = frozenset({ROOT, WAIVER, MODEL})
"""Roles that sign something else than images."""
LONGEST_WAIVER: Final = 366
"""How many days a waiver may reach ahead where the policy says nothing."""
