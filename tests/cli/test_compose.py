"""``builder compose``: images of compose files, pinned by digest and held to the lock."""

import os
import stat
import subprocess
from pathlib import Path

import pytest

from builder.cli import compose
from tests.cli.conftest import Builder, tree
from tests.plugins.golden import Golden

DIGEST = f"sha256:{'7' * 64}"
OTHER = f"sha256:{'8' * 64}"
VARIABLE = "${VLLM_IMAGE:-vllm/vllm-openai:nightly-${VLLM_NIGHTLY_SHA}}"
SERVICE = """\
# Header, with image: x
services:
  web:
    image: {}  # as it was
    labels: {{builder.variant: hello}}
"""
PLACE = "registry.example/me/vllm"


@pytest.fixture
def project(project: Path) -> Path:
    """A variant with an accepted result, a project that publishes, a base."""
    with (project / "builder.yaml").open("a") as settings:
        settings.write(f"publish: {PLACE}\n")
    accept(project, DIGEST)
    (project / "lockfiles/vllm.yaml").write_text(
        "version: 1\nvllm:\n  nightly:\n    follows: {image: vllm/vllm-openai, tag: nightly-1}\n"
        f"    index: {OTHER}\n"
    )
    (project / "web.yml").write_text(SERVICE.format("vllm:v1"))
    return project


def accept(project: Path, digest: str, platform: str = "linux/amd64") -> None:
    file = project / "lockfiles/images/hello.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text(
        f"version: 1\nvariant: hello\nresults:\n  {platform}:\n    digest: {digest}\n"
        f"    diff_ids: ['{DIGEST}', '{OTHER}']\n    files: {{}}\n"
    )


def test_a_service_is_pinned_by_tag_and_digest(builder: Builder, project: Path) -> None:
    before = tree(project)
    ran = builder("compose", "pin", "web.yml")
    image = f"{PLACE}:hello@{DIGEST}"
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (
        "WHERE      SERVICE  RUNS           DIGEST    IMAGE\n"
        f"web.yml:4  web      variant hello  accepted  {image}\n"
    )
    assert tree(project) == before | {"web.yml": SERVICE.format(image).encode()}
    again = builder("compose", "pin", "web.yml")
    assert again.out.endswith("variant hello  accepted  as it was\n")
    assert builder("compose", "check", "web.yml").out == (
        "WHERE      SERVICE  RUNS\nweb.yml:4  web      hello  pinned\n"
    )


def test_a_diff_shows_and_writes_nothing(builder: Builder, project: Path) -> None:
    (project / "web.yml").write_text(SERVICE.format(VARIABLE).rstrip("\n"))
    before = tree(project)
    ran = builder("compose", "pin", "--diff", "web.yml")
    assert (ran.status, ran.out) == (
        0,
        (
            "--- a/web.yml\n+++ b/web.yml\n@@ -1,5 +1,5 @@\n # Header, with image: x\n services:\n"
            f"   web:\n-    image: {VARIABLE}  # as it was\n"
            f"+    image: {PLACE}:hello@{DIGEST}  # as it was\n"
            "     labels: {builder.variant: hello}\n\\ No newline at end of file\n"
        ),
    )
    document = builder("compose", "pin", "--diff", "--json", "web.yml").json
    assert (document["written"], document["files"][0]["diff"]) == (False, ran.out)
    assert tree(project) == before
    builder("compose", "pin", "web.yml")
    assert builder("compose", "pin", "--diff", "web.yml").out == "nothing would change\n"


def test_the_document_says_what_was_done(builder: Builder, project: Path, golden: Golden) -> None:
    golden("cli/compose-pin.json", builder("compose", "pin", "web.yml", "--json").out)
    golden("cli/compose-check.json", builder("compose", "check", "web.yml", "--json").out)


def test_an_override_is_kept_when_asked_and_told_by_check(builder: Builder, project: Path) -> None:
    (project / "web.yml").write_text(SERVICE.format(VARIABLE))
    document = builder("compose", "pin", "--keep-override", "--json", "web.yml").json
    (service,) = document["files"][0]["services"]
    image = f"${{VLLM_IMAGE:-{PLACE}:hello@{DIGEST}}}"
    assert (service["image"], service["override"]) == (image, "VLLM_IMAGE")
    assert (project / "web.yml").read_text() == SERVICE.format(image)
    ran = builder("compose", "check", "web.yml")
    assert ran.status == 0
    assert "can be overridden by VLLM_IMAGE, in the environment or in .env" in ran.out


