"""An image in a layout with what somebody put beside it: made once, spoilt in copies."""

import json
import logging
import shutil
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from builder import artifact
from builder.adapters.store import FileStore
from builder.adapters.store.attachments import LayoutPlace
from builder.attest import dsse, statement
from builder.attest.dsse import IN_TOTO, Envelope, Signature
from builder.attest.statement import Statement, Subject
from builder.cli.app import run
from builder.cli.start import start_project
from builder.digest import Digest
from builder.keys.signer import Signer
from builder.oci import Descriptor
from builder.signatures.collect import collect
from builder.signatures.found import Kind
from builder.signatures.place import Listed, Referring
from builder.signatures.publish import SIGNED, Signable, publish
from builder.sigstore import bundle, carriers
from builder.sigstore.bundle import Bundle
from builder.sigstore.listing import Form
from tests.cli.conftest import Ran
from tests.signers import p256

NAME = "hello"
ME = p256("me")
"""The key that is trusted."""
REFERENCE = "registry.example/acme/hello:t"


@dataclass(frozen=True, kw_only=True)
class World:
    """A layout with an image, and the statements that can be made of it."""

    layout: Path
    statements: tuple[Statement, ...]

    @property
    def store(self) -> FileStore:
        return FileStore(self.layout)

    @property
    def place(self) -> LayoutPlace:
        return LayoutPlace(self.store)

    @property
    def image(self) -> Descriptor:
        """What the name stands for now."""
        return self.store.references()[NAME]

    def copy(self, directory: Path) -> "World":
        """The same in another directory, to be spoilt."""
        shutil.copytree(self.layout, directory, symlinks=True)
        return World(layout=directory, statements=self.statements)

    def sign(self, *signers: Signer, image: Descriptor | None = None) -> None:
        """Everything that ``builder sign`` says, by each of them."""
        target = image or self.image
        said = self.statements if image is None else ()
        for signer in signers:
            wanted = Signable(image=target, reference=REFERENCE, statements=said)
            publish([wanted], signer, self.place)

    def sig(self, payload: bytes, signature: str, **changes: Any) -> None:
        """A layer of the older form, with this text where the signature is."""
        layer = Descriptor(
            **{
                "media_type": carriers.SIMPLE_SIGNING,
                "digest": Digest.of(payload),
                "size": len(payload),
                "annotations": ((carriers.SIGNATURE, signature),),
                **changes,
            }
        )
        self._list(carriers.signature_tag(self.image.digest), layer, payload)

    def att(self, raw: bytes, **changes: Any) -> None:
        """An envelope beside the image."""
        layer = Descriptor(
            **{
                "media_type": carriers.DSSE_ENVELOPE,
                "digest": Digest.of(raw),
                "size": len(raw),
                **changes,
            }
        )
        self._list(carriers.attestation_tag(self.image.digest), layer, raw)

    def refer(self, raw: bytes, **changes: Any) -> None:
        """A bundle that refers to the image; ``changes`` are to its manifest."""
        made = carriers.bundle_manifest(raw, SIGNED, subject=self.image)
        if changes:
            document = {**json.loads(made.raw), **changes}
            made = type(made).parse(json.dumps(document).encode())
        self.place.add([Referring(manifest=made, blobs=(artifact.EMPTY, raw))])

    def list_referrer(self, entry: Descriptor) -> None:
        """An entry in the list of what refers to the image, whatever it is."""
        tag = carriers.referrers_tag(self.image.digest)
        self.place.add([Listed(tag=tag, form=Form.MEMBERS, entries=(entry,), blobs=())])

    def set(self, name: str, raw: bytes, media_type: str, *, size: int | None = None) -> Digest:
        """Have a name stand for a document."""
        store = self.store
        digest = store.put(raw)
        descriptor = Descriptor(media_type=media_type, digest=digest, size=size or len(raw))
        store.set_reference(name, descriptor)
        return digest

    def _list(self, tag: str, layer: Descriptor, blob: bytes) -> None:
        blobs = (carriers.CONFIG, blob)
        self.place.add([Listed(tag=tag, form=Form.LAYERS, entries=(layer,), blobs=blobs)])


