"""What commands print: for people, as one document, and on which stream."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Builder
from tests.plugins.golden import Golden

STEP = ["step", "kind", "derivation", "diff_id", "digest", "size", "cached"]


def keys(value: Any) -> Any:
    """The shape of a document: keys in their order, lists by their first item."""
    if isinstance(value, dict):
        return {key: keys(item) for key, item in value.items()}
    if isinstance(value, list):
        return [keys(value[0])] if value else []
    return type(value).__name__


def test_variants_lists_recipes_without_building(
    builder: Builder, store: Path, golden: Golden
) -> None:
    ran = builder("variants")
    assert (ran.status, ran.err) == (0, "")
    golden("cli/variants.txt", ran.out)
    golden("cli/variants.json", builder("variants", "--json").out)
    assert not store.exists()


def test_a_plan_says_what_is_cached(builder: Builder, golden: Golden) -> None:
    ran = builder("plan", "hello")
    assert (ran.status, ran.err) == (0, "")
    golden("cli/plan.txt", ran.out)
    golden("cli/plan.json", builder("plan", "hello", "--json").out)
    builder("build", "hello")
    assert builder("plan", "hello").out.split() == ran.out.replace("to build", "cached").split()


def test_a_build_ends_with_a_table_and_the_digest(builder: Builder, golden: Golden) -> None:
    ran = builder("build", "hello")
    assert (ran.status, ran.err) == (0, "")
    golden("cli/build.txt", ran.out)
    document = builder("build", "hello", "--json").json
    golden("cli/build.json", json.dumps(document, indent=2) + "\n")
    assert list(document["images"][0]) == [
        "variant",
        "digest",
        "platform",
        "reference",
        "layers",
        "left_out",
    ]
    assert [list(layer) for layer in document["images"][0]["layers"]] == [STEP, STEP]


def test_the_first_variant_that_fails_ends_the_build_and_those_before_it_are_reported(
    builder: Builder, project: Path, store: Path
) -> None:
    good = (project / "variants/hello.yaml").read_text()
    (project / "variants/bad.yaml").write_text(good.replace("greeting", "wrong"))
    (project / "variants/last.yaml").write_text(good)
    wrong = project / "overlays/wrong"
    wrong.mkdir()
    (wrong / "overlay.yaml").write_text(
        "version: 1\nremove:\n  - {path: hello/nowhere.py, replaces: sha256:" + "0" * 64 + "}\n"
    )
    alone = builder("build", "hello")

    ran = builder("build", "hello", "bad", "last")
    assert ran.status == 6
    assert ran.out.split() == alone.out.replace("built", "cached").split()
    assert ran.err.startswith("builder: error: ")
    assert [item["org.opencontainers.image.ref.name"] for item in _annotations(store)] == ["hello"]

    ran = builder("build", "hello", "bad", "last", "--json")
    assert (ran.status, list(ran.json)) == (6, ["images", "error"])
    assert [image["variant"] for image in ran.json["images"]] == ["hello"]
    assert ran.json["error"]["verdict"] == "file-missing"


def _annotations(store: Path) -> list[dict[str, str]]:
    index = json.loads((store / "index.json").read_text())
    return [item["annotations"] for item in index["manifests"]]


def test_an_unknown_variant_among_others_builds_none(builder: Builder, store: Path) -> None:
    assert builder("build", "hello", "helo").status == 3
    assert not store.exists()


def test_an_accepted_result_holds_later_builds_to_it(
    builder: Builder, project: Path, golden: Golden
) -> None:
    ran = builder("build", "hello", "--locked")
    assert (ran.status, ran.out) == (4, "")
    assert ran.err == (
        "builder: error: lockfiles/images/hello.yaml: no accepted result for linux/amd64\n"
        "  hint: look at the build, then: builder accept hello\n"
    )
    ran = builder("accept", "hello")
    file = project / "lockfiles/images/hello.yaml"
    golden("cli/accept.txt", ran.out)
    golden("cli/accepted.yaml", file.read_text())
    assert builder("accept", "hello", "--json").json == {
        "accepted": [
            {
                "variant": "hello",
                "digest": ran.out.split()[-1],
                "file": "lockfiles/images/hello.yaml",
            }
        ]
    }
    assert builder("build", "hello", "--locked").status == 0

    (project / "overlays/greeting/files/limits.py").write_text("REPEAT = 2\n")
    before = file.read_bytes()
    ran = builder("build", "hello", "--locked")
    assert ran.status == 4
    assert "files that differ: usr/local/lib/python3.12/dist-packages/hello/limits.py" in ran.err
    assert file.read_bytes() == before
    ((accepted, got),) = re.findall(
        r"expected image (sha256:\w+), the build gave (sha256:\w+)", ran.err
    )
    assert ran.err.splitlines()[-1] == (
        "  hint: if it is meant: builder accept hello; to see why: builder explain"
        f" {accepted} {got}"
    )
    assert builder("explain", accepted, got).status == 0
    assert builder("build", "hello").status == 0
    assert "hello/limits.py" in builder("explain", accepted, "hello").out


def test_a_layout_is_written_beside_the_store(builder: Builder, tmp_path: Path) -> None:
    ran = builder("build", "hello", "--out", tmp_path / "out")
    index = json.loads((tmp_path / "out/index.json").read_text())
    assert ran.out.splitlines()[-1] == f"image {index['manifests'][0]['digest']}"


@pytest.mark.parametrize("style", ["dot", "mermaid", "svg"])
def test_a_graph_is_text_in_the_language_asked_for(
    style: str, builder: Builder, golden: Golden
) -> None:
    ran = builder("graph", "hello", "--format", style)
    assert (ran.status, ran.err) == (0, "")
    golden(f"cli/graph.{style}", ran.out)
    document = builder("graph", "hello", "--format", style, "--json").json
    assert document == {"variant": "hello", "format": style, "graph": ran.out.rstrip("\n")}


def test_a_machine_without_an_engine_says_so(command: Builder, tmp_path: Path) -> None:
    ran = command("load", "hello", "--json", DOCKER_HOST=f"unix://{tmp_path}/no.sock")
    assert (ran.status, list(ran.json)) == (9, ["error"])


def test_the_store_is_verified_measured_and_collected(builder: Builder, store: Path) -> None:
    builder("build", "hello")
    ran = builder("store", "verify")
    assert (ran.status, ran.err) == (0, "")
    assert ran.out.endswith(": 0 errors\n")
    document = builder("store", "verify", "--json").json
    assert list(document) == [
        "blobs",
        "bytes",
        "errors",
        "absent",
        "stale",
        "leftovers",
        "repaired",
    ]
    assert (document["errors"], document["absent"], document["repaired"]) == ([], [], [])

    assert builder("store", "du").out.splitlines()[0].split() == ["WHAT", "SIZE"]
    assert keys(builder("store", "du", "--json").json) == {
        "bytes": dict.fromkeys(
            ("manifests", "configs", "layers", "other", "notes", "tmp", "total"), "int"
        ),
        "images": [{"name": "str", "digest": "str", "bytes": "int", "unique": "int"}],
    }

    would = builder("store", "gc", "--dry-run", "--json").json
    assert list(would) == ["dry_run", "blobs", "bytes", "notes", "kept"]
    assert (would["dry_run"], would["blobs"]) == (True, [])
    assert builder("store", "gc").out.startswith("removed 0 blobs (0 B) and 0 notes; ")


def test_a_damaged_store_is_one_document_with_what_was_found_and_the_error(
    builder: Builder, store: Path
) -> None:
    layer = builder("build", "hello", "--json").json["images"][0]["layers"][1]["digest"]
    blob = store / "blobs/sha256" / layer.partition(":")[2]
    blob.chmod(0o644)
    blob.write_bytes(b"x" * blob.stat().st_size)

    ran = builder("store", "verify", "--json")
    assert ran.status == 4
    assert (len(ran.json["errors"]), list(ran.json)[-1]) == (1, "error")
    assert ran.json["error"]["exit_status"] == 4
    assert builder("store", "verify").out.startswith(ran.json["errors"][0]["at"])

    ran = builder("store", "verify", "--repair", "--json")
    assert (ran.status, ran.json["repaired"]) == (0, [layer])
    assert builder("build", "hello").status == 0
    assert builder("store", "verify").status == 0
