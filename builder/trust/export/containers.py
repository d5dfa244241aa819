"""containers/image (podman, skopeo, buildah, CRI-O): containers-policy.json(5) and
containers-registries.d(5).

Requirements of a scope are all to be met, and ``keyDatas`` of one requirement are alternatives. *k*
of *n* keys is therefore one requirement for each n-k+1 of them: whoever is missing at most n-k
signatures is in none of these sets alone.
"""

import json
from base64 import b64encode
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import date
from itertools import combinations
from math import comb
from typing import Any

from builder.errors import PolicyError
from builder.reference import Reference
from builder.strict_yaml import write
from builder.trust.export.chosen import (
    Chosen,
    Export,
    chosen,
    hub_spellings,
    remarks,
    spelt_otherwise,
)
from builder.trust.model import Policy, Scope
from builder.trust.scope import EVERYTHING, scope_of

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
        PolicyError: A role has too few keys, or its threshold would take too many requirements; or
            a place and the repository of its name are of two roles.
    """
    found = chosen(policy, today)
    itself = (*_itself(policy, found), *_below(policy, found))
    # docker.io/NAME is docker.io/library/NAME to the reader, and the place NAME/* in this file.
    scopes = {
        _scope(name): item for item in found for name in hub_spellings(item.repository, short=False)
    }
    everything = scopes.pop(EVERYTHING, None)
    default = _requirements(everything) if everything else [{"type": _other(reject=reject)}]
    docker: dict[str, Any] = {name: _requirements(item) for name, item in scopes.items()}
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
    where = {name: {"use-sigstore-attachments": True} for name in scopes}
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
            *itself,
            *spelt_otherwise(found, reject=reject),
            "a mirror under another name wants signedIdentity: remapIdentity",
        ),
    )


def _itself(policy: Policy, scopes: Sequence[Chosen]) -> Iterator[str]:
    """Places of which a repository may have the name: ``acme/*`` is ``acme`` there, and that is the
    repository ``acme``, too.

    Raises:
        PolicyError: Another role has that one.
    """
    for item in scopes:
        place = _scope(item.repository)
        if place == item.repository or "/" not in place:
            continue
        reference = Reference.parse(place)
        if reference.name != place:  # docker.io/acme is docker.io/library/acme
            continue
        other = scope_of(policy, reference)
        if other is None:
            yield f"the repository {place!r} itself is held to {item.role.name!r} there, too"
        elif other.role != item.role.name:
            raise PolicyError(
                f"{item.role.at}: {item.repository!r} is written {place!r} in policy.json, which is"
                f" the repository of that name, too, and the role {other.role!r} has that one",
                hint="give both to one role, or verify with builder verify",
            )


def _below(policy: Policy, scopes: Sequence[Chosen]) -> Iterator[str]:
    """Repositories below which there may be others: ``acme`` is all of ``acme/...`` there, too.

    Raises:
        PolicyError: Those have another role, which may want more.
    """
    for item in scopes:
        if item.repository.endswith("*"):
            continue
        other = _scope_below(policy, item.repository)
        if other is not None and other.role == item.role.name:
            continue
        held = next((one for one in scopes if other and one.role.name == other.role), None)
        if held is None or _suffices(item, held):
            yield f"what is below {item.repository!r} is held to {item.role.name!r} there, too"
        else:
            raise PolicyError(
                f"{item.role.at}: {item.repository!r} is also all that is below it in policy.json,"
                f" and the role {held.role.name!r} has that",
                hint=f"give {item.repository}/* to a scope of {item.role.name!r}, too, or verify"
                " with builder verify",
            )


def _suffices(one: Chosen, other: Chosen) -> bool:
    """Whether who meets the one role meets the other, too."""
    strangers = len(set(one.keys) - set(other.keys))
    return one.role.threshold - strangers >= other.role.threshold


def _scope_below(policy: Policy, repository: str) -> Scope | None:
    """The scope of what is below a repository and has none of its own."""
    place = Reference.parse(repository)
    known = {one for scope in policy.scopes for one in scope.repositories}
    below = "a"
    while any(one.startswith(f"{repository}/{below}") for one in known):
        below += "a"
    return scope_of(policy, replace(place, repository=f"{place.repository}/{below}"))


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
