"""Descriptors, manifests and indexes (cases 11, 24)."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.digest import Digest
from builder.errors import IntegrityError, UsageError
from builder.oci import (
    DOCKER_CONFIG,
    DOCKER_INDEX,
    DOCKER_LAYER_GZIP,
    DOCKER_MANIFEST,
    MANIFEST_LIMIT,
    OCI_CONFIG,
    OCI_INDEX,
    OCI_LAYER_GZIP,
    OCI_MANIFEST,
    Descriptor,
    Family,
    Index,
    Manifest,
    Platform,
    parse_document,
)

DIGEST = Digest.of(b"")
CONFIG = {"mediaType": OCI_CONFIG, "digest": str(DIGEST), "size": 7023}
LAYER = {"mediaType": OCI_LAYER_GZIP, "digest": str(DIGEST), "size": 32654}
MANIFEST: dict[str, Any] = {
    "schemaVersion": 2,
    "mediaType": OCI_MANIFEST,
    "config": CONFIG,
    "layers": [LAYER, LAYER | {"size": 1}],
    "annotations": {"com.example.key2": "value2", "com.example.key1": "value1"},
}
AMD64 = Platform("linux", "amd64")
ARM64 = Platform("linux", "arm64")


def raw(value: object) -> bytes:
    return json.dumps(value).encode()


def entry(platform: dict[str, Any] | None, number: int = 0) -> dict[str, Any]:
    value = {"mediaType": OCI_MANIFEST, "digest": str(Digest.of(b"%d" % number)), "size": number}
    return value if platform is None else value | {"platform": platform}


def index(*entries: dict[str, Any]) -> Index:
    value = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": list(entries)}
    return Index.parse(raw(value))


class TestDescriptor:
    def test_fields_that_are_not_acted_on_come_back_as_they_were(self) -> None:
        value = LAYER | {
            "urls": ["https://example.com/layer"],
            "annotations": {"b": "2", "a": "1"},
            "artifactType": "x",
            "platform": {
                "os": "windows",
                "architecture": "amd64",
                "os.version": "10.0.17763",
                "os.features": ["win32k"],
            },
        }
        descriptor = Descriptor.parse(value, at="layer")
        assert descriptor.record() == value
        assert descriptor.platform == Platform("windows", "amd64")
        assert descriptor.annotations == (("a", "1"), ("b", "2"))
        assert Descriptor.parse(LAYER, at="layer").record() == LAYER

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"size": None}, "d.size: expected a count of bytes, got None"),
            ({"size": True}, "d.size: expected a count of bytes, got True"),
            ({"size": -1}, "d.size: expected a count of bytes, got -1"),
            ({"size": 1.0}, "d.size: expected a count of bytes, got 1.0"),
            ({"mediaType": None}, "d.mediaType: expected a string, got None"),
            (
                {"digest": "sha512:ab"},
                "d.digest: expected 'sha256:' and 64 hex digits, got 'sha512:ab'",
            ),
            ({"digest": 5}, "d.digest: expected a string, got 5"),
            ({"annotations": []}, "d.annotations: expected an object, got []"),
            ({"annotations": {"a": 1}}, "d.annotations.a: expected a string, got 1"),
            ({"platform": "linux/amd64"}, "d.platform: expected an object, got 'linux/amd64'"),
            ({"platform": {"os": "linux"}}, "d.platform.architecture: expected a string, got None"),
            (
                {"platform": {"os": "linux", "architecture": "arm", "variant": 7}},
                "d.platform.variant: expected a string, got 7",
            ),
        ],
    )  # fmt: skip
    def test_a_field_of_another_type_is_named(self, change: dict[str, Any], message: str) -> None:
        with pytest.raises(IntegrityError) as caught:
            Descriptor.parse(LAYER | change, at="d")
        assert caught.value.message == message

    def test_null_counts_as_absent(self) -> None:
        value = LAYER | {"annotations": None, "platform": None}
        assert Descriptor.parse(value, at="d") == Descriptor.parse(LAYER, at="d")

    @settings(max_examples=60)
    @given(
        st.fixed_dictionaries(
            {"mediaType": st.text(max_size=5), "size": st.integers(0, 1 << 62)},
            optional={
                "annotations": st.dictionaries(
                    st.text(max_size=3), st.text(max_size=3), min_size=1
                ),
                "platform": st.fixed_dictionaries(
                    {"os": st.text(max_size=3), "architecture": st.text(max_size=3)},
                    optional={"variant": st.text(min_size=1, max_size=3), "os.version": st.text()},
                ),
                "urls": st.lists(st.text(max_size=3)),
                "data": st.text(max_size=3),
            },
        )
    )
    def test_whatever_is_read_is_written_again(self, fields: dict[str, Any]) -> None:
        value = fields | {"digest": str(DIGEST)}
        descriptor = Descriptor.parse(value, at="d")
        assert descriptor.record() == value
        assert Descriptor.parse(descriptor.record(), at="d") == descriptor


class TestManifest:
    def test_the_specifications_example_is_read_and_its_bytes_are_kept(self) -> None:
        data = json.dumps(MANIFEST, indent=2).encode() + b"\n"
        manifest = Manifest.parse(data)
        assert manifest.raw == data
        assert manifest.digest == Digest.of(data)
        assert manifest.config == Descriptor.parse(CONFIG, at="")
        assert [layer.size for layer in manifest.layers] == [32654, 1]
        assert manifest.annotations == (
            ("com.example.key1", "value1"),
            ("com.example.key2", "value2"),
        )
        assert manifest.descriptor == Descriptor(
            media_type=OCI_MANIFEST, digest=Digest.of(data), size=len(data)
        )

    @pytest.mark.parametrize(
        ("media_type", "family", "types"),
        [
            (OCI_MANIFEST, Family.OCI, (OCI_MANIFEST, OCI_CONFIG, OCI_LAYER_GZIP)),
            (DOCKER_MANIFEST, Family.DOCKER, (DOCKER_MANIFEST, DOCKER_CONFIG, DOCKER_LAYER_GZIP)),
        ],
    )
    def test_an_image_has_a_family(
        self, media_type: str, family: Family, types: tuple[str, str, str]
    ) -> None:
        manifest = Manifest.parse(raw(MANIFEST | {"mediaType": media_type}))
        assert manifest.family is family
        assert (family.manifest, family.config, family.layer) == types

    @pytest.mark.parametrize(
        ("own", "said", "kind"),
        [
            pytest.param(OCI_MANIFEST, None, OCI_MANIFEST, id="the document says"),
            pytest.param(None, DOCKER_MANIFEST, DOCKER_MANIFEST, id="the transport says"),
            pytest.param(None, None, OCI_MANIFEST, id="neither says"),
            pytest.param(
                OCI_MANIFEST, f"{OCI_MANIFEST}; charset=utf-8", OCI_MANIFEST, id="parameters"
            ),
        ],
    )
    def test_where_the_type_comes_from(self, own: str | None, said: str | None, kind: str) -> None:
        value = {key: item for key, item in MANIFEST.items() if key != "mediaType"}
        document = parse_document(
            raw(value | ({"mediaType": own} if own else {})), media_type=said, at="m"
        )
        assert isinstance(document, Manifest)
        assert document.media_type == kind

    @pytest.mark.parametrize(
        ("value", "said", "message"),
        [
            pytest.param(
                MANIFEST, DOCKER_MANIFEST,
                f"m: served as '{DOCKER_MANIFEST}' but says of itself '{OCI_MANIFEST}'",
                id="another type than served",
            ),
            pytest.param(
                MANIFEST, OCI_INDEX,
                f"m: served as '{OCI_INDEX}' but says of itself '{OCI_MANIFEST}'",
                id="served as an index",
            ),
            pytest.param(
                MANIFEST | {"manifests": []}, None,
                f"m: expected an image manifest, got '{OCI_MANIFEST}'",
                id="a manifest that is an index too",
            ),
            pytest.param(
                MANIFEST | {"mediaType": OCI_INDEX, "manifests": []}, None,
                f"m: expected an image index, got '{OCI_INDEX}'",
                id="an index that is a manifest too",
            ),
            pytest.param(
                {"schemaVersion": 2, "manifests": [], "mediaType": OCI_INDEX, "config": CONFIG},
                None,
                f"m: expected an image index, got '{OCI_INDEX}'",
                id="an index with a config",
            ),
            pytest.param(
                {"schemaVersion": 2, "manifests": [], "mediaType": OCI_INDEX, "layers": []}, None,
                f"m: expected an image index, got '{OCI_INDEX}'",
                id="an index with layers",
            ),
            pytest.param(
                MANIFEST | {"mediaType": "application/vnd.oci.artifact.manifest.v1+json"}, None,
                "m: expected an image manifest, got"
                " 'application/vnd.oci.artifact.manifest.v1+json'",
                id="an artifact",
            ),
            pytest.param(
                MANIFEST | {"schemaVersion": 1}, None,
                "m: schemaVersion 1 is not supported, wanted 2",
                id="schema 1",
            ),
            pytest.param(
                {"errors": []}, None, "m: schemaVersion None is not supported, wanted 2",
                id="something else",
            ),
            pytest.param([], None, "m: expected an object, got []", id="a list"),
            pytest.param(
                MANIFEST | {"layers": {}}, None, "m.layers: expected a list, got {}",
                id="layers that are no list",
            ),
            pytest.param(
                MANIFEST | {"layers": [LAYER, {}]}, None,
                "m.layers[1].size: expected a count of bytes, got None",
                id="an empty layer",
            ),
            pytest.param(
                MANIFEST | {"config": None}, None, "m.config: expected an object, got None",
                id="no config",
            ),
            pytest.param(
                MANIFEST | {"mediaType": 5}, None, "m.mediaType: expected a string, got 5",
                id="a type that is a number",
            ),
        ],
    )  # fmt: skip
    def test_what_is_refused(self, value: object, said: str | None, message: str) -> None:
        with pytest.raises(IntegrityError) as caught:
            parse_document(raw(value), media_type=said, at="m")
        assert caught.value.message == message

    @pytest.mark.parametrize(
        ("data", "message"),
        [
            pytest.param(b"<html>", "m: not JSON: Expecting value: line 1 column 1 (char 0)",
                         id="a page"),
            pytest.param(b'{"a":1,"a":2}', "m: duplicate key 'a'", id="a key twice"),
            pytest.param(b" " * (MANIFEST_LIMIT + 1),
                         "m: 4194305 bytes of JSON, the limit is 4194304", id="too large"),
        ],
    )  # fmt: skip
    def test_bytes_that_are_not_read(self, data: bytes, message: str) -> None:
        with pytest.raises(IntegrityError) as caught:
            parse_document(data, media_type=None, at="m")
        assert caught.value.message == message

    @pytest.mark.parametrize(
        "data", [b"[" * 100_000, b"\xff", b'{"size":' + b"9" * 5000 + b"}"],
        ids=["deep", "not UTF-8", "a number without end"],
    )  # fmt: skip
    def test_bytes_that_break_readers_are_refused_all_the_same(self, data: bytes) -> None:
        with pytest.raises(IntegrityError, match=r"^m: not JSON: "):
            parse_document(data, media_type=None, at="m")

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            pytest.param(
                {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": [], "Manifests": [LAYER]},
                "m: the key 'Manifests', which some readers take for 'manifests'",
                id="members of an index",
            ),
            pytest.param(
                MANIFEST | {"mediatype": OCI_INDEX},
                "m: the key 'mediatype', which some readers take for 'mediaType'",
                id="the type of a document",
            ),
            pytest.param(
                MANIFEST | {"layer\u017f": []},
                "m: the key 'layer\u017f', which some readers take for 'layers'",
                id="a letter that is an s to them",
            ),
            pytest.param(
                MANIFEST | {"config": CONFIG | {"DIGEST": str(Digest.of(b"evil"))}},
                "m.config: the key 'DIGEST', which some readers take for 'digest'",
                id="the digest of a descriptor",
            ),
            pytest.param(
                {"schemaVersion": 2, "manifests": [entry({"os": "linux", "architecture": "amd64",
                                                          "Architecture": "arm64"})]},
                "m.manifests[0].platform: the key 'Architecture', which some readers take for"
                " 'architecture'",
                id="a platform",
            ),
        ],
    )  # fmt: skip
    def test_a_key_that_go_takes_for_a_field(self, value: object, message: str) -> None:
        """Its reader of JSON knows no case, and takes the last of two."""
        with pytest.raises(IntegrityError) as caught:
            parse_document(raw(value), media_type=None, at="m")
        assert caught.value.message == message

    @pytest.mark.parametrize(
        ("value", "message"),
        [
            pytest.param(
                MANIFEST | {"annotations": {"a\n  image: SHA256:forged": 5}},
                "m.annotations.a image: SHA256:forged: expected a string, got 5",
                id="the name of an annotation",
            ),
        ],
    )  # fmt: skip
    def test_what_would_put_lines_of_its_own_into_a_message(
        self, value: object, message: str
    ) -> None:
        with pytest.raises(IntegrityError) as caught:
            parse_document(raw(value), media_type=None, at="m")
        assert caught.value.message == message

    def test_annotations_know_case(self) -> None:
        annotations = {"Digest": "a", "digest": "b", "Version": "1", "version": "2"}
        found = Manifest.parse(raw(MANIFEST | {"annotations": annotations}))
        assert dict(found.annotations) == annotations

    def test_schema_1_has_a_hint(self) -> None:
        with pytest.raises(IntegrityError) as caught:
            Manifest.parse(raw({"schemaVersion": 1, "fsLayers": []}))
        assert caught.value.hint == (
            "schema 1 manifests are not content-addressed images: have it pushed again"
        )


class TestIndex:
    def test_an_index_is_told_from_a_manifest_by_its_fields(self) -> None:
        found = parse_document(
            raw({"schemaVersion": 2, "manifests": [entry(None)]}), media_type=None, at="i"
        )
        assert isinstance(found, Index)
        assert found.media_type == OCI_INDEX
        assert found.manifests[0].platform is None

    def test_a_platform_puts_no_lines_of_its_own_into_a_message(self) -> None:
        found = index(entry({"os": "linux", "architecture": "amd64\nbuilder: it is verified"}))
        with pytest.raises(IntegrityError, match=r"has: linux/amd64 builder: it is verified$"):
            found.select(AMD64, at="i")

    def test_dockers_list_is_an_index(self) -> None:
        value = {"schemaVersion": 2, "mediaType": DOCKER_INDEX, "manifests": []}
        assert Index.parse(raw(value), media_type=DOCKER_INDEX).manifests == ()

    def test_one_platform_is_selected_beside_attestations(self) -> None:
        found = index(
            entry({"os": "linux", "architecture": "amd64"}, 1),
            entry({"os": "linux", "architecture": "arm64", "variant": "v8"}, 2),
            entry({"os": "unknown", "architecture": "unknown"}, 3),
            entry({"os": "unknown", "architecture": "unknown"}, 4),
            entry(None, 5),
        )
        assert found.select(AMD64, at="i").size == 1
        assert found.select(ARM64, at="i").size == 2
        assert found.select(Platform("linux", "arm64", "v8"), at="i").size == 2

    def test_another_variant_than_the_one_asked_for_is_not_taken(self) -> None:
        found = index(entry({"os": "linux", "architecture": "arm64", "variant": "v9"}, 1))
        with pytest.raises(IntegrityError, match="0 manifests for platform 'linux/arm64/v8'"):
            found.select(Platform("linux", "arm64", "v8"), at="i")

    def test_an_exact_match_goes_before_a_variant(self) -> None:
        found = index(
            entry({"os": "linux", "architecture": "amd64", "variant": "v3"}, 1),
            entry({"os": "linux", "architecture": "amd64"}, 2),
            entry({"os": "linux", "architecture": "arm64", "variant": ""}, 3),
            entry({"os": "linux", "architecture": "arm64", "variant": "v9"}, 4),
        )
        assert found.select(AMD64, at="i").size == 2
        assert found.select(ARM64, at="i").size == 3

    @pytest.mark.parametrize(
        ("entries", "message"),
        [
            pytest.param(
                [{"os": "linux", "architecture": "arm64"}],
                "i: 0 manifests for platform 'linux/amd64', wanted one; the index has: linux/arm64",
                id="another platform",
            ),
            pytest.param(
                [{"os": "linux", "architecture": "amd64", "variant": v} for v in ("v2", "v3")],
                "i: 2 manifests for platform 'linux/amd64', wanted one; the index has:"
                " linux/amd64/v2, linux/amd64/v3",
                id="two variants",
            ),
            pytest.param(
                [],
                "i: 0 manifests for platform 'linux/amd64', wanted one; the index has: none",
                id="nothing",
            ),
            pytest.param(
                [None],
                "i: 0 manifests for platform 'linux/amd64', wanted one; the index has: one without"
                " platform",
                id="an entry without platform",
            ),
        ],
    )
    def test_a_platform_that_is_not_there_once_is_refused_with_what_there_is(
        self, entries: list[dict[str, Any] | None], message: str
    ) -> None:
        found = index(*(entry(platform, n) for n, platform in enumerate(entries)))
        with pytest.raises(IntegrityError) as caught:
            found.select(AMD64, at="i")
        assert caught.value.message == message
        assert caught.value.hint == "choose another with --platform"


def test_a_platform_has_one_spelling() -> None:
    for text in ("linux/amd64", "linux/arm64/v8"):
        assert str(Platform.parse(text)) == text


@pytest.mark.parametrize("text", ["linux", "", "linux/", "a/b/c/d", "/amd64"])
def test_what_is_no_platform(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        Platform.parse(text, at="--platform")
    assert caught.value.message == f"--platform: expected os/architecture, got {text!r}"


def referring(**fields: Any) -> bytes:
    image = {"mediaType": OCI_MANIFEST, "digest": str(DIGEST), "size": 7}
    document = {
        "schemaVersion": 2,
        "config": {"mediaType": OCI_CONFIG, "digest": str(DIGEST), "size": 0},
        "layers": [],
        "artifactType": "application/x",
        "subject": image,
    }
    return json.dumps(document | fields).encode()


def test_a_manifest_that_refers_to_another_says_so() -> None:
    manifest = Manifest.parse(referring())
    assert manifest.subject == Descriptor(media_type=OCI_MANIFEST, digest=DIGEST, size=7)
    assert manifest.artifact_type == "application/x"
    plain = Manifest.parse(referring(subject=None, artifactType=None))
    assert (plain.subject, plain.artifact_type) == (None, None)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"subject": []}, "m.subject: expected an object"),
        ({"subject": {"digest": str(DIGEST)}}, "m.subject.size"),
        ({"artifactType": 7}, "m.artifactType: expected a string"),
    ],
)
def test_a_subject_that_is_none_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(IntegrityError, match=said):
        Manifest.parse(referring(**fields), at="m")


def test_a_descriptor_in_a_list_of_referrers_has_a_type() -> None:
    record = {"mediaType": OCI_MANIFEST, "digest": str(DIGEST), "size": 7}
    listed = Descriptor.parse({**record, "artifactType": "application/x"}, at="d")
    assert listed.artifact_type == "application/x"
    assert listed.record()["artifactType"] == "application/x"
    assert Descriptor.parse(record, at="d").artifact_type is None
    assert Descriptor.parse({**record, "artifactType": 7}, at="d").artifact_type is None
