"""``builder bump``, ``lock`` and ``add`` through the command line, on the demo, without network."""

import json
import shutil
from pathlib import Path

import pytest

from builder.errors import (
    BuilderError,
    EnvironmentFault,
    IntegrityError,
    NetworkError,
    PolicyError,
)
from builder.project import Project
from builder.trial import VariantTrial
from tests.cli.conftest import DEMO, Builder, tree

OLD, NEW = "f9ca82f4f9d5173b3a74fda8e05d3e233eb21df8", "1a62f7ce434ae78b04eb968be74baa32b4271cd8"
LOCK = "lockfiles/genesis.yaml"
GENESIS = "https://git.example.invalid/acme/vllm-patches"
UPSTREAM = "https://git.example.invalid/acme/vllm"


@pytest.fixture
def project(demo: Path) -> Path:
    """The demo, with the mirrors that make it work offline."""
    shutil.copy(DEMO / "builder.yaml", demo)
    return demo


def changed(before: dict[str, bytes | None], project: Path) -> dict[str, list[str]]:
    """The new lines of each file that differs."""
    after = tree(project)
    lines = {}
    for name, data in after.items():
        old = before.get(name)
        if data != old:
            known = (old or b"").decode().splitlines()
            lines[name] = [
                line for line in (data or b"").decode().splitlines() if line not in known
            ]
    return lines


def break_the_demo(project: Path) -> None:
    """An anchored edit whose anchor is in no file."""
    file = project / "overlays/demo-mtp/overlay.yaml"
    file.write_text(file.read_text().replace("DEFAULT_DRAFT_TOKENS = 1", "NOT_THERE = 1"))


def test_a_bump_changes_the_entry_and_nothing_else(builder: Builder, project: Path) -> None:
    assert builder("build", "demo").status == 0
    before = tree(project)
    ran = builder("bump", "genesis", "demo-patches", NEW, "--offline", "--json")
    assert ran.status == 0
    report = ran.json
    assert report["title"] == "bump genesis demo-patches: f9ca82f4f9d5 -> 1a62f7ce434a"
    assert report["written"] == [LOCK]
    assert [item["id"] for item in report["moves"][0]["commits"]] == [NEW]
    assert [item["id"] for item in report["moves"][0]["lost_commits"]] == [OLD]
    assert report["variants"][0]["passes"]
    assert report["variants"][0]["steps"][-1]["patches"][-1] == "D8: not there -> applied"
    lines = changed(before, project)
    assert list(lines) == [LOCK]
    assert [line.split(":")[0].strip() for line in lines[LOCK]] == [
        *("commit", "tree", "payload", "plugin", "reachable", "locked"),
    ]
    assert "# No branch holds it" in (project / LOCK).read_text()


def test_what_was_bumped_is_what_the_next_build_takes(builder: Builder, project: Path) -> None:
    report = builder("bump", "genesis", "demo-patches", NEW, "--json").json
    ran = builder("build", "demo", "--json")
    assert ran.status == 0
    assert ran.json["images"][0]["digest"] == report["variants"][0]["image"]
    assert all(layer["cached"] for layer in ran.json["images"][0]["layers"])


def test_a_dry_run_writes_nothing(builder: Builder, project: Path) -> None:
    before = tree(project)
    ran = builder("bump", "genesis", "demo-patches", NEW, "--dry-run")
    assert ran.status == 0
    assert ran.out.endswith("nothing was written (--dry-run)\n")
    assert tree(project) == before


def test_without_a_target_the_pin_goes_where_it_follows(builder: Builder) -> None:
    report = builder("bump", "genesis", "demo-patches", "--dry-run", "--json").json
    assert report["moves"][0]["to"] == NEW[:12]
    assert any("re-rooted" in line for line in report["moves"][0]["remarks"])


