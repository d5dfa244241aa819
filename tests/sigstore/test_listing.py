"""Lists that several add to: what others wrote comes out as it went in."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder import artifact
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.oci import MANIFEST_LIMIT, OCI_CONFIG, OCI_INDEX, OCI_MANIFEST, Index, Manifest
from builder.sigstore import bundle, carriers, listing
from builder.sigstore.listing import Form
from tests.registry.images import describe, index_of, tiny_image

IMAGE = tiny_image().manifest
ONE = carriers.simple_signing_layer(b"payload", b"\x01")
TWO = carriers.simple_signing_layer(b"payload", b"\x02")


def add(document: Any, *entries: Any, form: Form = Form.LAYERS) -> Manifest | Index:
    return listing.extended(document, entries, form, at="x")


def test_a_new_one_has_a_config_that_says_nothing() -> None:
    made = add(None, ONE)
    assert isinstance(made, Manifest)
    assert made.layers == (ONE,)
    assert made.config.media_type == OCI_CONFIG
    assert made.config.digest == Digest.of(carriers.CONFIG)
    assert add(None, ONE).raw == made.raw


def test_a_new_index_lists_referrers_with_their_true_type() -> None:
    manifest = carriers.bundle_manifest(b"{}", "https://p", subject=IMAGE.descriptor)
    made = add(None, carriers.referrer(manifest), form=Form.MEMBERS)
    assert json.loads(made.raw)["manifests"] == [
        {
            "mediaType": OCI_MANIFEST,
            "digest": str(manifest.digest),
            "size": len(manifest.raw),
            "artifactType": bundle.MEDIA_TYPE,
            "annotations": {
                "dev.sigstore.bundle.content": "dsse-envelope",
                "dev.sigstore.bundle.predicateType": "https://p",
            },
        }
    ]


def test_a_bundle_refers_to_its_image_and_to_nothing_else() -> None:
    manifest = carriers.bundle_manifest(b"{}", "https://p", subject=IMAGE.descriptor)
    assert manifest.subject == IMAGE.descriptor
    assert manifest.artifact_type == bundle.MEDIA_TYPE
    assert manifest.config == artifact.config()
    assert [layer.media_type for layer in manifest.layers] == [bundle.MEDIA_TYPE]


def test_what_others_wrote_keeps_its_bytes_and_order() -> None:
    theirs = (
        b'{"schemaVersion":2,"mediaType":"application/vnd.oci.image.manifest.v1+json","config":'
        b'{"size":2,"mediaType":"application/vnd.oci.image.config.v1+json","digest":"sha256:'
        + artifact.config().digest.hex.encode()
        + b'"},"layers":[{"size":7,"odd":{"z":1,"a":[1.50,true]},"mediaType":"text/x","digest":'
        b'"' + str(Digest.of(b"layer")).encode() + b'","annotations":{"z":"1","a":"\xc3\xa9"}}],'
        b'"annotations":{"b":"2","a":"1"}}'
    )
    more = add(Manifest.parse(theirs), ONE)
    ours = json.dumps(ONE.record(), separators=(",", ":")).encode()
    assert more.raw == theirs.replace(b'\xc3\xa9"}}]', b'\xc3\xa9"}},' + ours + b"]").replace(
        b"1.50", b"1.5"
    )


@given(st.lists(st.integers(0, 9), max_size=6), st.lists(st.integers(0, 9), max_size=6))
def test_adding_twice_or_in_parts_is_adding_once(first: list[int], second: list[int]) -> None:
    layers = [carriers.simple_signing_layer(b"%d" % number, b"s") for number in range(10)]
    document: Manifest | Index | None = None
    for numbers in (first, second, first):
        wanted = [layers[number] for number in numbers]
        missing = listing.lacking(document, wanted, Form.LAYERS, at="x")
        if missing:
            document = add(document, *missing)
    got = listing.entries(document, Form.LAYERS, at="x")
    assert got == tuple(dict.fromkeys(layers[number] for number in (*first, *second)))


def test_two_signatures_over_one_payload_are_two_entries() -> None:
    document = add(None, ONE)
    assert listing.lacking(document, [ONE, TWO, TWO], Form.LAYERS, at="x") == (TWO,)


def test_an_entry_that_others_describe_less_is_the_same_one() -> None:
    manifest = carriers.bundle_manifest(b"{}", "https://p", subject=IMAGE.descriptor)
    theirs = add(None, manifest.descriptor, form=Form.MEMBERS)
    wanted = [carriers.referrer(manifest)]
    assert listing.lacking(theirs, wanted, Form.MEMBERS, at="x") == ()


@pytest.mark.parametrize(
    ("document", "form", "said"),
    [
        (index_of((IMAGE, "linux", "amd64")), Form.LAYERS, f"expected a manifest.*{OCI_INDEX}"),
        (IMAGE, Form.MEMBERS, "expected an index of signatures, got"),
    ],
)
def test_a_tag_that_stands_for_something_else_is_left_alone(
    document: Any, form: Form, said: str
) -> None:
    for ask in (
        lambda: listing.entries(document, form, at="x"),
        lambda: add(document, ONE, form=form),
    ):
        with pytest.raises(IntegrityError, match=said.replace("+", r"\+")):
            ask()


def test_a_list_does_not_grow_past_what_a_manifest_may_have() -> None:
    big = describe(b"x", media_type="x" * (MANIFEST_LIMIT // 2))
    document = add(None, big)
    with pytest.raises(IntegrityError, match=f"the limit is {MANIFEST_LIMIT}"):
        add(document, big)


def test_a_number_that_nobody_can_write_again_is_refused() -> None:
    raw = add(None, ONE).raw.replace(b'"schemaVersion":2', b'"schemaVersion":2,"odd":1e999')
    with pytest.raises(IntegrityError, match="cannot be written again"):
        add(Manifest.parse(raw), TWO)


def test_tags_are_those_of_cosign_and_the_distribution_spec() -> None:
    digest = Digest.of(b"")
    assert carriers.signature_tag(digest) == f"sha256-{digest.hex}.sig"
    assert carriers.attestation_tag(digest) == f"sha256-{digest.hex}.att"
    assert carriers.referrers_tag(digest) == f"sha256-{digest.hex}"
