"""Checksum files into the lock (``add model --sums``, ``lock NAME --sums``) and out of it."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from builder.digest import Digest, ObjectId
from builder.lock.codec import read_models, write_pins
from builder.lock.model import ModelFile, ModelPin
from builder.resolve import models
from tests.cli.conftest import Builder
from tests.models.worlds import SHARDS, lay, pin_of, tiny
from tests.standin.hub import StandInHub, stand_in_hub

FILES = tiny()
DIGESTS = {path: Digest.of(data) for path, data in FILES.items()}
LOCK = "lockfiles/models.yaml"


def sums(form: str = "{hex}  {name}\n", **more: Digest) -> str:
    """A checksum file of the tiny model; ``_`` in a further name is a dot."""
    others = {name.replace("_", "."): digest for name, digest in more.items()}
    return "".join(
        form.format(hex=digest.hex, name=name) for name, digest in (DIGESTS | others).items()
    )


@pytest.fixture
def hub(builder: Builder, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInHub]:
    with stand_in_hub() as server:
        server.model("Team/Tiny", FILES)
        monkeypatch.setenv("HF_ENDPOINT", server.endpoint)
        yield server


@pytest.fixture
def published(project: Path) -> Path:
    file = project / "SHA256SUMS"
    file.write_text(sums())
    return file


def commit(hub: StandInHub) -> str:
    return hub.models["Team/Tiny"].refs["main"]


def pin(project: Path) -> ModelPin:
    return read_models((project / LOCK).read_bytes())["tiny"]


def lock(project: Path, hub: StandInHub, **fields: object) -> ModelPin:
    """Pin the model as ``fields`` say, by hand."""
    made = replace(pin_of(FILES, commit=ObjectId(commit(hub))), **fields)  # type: ignore[arg-type]  # the test's
    (project / LOCK).write_bytes(write_pins(ModelPin, {"tiny": made}))
    return made


BARE = tuple(ModelFile(path=path) for path in sorted(FILES))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(sums().encode(), id="sha256sum"),
        pytest.param(sums("{hex} *{name}\r\n").encode(), id="binary mode, CRLF"),
        pytest.param(sums("SHA256 ({name}) = {hex}\n").encode(), id="BSD"),
        pytest.param(sums("SHA2-256(./{name})= {hex}\n").encode(), id="OpenSSL"),
        pytest.param(sums("{hex} {name}\r\n").encode("utf-16"), id="UTF-16, one blank"),
        pytest.param(sums("\\{hex}  {name}\n").encode("utf-8-sig"), id="escaped, BOM"),
        pytest.param(sums("{hex}  tiny/{name}\n").encode(), id="of several models"),
    ],
)
def test_a_model_is_pinned_and_held_to_what_is_published(
    builder: Builder, project: Path, hub: StandInHub, published: Path, data: bytes
) -> None:
    published.write_bytes(data)
    ran = builder("add", "model", "Team/Tiny", "--sums", "SHA256SUMS")
    assert ran.status == 0, ran.err
    assert "  SHA256SUMS has 4 of its 4 files, each as it is pinned\n" in ran.out
    assert {file.path: file.digest for file in pin(project).files} == DIGESTS
    assert all(file.size is not None for file in pin(project).files)


@pytest.mark.parametrize("path", [SHARDS[0], "config.json"], ids=["an LFS object", "a small file"])
def test_another_digest_than_the_hub_has_is_refused(
    builder: Builder, project: Path, hub: StandInHub, published: Path, path: str
) -> None:
    published.write_text(sums().replace(DIGESTS[path].hex, "0" * 64))
    ran = builder("add", "model", "Team/Tiny", "--sums", "SHA256SUMS")
    assert (ran.status, ran.out) == (4, "")
    assert (
        f"SHA256SUMS: 1 of 4 files are others than tiny has locked, the first is {path!r}:"
        f" expected sha256:{'0' * 64}, got {DIGESTS[path]}"
    ) in ran.err
    assert not (project / LOCK).exists()


def test_what_is_published_of_a_part_or_of_more_is_told(
    builder: Builder, hub: StandInHub, published: Path
) -> None:
    first = sums().splitlines(keepends=True)[0]
    published.write_text(first + f"{'1' * 64}  README.md\n")
    ran = builder("add", "model", "Team/Tiny", "--sums", "SHA256SUMS")
    assert ran.status == 0
    assert (
        "  SHA256SUMS has 1 of its 4 files, each as it is pinned; 1 that are not pinned: README.md"
    ) in ran.out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        pytest.param("", "SHA256SUMS: no checksums in it", id="empty"),
        pytest.param(sums() + "see our site\n", "SHA256SUMS:5: not a line of", id="a strange line"),
        pytest.param(
            f"{'0' * 40}  config.json\n", "SHA256SUMS:1: expected a sha256", id="git blob ids"
        ),
        pytest.param(f"{'0' * 64}  x\n", "of its 1 files none is one that tiny", id="others only"),
    ],
)
def test_a_file_that_says_nothing_stops_everything(
    builder: Builder, project: Path, hub: StandInHub, published: Path, text: str, said: str
) -> None:
    published.write_text(text)
    ran = builder("add", "model", "Team/Tiny", "--sums", "SHA256SUMS")
    assert (ran.status, ran.out) == (4, "")
    assert said in ran.err
    assert not (project / LOCK).exists()


def test_a_file_too_large_to_be_read_is_pinned_as_it_is_published(
    builder: Builder,
    project: Path,
    hub: StandInHub,
    published: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing but git keeps it, so that the hub has only the id of its blob."""
    hub.large = ()
    monkeypatch.setattr(models, "READ_LIMIT", len(FILES[SHARDS[0]]) - 1)
    ran = builder("add", "model", "Team/Tiny")
    assert ran.status == 4
    assert "hint: --sums FILE takes it from a checksum file" in ran.err
    ran = builder("add", "model", "Team/Tiny", "--sums", "SHA256SUMS")
    assert ran.status == 0, ran.err
    assert {file.path: file.digest for file in pin(project).files} == DIGESTS


