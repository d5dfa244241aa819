"""Config and manifest: the base's own, ours above it, and nothing else touched."""

import json
from dataclasses import fields, replace
from typing import Any

import pytest

from builder import canonical
from builder.base import Base, config_of
from builder.build_record import settings_record
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.image import CREATED, assemble
from builder.oci import (
    DOCKER_CONFIG,
    DOCKER_LAYER_GZIP,
    DOCKER_MANIFEST,
    OCI_CONFIG,
    OCI_LAYER_GZIP,
    OCI_MANIFEST,
    Manifest,
    Platform,
)
from builder.outcome import LayerOutput
from builder.reference import Reference
from builder.variant import ImageSettings

AMD64 = Platform("linux", "amd64")
NO_SETTINGS = ImageSettings()
OURS = LayerOutput(
    digest=Digest.of(b"layer"),
    size=5,
    diff_id=Digest.of(b"diff"),
    index=Digest.of(b"index"),
    table=Digest.of(b"table"),
)


class Nowhere:
    """An origin that has nothing: assembling must not fetch."""

    def document(self, digest: Digest) -> bytes:
        raise AssertionError(digest)

    def blob(self, descriptor: object) -> Any:
        raise AssertionError(descriptor)


def base(*, docker: bool = False, **config: Any) -> Base:
    value = {
        "architecture": "amd64",
        "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": [str(Digest.of(b"base diff"))]},
        "history": [{"created_by": "FROM"}, {"created_by": "ENV", "empty_layer": True}],
        "config": {"Env": ["PATH=/bin", "A=1"], "Cmd": ["sh"], "Healthcheck": {"Test": ["x"]}},
        "docker_version": "20.10",
    } | config
    raw = canonical.encode(value)
    document = {
        "schemaVersion": 2,
        "mediaType": DOCKER_MANIFEST if docker else OCI_MANIFEST,
        "config": {
            "mediaType": DOCKER_CONFIG if docker else OCI_CONFIG,
            "digest": str(Digest.of(raw)),
            "size": len(raw),
        },
        "layers": [
            {
                "mediaType": DOCKER_LAYER_GZIP if docker else OCI_LAYER_GZIP,
                "digest": str(Digest.of(b"base layer")),
                "size": 10,
                "urls": ["https://example.invalid/layer"],
            }
        ],
    }
    return Base(
        manifest=Manifest.parse(canonical.encode(document)),
        config=raw,
        diff_ids=(Digest.of(b"base diff"),),
        origin=Nowhere(),
        reference=Reference.parse("example.invalid/base:1"),
    )


def built(on: Base | None, settings: ImageSettings = NO_SETTINGS) -> tuple[Any, Any]:
    image = assemble(on, [("builder pull pr", OURS)], settings=settings, platform=AMD64)
    return json.loads(image.manifest.raw), json.loads(image.config)


def test_the_base_descriptors_go_in_as_they_are_and_ours_above() -> None:
    on = base()
    manifest, config = built(on)
    assert manifest["layers"] == [
        json.loads(on.manifest.raw)["layers"][0],
        {"mediaType": OCI_LAYER_GZIP, "digest": str(OURS.digest), "size": 5},
    ]
    assert config["rootfs"]["diff_ids"] == [str(Digest.of(b"base diff")), str(OURS.diff_id)]


def test_what_we_do_not_set_is_kept_also_what_we_do_not_know() -> None:
    _, config = built(base())
    assert config["docker_version"] == "20.10"
    assert config["config"]["Healthcheck"] == {"Test": ["x"]}
    assert config["config"]["Cmd"] == ["sh"]


def test_settings_are_merged_into_the_base() -> None:
    settings = ImageSettings(
        env=(("A", "2"), ("Z", "9"), ("B", "3"), ("GONE", None)),
        labels=(("l", "1"),),
        entrypoint=(),
        command=("serve",),
        workdir="/w",
        user="7",
    )
    _, config = built(base(), settings)
    assert config["config"] == {
        "Env": ["PATH=/bin", "A=2", "B=3", "Z=9"],
        "Labels": {"l": "1"},
        "Entrypoint": [],
        "Cmd": ["serve"],
        "WorkingDir": "/w",
        "User": "7",
        "Healthcheck": {"Test": ["x"]},
    }


def test_an_env_of_null_removes_the_base_one() -> None:
    _, config = built(base(), ImageSettings(env=(("A", None),)))
    assert config["config"]["Env"] == ["PATH=/bin"]


@pytest.mark.parametrize(
    ("history", "grows"),
    [
        pytest.param([{"created_by": "a"}], True, id="one entry for one layer"),
        pytest.param(
            [{"created_by": "a"}, {"created_by": "b", "empty_layer": True}], True, id="empty layer"
        ),
        pytest.param(None, False, id="no history"),
        pytest.param([], False, id="a missing entry"),
        pytest.param([{"created_by": "a"}, {"created_by": "b"}], False, id="one entry too many"),
    ],
)
def test_history_grows_only_where_it_is_aligned(history: Any, grows: bool) -> None:
    _, config = built(base(history=history))
    ours = {"created": CREATED, "created_by": "builder pull pr"}
    assert config["history"] == ([*history, ours] if grows else history)


