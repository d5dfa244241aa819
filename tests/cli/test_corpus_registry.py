"""The hostile corpus of registries: lies about type, size and digest, failures, and no end, through
``builder verify``. A registry that does not answer is never an image that nobody signed."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.digest import Digest
from builder.oci import OCI_INDEX, OCI_MANIFEST, Manifest
from builder.reference import Reference
from builder.signatures.publish import Signable, publish
from builder.sigstore import bundle, carriers
from tests.cli.conftest import Builder, Ran
from tests.cli.signed_world import ME, World, refused
from tests.registry.images import tiny_image
from tests.signatures.conftest import hurried
from tests.standin.referrers import ReferrersStandIn, referrers_stand_in
from tests.standin.registry import Call, Reply

TEAM = "team/hello"
ZEROS = b"\0" * (24 << 20)


@dataclass(frozen=True, kw_only=True)
class Served:
    """A registry with an image that is signed in every form, and what verifies it."""

    registry: ReferrersStandIn
    image: Digest
    verify: Callable[..., Ran]

    def spoil(self, path: str, *answers: Reply | Callable[[Call], Reply | None]) -> None:
        """Answer otherwise, each time, below the repository."""
        self.registry.on("GET", f"/v2/{TEAM}/{path}", *answers, forever=True)

    @property
    def tag(self) -> str:
        """The path of the tag of the older form."""
        return f"manifests/{carriers.signature_tag(self.image)}"

    @property
    def bundle(self) -> Manifest:
        """The manifest of one bundle."""
        found = [raw for _, raw in self.registry.manifests.values() if b'"subject"' in raw]
        return Manifest.parse(found[0])


@pytest.fixture
def served(
    unsigned: World, builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Served]:
    """In ``team/hello:t``, of a registry with the referrers API."""
    monkeypatch.chdir(tmp_path)
    defaults = RegistryClient.__init__.__kwdefaults__
    assert defaults is not None
    monkeypatch.setitem(defaults, "sleep", lambda _: None)
    (tmp_path / "me.pub").write_bytes(ME.public.pem)
    with (
        referrers_stand_in() as registry,
        RegistryClient(RegistryConfiguration(attempts=1)) as client,
    ):
        store, image = unsigned.store, unsigned.image
        manifest = Manifest.parse(store.read(image.digest))
        for blob in (manifest.config, *manifest.layers):
            if store.has(blob.digest):
                registry.add_blob(TEAM, store.read(blob.digest))
        registry.add_manifest(TEAM, manifest.raw, media_type=manifest.media_type, tag="t")
        reference = Reference.parse(f"{registry.host}/{TEAM}:t")
        wanted = Signable(
            image=manifest.descriptor, reference=str(reference), statements=unsigned.statements
        )
        publish([wanted], ME, hurried(client, reference))

        def verify(name: str = ":t") -> Ran:
            target = f"{registry.host}/{TEAM}{name}"
            return builder("verify", target, "--key", tmp_path / "me.pub")

        yield Served(registry=registry, image=image.digest, verify=verify)


def test_what_is_served_as_it_is_is_accepted(served: Served) -> None:
    """The control of the cases below."""
    ran = served.verify()
    assert ran.status == 0, ran.err
    assert served.verify(f"@{served.image}").status == 0


# --- lies -----------------------------------------------------------------------------------------

OTHER = tiny_image(b"other").manifest
MANIFEST = {"Content-Type": OCI_MANIFEST}


def test_another_image_for_a_digest(served: Served) -> None:
    """Also one that says the right digest in its header."""
    headers = MANIFEST | {"Docker-Content-Digest": str(served.image)}
    served.spoil(f"manifests/{served.image}", Reply(headers=headers, body=OTHER.raw))
    refused(served.verify(f"@{served.image}"), 4, f"expected {served.image}, got {OTHER.digest}")


def test_a_header_that_says_another_digest(served: Served) -> None:
    headers = MANIFEST | {"Docker-Content-Digest": str(OTHER.digest)}
    raw = served.registry.manifests[TEAM, "t"][1]
    served.spoil("manifests/t", Reply(headers=headers, body=raw))
    refused(served.verify(), 4, str(OTHER.digest))


def test_a_manifest_that_is_served_as_an_index(served: Served) -> None:
    """CVE-2021-41190: one document that two readers take for two things."""
    raw = served.registry.manifests[TEAM, "t"][1]
    served.spoil("manifests/t", Reply(headers={"Content-Type": OCI_INDEX}, body=raw))
    refused(served.verify(), 4, f"served as '{OCI_INDEX}' but says of itself '{OCI_MANIFEST}'")


def test_a_document_with_layers_and_manifests(served: Served) -> None:
    document = json.loads(served.registry.manifests[TEAM, "t"][1])
    del document["mediaType"]
    raw = json.dumps({**document, "manifests": []}).encode()
    for kind, wanted in ((OCI_INDEX, "image index"), (OCI_MANIFEST, "image manifest")):
        served.spoil("manifests/t", Reply(headers={"Content-Type": kind}, body=raw))
        refused(served.verify(), 4, f"expected an {wanted}")
        served.registry._rules.clear()


def test_an_image_under_the_tag_of_its_signatures(served: Served) -> None:
    index = json.dumps({"schemaVersion": 2, "manifests": []}).encode()
    served.spoil(served.tag, Reply(headers={"Content-Type": OCI_INDEX}, body=index))
    refused(served.verify(), 4, f"expected a manifest of signatures, got {OCI_INDEX}")


DOCUMENTS: dict[str, tuple[Reply, int, str]] = {
    "no end": (
        Reply(body=ZEROS, announce=-1), 4, "sends more than the 4194304 bytes that are allowed",
    ),
    "a length without end": (
        Reply(body=b"{", announce=1 << 50), 4, f"{1 << 50} bytes, more than the 4194304 bytes",
    ),
    "nested without end": (Reply(body=b"[" * 100_000), 4, "not JSON: "),
    "nothing": (Reply(), 4, "not JSON: Expecting value"),
    "null": (Reply(body=b"null"), 4, "expected an object, got None"),
}  # fmt: skip


@pytest.mark.parametrize("case", DOCUMENTS)
@pytest.mark.parametrize("what", ["image", "sig", "referrers"])
def test_a_document_that_is_none(what: str, case: str, served: Served) -> None:
    reply, status, message = DOCUMENTS[case]
    kind = OCI_INDEX if what == "referrers" else OCI_MANIFEST
    path = {"image": "manifests/t", "sig": served.tag, "referrers": "referrers/.*"}[what]
    served.spoil(path, replace(reply, headers={"Content-Type": kind}))
    refused(served.verify(), status, message)


BLOBS: dict[str, tuple[Reply, str]] = {
    "no end": (Reply(body=ZEROS, announce=-1), "sends more"),
    "a length without end": (Reply(body=b"{", announce=1 << 50), f" bytes, got {1 << 50} of type"),
    "short": (Reply(body=b"short"), " bytes, got 5 of type"),
    "long": (Reply(body=ZEROS[:20_000]), " bytes, got 20000 of type"),
}


@pytest.mark.parametrize("case", BLOBS)
def test_a_signature_of_another_length(case: str, served: Served) -> None:
    reply, message = BLOBS[case]
    served.spoil("blobs/.*", reply)
    refused(served.verify(), 13, message)


def test_a_signature_of_the_same_length(served: Served) -> None:
    def flipped(call: Call) -> Reply:
        data = served.registry.blobs[TEAM, Digest.parse(call.path.rpartition("/")[2])]
        return Reply(body=bytes([data[0] ^ 1]) + data[1:])

    served.spoil("blobs/.*", flipped)
    refused(served.verify(), 13, "expected sha256:")


def test_bundles_that_are_other_manifests(served: Served) -> None:
    """Of the older form nothing is there."""
    for tag in (carriers.signature_tag, carriers.attestation_tag):
        served.registry.manifests.pop((TEAM, tag(served.image)))

    def other(call: Call) -> Reply | None:
        mine = call.path.endswith(str(served.image))
        return None if mine else Reply(headers=MANIFEST, body=OTHER.raw)

    served.spoil("manifests/sha256:.*", other)
    refused(served.verify(), 13, f"got {OTHER.digest}")


# --- lists ----------------------------------------------------------------------------------------


def page(*entries: object, **headers: str) -> Reply:
    document = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": list(entries)}
    return Reply(headers={"Content-Type": OCI_INDEX, **headers}, body=json.dumps(document).encode())


def entry(number: int) -> dict[str, object]:
    return {
        "mediaType": OCI_MANIFEST,
        "digest": str(Digest.of(b"%d" % number)),
        "size": 1,
        "artifactType": bundle.MEDIA_TYPE,
    }


def test_more_bundles_than_anybody_reads(served: Served) -> None:
    served.spoil("referrers/.*", page(*map(entry, range(101))))
    refused(served.verify(), 4, "referrers: 101 signatures, the limit is 100")


def test_more_referrers_of_other_kinds_than_anybody_lists(served: Served) -> None:
    others = [{**entry(number), "artifactType": "text/x-note"} for number in range(1001)]
    served.spoil("referrers/.*", page(*others))
    refused(served.verify(), 4, "1001 referrers, the limits are 1000 and 50 pages")


def test_pages_without_end(served: Served) -> None:
    asked = iter(range(10_000))

    def more(call: Call) -> Reply:
        return page(Link=f'<{call.path}?from={next(asked)}>; rel="next"')

    served.spoil("referrers/.*", more)
    refused(served.verify(), 4, "0 referrers and more pages, the limits are 1000 and 50 pages")


def test_pages_in_a_circle(served: Served) -> None:
    served.spoil("referrers/.*", lambda call: page(Link=f'<{call.path}?from=1>; rel="next"'))
    refused(served.verify(), 4, "leads to what was there before")


def test_pages_of_another_server(served: Served) -> None:
    served.spoil("referrers/.*", page(Link='<http://127.0.0.1:9/v2/x/referrers/y>; rel="next"'))
    refused(served.verify(), 8, "which is another server, refused")


def test_a_list_of_the_bundles_of_another_image(served: Served) -> None:
    """Somebody's registry lists what it likes: the manifests say what they refer to."""
    stolen = carriers.bundle_manifest(b"{}", "x", subject=OTHER.descriptor)
    served.registry.add_manifest(TEAM, stolen.raw, media_type=OCI_MANIFEST, tag="stolen")
    for tag in (carriers.signature_tag, carriers.attestation_tag):
        served.registry.manifests.pop((TEAM, tag(served.image)))
    served.spoil("referrers/.*", page(carriers.referrer(stolen).record()))
    refused(served.verify(), 13, f"listed as referring to {served.image}, but refers to")


# --- failures -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "wanted", "said"),
    [(500, 8, "500"), (401, 14, "asks for nothing"), (429, 15, "429")],
)
@pytest.mark.parametrize("what", ["sig", "att", "referrers", "blobs"])
def test_a_registry_that_fails_is_no_image_that_nobody_signed(
    what: str, status: int, wanted: int, said: str, served: Served
) -> None:
    path = {
        "sig": served.tag,
        "att": f"manifests/{carriers.attestation_tag(served.image)}",
        "referrers": "referrers/.*",
        "blobs": "blobs/.*",
    }[what]
    served.spoil(path, Reply(status=status))
    ran = served.verify()
    refused(ran, wanted, said)
    assert "nobody signed it" not in ran.err
