"""Kyverno 1.12 and later: a ClusterPolicy with ``verifyImages``, one rule for each place.

Its schemas are the CustomResourceDefinitions of its releases. Rules do not exclude one another
there: an image that several places cover has to meet all of them.
"""

from collections.abc import Iterator, Sequence
from datetime import date

from builder.errors import PolicyError
from builder.reference import DOCKER_HUB
from builder.strict_yaml import Writable, write
from builder.trust.export.chosen import (
    OFFICIAL,
    Chosen,
    Export,
    chosen,
    hub_spellings,
    remarks,
    spelt_otherwise,
)
from builder.trust.model import Policy
from builder.trust.scope import EVERYTHING

_PODS: Writable = {"any": [{"resources": {"kinds": ["Pod"]}}]}


def kyverno(policy: Policy, *, today: date, reject: bool) -> Export:
    """``clusterpolicy.yaml``.

    Args:
        reject: Whether images of no scope are refused; else they pass unseen.

    Raises:
        PolicyError: A role has too few keys; or Kyverno has no words for a place.
    """
    scopes = chosen(policy, today)
    rules = [_rule(item, number) for number, item in enumerate(scopes, 1)]
    if reject and all(item.repository != EVERYTHING for item in scopes):
        rules.append(_others(scopes))
    document: dict[str, Writable] = {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "builder-trust"},
        "spec": {
            "validationFailureAction": "Enforce",
            "background": False,
            "webhookTimeoutSeconds": 30,
            "rules": rules,
        },
    }
    return Export(
        files={"clusterpolicy.yaml": write(document, at="clusterpolicy.yaml")},
        remarks=(*remarks(policy, today), *_remarks(scopes, reject=reject)),
    )


def _remarks(scopes: Sequence[Chosen], *, reject: bool) -> Iterator[str]:
    if len(scopes) > 1:
        yield "an image has to meet every rule whose place has it"
    yield "Kyverno sees no pod that its resourceFilters leave out: kube-system, unless it is told"
    yield from spelt_otherwise(scopes, reject=reject)


def _rule(item: Chosen, number: int) -> Writable:
    entries: list[Writable] = [
        {
            "keys": {
                "publicKeys": key.public.pem.decode(),
                "signatureAlgorithm": "sha256",
                "rekor": {"ignoreTlog": True},
                "ctlog": {"ignoreSCT": True},
            }
        }
        for key in item.keys
    ]
    return {
        "name": f"{item.role.name}-{number}",
        "match": _PODS,
        "verifyImages": [
            {
                "imageReferences": [*_references(item)],
                "required": True,
                "mutateDigest": True,
                "verifyDigest": True,
                "attestors": [{"count": item.role.threshold, "entries": entries}],
            }
        ],
    }


def _others(scopes: Sequence[Chosen]) -> Writable:
    """A rule for what no other one has. It sees each image as the pod has it: no tag is added."""
    known = [name for item in scopes for name in (*_references(item), *_plain(item))]
    images: list[Writable] = [{"image": " | ".join(known)}]
    return {
        "name": "others",
        "match": _PODS,
        "validate": {
            "message": "no scope of trust.yaml has this image",
            "pattern": {
                "spec": {
                    "=(ephemeralContainers)": images,
                    "=(initContainers)": images,
                    "containers": images,
                }
            },
        },
    }


def _references(item: Chosen) -> list[str]:
    """Patterns for the whole name of an image, of which a tag or a digest is always a part.

    A star stands for slashes, too.
    """
    if item.repository.endswith("*"):
        return _spelt(item)
    return [f"{name}{end}" for name in _spelt(item) for end in (":*", "@*")]


def _plain(item: Chosen) -> list[str]:
    return [] if item.repository.endswith("*") else _spelt(item)


def _spelt(item: Chosen) -> list[str]:
    """All ways to write a place. Kyverno leaves Docker Hub's other hosts as they are, adds no
    ``library/``, and may be configured to add no ``docker.io/``."""
    registry, _, path = item.repository.partition("/")
    if registry != DOCKER_HUB:
        return [item.repository]
    if path == f"{OFFICIAL}*":
        raise PolicyError(
            f"{item.role.at}: {item.repository!r}: Kyverno takes an image NAME for docker.io/NAME,"
            " which no pattern of it tells from docker.io/ANYTHING",
            hint="name the repositories: docker.io/library/NAME",
        )
    hosts = hub_spellings(item.repository)
    paths = dict.fromkeys(each.partition("/")[2] for each in hosts)
    # Where a registry could be called so, a name without its host is of that one.
    return [*hosts, *(each for each in paths if each != "*" and not _is_elsewhere(each))]


def _is_elsewhere(path: str) -> bool:
    """Whether what begins with no registry is read as if it did."""
    first, slash, _ = path.partition("/")
    return bool(slash) and ("." in first or first == "localhost")
