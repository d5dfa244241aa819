"""``builder models``: what it prints, and its exit status."""

import os
import subprocess
from pathlib import Path

import pytest

from builder.digest import Digest, ObjectId
from builder.lock.codec import write_pins
from builder.lock.model import ModelPin
from tests.cli.conftest import Builder
from tests.models.worlds import SHARDS, lay, pin_of, tiny
from tests.standin.hub import stand_in_hub

FILES = tiny()
SIZE = sum(map(len, FILES.values()))


@pytest.fixture
def weights(project: Path, tmp_path: Path) -> Path:
    """A project whose variant ``hello`` has a model, and the model."""
    (project / "lockfiles/models.yaml").write_bytes(write_pins(ModelPin, {"tiny": pin_of(FILES)}))
    with (project / "variants/hello.yaml").open("a") as variant:
        variant.write("models: [tiny]\n")
    return lay(tmp_path / "weights", FILES)


def test_a_model_in_order_is_told_in_one_line(builder: Builder, weights: Path) -> None:
    ran = builder("models", "verify", "hello", "--dir", weights)
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (
        "MODEL  SIZE   OK  MISSING  EXTRA  SHORT  WRONG  UNHASHED\n"
        f"tiny   {SIZE} B  4   0        0      0      0      0\n"
    )


def test_a_directory_that_is_not_there_yet_is_to_be_fetched(
    builder: Builder, weights: Path
) -> None:
    ran = builder("models", "verify", "hello", "--dir", weights / "none")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        f"builder: error: --dir: no directory {str(weights / 'none')!r}\n"
        "  hint: builder models fetch hello --dir DIR brings the files\n"
    )
    assert not (weights / "none").exists()


def test_the_document_says_what_was_read(builder: Builder, weights: Path) -> None:
    ran = builder("models", "verify", "hello", "--dir", weights, "--json", "-j", "1")
    assert ran.json == {
        "variant": "hello",
        "models": [
            {
                "model": "tiny",
                "repository": "Team/Tiny",
                "commit": "0123456789abcdef0123456789abcdef01234567",
                "directory": str(weights),
                "bytes": SIZE,
                "hashed_bytes": SIZE,
                "counts": {
                    "ok": 4,
                    "missing": 0,
                    "extra": 0,
                    "short": 0,
                    "wrong": 0,
                    "unhashed": 0,
                },
                "files": [],
                "tensors": [],
                "signatures": [],
            }
        ],
    }


def test_what_differs_is_named_and_fails(builder: Builder, weights: Path) -> None:
    (weights / SHARDS[0]).unlink()
    (weights / "x").write_bytes(b"")
    ran = builder("models", "verify", "hello", "--dir", weights)
    assert ran.status == 4
    assert ran.out == (
        "MODEL  SIZE   OK  MISSING  EXTRA  SHORT  WRONG  UNHASHED\n"
        f"tiny   {SIZE} B  3   1        1      0      0      0\n"
        f"tiny: {SHARDS[0]}: missing\n"
        "tiny: x: extra\n"
        f"tiny: model.safetensors.index.json names 2 files, 1 of them are missing: {SHARDS[0]}\n"
    )
    assert ran.err == (
        "builder: error: models: tiny: not what was locked\n"
        "  hint: builder models fetch brings what is missing, short or wrong; remove what is extra,"
        " or pin it by include; builder lock completes a pin where files are unhashed\n"
    )
    document = builder("models", "verify", "hello", "--dir", weights, "--json").json
    assert document["error"]["exit_status"] == 4
    assert document["models"][0]["counts"]["missing"] == 1
    assert document["models"][0]["files"][1] == {"path": "x", "state": "extra", "detail": ""}


def test_many_differences_are_counted_and_all_in_the_document(
    builder: Builder, weights: Path
) -> None:
    lay(weights, {f"x{number:02}": b"" for number in range(25)})
    ran = builder("models", "verify", "hello", "--dir", weights)
    assert ran.out.endswith("tiny: x19: extra\ntiny: 5 more\n")
    document = builder("models", "verify", "hello", "--dir", weights, "--json").json
    assert len(document["models"][0]["files"]) == 25