def test_a_base_is_pinned_to_its_index(builder: Builder, project: Path) -> None:
    (project / "base.yml").write_text("services:\n  a:\n    image: x # builder: nightly\n")
    document = builder("compose", "pin", "base.yml", "--json").json
    (service,) = document["files"][0]["services"]
    assert (service["kind"], service["source"]) == ("base", "locked")
    assert service["image"] == f"docker.io/vllm/vllm-openai:nightly-1@{OTHER}"


def test_a_base_of_one_platform_is_pinned_to_its_manifest(builder: Builder, project: Path) -> None:
    (project / "lockfiles/vllm.yaml").write_text(
        "version: 1\nvllm:\n  nightly:\n    follows: {image: vllm/vllm-openai, tag: nightly-1}\n"
        f"    platforms: {{linux/amd64: {{manifest: {OTHER}}}}}\n"
    )
    text = "services:\n  a:\n    image: x # builder: nightly\n    platform: {}\n"
    (project / "base.yml").write_text(text.format("linux/amd64"))
    assert builder("compose", "pin", "base.yml").status == 0
    assert f"nightly-1@{OTHER}" in (project / "base.yml").read_text()
    (project / "base.yml").write_text(text.format("linux/arm64"))
    ran = builder("compose", "pin", "base.yml")
    assert (ran.status, ran.err) == (
        3,
        (
            "builder: error: base.yml:3: service 'a': lockfiles/vllm.yaml:3: vllm.nightly: locked"
            " without a manifest for linux/arm64\n"
            "  hint: name another with --platform, or lock it\n"
        ),
    )


def test_a_variant_without_an_accepted_result_is_the_last_build(
    builder: Builder, project: Path
) -> None:
    (project / "lockfiles/images/hello.yaml").unlink()
    refused = builder("compose", "pin", "web.yml")
    assert (refused.status, refused.err) == (
        3,
        (
            "builder: error: web.yml:4: service 'web': variant hello has no accepted result, and"
            " was not built on this machine\n"
            "  hint: builder build hello, then builder accept hello\n"
        ),
    )
    digest = builder("build", "hello", "--json").json["images"][0]["digest"]
    ran = builder("compose", "pin", "web.yml")
    assert f"variant hello  built   {PLACE}:hello@{digest}" in ran.out
    checked = builder("compose", "check", "web.yml")
    assert checked.status == 0
    assert "nobody has accepted what variant hello bakes to" in checked.out


def test_a_result_that_changed_fails_check_until_it_is_pinned_again(
    builder: Builder, project: Path
) -> None:
    builder("compose", "pin", "web.yml")
    accept(project, OTHER)
    ran = builder("compose", "check", "web.yml")
    assert (ran.status, ran.out) == (
        3,
        (
            "       WHERE      WHAT\n"
            f"error  web.yml:4  service 'web': '{PLACE}:hello@{DIGEST}', wanted"
            f" '{PLACE}:hello@{OTHER}' (variant hello)\n"
            "                  hint: builder compose pin web.yml\n"
            "1 error, 0 warnings\n"
        ),
    )
    builder("compose", "pin", "web.yml")
    assert builder("compose", "check", "web.yml").status == 0


def test_of_several_files_none_is_written_if_one_is_refused(
    builder: Builder, project: Path
) -> None:
    (project / "bad.yml").write_text("services:\n  a:\n    image: x # builder: helo\n")
    before = tree(project)
    ran = builder("compose", "pin", "web.yml", "bad.yml")
    assert (ran.status, ran.err) == (
        3,
        (
            "builder: error: bad.yml:3: service 'a': no variant and no pinned base 'helo'\n"
            "  hint: did you mean 'hello'?\n"
        ),
    )
    assert tree(project) == before


def test_a_file_in_which_nothing_is_named_is_told(builder: Builder, project: Path) -> None:
    (project / "other.yml").write_text("services:\n  a: {image: 'x:1'}\n")
    ran = builder("compose", "pin", "other.yml")
    assert (ran.status, ran.err) == (
        3,
        (
            "builder: error: other.yml: no service names a variant or a pinned base\n"
            "  hint: a label builder.variant, a comment # builder: NAME at the image, or composes"
            " in builder.yaml\n"
        ),
    )
    ran = builder("compose", "pin", "other.yml", "web.yml")
    assert ran.status == 0
    assert ran.out.splitlines()[1].split() == ["other.yml", "names", "nothing"]


