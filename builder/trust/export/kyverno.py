"""Kyverno: a ClusterPolicy with ``verifyImages``, one rule for each place.

Its schema is not at hand where builder is tested: the form is that of Kyverno's documentation.
Rules do not exclude one another there: an image that several places cover has to meet all of them.
"""

from datetime import date

from builder.strict_yaml import Writable, write
from builder.trust.export.chosen import Chosen, Export, chosen, remarks
from builder.trust.model import Policy


def kyverno(policy: Policy, *, today: date) -> Export:
    """``clusterpolicy.yaml``.

    Raises:
        PolicyError: A role has too few keys.
    """
    scopes = chosen(policy, today)
    document: dict[str, Writable] = {
        "apiVersion": "kyverno.io/v1",
        "kind": "ClusterPolicy",
        "metadata": {"name": "builder-trust"},
        "spec": {
            "validationFailureAction": "Enforce",
            "background": False,
            "webhookTimeoutSeconds": 30,
            "rules": [_rule(item, number) for number, item in enumerate(scopes, 1)],
        },
    }
    told = () if len(scopes) == 1 else ("an image has to meet every rule whose place has it",)
    return Export(
        files={"clusterpolicy.yaml": write(document, at="clusterpolicy.yaml")},
        remarks=(*remarks(policy, today), *told),
    )


def _rule(item: Chosen, number: int) -> Writable:
    # A star of Kyverno's stands for slashes, too.
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
        "match": {"any": [{"resources": {"kinds": ["Pod"]}}]},
        "verifyImages": [
            {
                "imageReferences": [item.repository],
                "required": True,
                "mutateDigest": True,
                "verifyDigest": True,
                "attestors": [{"count": item.role.threshold, "entries": entries}],
            }
        ],
    }
