"""containers/image (podman, skopeo, buildah, CRI-O): containers-policy.json(5) and
containers-registries.d(5).

Requirements of a scope are all to be met, and ``keyDatas`` of one requirement are alternatives. *k*
of *n* keys is therefore one requirement for each n-k+1 of them: whoever is missing at most n-k
signatures is in none of these sets alone.
"""

import json
from base64 import b64encode
from datetime import date
from itertools import combinations
from math import comb
from typing import Any

from builder.errors import PolicyError
from builder.strict_yaml import write
from builder.trust.export.chosen import SPELT_OTHERWISE, Chosen, Export, chosen, remarks
from builder.trust.model import Policy
from builder.trust.scope import EVERYTHING

_REQUIREMENTS_LIMIT = 100
_LOCAL = (
    "containers-storage",
    "dir",
    "docker-archive",
    "docker-daemon",
    "oci",
    "oci-archive",
)
"""Transports of this machine: what podman builds and pushes comes from there."""


def containers(policy: Policy, *, today: date, reject: bool) -> Export:
    """``policy.json`` with the keys in it, and a file for ``registries.d``.

    Args:
        reject: Whether images of no scope are refused; else they pass unseen, as a policy.json
            that nobody wrote has it. Files on this disk (layouts, archives) pass in any case.

    Raises:
        PolicyError: A role has too few keys, or its threshold would take too many requirements.
    """
    scopes = {item.repository: item for item in chosen(policy, today)}
    everything = scopes.pop(EVERYTHING, None)
    default = _requirements(everything) if everything else [{"type": _other(reject=reject)}]
    docker: dict[str, Any] = {_scope(name): _requirements(item) for name, item in scopes.items()}
    if everything:  # the default is for all transports
        docker[""] = default
        default = [{"type": _other(reject=reject)}]
    local = [{"type": "insecureAcceptAnything"}]
    document = {
        "default": default,
        "transports": {
            "docker": docker,
            **{name: {"": local} for name in _LOCAL},
        },
    }
    where = {_scope(name): {"use-sigstore-attachments": True} for name in scopes}
    attachments: dict[str, Any] = {"docker": where} if where else {}
    if everything:
        attachments["default-docker"] = {"use-sigstore-attachments": True}
    return Export(
        files={
            "policy.json": json.dumps(document, indent=2).encode() + b"\n",
            "registries.d/builder.yaml": write(attachments, at="registries.d/builder.yaml"),
        },
        remarks=(
            *remarks(policy, today),
            *(() if reject else (SPELT_OTHERWISE,)),
            "a mirror under another name wants signedIdentity: remapIdentity",
        ),
    )


def _other(*, reject: bool) -> str:
    return "reject" if reject else "insecureAcceptAnything"


def _scope(pattern: str) -> str:
    """A namespace covers all below it there, too, and is written without a star."""
    return pattern.removesuffix("/*")


def _requirements(item: Chosen) -> list[dict[str, Any]]:
    keys, threshold = item.keys, item.role.threshold
    together = len(keys) - threshold + 1
    if comb(len(keys), together) > _REQUIREMENTS_LIMIT:
        raise PolicyError(
            f"{item.role.at}: {threshold} of {len(keys)} keys are {comb(len(keys), together)}"
            f" requirements in policy.json, the limit is {_REQUIREMENTS_LIMIT}",
            hint="take fewer keys, or verify with builder verify",
        )
    return [
        {
            "type": "sigstoreSigned",
            **_keys([key.public.pem for key in some]),
            "signedIdentity": {"type": "matchRepository"},
        }
        for some in combinations(keys, together)
    ]


def _keys(pems: list[bytes]) -> dict[str, Any]:
    encoded = [b64encode(pem).decode() for pem in pems]
    return {"keyData": encoded[0]} if len(encoded) == 1 else {"keyDatas": encoded}
