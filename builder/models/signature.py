"""Signatures of models as OpenSSF's model_signing makes them, version 1.0, by keys.

Such a signature is a Sigstore bundle. Its statement lists the files of a directory with their
digests, in ``predicate.resources``; the digest of its one subject is the sha256 of theirs, in that
order. Source: sigstore/model-transparency, docs/model_signing_format.md, and the package itself.

It is the lock that files on a disk are compared with. A signature is compared with the lock, so
that no file is read for it.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from builder.attest import statement
from builder.attest.statement import Statement
from builder.digest import Digest, Hasher
from builder.errors import IntegrityError, SignatureError, UntrustedError
from builder.keys.public import PublicKey
from builder.lock.model import ModelPin
from builder.models.shards import listed
from builder.quoting import harmless
from builder.sigstore import bundle
from builder.sigstore.bundle import BUNDLE_LIMIT, Bundle
from builder.tree import parents
from builder.value import field, value

LIMIT = BUNDLE_LIMIT
"""The largest signature that is read."""
PREDICATE_TYPE = "https://model_signing/signature/v1.0"
_OLDER = "https://model_signing/Digests/v0.1"
_ODD = {"", ".", ".."}
_HEX = re.compile("[0-9a-f]{64}")


@value
class ModelSignature:
    """What a key has signed. ``name`` is the signer's for the directory, and proves nothing."""

    at: str
    key: PublicKey
    name: str
    root: Digest
    """The digest of the subject."""
    files: Mapping[str, Digest] = field(repr=False)
    ignored: frozenset[str] = frozenset()
    """Files and directories that the signer left out, as it says itself."""

    def ignores(self, path: str) -> bool:
        """Whether the signer says that it left the file out."""
        return not self.ignored.isdisjoint((path, *parents(path)))


@value
class Held:
    """A signature held to a lock.

    ``beside`` are files that are signed and not locked, ``ignored`` those that are locked and that
    the signer left out: both are told, and no fault, because neither says anything of the other.
    """

    signature: ModelSignature
    same: tuple[str, ...]
    findings: tuple[str, ...]
    """What is wrong: a sentence for each file, or one where none is signed."""
    beside: tuple[str, ...]
    ignored: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether every locked file that the signer did not leave out is signed as it is."""
        return not self.findings

    @property
    def remarks(self) -> tuple[str, ...]:
        """What is to be told, for people."""
        kinds = (("signed and not locked", self.beside), ("left out by the signer", self.ignored))
        return tuple(f"{len(paths)} {kind}: {listed(paths)}" for kind, paths in kinds if paths)


def read_model_signature(raw: bytes, *, keys: Sequence[PublicKey], at: str) -> ModelSignature:
    """Verify a signature, and read what it is over.

    Args:
        raw: The bundle (``model.sig``).
        keys: Any one of them will do.
        at: The name of the file, for messages.

    Raises:
        UntrustedError: None of the keys made it, and it names none of them.
        SignatureError: It is damaged, of another kind or version, contradicts itself, or has
            digests that are no sha256 of a whole file.
    """
    try:
        found = bundle.parse(raw, at=at)
        key = _maker(found, keys, at=at)
        said = statement.parse(found.envelope, at=at)
        return _signature(said, key=key, at=at)
    except SignatureError:
        raise
    except IntegrityError as error:
        raise SignatureError(error.message, hint=error.hint) from error


def hold(pin: ModelPin, signature: ModelSignature) -> Held:
    """Compare every locked file with what is signed. Files that the lock has no digest of are
    compared with nothing here: :func:`builder.models.verify.verify` tells them."""
    same, findings, ignored = [], [], []
    for file in sorted(pin.files, key=lambda file: file.path):
        signed = signature.files.get(file.path)
        if signed is None and signature.ignores(file.path):
            ignored.append(file.path)
        elif signed is None:
            findings.append(f"{file.path}: locked and not signed")
        elif file.digest == signed:
            same.append(file.path)
        elif file.digest is not None:
            findings.append(f"{file.path}: signed as {signed}, locked as {file.digest}")
    locked = {file.path for file in pin.files}
    if not any(path in locked for path in signature.files):
        what = f"{len(signature.files)} signed files" if signature.files else "no signed file"
        findings = [f"none of {len(locked)} locked files is signed: it is over {what}"]
    return Held(
        signature=signature,
        same=tuple(same),
        findings=tuple(findings),
        beside=tuple(sorted(signature.files.keys() - locked)),
        ignored=tuple(ignored),
    )


def _maker(found: Bundle, keys: Iterable[PublicKey], *, at: str) -> PublicKey:
    """The key that made the signature. What a bundle says of its key is nobody's word: it only
    tells a damaged signature from a stranger's."""
    (signature,) = found.envelope.signatures
    known = tuple(keys)
    for key in known:
        if key.verifies(signature.sig, found.envelope.signed):
            return key
    for key in known:
        # model_signing names a key by the digest of its PEM, in hex.
        names = {key.hint, key.fingerprint, Digest.of(key.pem).hex}
        if names & {found.hint, signature.keyid}:
            raise SignatureError(f"{at}: not a signature of {key.fingerprint}, which it names")
    tried = ", ".join(key.fingerprint for key in known)
    raise UntrustedError(
        f"{at}: signed by none of {tried}", hint="give the public key of who signed it with --key"
    )