def test_builder_yaml_names_services_of_a_file(
    builder: Builder, project: Path, tmp_path: Path
) -> None:
    (project / "deploy").mkdir()
    file = project / "deploy/all.yml"
    (project / "lockfiles/vllm.yaml").unlink()
    file.write_text("services:\n  a: {image: 'x:1'}\n  b: {image: 'x:2'}\n")
    with (project / "builder.yaml").open("a") as settings:
        settings.write("composes:\n  deploy/all.yml: {b: hello}\n")
    (tmp_path / "link.yml").symlink_to(file)
    assert builder("compose", "pin", tmp_path / "link.yml").status == 0
    wanted = f"services:\n  a: {{image: 'x:1'}}\n  b: {{image: '{PLACE}:hello@{DIGEST}'}}\n"
    assert file.read_text() == wanted
    assert (tmp_path / "link.yml").is_symlink()
    findings = builder("check", "--json").json["findings"]
    assert [(item["severity"], item["where"]) for item in findings] == [
        ("warning", "deploy/all.yml:2")
    ]


def test_a_file_keeps_its_mode_and_a_link_stays_one(
    builder: Builder, project: Path, tmp_path: Path
) -> None:
    file = tmp_path / "outside.yml"
    file.write_text(SERVICE.format("vllm:v1"))
    file.chmod(0o640)
    (project / "web.yml").unlink()
    (project / "web.yml").symlink_to(file)
    assert builder("compose", "pin", "web.yml").status == 0
    assert (project / "web.yml").is_symlink()
    assert stat.S_IMODE(file.stat().st_mode) == 0o640
    assert file.read_text() == SERVICE.format(f"{PLACE}:hello@{DIGEST}")