def test_a_name_that_is_no_text_is_told_all_the_same(builder: Builder, weights: Path) -> None:
    Path(os.fsdecode(bytes(weights) + b"/x\xff\n")).write_bytes(b"")
    ran = builder("models", "verify", "hello", "--dir", weights)
    assert ran.status == 4
    assert "tiny: x\\udcff\\n: extra\n" in ran.out
    assert builder("models", "verify", "hello", "--dir", weights, "--json").status == 4


def test_fetch_brings_what_verify_asks_for(
    builder: Builder, weights: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stand_in_hub() as hub:
        commit = hub.model("Team/Tiny", FILES).refs["main"]
        pin = pin_of(FILES, commit=ObjectId(commit))
        (project / "lockfiles/models.yaml").write_bytes(write_pins(ModelPin, {"tiny": pin}))
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        ran = builder("models", "fetch", "hello", "--dir", project / "new/w")
        cached = builder("models", "fetch", "hello", "--dir", project / "hub", "--cache", "--json")
    table = (
        "MODEL  SIZE   OK  MISSING  EXTRA  SHORT  WRONG  UNHASHED\n"
        f"tiny   {SIZE} B  4   0        0      0      0      0\n"
    )
    assert (ran.status, ran.out, ran.err) == (0, table, "")
    assert builder("models", "verify", "hello", "--dir", project / "new/w").out == table
    directory = project / "hub/models--Team--Tiny/snapshots" / commit
    assert cached.json["models"][0]["directory"] == str(directory)
    assert builder("models", "verify", "hello", "--dir", project / "hub").out == table
    (directory / SHARDS[0]).unlink()
    ran = builder("models", "fetch", "hello", "--dir", project / "hub", "--offline")
    assert (ran.status, ran.out) == (8, "")
    assert "--offline forbids to ask" in ran.err


def test_sums_are_those_of_sha256sum_and_can_be_compared(
    builder: Builder, weights: Path, tmp_path: Path
) -> None:
    names = sorted(FILES)
    told = subprocess.run(["sha256sum", *names], cwd=weights, check=True, capture_output=True)
    ran = builder("models", "sums", "hello")
    assert (ran.status, ran.out) == (0, told.stdout.decode())
    document = builder("models", "sums", "hello", "--json").json
    assert document["models"][0]["dirHash"] == Digest.of(told.stdout).hex
    published = tmp_path / "SHA256SUMS"
    published.write_bytes(told.stdout.splitlines()[0] + b"\r\n")
    ran = builder("models", "sums", "hello", "--against", published)
    assert (ran.status, ran.out) == (0, "tiny: 1 of 4 files compared\n")
    published.write_text(f"{'0' * 64}  {SHARDS[0]}\n")
    ran = builder("models", "sums", "hello", "--against", published)
    assert (ran.status, ran.out) == (4, "")
    assert f"1 of 1 files are others than tiny has locked, the first is '{SHARDS[0]}'" in ran.err
    published.write_text(f"{'0' * 64}  x\n")
    ran = builder("models", "sums", "hello", "--against", published)
    assert (ran.status, ran.out) == (4, "")
    assert "of its 1 files none is one that tiny has locked" in ran.err


def test_a_variant_without_models_is_refused(builder: Builder, tmp_path: Path) -> None:
    ran = builder("models", "verify", "hello", "--dir", tmp_path)
    assert (ran.status, ran.out) == (3, "")
    assert ran.err == (
        "builder: error: variants/hello.yaml: it names no models\n"
        "  hint: builder add model OWNER/NAME pins one; its name goes under models\n"
    )


def test_a_pin_without_files_is_refused(builder: Builder, weights: Path, project: Path) -> None:
    (project / "lockfiles/models.yaml").write_bytes(write_pins(ModelPin, {"tiny": pin_of({})}))
    ran = builder("models", "verify", "hello", "--dir", weights)
    assert ran.status == 3
    assert ran.err == (
        "builder: error: lockfiles/models.yaml:3: models.tiny: no files are locked\n"
        "  hint: builder lock tiny locks them\n"
    )


def test_a_directory_that_is_not_there_is_a_matter_of_usage(
    builder: Builder, weights: Path
) -> None:
    assert builder("models", "verify", "hello", "--dir", weights / "none").status == 2
    assert builder("models", "verify", "hello").status == 2