def test_a_target_finds_the_pin_whose_repository_has_it(builder: Builder, project: Path) -> None:
    """There are two patch sets here; the other one's repository cannot be asked."""
    ran = builder("bump", "genesis", NEW, "--dry-run", "--offline", "--json")
    assert ran.status == 8, "one that cannot be asked may have it, too"
    text = (project / LOCK).read_text()
    (project / LOCK).write_text(text[: text.index("  genesis-v7.72.2:")])
    ran = builder("bump", "genesis", NEW, "--dry-run", "--offline", "--json")
    assert [move["name"] for move in ran.json["moves"]] == ["demo-patches"]


def test_the_same_again_changes_nothing(builder: Builder, project: Path) -> None:
    builder("bump", "genesis", "demo-patches", NEW)
    before = tree(project)
    ran = builder("bump", "genesis", "demo-patches", NEW)
    assert ran.status == 0
    assert "demo-patches is what it was" in ran.out
    assert tree(project) == before


def test_where_nothing_moves_there_is_nothing_to_write_anyway(
    builder: Builder, project: Path
) -> None:
    assert builder("bump", "genesis", "demo-patches", NEW).status == 0
    break_the_demo(project)
    before = tree(project)
    for option in ((), ("--allow-failing",)):
        ran = builder("bump", "genesis", "demo-patches", NEW, *option)
        assert tree(project) == before
        assert "nothing changes\n" in ran.out
    ran = builder("bump", "genesis", "demo-patches", NEW)
    assert ran.status == 6
    assert ran.err.endswith("; the lock is as it was: --allow-failing has nothing to write\n")


def test_a_variant_that_fails_keeps_the_lock_as_it_was(builder: Builder, project: Path) -> None:
    break_the_demo(project)
    before = tree(project)
    ran = builder("bump", "genesis", "demo-patches", NEW)
    assert ran.status == 6
    assert "demo: fails, 1 of 7 steps" in ran.out
    assert "  demo-patches        applied\n    tried without demo-mtp, which failed" in ran.out
    assert "--allow-failing writes it anyway" in ran.err
    assert tree(project) == before
    document = builder("bump", "genesis", "demo-patches", NEW, "--json").json
    assert document["error"]["exit_status"] == 6
    assert document["written"] == []


def test_what_is_allowed_to_fail_is_recorded_and_told(builder: Builder, project: Path) -> None:
    break_the_demo(project)
    ran = builder("bump", "genesis", "demo-patches", NEW, "--allow-failing")
    assert ran.status == 0
    assert Project(project).genesis["demo-patches"].failing == ("demo",)
    told = builder("check", "--json").json["findings"]
    assert any("these fail with it: demo" in item["message"] for item in told)


def test_a_lock_that_changes_meanwhile_is_not_written_over(
    builder: Builder, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from builder import bump

    tried = bump.tried

    def slow(*arguments: object, **options: object) -> object:
        made = tried(*arguments, **options)  # type: ignore[arg-type]  # passed on as they are
        file = project / LOCK
        file.write_text(file.read_text() + "# somebody was here\n")
        return made

    monkeypatch.setattr(bump, "tried", slow)
    ran = builder("bump", "genesis", "demo-patches", NEW)
    assert ran.status == 3
    assert "changed" in ran.err
    text = (project / LOCK).read_text()
    assert OLD in text
    assert NEW not in text
    assert text.endswith("# somebody was here\n")


def test_a_report_for_a_pull_request_is_written(builder: Builder, tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    builder("bump", "genesis", "demo-patches", NEW, "--dry-run", "--markdown", file)
    text = file.read_text()
    assert text.startswith("**The one variant that uses it passes.**\n")
    assert "| | `demo-patches` | applied |" in text


def test_a_pull_request_moves_to_its_head(builder: Builder) -> None:
    report = builder("bump", "pull", "7", "--dry-run", "--json").json
    (move,) = report["moves"]
    assert (move["kind"], move["name"], move["changes"]) == ("pull", "demo-three-bit-kv", False)


def test_a_source_moves_with_the_branch_that_it_follows(builder: Builder) -> None:
    report = builder("bump", "source", "demo-chat-template", "--dry-run", "--json").json
    assert [item["passes"] for item in report["variants"]] == [True]


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (("genesis",), 2, "which genesis pin?"),
        (("genesis", "nobody", NEW), 2, "no genesis pin 'nobody'"),
        (("genesis", "demo-patches", "1a62f7c"), 3, "1a62f7c"),
        (("genesis", "demo-patches", "no-such-branch"), 7, "no-such-branch"),
        (("genesis", "demo-patches", "0" * 40), 7, "0" * 40),
        (("genesis", "demo-patches", NEW, "more"), 2, "expected [NAME] [TARGET]"),
        (("pull", "8"), 2, "no pin of pull request 8"),
        (("pull", "demo-three-bit-kv", "x"), 2, "moves to what it is now"),
        (("pulls", "8"), 2, "pulls"),
        (("genesis", "demo-patches", "--latest"), 2, "--latest is for vllm pins"),
        (("model",), 3, "no pin of the kind 'model'"),
    ],
)
def test_words_that_name_nothing_are_refused(
    builder: Builder, project: Path, words: tuple[str, ...], status: int, said: str
) -> None:
    before = tree(project)
    ran = builder("bump", *words)
    assert (ran.status, said in ran.err) == (status, True), ran.err
    assert tree(project) == before