def test_the_family_of_the_base_is_kept() -> None:
    manifest, _ = built(base(docker=True))
    assert manifest["mediaType"] == DOCKER_MANIFEST
    assert manifest["config"]["mediaType"] == DOCKER_CONFIG
    assert manifest["layers"][1]["mediaType"] == DOCKER_LAYER_GZIP
    assert "annotations" not in manifest


def test_an_oci_image_says_what_its_base_is() -> None:
    on = base()
    manifest, _ = built(on)
    assert manifest["annotations"] == {
        "org.opencontainers.image.base.digest": str(on.manifest.digest),
        "org.opencontainers.image.base.name": "example.invalid/base:1",
    }


def test_scratch_gives_the_bytes_that_it_always_gave() -> None:
    """Golden: a change of this digest changes every published image on scratch; raise ASSEMBLY."""
    image = assemble(None, [("builder wheels w", OURS)], settings=ImageSettings(), platform=AMD64)
    assert str(image.digest) == GOLDEN


GOLDEN = "sha256:e368d2dc4d977030efa32c63416fedbef1ce3aaf93e5f41d8e850753fe01333c"


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"config": {"Env": "A=1"}}, "config.Env: expected a list of strings, got 'A=1'"),
        ({"config": {"Env": ["A=1", 2]}}, "config.Env: expected a list of strings, got ['A=1', 2]"),
        ({"config": {"Labels": ["a"]}}, "config.Labels: expected an object of strings, got ['a']"),
        (
            {"config": {"Labels": {"a": 1}}},
            "config.Labels: expected an object of strings, got {'a': 1}",
        ),
        ({"config": ["x"]}, "not an image config: 'config' is ['x']"),
        ({"rootfs": {"diff_ids": [1]}}, "not an image config: no rootfs.diff_ids"),
        (
            {"config": {"Entrypoint": ["a"], "entrypoint": ["b"]}},
            "the key 'entrypoint', which some readers take for 'Entrypoint'",
        ),
        ({"Config": {"Env": []}}, "the key 'Config', which some readers take for 'config'"),
        (
            {"rootfs": {"diff_ids": [], "Diff_IDs": []}},
            "the key 'Diff_IDs', which some readers take for 'diff_ids'",
        ),
    ],
)
def test_a_config_that_is_none_is_refused_before_it_is_used(
    config: dict[str, Any], message: str
) -> None:
    raw = canonical.encode({"rootfs": {"diff_ids": []}} | config)
    with pytest.raises(IntegrityError) as caught:
        config_of(raw, at="config")
    assert caught.value.message == f"config: {message}"


def test_labels_know_case() -> None:
    labels = {"Env": "a", "env": "b"}
    raw = canonical.encode({"rootfs": {"diff_ids": []}, "config": {"Labels": labels}})
    assert config_of(raw, at="config")["config"]["Labels"] == labels


def test_a_config_with_empty_settings_is_one() -> None:
    raw = canonical.encode({"rootfs": {"diff_ids": []}, "config": {"Env": None, "Labels": {}}})
    assert config_of(raw, at="config")["config"] == {"Env": None, "Labels": {}}


def test_a_number_of_the_base_that_has_no_one_spelling_is_refused() -> None:
    """A whole one has: it is written as the integer that it is."""
    whole, part = (
        replace(on, config=on.config.replace(b'"os"', b'"x":' + number + b',"os"'))
        for on, number in ((base(), b"2.0"), (base(), b"2.5"))
    )
    _, config = built(whole)
    assert repr(config["x"]) == "2"
    with pytest.raises(IntegrityError) as caught:
        built(part)
    assert caught.value.message == ("the base's config: the number 2.5 has no one spelling")


SETTINGS: dict[str, object] = {
    "env": (("B", "2"),),
    "labels": (("b", "2"),),
    "entrypoint": ("sh",),
    "command": ("-c",),
    "workdir": "/b",
    "user": "2",
}


@pytest.mark.parametrize("name", [field.name for field in fields(ImageSettings)])
def test_every_field_of_the_settings_is_in_the_image_and_in_its_record(name: str) -> None:
    """A new field without an entry in SETTINGS fails here until someone decides."""
    other = replace(NO_SETTINGS, **{name: SETTINGS[name]})  # type: ignore[arg-type]  # any field
    assert built(base(), other) != built(base())
    assert settings_record(other) != settings_record(NO_SETTINGS)
    assert settings_record(other).keys() == SETTINGS.keys()


def _foreign(text: str) -> Base:
    """A base whose config has one more field, written as ``text``."""
    whole = base()
    raw = whole.config[:-1] + f',"x":{text}}}'.encode()
    return replace(whole, config=raw)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("0.5", "the base's config: the number 0.5 has no one spelling"),
        ("[" * 101 + "]" * 101, "the base's config: not JSON: nested deeper than 100"),
        ('"\\ud800"', None),
    ],
    ids=["fraction", "depth", "half a pair"],
)
def test_a_config_that_has_no_canonical_form_is_refused(text: str, said: str | None) -> None:
    with pytest.raises(IntegrityError) as caught:
        assemble(_foreign(text), [], settings=NO_SETTINGS, platform=AMD64)
    if said is None:
        assert r"\ud800" in caught.value.message
    else:
        assert caught.value.message == said
