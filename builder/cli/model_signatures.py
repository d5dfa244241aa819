"""What somebody signed of a model: the options of ``builder models verify`` and ``fetch``, and what
they tell."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from builder.adapters.given_file import read_given
from builder.cli.site import Site
from builder.cli.trust_policy import trusting
from builder.errors import IntegrityError, SignatureError, UntrustedError, UsageError
from builder.lock.model import ModelPin

if TYPE_CHECKING:
    from builder.keys.public import PublicKey
    from builder.models.signature import ModelSignature
    from builder.models.verify import Verified

    Enough: TypeAlias = Callable[[str, Sequence[ModelSignature]], None]
    Signed: TypeAlias = Mapping[str, Sequence[tuple[Path, ModelSignature]]]

SIGNATURE = click.option(
    "--signature",
    "signatures",
    multiple=True,
    metavar="[MODEL=]FILE",
    help="What model_signing signed of it (of several models, MODEL= says of which).",
)
KEY = click.option(
    "--key",
    "keys",
    multiple=True,
    metavar="KEY",
    help="A public key that may have signed, a file or one of builder key; any of several"
    " (default: trust.yaml).",
)


def read(
    site: Site, pins: Sequence[ModelPin], signatures: Sequence[str], keys: Sequence[str]
) -> "Signed":
    """The signatures by the names of the models, each with its file, by somebody who may sign: any
    of ``keys``, or those whom the project's trust policy wants.

    Raises:
        UsageError: Keys without signatures, or signatures without anybody to trust; a signature of
            nobody knows which model; a key or a file that is not there.
        IntegrityError: A file of a key has none.
        PolicyError: The trust policy does not want those who signed.
        SignatureError, UntrustedError: As :func:`builder.models.signature.read_model_signature`,
            or two signatures of one model are over different files.
    """
    if not signatures:
        if keys:
            raise UsageError(
                "--key is for --signature", hint="--signature FILE names what was signed: model.sig"
            )
        return {}
    from builder.models.signature import LIMIT, read_model_signature

    files = [_meant(text, [pin.name for pin in pins]) for text in signatures]
    trusted, enough = _of_keys(keys, site) if keys else _of_policy(site)
    found: dict[str, list[tuple[Path, ModelSignature]]] = {}
    for name, file in files:
        raw = read_given(file, limit=LIMIT, at=f"--signature {file}")
        signature = read_model_signature(raw, keys=trusted, at=str(file))
        found.setdefault(name, []).append((file, signature))
    for name, several in found.items():
        (first, signature), *others = several
        for file, other in others:
            if other.files != signature.files:
                raise SignatureError(f"{file}: over other files of {name} than {first}")
        enough(f"model {name}", [signature for _, signature in several])
    return found


def _of_keys(names: Sequence[str], site: Site) -> "tuple[Sequence[PublicKey], Enough]":
    from builder.cli.verifying import by_keys

    return by_keys(names, site).keys, lambda *_: None


def _of_policy(site: Site) -> "tuple[Sequence[PublicKey], Enough]":
    """All keys of the policy, revoked ones too; it judges them then."""
    policy = trusting(site)
    from builder.trust.judge import Kind, judge, public_keys, role_of

    if isinstance(why := role_of(policy, Kind.MODEL, None), str):
        raise UntrustedError(
            why,
            hint="builder trust new begins a version that can have one; --key FILE goes without",
        )

    def enough(at: str, signatures: "Sequence[ModelSignature]") -> None:
        judge(
            policy,
            kind=Kind.MODEL,
            digest=signatures[0].root,
            signed_by={signature.key for signature in signatures},
            today=site.today,
        ).enforce(at)

    return public_keys(policy), enough


def check(pins: Sequence[ModelPin], given: "Signed") -> None:
    """Hold the lock to what was signed, before anything is done by it.

    Raises:
        IntegrityError: What is locked is not what was signed.
    """
    if not given:
        return
    from builder.models.shards import listed
    from builder.models.signature import hold

    for pin in pins:
        for _, signature in given.get(pin.name, ()):
            if findings := hold(pin, signature).findings:
                raise _not_signed([pin.name], f": {listed(findings)}")


def held(item: "Verified", given: "Signed") -> "Verified":
    """A model with what its signatures say of it. Their own files are nothing beside it, where they
    lie in the directory."""
    if item.pin.name not in given:
        return item
    from builder.models.signature import hold
    from builder.models.verify import State

    own = {os.path.realpath(file) for file, _ in given[item.pin.name]}
    files = tuple(
        checked
        for checked in item.files
        if checked.state is not State.EXTRA
        or os.path.realpath(item.place.directory / checked.path) not in own
    )
    signatures = tuple(hold(item.pin, signature) for _, signature in given[item.pin.name])
    return replace(item, files=files, signatures=signatures)


def refusal(failed: "Sequence[Verified]") -> IntegrityError | None:
    """The error about models whose files are those that are locked, which are not those that are
    signed; ``None`` where a file is to blame, too."""
    if any(not replace(item, signatures=()).ok for item in failed):
        return None
    return _not_signed([item.pin.name for item in failed])


def _not_signed(models: Sequence[str], why: str = "") -> IntegrityError:
    return IntegrityError(
        f"models: {', '.join(models)}: what is locked is not what was signed{why}",
        hint="another revision, or another model? ask whoever signed it which files are meant",
    )


def document(item: "Verified") -> list[dict[str, Any]]:
    """What ``--json`` has of the signatures of a model."""
    return [
        {
            "file": said.signature.at,
            "key": said.signature.key.fingerprint,
            "name": said.signature.name,
            "sha256": said.signature.root.hex,
            "signed": len(said.same),
            "findings": list(said.findings),
            "not_locked": list(said.beside),
            "left_out": list(said.ignored),
        }
        for said in item.signatures
    ]


def lines(item: "Verified", *, most: int) -> Iterator[str]:
    """What people are told of signatures, those over the same files at once.

    Args:
        most: How many findings are told before the rest is only counted.
    """
    if not item.signatures:
        return
    name, same = item.pin.name, len(item.signatures[0].same)
    findings = _once(said.findings for said in item.signatures)
    yield from (f"{name}: {finding}" for finding in findings[:most])
    if len(findings) > most:
        yield f"{name}: {len(findings) - most} more"
    by = " and ".join(_once([said.signature.key.fingerprint] for said in item.signatures))
    yield f"{name}: {same} of {len(item.pin.files)} locked files are signed by {by}"
    yield from (f"{name}: {told}" for told in _once(said.remarks for said in item.signatures))


def _once(texts: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """All texts in their order, each once."""
    return tuple(dict.fromkeys(chain.from_iterable(texts)))


def _meant(text: str, names: Sequence[str]) -> tuple[str, Path]:
    """Of which model a signature is, and its file."""
    name, equals, file = text.partition("=")
    if equals and name in names:
        return name, Path(file)
    if len(names) == 1:
        return names[0], Path(text)
    raise UsageError(
        f"--signature {text}: of which model?",
        hint=f"write MODEL=FILE; the models are {', '.join(names)}",
    )
