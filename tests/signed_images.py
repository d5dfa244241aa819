"""Images in a place, and everything that is signed of them, for those who look at signatures."""

import io
import time

from builder.attest.statement import Statement, Subject
from builder.oci import Descriptor
from builder.ports import Registry
from builder.reference import Reference
from builder.signatures.publish import Signable
from builder.signatures.registry import RegistryPlace
from tests.registry.images import TinyImage

PROVENANCE = "https://slsa.dev/provenance/v1"


def push(client: Registry, target: Reference, image: TinyImage) -> None:
    """Have an image under ``target``."""
    client.push_blob(target, image.manifest.config, io.BytesIO(image.config))
    client.push_blob(target, image.manifest.layers[0], io.BytesIO(image.layer))
    client.push_manifest(target, image.manifest)


def provenance(image: Descriptor, *, builder: str = "https://example.com/builder@v1") -> Statement:
    """A statement that every reader takes for provenance."""
    return Statement(
        subjects=(Subject(name="team/app", digest=image.digest),),
        predicate_type=PROVENANCE,
        predicate={
            "buildDefinition": {
                "buildType": "https://example.com/buildtypes/image/v1",
                "externalParameters": {"variant": "tiny"},
            },
            "runDetails": {"builder": {"id": builder}},
        },
    )


def signable(image: Descriptor, reference: object) -> Signable:
    """An image with its provenance."""
    return Signable(image=image, reference=str(reference), statements=(provenance(image),))


def place(client: Registry, reference: Reference) -> RegistryPlace:
    """A repository as a place, in real time."""
    return RegistryPlace(
        registry=client, repository=reference, sleep=time.sleep, clock=time.monotonic
    )