def test_a_pin_is_added_and_then_used(builder: Builder, project: Path) -> None:
    ran = builder("add", "source", UPSTREAM, "examples/chat_template.jinja", "--json")
    assert ran.status == 0
    assert ran.json["title"].startswith("add source vllm: ")
    assert ran.json["written"] == ["lockfiles/sources.yaml"]
    text = (project / "lockfiles/sources.yaml").read_text()
    assert "    follows: {repository: " not in text.partition("\n  vllm:\n")[2][:20]
    assert builder("check").status == 0


def test_what_is_added_says_how_a_variant_names_it(builder: Builder) -> None:
    ran = builder("add", "source", UPSTREAM, "examples/chat_template.jinja", "--name", "template")
    assert ran.err == (
        "next: in a variant, steps: [{source: template, files:"
        " [{from: examples/chat_template.jinja, to: WHERE, replaces: nothing}]}]\n"
    )


def test_a_pull_request_and_a_patch_set_are_added(builder: Builder, project: Path) -> None:
    assert builder("add", "pull", "7", "--repository", UPSTREAM).status == 0
    assert "\n  pr7:\n" in (project / "lockfiles/pulls.yaml").read_text()
    ran = builder("add", "genesis", NEW, "--repository", GENESIS, "--name", "next")
    assert ran.status == 0
    assert "\n  next:\n" in (project / LOCK).read_text()


@pytest.mark.parametrize(("given", "hint"), [("My Pin", "did you mean 'my-pin'?"), ("..", "give")])
def test_a_name_that_is_given_is_not_changed(
    builder: Builder, project: Path, given: str, hint: str
) -> None:
    before = tree(project)
    ran = builder("add", "pull", "7", "--repository", UPSTREAM, "--name", given)
    assert ran.status == 2
    assert f"{given!r} is not the name of a pin\n  hint: {hint}" in ran.err
    assert tree(project) == before


def test_what_is_added_says_how_it_is_used_and_what_it_follows(builder: Builder) -> None:
    ran = builder("add", "pull", "7", "--repository", UPSTREAM)
    assert ran.err == "next: in a variant, steps: [{pull: pr7}]\n"
    ran = builder("add", "genesis", NEW, "--repository", GENESIS, "--name", "next")
    assert ran.err.startswith("next follows nothing: ")
    ran = builder(
        *("add", "genesis", NEW, "--repository", GENESIS, "--name", "main"), "--ref", "main"
    )
    assert ran.err == "next: in a variant, steps: [{genesis: main, ...}]\n"


def test_a_bump_that_makes_another_image_says_what_is_left_to_do(builder: Builder) -> None:
    builder("accept", "demo")
    ran = builder("bump", "genesis", "demo-patches", NEW)
    assert ran.err == "next: look at what differs, then: builder accept demo\n"
    assert builder("bump", "genesis", "demo-patches", NEW).err == ""


