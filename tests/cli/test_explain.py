"""``builder explain``: why two builds differ."""

from pathlib import Path

from builder.digest import Digest
from builder.explain import differences
from tests.cli.bases import write_base
from tests.cli.conftest import Builder
from tests.cli.test_patches import outcome, record
from tests.plugins.golden import Golden


def build(builder: Builder, name: str = "hello") -> str:
    digest = builder("build", name, "--json").json["images"][0]["digest"]
    assert isinstance(digest, str)
    return digest


def test_two_builds_of_one_variant_differ_in_the_edit(
    builder: Builder, project: Path, golden: Golden
) -> None:
    first = build(builder)
    overlay = project / "overlays/greeting/overlay.yaml"
    overlay.write_text(overlay.read_text().replace("replace: Hello", "replace: Welcome"))
    second = build(builder)
    ran = builder("explain", first, second)
    assert (ran.status, ran.err) == (0, "")
    golden("cli/explain.txt", ran.out)
    golden("cli/explain.json", builder("explain", first, "hello", "--json").out)


def test_two_variants_differ_in_steps_and_settings(
    builder: Builder, project: Path, golden: Golden
) -> None:
    text = (project / "variants/hello.yaml").read_text()
    other = text.replace("  - overlay: greeting     # the change in overlays/greeting/\n", "")
    (project / "variants/plain.yaml").write_text(other.replace("[python3, -m, hello]", "[sh]"))
    builder("build", "hello", "plain")
    golden("cli/explain-variants.txt", builder("explain", "hello", "plain").out)


def test_the_same_image_differs_in_nothing(builder: Builder) -> None:
    digest = build(builder)
    assert builder("explain", "hello", digest).out == f"nothing differs: {digest}\n"
    assert builder("explain", "hello", "hello", "--json").json == {
        "first": digest,
        "second": digest,
        "differences": [],
    }


def test_an_image_that_nobody_built_here_is_refused(builder: Builder) -> None:
    build(builder)
    unknown = Digest.of(b"unknown")
    ran = builder("explain", "hello", str(unknown))
    assert (ran.status, ran.out) == (3, "")
    assert ran.err == (
        f"builder: error: no record of image {unknown} in the store\n"
        "  hint: build it again on this machine, from the project as it was: git log -S"
        f" {unknown.short} -- lockfiles/images names the commit that accepted it\n"
    )


def test_steps_in_another_order_are_said_to_be(builder: Builder, project: Path) -> None:
    recipe = project / "variants/hello.yaml"
    text = recipe.read_text()
    more = text.replace("  - overlay: greeting", "  - overlay: other\n  - overlay: greeting")
    (project / "overlays/other").mkdir()
    (project / "overlays/other/it").write_text("it\n")
    (project / "overlays/other/overlay.yaml").write_text(
        "version: 1\nfiles:\n  - {file: it, path: /opt/it, replaces: nothing}\n"
    )
    recipe.write_text(more)
    first = build(builder)
    swapped = more.replace("overlay: other", "overlay: x", 1).replace(
        "overlay: greeting", "overlay: other", 1
    )
    recipe.write_text(swapped.replace("overlay: x", "overlay: greeting", 1))
    second = build(builder)
    found = builder("explain", first, second, "--json").json["differences"]
    assert [item for item in found if item["where"] != "image"] == [
        {
            "where": "order of steps",
            "first": "wheels, other, greeting",
            "second": "wheels, greeting, other",
        }
    ]


def test_patches_that_came_to_something_else_are_said_to_have() -> None:
    first = record(outcome("P1", "applied", "", "a"), outcome("P2", "skipped", "opt-in"))
    second = record(outcome("P1", "skipped", "the anchor is gone"), outcome("P3", "applied"))
    assert [(item.where, item.first, item.second) for item in differences(first, second)] == [
        ("patch P1", "applied", "skipped"),
        ("patch P2", "skipped", None),
        ("patch P3", None, "applied"),
    ]


def test_a_base_against_none_has_a_row_for_each_of_its_names(
    builder: Builder, project: Path
) -> None:
    (project / "overlays/note").mkdir()
    (project / "overlays/note/overlay.yaml").write_text(
        "version: 1\nfiles: [{path: /etc/note, file: note, replaces: nothing}]\n"
    )
    (project / "overlays/note/note").write_text("")
    digest = write_base(project / "base")
    (project / "variants/other.yaml").write_text(
        f"version: 1\nbase: {{layout: base, digest: {digest}}}\nsteps: [{{overlay: note}}]\n"
    )
    assert builder("build", "hello", "other").status == 0
    rows = [line.split() for line in builder("explain", "other", "hello").out.splitlines()]
    assert ["base.manifest", digest.short, "-"] in rows
