"""``builder manifest``: what is signed of an image, exactly."""

import json
from pathlib import Path

import pytest

from builder import canonical
from builder.digest import Digest
from builder.statements import PREDICATE_TYPES, Kind
from tests.cli.conftest import Builder, tree


@pytest.fixture
def image(builder: Builder) -> str:
    found = builder("build", "hello", "--json").json["images"][0]["digest"]
    assert isinstance(found, str)
    return found


@pytest.mark.parametrize("kind", Kind)
def test_the_bytes_of_the_statement_are_printed_and_nothing_else(
    builder: Builder, image: str, kind: Kind
) -> None:
    ran = builder("manifest", "hello", "--type", str(kind))
    assert (ran.status, ran.err) == (0, "")
    assert canonical.encode(ran.json) == ran.out.encode()
    assert ran.json["_type"] == "https://in-toto.io/Statement/v1"
    assert ran.json["predicateType"] == PREDICATE_TYPES[kind]
    assert ran.json["subject"] == [
        {"name": "hello", "digest": {"sha256": image.removeprefix("sha256:")}}
    ]


def test_the_manifest_is_what_is_printed_where_nothing_is_said(
    builder: Builder, image: str
) -> None:
    wanted = builder("manifest", "hello", "--type", "manifest").out
    assert builder("manifest", "hello").out == wanted
    assert builder("manifest", image).out == wanted
    assert builder("manifest", "hello", "--json").out == wanted
    named = builder("manifest", "hello", "--name", "ghcr.io/acme/hello").json
    assert named["subject"][0]["name"] == "ghcr.io/acme/hello"
    assert named["predicate"] == json.loads(wanted)["predicate"]


def test_a_file_gets_the_same_bytes(builder: Builder, image: str, tmp_path: Path) -> None:
    file = tmp_path / "it.json"
    file.write_text("what was there, and is longer than " + "x" * 100_000)
    ran = builder("manifest", image, "--type", "sbom", "--output", file)
    assert (ran.status, ran.out, ran.err) == (0, "", "")
    assert file.read_text() == builder("manifest", image, "--type", "sbom").out
    assert [path.name for path in tmp_path.iterdir() if path.is_file()] == ["it.json"]


@pytest.mark.parametrize(
    ("arguments", "status", "told"),
    [
        (("manifest", "hello", "--type", "licence"), 2, "licence"),
        (("manifest",), 2, "VARIANT"),
        (("manifest", "nothing"), 3, "no variant 'nothing'"),
        (("manifest", "sha256:12"), 2, "64 hex digits"),
        (("manifest", f"sha256:{'0' * 64}"), 3, "no record of image"),
        (("manifest", "hello", "--output", "no/such/it.json"), 9, "no/such/it.json: No such file"),
        (("manifest", "hello", "--output", "variants"), 2, "is a directory"),
    ],
)
def test_what_cannot_be_said_is_refused_and_nothing_is_written(
    builder: Builder, image: str, project: Path, arguments: tuple[str, ...], status: int, told: str
) -> None:
    before = tree(project)
    ran = builder(*arguments)
    assert (ran.status, ran.out) == (status, "")
    assert told in ran.err
    assert tree(project) == before


def test_a_variant_that_was_not_built_has_nothing_to_say(builder: Builder) -> None:
    ran = builder("manifest", "hello")
    assert (ran.status, ran.out) == (3, "")
    assert "was not built for linux/amd64 yet" in ran.err


def test_a_build_that_is_answered_at_once_keeps_what_there_is_to_say(
    builder: Builder, image: str, store: Path
) -> None:
    """The answer is of no use where nobody could say any more what it is about."""
    from builder.cli.unchanged import recall

    said = builder("manifest", "hello").out
    assert builder("build", "hello").status == 0
    assert recall(("hello",), {"BUILDER_STORE": str(store)}) is not None
    (store / "notes/image" / image.removeprefix("sha256:")).unlink()
    assert recall(("hello",), {"BUILDER_STORE": str(store)}) is None
    assert builder("build", "hello").status == 0
    assert builder("manifest", "hello").out == said


def test_an_overlay_is_said_by_the_digest_of_its_directory(
    builder: Builder, image: str, project: Path
) -> None:
    overlays = builder("manifest", "hello").json["predicate"]["overlays"]
    files = {
        path.relative_to(project / "overlays/greeting").as_posix(): path.read_bytes()
        for path in (project / "overlays/greeting").rglob("*")
        if path.is_file()
    }
    assert overlays == {"greeting": {name: str(Digest.of(data)) for name, data in files.items()}}