def test_a_file_that_changed_meanwhile_is_left_alone(
    builder: Builder, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = compose._write

    def late(item: compose.Edited) -> None:
        (project / "web.yml").write_text("services: {}\n")
        write(item)

    monkeypatch.setattr(compose, "_write", late)
    ran = builder("compose", "pin", "web.yml")
    assert (ran.status, ran.err) == (
        3,
        "builder: error: web.yml: changed while it was being pinned\n  hint: run it again\n",
    )
    assert (project / "web.yml").read_text() == "services: {}\n"


def test_what_another_run_has_done_meanwhile_is_no_change(
    builder: Builder, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = compose._write

    def late(item: compose.Edited) -> None:
        (project / "web.yml").write_bytes(item.new)
        write(item)

    monkeypatch.setattr(compose, "_write", late)
    assert builder("compose", "pin", "web.yml").status == 0
    assert DIGEST in (project / "web.yml").read_text()


def test_a_service_cannot_talk_to_the_terminal(builder: Builder, project: Path) -> None:
    (project / "web.yml").write_text(
        'services:\n  "\\e[31mred":\n    image: x:1 # builder: hello\n'
    )
    for action in ("pin", "check"):
        ran = builder("compose", action, "web.yml")
        assert ran.status == 0
        assert "'\\x1b[31mred'" in ran.out
        assert "\x1b" not in ran.out


def test_a_directory_that_cannot_be_written_is_the_machine_s_fault(
    builder: Builder, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(source: Path, target: Path) -> None:
        raise PermissionError(13, "Permission denied")

    before = tree(project)
    monkeypatch.setattr(Path, "replace", refused)
    ran = builder("compose", "pin", "web.yml")
    assert ran.status == 9
    assert ran.err.startswith("builder: error: web.yml: cannot be written: Permission denied")
    assert tree(project) == before


@pytest.mark.parametrize(
    "file, message",
    [
        ("none.yml", "none.yml: no such file"),
        ("variants", "variants: expected a file, got something else"),
        ("empty.yml", "empty.yml: no services"),
        ("pipe", "pipe: expected a file, got something else"),
    ],
)
def test_what_is_no_file_is_refused(
    builder: Builder, project: Path, file: str, message: str
) -> None:
    (project / "empty.yml").write_text("")
    os.mkfifo(project / "pipe")
    for action in ("pin", "check"):
        ran = builder("compose", action, file)
        assert (ran.status, ran.err.splitlines()[0]) == (3, f"builder: error: {message}")


@pytest.fixture
def composes(project: Path) -> Path:
    """The directory of the project's own compose files."""
    (project / "composes/deep").mkdir(parents=True)
    return project / "composes"


def test_a_file_that_is_included_and_not_given_is_told(
    builder: Builder, project: Path, composes: Path
) -> None:
    include = "include:\n  - more.yml\n  - path: [../web.yml, '${ELSE}.yml']\n"
    (composes / "all.yml").write_text(f"{include}services:\n  a: {{image: 'x@{DIGEST}'}}\n")
    (composes / "more.yml").write_text(f"services:\n  b: {{image: 'x@{DIGEST}'}}\n")

    def told(*arguments: str) -> list[tuple[str, str, str]]:
        ran = builder(*arguments, "--json")
        assert ran.status == 0, ran.err
        findings = ran.json["findings"]
        return [(item["severity"], item["where"], item["message"]) for item in findings]

    def left_out(line: int, path: str) -> tuple[str, str, str]:
        where = f"composes/all.yml:{line}"
        return "warning", where, f"it includes {path!r}, which is not looked at"

    others = [left_out(3, "../web.yml"), left_out(3, "${ELSE}.yml")]
    check = ("compose", "check", "composes/all.yml")
    assert told(*check) == [left_out(2, "more.yml"), *others]
    assert told(*check, str(project / "composes/deep/../more.yml")) == others
    assert [item for item in told("check") if "includes" in item[2]] == others, "more.yml is there"
    assert not [item for item in told("check", "hello") if "includes" in item[2]]


@pytest.mark.parametrize("include", ["", "more.yml", "{a: b}", "[[]]", "[{path: {a: b}}, '']"])
def test_what_is_no_list_of_files_includes_none(
    builder: Builder, project: Path, include: str
) -> None:
    (project / "all.yml").write_text(
        f"include: {include}\nservices: {{a: {{image: 'x@{DIGEST}'}}}}\n"
    )
    ran = builder("compose", "check", "all.yml", "--json")
    assert (ran.status, ran.json["findings"]) == (0, [])


def test_check_looks_at_the_composes_of_the_project(
    builder: Builder, project: Path, composes: Path
) -> None:
    (project / "lockfiles/vllm.yaml").unlink()
    (composes / "web.yml").write_text(SERVICE.format(VARIABLE))
    (composes / "deep/other.yaml").write_text("services:\n  a: {image: 'x:1'}\n")
    (composes / "README.md").write_text("no compose file")
    (composes / "deep/prometheus.yml").write_text("scrape_configs: []\n")
    (composes / "deep/all.yml").write_text("include: [other.yaml]\n")
    (composes / "broken.yml").write_text("services: [\n")
    ran = builder("check", "--json")
    assert ran.status == 3
    assert [
        (item["severity"], item["where"], item["message"]) for item in ran.json["findings"]
    ] == [
        ("error", "composes/broken.yml:2:1", "not YAML: did not find expected node content"),
        (
            "error",
            "composes/web.yml:4",
            f"service 'web': '{VARIABLE}', wanted '{PLACE}:hello@{DIGEST}' (variant hello)",
        ),
        (
            "warning",
            "composes/deep/other.yaml:2",
            "service 'a': 'x:1' has no digest: what runs can change",
        ),
    ]
    named = builder("check", "hello", "--json")
    assert [item["where"] for item in named.json["findings"]] == ["composes/web.yml:4"]


def test_check_says_where_a_mapped_file_is_missing(
    builder: Builder, project: Path, composes: Path
) -> None:
    (project / "lockfiles/vllm.yaml").unlink()
    with (project / "builder.yaml").open("a") as settings:
        settings.write("composes:\n  deploy/gone.yml: {b: hello}\n")
    (composes / "loop.yml").symlink_to("loop.yml")
    ran = builder("check", "--json")
    assert ran.status == 3
    assert [item["where"] for item in ran.json["findings"]] == ["composes/loop.yml"]
    (composes / "loop.yml").unlink()
    findings = builder("check", "--json").json["findings"]
    assert [(item["where"], item["message"]) for item in findings] == [
        ("deploy/gone.yml", "no such file")
    ]


def test_a_diff_has_the_lines_that_git_has(tmp_path: Path) -> None:
    old = "a: 1 # \u2028 \x0c x\nimage: one\nb: 2 # \x85\r\n".encode()
    item = compose.Edited(file="c.yml", old=old, new=old.replace(b"one", b"two"), services=())
    (tmp_path / "c.yml").write_bytes(old)
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=tmp_path,
        input=item.diff.encode(),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "c.yml").read_bytes() == item.new


def test_nobody_waits_for_a_diff_that_is_not_shown(
    builder: Builder, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It takes the square of the lines, where many are the same."""
    accept(project, DIGEST)
    file = project / "compose.yml"
    file.write_text(SERVICE.format(f"{PLACE}:hello"))

    def refuse(*_: object) -> None:
        raise AssertionError("made, and not shown")

    monkeypatch.setattr("builder.cli.compose.difflib.unified_diff", refuse)
    assert builder("compose", "pin", file).status == 0
    assert DIGEST in file.read_text()
