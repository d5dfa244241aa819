"""notation: ``trustpolicy.json``, and the trust stores that it names.

It trusts certificates, not keys; one signature is enough for it; its scopes are repositories, or
everything. What it cannot say is left out where notation then refuses those images; elsewhere it
is refused here.
Source: Notary Project, trust-store-trust-policy.md.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date
from typing import Any

from builder.digest import Digest
from builder.errors import PolicyError
from builder.keys.public import PublicKey
from builder.notation.certificate import Chain
from builder.trust.export.chosen import (
    Chosen,
    Export,
    chosen,
    hub_spellings,
    remarks,
    spelt_otherwise,
)
from builder.trust.model import Policy
from builder.trust.names import FILE
from builder.trust.scope import EVERYTHING

_STORES = "truststore/x509/ca"
_NONE = "no key of its role has a certificate"
_MAKE = "builder key certificate makes one, and --certificate names it"


def notation(policy: Policy, chains: Sequence[Chain], *, today: date) -> Export:
    """``trustpolicy.json``, and ``truststore/x509/ca/ROLE-DIGEST/KEY.pem``: what goes into
    notation's directory of configuration.

    Args:
        chains: The certificates with which the keys sign.

    Raises:
        PolicyError: A role has too few keys; a certificate is of no key that counts, does not hold
            today, or is issued by somebody else; nothing can be said; what is left out would be
            taken for less than the policy demands.
    """
    scopes = chosen(policy, today)
    known = {key.public for item in scopes for key in item.keys}
    held: dict[PublicKey, list[Chain]] = {}
    for chain in dict.fromkeys(chains):
        _check(chain, known, today)
        held.setdefault(chain.public, []).append(chain)
    left_out = {item.repository: why for item in scopes if (why := _unsayable(item, held))}
    said = [item for item in scopes if item.repository not in left_out]
    told = [f"{repository} is left out: {why}" for repository, why in left_out.items()]
    if not said:
        raise PolicyError(
            "nothing of the policy can be said: " + "; ".join(told), hint=_next(left_out.values())
        )
    if left_out and any(item.repository == EVERYTHING for item in said):
        raise PolicyError(
            f"{told[0]}, and {EVERYTHING!r}, which is not, would have its images",
            hint="name repositories instead of everything, or verify with builder verify",
        )
    document = {"version": "1.0", "trustPolicies": [*_statements(said, held)]}
    return Export(
        files={
            "trustpolicy.json": json.dumps(document, indent=2).encode() + b"\n",
            **_stores(said, held),
        },
        remarks=(
            *remarks(policy, today),
            *spelt_otherwise(said, reject=True),
            *(f"{line}; notation refuses what it has there" for line in told),
            *_certificates(said, held),
        ),
    )


def _check(chain: Chain, known: set[PublicKey], today: date) -> None:
    if chain.public not in known:
        raise PolicyError(
            f"{chain.at}: of {chain.public.fingerprint}, which signs no images today by the policy",
            hint=f"{FILE} has the keys and their roles",
        )
    if not chain.self_signed:
        raise PolicyError(
            f"{chain.at}: issued by somebody else, and notation would trust all that they issue",
            hint="the policy trusts keys: " + _MAKE,
        )
    if not chain.since.date() <= today <= chain.until.date():
        raise PolicyError(
            f"{chain.at}: holds from {chain.since:%Y-%m-%d} to {_day(chain)}, not today",
            hint=_MAKE,
        )


def _unsayable(item: Chosen, held: Mapping[PublicKey, Sequence[Chain]]) -> str | None:
    """Why notation cannot be told of a pattern."""
    if item.repository != EVERYTHING and item.repository.endswith("/*"):
        return "notation knows repositories, not places"
    if item.repository.startswith("["):  # all of its policy would be invalid
        return "notation knows registries by name, not by an address of IPv6"
    if item.role.threshold > 1:
        return f"{item.role.threshold} keys have to sign, and notation is content with one"
    if not any(key.public in held for key in item.keys):
        return _NONE
    return None


def _next(why: Iterable[str]) -> str:
    """A certificate mends what lacks one, and nothing else."""
    return _MAKE if _NONE in why else "verify with builder verify, which knows all of the policy"


def _statements(
    said: Sequence[Chosen], held: Mapping[PublicKey, Sequence[Chain]]
) -> Iterator[dict[str, Any]]:
    for number, item in enumerate(said, 1):
        yield {
            "name": f"{item.role.name}-{number}",
            "registryScopes": [*hub_spellings(item.repository)],
            "signatureVerification": {"level": "strict"},
            "trustStores": [f"ca:{_store(item, held)}"],
            # A store has the certificates of keys themselves, which can issue no others.
            "trustedIdentities": ["*"],
        }


def _stores(said: Sequence[Chosen], held: Mapping[PublicKey, Sequence[Chain]]) -> dict[str, bytes]:
    return {
        f"{_STORES}/{_store(item, held)}/{name}.pem": pem
        for item in said
        for name, pem in _pems(item, held)
    }


def _store(item: Chosen, held: Mapping[PublicKey, Sequence[Chain]]) -> str:
    """The name of a role's store: another one, where other certificates are in it. All that lies in
    a store is trusted, and what an earlier copy left there may be of a key that is revoked."""
    return f"{item.role.name}-{Digest.of(b''.join(pem for _, pem in _pems(item, held))).short}"


def _pems(item: Chosen, held: Mapping[PublicKey, Sequence[Chain]]) -> Iterator[tuple[str, bytes]]:
    for key in item.keys:
        if key.public in held:
            yield key.name, b"".join(chain.pem for chain in held[key.public])


def _certificates(
    said: Sequence[Chosen], held: Mapping[PublicKey, Sequence[Chain]]
) -> Iterator[str]:
    """What becomes of the keys."""
    for key in dict.fromkeys(key for item in said for key in item.keys):
        if key.public not in held:
            yield f"key {key.name!r} ({key.public.type}) has no certificate, and counts for nothing"
        for chain in held.get(key.public, ()):
            yield f"key {key.name!r}: its certificate and its signatures hold to {_day(chain)}"


def _day(chain: Chain) -> str:
    return f"{chain.until:%Y-%m-%d}"