def test_lock_completes_and_compares(
    builder: Builder, project: Path, hub: StandInHub, published: Path
) -> None:
    lock(project, hub, files=BARE)
    ran = builder("lock", "tiny", "--sums", "SHA256SUMS")
    assert ran.status == 0, ran.err
    assert "  SHA256SUMS has 4 of its 4 files, each as it is pinned\n" in ran.out
    assert "alone" not in ran.out
    assert pin(project).files == pin_of(FILES).files
    text = (project / LOCK).read_bytes()
    hub.models.clear()
    ran = builder("lock", "tiny", "--sums", "SHA256SUMS")
    assert ran.status == 0
    assert ran.out == (
        "nothing changes\n  tiny is what it was\n"
        "  SHA256SUMS has 4 of its 4 files, each as it is pinned\n"
    )
    published.write_text(sums().replace(DIGESTS["config.json"].hex, "0" * 64))
    assert builder("lock", "tiny", "--sums", "SHA256SUMS").status == 4
    assert (project / LOCK).read_bytes() == text


def test_a_commit_that_is_gone_is_completed_by_what_is_published_and_that_is_said(
    builder: Builder, project: Path, hub: StandInHub, published: Path, tmp_path: Path
) -> None:
    made = lock(project, hub, files=BARE)
    hub.models["Team/Tiny"].commit(FILES | {"config.json": b"[]\n"})
    hub.models["Team/Tiny"].squash()
    ran = builder("lock", "tiny")
    assert ran.status == 7
    ran = builder("lock", "tiny", "--sums", "SHA256SUMS")
    assert ran.status == 0, ran.err
    assert (
        "  the hub has it no more: the digests of 4 files are SHA256SUMS's alone, and nobody has"
        f" seen that they are those of commit {made.commit.short}; sizes, and which shards there"
        " must be, are not known\n"
    ) in ran.out
    assert pin(project).files == tuple(
        ModelFile(path=path, digest=DIGESTS[path]) for path in sorted(FILES)
    )
    with (project / "variants/hello.yaml").open("a") as variant:
        variant.write("models: [tiny]\n")
    weights = lay(tmp_path / "weights", FILES)
    ran = builder("models", "verify", "hello", "--dir", weights, "--json")
    assert (ran.status, ran.json["models"][0]["bytes"]) == (0, sum(map(len, FILES.values())))
    assert builder("models", "fetch", "hello", "--dir", weights).status == 3
    (weights / SHARDS[0]).write_bytes(b"x")
    assert builder("models", "verify", "hello", "--dir", weights).status == 4


def test_sizes_that_are_lacking_are_completed_once_the_hub_is_asked(
    builder: Builder, project: Path, hub: StandInHub, published: Path
) -> None:
    lock(project, hub, files=BARE)
    ran = builder("lock", "tiny", "--sums", "SHA256SUMS", "--offline")
    assert ran.status == 0, ran.err
    assert "  the hub is not asked: the digests of 4 files are SHA256SUMS's alone" in ran.out
    assert {file.size for file in pin(project).files} == {None}
    assert builder("lock", "tiny").status == 0
    assert pin(project).files == pin_of(FILES).files