def make_world(directory: Path) -> World:
    """The image of a new project in a layout, with nothing beside it."""
    project, layout, key = directory / "project", directory / "layout", directory / "me.pem"
    start_project(project)
    key.write_bytes(ME.pem)
    key.chmod(0o600)
    logger = logging.getLogger("builder")
    with pytest.MonkeyPatch.context() as patched:
        for name in ("handlers", "level", "propagate"):  # of which each run says anew what they are
            patched.setattr(logger, name, getattr(logger, name))
        patched.setattr(logger, "handlers", [])
        patched.setenv("BUILDER_STORE", str(directory / "store"))
        patched.setenv("HOME", str(directory))
        patched.chdir(project)
        assert run(["build", NAME, "--out", str(layout), "--quiet"]) == 0
        made = World(layout=layout, statements=()).copy(directory / "signed")
        sign = ["sign", NAME, f"oci:{made.layout}", "--key", str(key), "--allow-plaintext"]
        assert run([*sign, "--quiet"]) == 0
    found = collect(made.image.digest, made.place).found
    read = [item.read(ME.public) for item in found if item.kind is Kind.DSSE_ATTACHMENT]
    return World(
        layout=layout, statements=tuple(item for item in read if isinstance(item, Statement))
    )


def b64(data: bytes) -> str:
    return b64encode(data).decode()


def said(image: Digest, **fields: object) -> bytes:
    """The payload that says "this is signed", with other fields; ``...`` leaves one out."""
    plain = Statement(
        subjects=(Subject(name=REFERENCE, digest=image),), predicate_type=SIGNED, predicate={}
    )
    document = {**json.loads(statement.envelope(plain).payload), **fields}
    return json.dumps({key: value for key, value in document.items() if value is not ...}).encode()


def envelope(
    payload: bytes, *signers: Signer, kind: str = IN_TOTO, keyid: str | None = None
) -> Envelope:
    """A payload that these really signed, whatever it says."""
    bare = Envelope(payload_type=kind, payload=payload)
    signatures = tuple(
        Signature(
            keyid=signer.public.fingerprint if keyid is None else keyid,
            sig=signer.sign(bare.signed),
        )
        for signer in signers
    )
    return Envelope(payload_type=kind, payload=payload, signatures=signatures)


def as_bundle(signed: Envelope, *, hint: str = "") -> bytes:
    """The envelope in a bundle, also one that no bundle may hold."""
    document = {
        "mediaType": bundle.MEDIA_TYPE,
        "verificationMaterial": {"publicKey": {"hint": hint}},
        "dsseEnvelope": dsse.record(signed),
    }
    return json.dumps(document, separators=(",", ":")).encode()


def refused(ran: Ran, status: int, message: str) -> None:
    """That it was, and by what: the first line that is printed."""
    first = ran.err.partition("\n")[0]
    assert (ran.status, message in first) == (status, True), first
    assert ran.err.startswith("builder: error: ")
    assert len(ran.err) < 3000
    assert ran.out == ""


Carry = Callable[[World, Envelope], None]


def in_bundle(world: World, signed: Envelope) -> None:
    """As cosign 3 puts it there."""
    world.refer(bundle.encode(Bundle(envelope=signed, hint="")))


def in_attachment(world: World, signed: Envelope) -> None:
    """As cosign 2 puts it there."""
    world.att(dsse.encode(signed))


CARRIERS: dict[str, Carry] = {"bundle": in_bundle, "att": in_attachment}


def index_of(*members: Descriptor) -> bytes:
    """An index of images, the first for amd64."""
    platforms: Sequence[str] = ("amd64", "arm64")
    entries = [
        {**item.record(), "platform": {"os": "linux", "architecture": platforms[number]}}
        for number, item in enumerate(members)
    ]
    return json.dumps({"schemaVersion": 2, "manifests": entries}).encode()
