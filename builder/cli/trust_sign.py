"""``builder trust sign``."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from builder.cli import show
from builder.cli.key_options import ALLOW_PLAINTEXT, PUBLIC
from builder.cli.settings import Settings, command_with_settings, shared_options
from builder.cli.site import Site
from builder.cli.trust_policy import holding, latest
from builder.cli.world import memory_of
from builder.errors import ProjectError, UsageError
from builder.lock import codec
from builder.trust.names import (
    FILE,
    PAYLOAD_TYPE,
    ROOT,
    SIGNATURES,
    WAIVER,
    WAIVER_SIGNATURES,
    WAIVER_TYPE,
)

if TYPE_CHECKING:
    from builder.keys.public import PublicKey
    from builder.keys.signer import Signer
    from builder.trust.chain import Text
    from builder.trust.model import Policy, TrustedKey

_NEXT = f"next: commit {FILE} and {FILE}{SIGNATURES}, then on each machine: builder trust init"


@click.command("sign")
@click.option("--key", required=True, metavar="KEY", help="As builder sign takes it.")
@PUBLIC
@ALLOW_PLAINTEXT
@click.option(
    "--waiver",
    "waivers",
    multiple=True,
    metavar="NAME",
    help="Sign an entry of lockfiles/waivers.yaml; may be given again.",
)
@shared_options
@command_with_settings
def sign(
    settings: Settings,
    key: str,
    public: Path | None,
    allow_plaintext: bool,
    waivers: tuple[str, ...],
) -> None:
    """Sign the policy, or waivers.

    What is signed is what is there now. Signing again adds nothing.
    """
    from builder.cli.keyring import keyring_of

    site = Site(settings)
    signer = keyring_of(settings, allow_plaintext=allow_plaintext).signer(key, public=public)
    if waivers:
        _sign_waivers(site, signer, waivers)
    else:
        _sign_policy(site, signer)


def _sign_policy(site: Site, signer: "Signer") -> None:
    from builder.trust.chain import Text
    from builder.trust.codec import read_policy
    from builder.trust.signatures import added, signed

    text = latest(site).raw
    policy = read_policy(text)
    before = [read_policy(old.raw, file=old.file) for old in site.project.versions.history.values()]
    _one_of([key for item in (policy, *before) for key in item.root_keys], signer.public, ROOT)
    envelope = signed(text, PAYLOAD_TYPE, signer)
    file = FILE + SIGNATURES

    def change(there: Mapping[str, bytes | None]) -> Mapping[str, bytes]:
        if there[FILE] != text:  # signatures of the new text would go
            raise UsageError(f"{FILE}: changed while it was signed", hint="look at it, and sign it")
        return {file: added(there[file], envelope, by=signer.public, file=file, payloads=())}

    site.project.update_trust((FILE, file), change)
    after = Text(file=FILE, raw=text, signatures=Site(site.settings).project.signatures)
    before_it = [item for item in before if item.version == policy.version - 1]
    _tell_signed(site, file, signer, policy, before_it, after)


def _tell_signed(
    site: Site,
    file: str,
    signer: "Signer",
    policy: "Policy",
    before: "list[Policy]",
    after: "Text",
) -> None:
    """Who has signed, by the version's own root and by that of the one before it."""
    have = _have(policy, after)
    told = [f"{file}: version {policy.version} is {_told(policy, have, 'root keys')}"]
    counts = len(have) >= policy.root.threshold
    document: dict[str, Any] = {"signed_by": have, "threshold": policy.root.threshold}
    for old in before:
        of_old = _have(old, after)
        counts = counts and len(of_old) >= old.root.threshold
        document["before"] = {
            "version": old.version,
            "signed_by": of_old,
            "threshold": old.root.threshold,
        }
        told.append(f"it is {_told(old, of_old, f'root keys of version {old.version}')}")
    show.result(
        site.settings,
        {
            "file": file,
            "version": policy.version,
            "key": signer.public.fingerprint,
            **document,
        },
        "\n".join(told),
        aside=None if not counts or memory_of(site.settings).path.exists() else _NEXT,
    )


def _have(policy: "Policy", text: "Text") -> list[str]:
    """The names of the root keys of ``policy`` that signed a version."""
    from builder.trust.chain import root_signers

    return sorted(key.name for key in root_signers(policy, text))


def _told(policy: "Policy", have: list[str], what: str) -> str:
    """How many signed, and where they are too few, who has not."""
    wanted = policy.root.threshold
    said = f"signed by {len(have)} of {wanted} {what}"
    if len(have) >= wanted:
        return said
    missing = ", ".join(repr(key.name) for key in policy.root_keys if key.name not in have)
    return f"{said}: it does not count yet; who has not signed: {missing}"


def _sign_waivers(site: Site, signer: "Signer", names: tuple[str, ...]) -> None:
    from builder.trust.signatures import added, signed
    from builder.trust.waivers import payload

    policy = holding(site)
    role = policy.roles.get(WAIVER)
    if role is None:
        raise ProjectError(
            f"{FILE}: no role {WAIVER!r}, so that nobody's signature would count",
            hint="builder trust new begins a version that can have one",
        )
    _one_of(list(policy.keys_of(role)), signer.public, WAIVER)
    known = site.project.waivers
    for name in names:
        if name not in known:
            raise UsageError(
                f"--waiver: no waiver {name!r} in lockfiles/waivers.yaml",
                hint="builder waive --list shows those that there are",
            )
    envelopes = [signed(payload(known[name]), WAIVER_TYPE, signer) for name in names]

    def change(there: Mapping[str, bytes | None]) -> Mapping[str, bytes]:
        data, entries = there[WAIVER_SIGNATURES], codec.read_waivers(there[codec.WAIVERS] or b"")
        worth = [payload(item) for item in entries.values()]
        for envelope in envelopes:
            data = added(data, envelope, by=signer.public, file=WAIVER_SIGNATURES, payloads=worth)
        return {WAIVER_SIGNATURES: data or b""}

    site.project.update_trust((codec.WAIVERS, WAIVER_SIGNATURES), change)
    project = Site(site.settings).project
    why = project.unvouched({name: known[name] for name in names}, today=site.today)
    show.result(
        site.settings,
        {
            "file": WAIVER_SIGNATURES,
            "key": signer.public.fingerprint,
            "waivers": [{"name": name, "counts": name not in why} for name in names],
        },
        "\n".join(f"{WAIVER_SIGNATURES}: {name}: {why.get(name, 'counts')}" for name in names),
    )


def _one_of(keys: "list[TrustedKey]", public: "PublicKey", role: str) -> None:
    if public not in {key.public for key in keys}:
        named = ", ".join(dict.fromkeys(repr(key.name) for key in keys))
        raise UsageError(
            f"--key: {public.fingerprint} is no key of the role {role!r} in {FILE}",
            hint=f"its signature would not count; the keys are {named}",
        )