def test_without_a_hub_a_commit_is_pinned_by_its_full_id_only(
    builder: Builder, project: Path, published: Path
) -> None:
    given = ("add", "model", "Team/Tiny", "--sums", "SHA256SUMS", "--offline")
    for more, got in (
        ((), "no --revision"),
        (("--revision", "main"), "--revision 'main'"),
        (("--revision", "1" * 12), f"--revision '{'1' * 12}'"),
    ):
        ran = builder(*given, *more)
        assert ran.status == 8
        assert f"; without it a commit is wanted, in full, got {got}\n" in ran.err
        assert "  hint: give --revision with 40 hex digits: then " in ran.err
    ran = builder(*given, "--revision", "1" * 40, "--include", "*.safetensors")
    assert ran.status == 0, ran.err
    assert [file.path for file in pin(project).files] == list(SHARDS)
    assert pin(project).include == ("*.safetensors",)


def test_without_a_hub_a_model_that_it_does_not_know_is_not_pinned(
    builder: Builder, project: Path, hub: StandInHub, published: Path
) -> None:
    given = ("--sums", "SHA256SUMS", "--revision", "1" * 40)
    assert builder("add", "model", "Team/Tiny", *given).status == 7
    assert builder("add", "model", "tiny", *given, "--offline").status == 3
    assert not (project / LOCK).exists()


def test_a_digest_that_is_lacking_here_and_there_is_not_left_out(
    builder: Builder, project: Path, hub: StandInHub, published: Path
) -> None:
    made = lock(project, hub, files=(*BARE, ModelFile(path="x.json"), ModelFile(path="y.json")))
    before = (project / LOCK).read_bytes()
    ran = builder("lock", "tiny", "--sums", "SHA256SUMS", "--offline")
    assert (ran.status, ran.out) == (3, "")
    assert f"no digest of 2 files of {made.name}: x.json, y.json" in ran.err
    other = replace(BARE[0], digest=Digest("1" * 64))
    lock(project, hub, files=(other, *BARE[1:]))
    assert builder("lock", "tiny", "--sums", "SHA256SUMS", "--offline").status == 4
    lock(project, hub, files=(), include=("*.gguf",))
    ran = builder("lock", "tiny", "--sums", "SHA256SUMS", "--offline")
    assert (ran.status, ran.out) == (3, "")
    assert "'include' selects none of its 4 files" in ran.err
    assert (project / LOCK).read_bytes() != before


def test_checksums_are_of_one_model(
    builder: Builder, project: Path, hub: StandInHub, published: Path
) -> None:
    lock(project, hub)
    for names, said in (
        ((), "checksums are of one model"),
        (("tiny", "tiny"), "checksums are of one model"),
        (("base",), "no pin 'base'"),
    ):
        ran = builder("lock", *names, "--sums", "SHA256SUMS")
        assert (ran.status, ran.out) == (2, "")
        assert said in ran.err
    assert builder("lock", "tiny", "--sums", "none").status == 2
    assert builder("lock", "tiny", "--sums", ".").status == 2


def test_what_is_exported_can_be_imported(
    builder: Builder, project: Path, hub: StandInHub, tmp_path: Path
) -> None:
    """Of two models, with the digest of each directory as the shell recipe of in-toto has it."""
    other = {"a.json": b"{}\n", "ä b/c.json": b"[]\n", "B.json": b""}
    pins = {"tiny": lock(project, hub), "other": pin_of(other, name="other", repository="T/O")}
    (project / LOCK).write_bytes(write_pins(ModelPin, pins))
    with (project / "variants/hello.yaml").open("a") as variant:
        variant.write("models: [tiny, other]\n")
    ran = builder("models", "sums", "hello")
    (project / "SUMS").write_text(ran.out)
    assert ran.out.splitlines()[0] == f"{DIGESTS['config.json'].hex}  tiny/config.json"
    compared = builder("models", "sums", "hello", "--against", "SUMS")
    assert compared.out == "tiny: 4 of 4 files compared\nother: 3 of 3 files compared\n"
    document = builder("models", "sums", "hello", "--json").json
    for item, files in zip(document["models"], (FILES, other), strict=True):
        done = subprocess.run(
            "find . -type f | cut -c3- | LC_ALL=C sort | xargs -r -d '\\n' sha256sum | sha256sum",
            shell=True,
            cwd=lay(tmp_path / item["model"], files),
            capture_output=True,
            text=True,
            check=True,
        )
        assert item["dirHash"] == done.stdout.split()[0]


def test_digests_that_are_lacking_are_not_left_out_of_an_export(
    builder: Builder, project: Path, hub: StandInHub
) -> None:
    whole = lock(project, hub)
    lock(project, hub, files=(BARE[0], *whole.files[1:]))
    with (project / "variants/hello.yaml").open("a") as variant:
        variant.write("models: [tiny]\n")
    ran = builder("models", "sums", "hello")
    assert (ran.status, ran.out) == (3, "")
    assert ran.err == (
        "builder: error: models: tiny: the lock has not the digests of all files\n"
        "  hint: builder lock tiny completes them\n"
    )