def _signature(said: Statement, *, key: PublicKey, at: str) -> ModelSignature:
    if said.predicate_type != PREDICATE_TYPE:
        raise SignatureError(
            f"{at}: predicateType: expected {PREDICATE_TYPE!r}, got"
            f" {harmless(said.predicate_type)!r:.120}",
            hint="signatures of model_signing before 1.0 are to be made anew"
            if said.predicate_type == _OLDER
            else "it is signed, and says nothing of the files of a model",
        )
    if len(said.subjects) != 1:
        raise SignatureError(f"{at}: subject: expected one model, got {len(said.subjects)}")
    (subject,) = said.subjects
    ignored = _ignored(said.predicate.get("serialization"), at=f"{at}: serialization")
    listing = said.predicate.get("resources")
    if not isinstance(listing, list) or not listing:
        raise SignatureError(f"{at}: resources: expected a list of files, and one at least")
    files: dict[str, Digest] = {}
    hasher = Hasher()
    for number, item in enumerate(listing):
        path, digest = _resource(item, at=f"{at}: resources[{number}]")
        if path in files:
            raise SignatureError(f"{at}: resources[{number}]: {path!r} a second time")
        files[path] = digest
        hasher.update(bytes.fromhex(digest.hex))
    if (got := hasher.digest()) != subject.digest:
        raise SignatureError(
            f"{at}: it contradicts itself: its subject is {subject.digest}, its files give {got}"
        )
    name = harmless(subject.name)
    return ModelSignature(
        at=at, key=key, name=name, root=subject.digest, files=files, ignored=ignored
    )


def _ignored(serialization: Any, *, at: str) -> frozenset[str]:
    """What the signer left out. Of the rest only the method says what the digests are of."""
    if not isinstance(serialization, dict):
        raise SignatureError(f"{at}: expected an object")
    if (method := serialization.get("method")) != "files":
        raise SignatureError(
            f"{at}: method: expected 'files', got {method!r:.80}",
            hint="digests of parts of files (shards) cannot be compared with a lock: sign whole"
            " files, which is what model_signing does if it is told nothing else",
        )
    paths = serialization.get("ignore_paths", [])
    if not isinstance(paths, list) or not all(isinstance(path, str) for path in paths):
        raise SignatureError(f"{at}: ignore_paths: expected a list of texts")
    return frozenset(paths)


def _resource(item: Any, *, at: str) -> tuple[str, Digest]:
    if not isinstance(item, dict):
        raise SignatureError(f"{at}: expected an object")
    name, algorithm, digest = (item.get(key) for key in ("name", "algorithm", "digest"))
    if not isinstance(name, str) or not name.isprintable() or _ODD & {*name.split("/")}:
        raise SignatureError(f"{at}: name: not a plain relative path: {name!r:.200}")
    if algorithm != "sha256":
        raise SignatureError(
            f"{at}: {name!r}: algorithm: expected 'sha256', got {algorithm!r:.80}",
            hint="a lock has no other digests: sign with sha256, which is what model_signing does"
            " if it is told nothing else",
        )
    if not isinstance(digest, str) or not _HEX.fullmatch(digest):
        raise SignatureError(f"{at}: {name!r}: digest: expected 64 lower-case hex digits")
    return name, Digest(digest)