def test_a_name_that_is_taken_is_not_taken_again(builder: Builder, project: Path) -> None:
    before = tree(project)
    ran = builder("add", "pull", "7", "--repository", UPSTREAM, "--name", "demo-three-bit-kv")
    assert ran.status == 3
    assert "there is a pull pin 'demo-three-bit-kv' already" in ran.err
    assert tree(project) == before


def test_a_complete_lock_is_left_alone(builder: Builder, project: Path) -> None:
    before = tree(project)
    ran = builder("lock", "demo-patches", "demo-three-bit-kv", "demo-vllm", "--offline")
    assert ran.status == 0, ran.err
    assert tree(project) == before


def test_what_a_lock_lacks_is_filled_in(builder: Builder, project: Path) -> None:
    file = project / LOCK
    text = file.read_text()
    kept = [line for line in text.splitlines(keepends=True) if "9bfe9b03" not in line]
    file.write_text("".join(kept))
    ran = builder("lock", "demo-patches", "--json")
    assert ran.status == 0, ran.err
    assert ran.json["written"] == [LOCK]
    assert "9bfe9b03b12dd248d7ddf7354957d64073d57d75" in file.read_text()


def test_what_is_completed_was_not_tried_and_is_recorded_as_before(
    builder: Builder, project: Path
) -> None:
    file = project / LOCK
    text = file.read_text().replace("  demo-patches:\n", "  demo-patches:\n    failing: [demo]\n")
    kept = [line for line in text.splitlines(keepends=True) if "9bfe9b03" not in line]
    file.write_text("".join(kept))
    ran = builder("lock", "demo-patches")
    assert ran.status == 0, ran.err
    pin = Project(project).genesis["demo-patches"]
    assert pin.payload is not None
    assert pin.failing == ("demo",)


def test_reports_are_one_document(builder: Builder) -> None:
    ran = builder("bump", "genesis", "demo-patches", NEW, "--dry-run", "--json")
    assert list(json.loads(ran.out)) == [
        *("title", "changes", "written", "moves", "variants", "not_tried", "landed", "remarks"),
    ]


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("demo-patchs", "did you mean the pin 'demo-patches'? "),
        ("zzz", "the genesis pins are demo-patches, genesis-v7.72.2; "),
    ],
)
def test_a_slip_in_the_name_of_a_pin_is_not_only_a_branch_that_is_not_there(
    builder: Builder, project: Path, word: str, said: str
) -> None:
    lock = project / LOCK
    lock.write_text(
        lock.read_text().replace("https://github.com/Sandermage/genesis-vllm-patches", GENESIS)
    )
    ran = builder("bump", "genesis", word, "--dry-run")
    assert ran.status == 7
    assert f"hint: {said}git ls-remote" in ran.err


def test_a_patch_that_is_off_for_another_reason_is_told(builder: Builder) -> None:
    builder("build", "demo")
    ran = builder("bump", "genesis", "demo-patches", NEW, "--dry-run")
    assert (
        "    D3: skipped (opt-in: set GENESIS_ENABLE_D3_MTP_ONE_TOKEN=1)"
        " -> skipped (retired: superseded by D2)\n"
    ) in ran.out


def second(project: Path) -> None:
    """Another variant on the same pins."""
    recipe = project / "variants/demo.yaml"
    (project / "variants/other.yaml").write_text(recipe.read_text())


def test_what_uses_the_pin_and_was_not_asked_for_is_named(builder: Builder, project: Path) -> None:
    second(project)
    (project / "variants/broken.yaml").write_text("version: 1\nsteps: 7\n")
    (project / "variants/idle.yaml").write_text("version: 1\nbase: scratch\nsteps: []\n")
    words = ("bump", "genesis", "demo-patches", NEW, "--dry-run", "--variant", "demo")
    ran = builder(*words)
    assert ran.status == 0, ran.err
    assert "\nnot tried: broken, other\n" in ran.out
    assert builder(*words, "--json").json["not_tried"] == ["broken", "other"]


