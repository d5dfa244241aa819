"""What somebody signed of a model: the options of ``builder models verify``, and what it tells."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from builder.errors import IntegrityError, UsageError
from builder.lock.model import ModelPin

if TYPE_CHECKING:
    from builder.models.signature import ModelSignature
    from builder.models.verify import Verified

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
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="A public key that may have signed; any of several.",
)


def read(
    pins: Sequence[ModelPin], signatures: Sequence[str], keys: Sequence[Path]
) -> "Mapping[str, tuple[Path, ModelSignature]]":
    """The signatures by the names of the models, each with its file.

    Raises:
        UsageError: Signatures without keys, or the other way round; a signature of nobody knows
            which model, or two of one; a file that cannot be read.
        IntegrityError: A file of a key has none.
        SignatureError, UntrustedError: As
            :func:`builder.models.signature.read_model_signature`.
    """
    if not signatures and not keys:
        return {}
    if not (signatures and keys):
        raise UsageError(
            "--signature and --key go together",
            hint="--key FILE names the public key of who signed"
            if signatures
            else "--signature FILE names what was signed: model.sig",
        )
    from builder.adapters.keys.signers import read_public_file
    from builder.models.signature import read_model_signature

    trusted = tuple(read_public_file(key) for key in keys)
    found: dict[str, tuple[Path, ModelSignature]] = {}
    for text in signatures:
        name, file = _meant(text, [pin.name for pin in pins])
        if name in found:
            raise UsageError(f"--signature {text}: a second one of {name}")
        data = _bytes(file)
        found[name] = file, read_model_signature(data, keys=trusted, at=str(file))
    return found


def held(item: "Verified", given: "Mapping[str, tuple[Path, ModelSignature]]") -> "Verified":
    """A model with what its signature says of it. The signature's own file is nothing beside it,
    where it lies in the directory."""
    if item.pin.name not in given:
        return item
    from builder.models.signature import hold
    from builder.models.verify import State

    file, signature = given[item.pin.name]
    own = file.resolve()
    files = tuple(
        checked
        for checked in item.files
        if checked.state is not State.EXTRA
        or (item.place.directory / checked.path).resolve() != own
    )
    return replace(item, files=files, signature=hold(item.pin, signature))


def refusal(failed: "Sequence[Verified]") -> IntegrityError | None:
    """The error about models whose files are those that are locked, which are not those that are
    signed; ``None`` where a file is to blame, too."""
    if any(not replace(item, signature=None).ok for item in failed):
        return None
    return IntegrityError(
        f"models: {', '.join(item.pin.name for item in failed)}: what is locked is not what was"
        " signed",
        hint="another revision, or another model? ask whoever signed it which files are meant",
    )


def document(item: "Verified") -> dict[str, Any]:
    """What ``--json`` has of a signature; nothing where there is none."""
    if (said := item.signature) is None:
        return {}
    return {
        "signature": {
            "file": said.signature.at,
            "key": said.signature.key.fingerprint,
            "name": said.signature.name,
            "sha256": said.signature.root.hex,
            "signed": len(said.same),
            "findings": list(said.findings),
            "not_locked": list(said.beside),
            "left_out": list(said.ignored),
        }
    }


def lines(item: "Verified", *, most: int) -> Iterator[str]:
    """What people are told of a signature.

    Args:
        most: How many findings are told before the rest is only counted.
    """
    if (said := item.signature) is None:
        return
    name, key = item.pin.name, said.signature.key.fingerprint
    yield from (f"{name}: {finding}" for finding in said.findings[:most])
    if len(said.findings) > most:
        yield f"{name}: {len(said.findings) - most} more"
    yield f"{name}: {len(said.same)} of {len(item.pin.files)} locked files are signed by {key}"
    yield from (f"{name}: {remark}" for remark in said.remarks)


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


def _bytes(file: Path) -> bytes:
    from builder.models.signature import LIMIT

    try:
        with file.open("rb") as stream:
            return stream.read(LIMIT + 1)
    except OSError as error:
        raise UsageError(f"--signature {file}: cannot be read: {error.strerror}") from error
