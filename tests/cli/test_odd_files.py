"""Files that a command line names and that are none, or are where nobody thought of: no traceback,
no waiting, nothing replaced that nobody meant, nothing half written."""

import os
import subprocess
from pathlib import Path

import pytest

from builder.lock.codec import write_pins
from builder.lock.model import ModelPin
from tests.cli.conftest import Builder, Ran, tree
from tests.cli.test_notation import SUBJECT, certified, kept, made
from tests.cli.test_trust import write
from tests.models.worlds import pin_of, tiny
from tests.signers import p256

LONG = "a" * 5000
LIMIT = 64 << 20


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return kept(tmp_path / "key.pem", p256())


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    """A named pipe that nobody writes into."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    return path


def refused(ran: Ran, status: int, message: str, hint: str | None = None) -> None:
    wanted = f"builder: error: {message}\n" + (f"  hint: {hint}\n" if hint else "")
    assert (ran.status, ran.out, ran.err) == (status, "", wanted)


def test_a_pipe_that_nobody_writes_into_is_not_waited_for(builder: Builder, pipe: Path) -> None:
    ran = builder("verify", "registry.invalid/a:1", "--key", pipe)
    refused(ran, 2, f"{pipe}: a named pipe that nobody writes into", "give a file")


def test_a_pipe_of_somebody_who_takes_his_time_is_read(
    builder: Builder, key: Path, tmp_path: Path, pipe: Path
) -> None:
    certificate = certified(builder, key, tmp_path / "its.crt")
    (tmp_path / "its.pub").write_bytes(p256().public.pem)
    slow = f"exec >{pipe}; sleep 2.3; cat {tmp_path}/its.pub"
    with subprocess.Popen(["sh", "-c", slow]):
        ran = made(builder, key, "--public", str(pipe))
    assert (ran.status, ran.out) == (0, certificate.read_text())


def test_what_is_no_file_is_not_replaced(builder: Builder, key: Path, pipe: Path) -> None:
    ran = made(builder, key, "--out", str(pipe), "--force")
    refused(ran, 2, f"{pipe}: expected a file or nothing there, got something else")
    assert pipe.is_fifo()


def test_a_link_to_a_file_stays_a_link(builder: Builder, key: Path, tmp_path: Path) -> None:
    link, file = tmp_path / "link", tmp_path / "file"
    file.write_text("old")
    link.symlink_to(file)
    assert made(builder, key, "--out", str(link)).status == 2
    assert file.read_text() == "old"
    assert made(builder, key, "--out", str(link), "--force").status == 0
    assert link.is_symlink()
    assert file.read_text().startswith("-----BEGIN CERTIFICATE-----\n")


@pytest.mark.parametrize(
    ("command", "option"),
    [
        (("key", "certificate", "x", "--subject", SUBJECT), "--out"),
        (("key", "export", "x"), "--out"),
        (("trust", "export", "--format", "cosign"), "--out"),
        (("build", "hello"), "--out"),
        (("models", "fetch", "hello"), "--dir"),
        (("manifest", "hello"), "--output"),
        (("bump", "model"), "--markdown"),
        (("nightly",), "--summary"),
        (("plan", "hello"), "--store"),
    ],
)
def test_an_empty_path_is_not_the_working_directory(
    builder: Builder, project: Path, command: tuple[str, ...], option: str
) -> None:
    before = tree(project)
    ran = builder(*command, option, "")
    assert ran.status == 2
    assert f"invalid value for '{option}'" in ran.err
    assert ran.err.splitlines()[0].endswith("it is empty")
    assert tree(project) == before


def test_a_path_that_is_too_long_is_no_layout(builder: Builder) -> None:
    ran = builder("verify", f"oci:{LONG}", "--key", __file__)
    assert ran.status == 3
    assert "is not an OCI image layout" in ran.err or "more)" in ran.err


def test_a_reference_that_is_too_long_is_not_looked_at(builder: Builder) -> None:
    ran = builder("verify", "a" * 100_000, "--key", __file__)
    refused(ran, 2, "REF: 100000 characters, the limit is 1024")


def test_a_directory_that_is_no_layout_is_told(builder: Builder, tmp_path: Path) -> None:
    for name in (str(tmp_path), "."):
        refused(
            builder("verify", name, "--key", Path(__file__)),
            3,
            f"REF: {name!r} is not an OCI image layout: it has no file 'oci-layout'",
            "builder build V --out DIR makes one",
        )


def test_a_layout_without_the_image_says_what_it_has(builder: Builder, tmp_path: Path) -> None:
    layout = tmp_path / "layout"
    assert builder("build", "hello", "--out", layout).status == 0
    (tmp_path / "its.pub").write_bytes(p256().public.pem)
    ran = builder("verify", f"oci:{layout}:other", "--key", tmp_path / "its.pub")
    refused(
        ran, 7, f"oci:{layout}:other: there is no such image", f"the layout has: oci:{layout}:hello"
    )


def test_an_image_of_another_platform_is_not_the_one_that_is_asked_for(
    builder: Builder, key: Path, tmp_path: Path
) -> None:
    layout, public = tmp_path / "layout", tmp_path / "its.pub"
    public.write_bytes(p256().public.pem)
    assert builder("build", "hello", "--out", layout).status == 0
    sign = ("sign", "hello", f"oci:{layout}", "--key", key, "--allow-plaintext")
    assert (ran := builder(*sign)).status == 0, ran.err
    line = ("verify", f"oci:{layout}", "--key", public, "--platform")
    assert builder(*line, "linux/amd64").status == 0
    ran = builder(*line, "linux/arm64")
    assert (ran.status, ran.out) == (4, "")
    assert "is for linux/amd64, expected linux/arm64\n" in ran.err


def test_an_index_of_a_layout_is_read_within_a_limit(builder: Builder, tmp_path: Path) -> None:
    layout = tmp_path / "layout"
    (tmp_path / "its.pub").write_bytes(p256().public.pem)
    assert builder("build", "hello", "--out", layout).status == 0
    with (layout / "index.json").open("wb") as index:
        index.truncate(LIMIT + 2)
    ran = builder("verify", f"oci:{layout}", "--key", tmp_path / "its.pub")
    assert ran.status == 4
    assert f"index.json: {LIMIT + 1} bytes of JSON, the limit is {LIMIT}\n" in ran.err
    assert "hint: the layout is damaged: get it again" in ran.err


def test_an_export_is_written_whole_or_not_at_all(builder: Builder, project: Path) -> None:
    write(project, "ada", "bob", scopes="  - {repositories: [r.example/a], role: image}\n")
    builder("trust", "init", "--accept-first")
    export = ("trust", "export", "--format=containerd", "--out")
    out = project / "out"
    out.mkdir()
    (out / "config.toml").symlink_to("/nowhere/else")
    refused(
        builder(*export, out),
        2,
        f"{out}/config.toml: is there already",
        "remove it, or give another directory",
    )
    (out / "config.toml").unlink()
    (out / f".config.toml.{os.getpid()}.tmp").mkdir()  # in the way of the second file
    ran = builder(*export, out)
    assert (ran.status, ran.err) == (
        9,
        f"builder: error: {out}: cannot be written: Is a directory\n",
    )
    assert [path for path in out.rglob("*") if path.is_file()] == []
    assert (ran := builder(*export, project / "again")).status == 0, ran.err
    assert os.access(project / "again/bin/builder", os.X_OK)
    assert builder(*export, LONG).status == 9


@pytest.mark.parametrize(
    ("subject", "why"),
    [
        ("CN=a, O=b, ST=c, C=DE", "expected parts as in RFC 4514, NAME=TEXT with commas between"),
        ("cn=a,O=b,ST=c,C=DE", "expected parts as in RFC 4514, NAME=TEXT with commas between"),
        (f"O={LONG},ST=c,C=DE", "5012 characters, the limit is 1024"),
    ],
)
def test_a_name_that_is_none_is_refused_in_words(
    builder: Builder, key: Path, subject: str, why: str
) -> None:
    ran = builder("key", "certificate", key, "--allow-plaintext", "--subject", subject)
    assert (ran.status, ran.out) == (2, "")
    assert why in ran.err


def test_containerd_is_not_told_of_options_that_it_has_not(builder: Builder) -> None:
    ran = builder("image-verifier", "-name", "r.example/a:1", "-digest", f"sha256:{'0' * 64}")
    assert (ran.status, ran.err) == (2, "")
    assert ran.out == "no key is trusted: the project has no trust.yaml\n"


def test_a_password_is_not_waited_for_either(
    builder: Builder, pipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BUILDER_KEYS", str(tmp_path / "keys"))
    monkeypatch.setenv("BUILDER_KEY_PASSWORD_FILE", str(pipe))
    ran = builder("key", "generate", "mine")
    told = f"BUILDER_KEY_PASSWORD_FILE: '{pipe}': a named pipe that nobody writes into"
    refused(ran, 2, told, "give a file")


@pytest.mark.parametrize(
    ("where", "why"),
    [("/dev/null/x", "Not a directory"), ("/proc/none", "No such file or directory")],
)
def test_models_are_not_fetched_to_where_nothing_can_be(
    builder: Builder, project: Path, where: str, why: str
) -> None:
    pins = {"tiny": pin_of(tiny())}
    (project / "lockfiles/models.yaml").write_bytes(write_pins(ModelPin, pins))
    with (project / "variants/hello.yaml").open("a") as variant:
        variant.write("models: [tiny]\n")
    ran = builder("models", "fetch", "hello", "--dir", where, "--offline")
    assert (ran.status, ran.out) == (9, "")
    assert ran.err.startswith(f"builder: error: {where}")
    assert ran.err.endswith(f"cannot be written: {why}\n")