def test_what_failed_and_was_not_tried_again_stays_recorded(
    builder: Builder, project: Path
) -> None:
    second(project)
    file = project / LOCK
    text = file.read_text()
    file.write_text(
        text.replace("  demo-patches:\n", "  demo-patches:\n    failing: [demo, other]\n")
    )
    ran = builder("bump", "genesis", "demo-patches", NEW, "--variant", "demo")
    assert ran.status == 0, ran.err
    assert Project(project).genesis["demo-patches"].failing == ("other",)


def test_a_report_that_cannot_be_written_is_found_out_before_the_work(
    builder: Builder, project: Path
) -> None:
    before = tree(project)
    ran = builder("bump", "genesis", "demo-patches", NEW, "--markdown", project / "no" / "it.md")
    assert ran.status == 2
    assert f"--markdown: {project}/no/it.md: cannot be written: No such file" in ran.err
    assert ran.out == ""
    assert tree(project) == before


def test_a_target_that_several_pins_may_mean_is_refused(builder: Builder, project: Path) -> None:
    """Two pins of one repository at different commits."""
    assert builder("add", "genesis", NEW, "--repository", GENESIS, "--name", "next").status == 0
    text = (project / LOCK).read_text()
    start, end = text.index("  genesis-v7.72.2:"), text.index("  next:")
    (project / LOCK).write_text(text[:start] + text[end:])
    before = tree(project)
    ran = builder("bump", "genesis", NEW)
    assert ran.status == 2
    assert f"{NEW!r} may be meant for several genesis pins: demo-patches, next" in ran.err
    assert f"name the pin: builder bump genesis NAME {NEW}" in ran.err
    assert tree(project) == before


def test_a_commit_with_another_tree_than_the_locked_one_is_refused(
    builder: Builder, project: Path
) -> None:
    file = project / LOCK
    tree_id = Project(project).genesis["demo-patches"].tree.hex
    lines = [line for line in file.read_text().splitlines(keepends=True) if "9bfe9b03" not in line]
    file.write_text("".join(lines).replace(tree_id, "0" * 40))
    before = tree(project)
    ran = builder("lock", "demo-patches")
    assert ran.status == 4
    assert f"the commit has tree {tree_id}, the lock pins {'0' * 40}" in ran.err
    assert tree(project) == before


def test_a_variant_that_does_not_use_the_pin_proves_nothing(
    builder: Builder, project: Path
) -> None:
    (project / "variants/plain.yaml").write_text("version: 1\nbase: scratch\nsteps: []\n")
    before = tree(project)
    ran = builder("bump", "genesis", "demo-patches", NEW, "--variant", "plain")
    assert ran.status == 2
    assert "plain does not use genesis demo-patches" in ran.err
    assert "these use it: demo" in ran.err
    assert tree(project) == before


def test_a_pin_that_nobody_uses_is_told(builder: Builder, project: Path) -> None:
    (project / "variants/demo.yaml").unlink()
    ran = builder("bump", "genesis", "demo-patches", NEW, "--dry-run")
    assert ran.status == 0
    assert "no variant uses it: nothing was tried" in ran.out.splitlines()


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (EnvironmentFault("no space"), 9),
        (NetworkError("no answer"), 8),
        (IntegrityError("other bytes"), 4),
    ],
    ids=lambda item: type(item).__name__,
)
def test_what_could_not_be_tried_is_not_allowed_to_fail(
    builder: Builder,
    project: Path,
    monkeypatch: pytest.MonkeyPatch,
    error: BuilderError,
    status: int,
) -> None:
    trial = VariantTrial(variant="demo", refusals=(PolicyError("not listed"), error))
    monkeypatch.setattr("builder.bump.try_variant", lambda *_, **__: trial)
    before = tree(project)
    ran = builder("bump", "genesis", "demo-patches", NEW, "--allow-failing")
    assert ran.status == status
    assert "what could not be tried is not written with --allow-failing, either" in ran.err
    assert tree(project) == before
