"""``builder check``: what can be said without building, all of it, each file by itself."""

from pathlib import Path

import pytest

from builder.digest import Digest, ObjectId
from builder.lock.codec import write_pins
from builder.lock.model import ModelPin
from builder.wheel_pack import pack
from tests.cli.bases import write_base
from tests.cli.conftest import Builder, tree
from tests.models.worlds import pin_of, tiny
from tests.plugins.golden import Golden
from tests.standin.hub import stand_in_hub

ZERO = "sha256:" + "0" * 64
DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n"


def findings(builder: Builder, *arguments: str) -> list[tuple[str, str, str]]:
    document = builder("check", "--json", *arguments).json
    assert list(document) == ["findings"]
    assert all(
        list(item) == ["severity", "where", "message", "hint", "exit_status"]
        for item in document["findings"]
    )
    return [(item["severity"], item["where"], item["message"]) for item in document["findings"]]


def write(project: Path, file: str, text: str) -> None:
    (project / file).parent.mkdir(parents=True, exist_ok=True)
    (project / file).write_text(text)


def test_a_good_project_is_one_line_and_makes_nothing(
    builder: Builder, project: Path, store: Path
) -> None:
    before = tree(project)
    ran = builder("check")
    assert (ran.status, ran.out, ran.err) == (0, "nothing to report\n", "")
    assert builder("check", "hello", "--json").json == {"findings": []}
    assert tree(project) == before
    assert not store.exists()


def test_findings_are_a_table_with_hints_errors_first(
    builder: Builder, project: Path, golden: Golden
) -> None:
    write(
        project,
        "overlays/unused/overlay.yaml",
        f"version: 1\nremove:\n  - {{path: a, replaces: {ZERO}}}\n",
    )
    write(project, "lockfiles/wheel.yaml", "version: 1\n")
    write(project, "wheels/hello-1.0-py3-none-any/hello/limits.py", "REPEAT = 9\n")
    ran = builder("check")
    assert (ran.status, ran.err) == (4, "")
    golden("cli/check.txt", ran.out)
    golden("cli/check.json", builder("check", "--json").out)


def test_warnings_alone_are_no_failure(builder: Builder, project: Path) -> None:
    write(
        project,
        "lockfiles/images/gone.yaml",
        f"version: 1\nvariant: gone\nresults:\n  linux/amd64:\n    digest: '{ZERO}'\n"
        f"    diff_ids: ['{ZERO}']\n    files: {{}}\n",
    )
    ran = builder("check")
    assert ran.status == 0
    assert ran.out == (
        "         WHERE                       WHAT\n"
        "warning  lockfiles/images/gone.yaml  there is no variants/gone.yaml any more\n"
        "                                     hint: remove it\n"
        "0 errors, 1 warning\n"
    )


def test_a_wheel_that_packs_to_something_else_is_an_integrity_error(
    builder: Builder, project: Path
) -> None:
    wheel = project / "wheels/hello-1.0-py3-none-any"
    pinned = Digest.of(pack(wheel))
    (wheel / "hello/limits.py").write_text("REPEAT = 9\n")
    assert findings(builder) == [
        (
            "error",
            "lockfiles/wheels.yaml:3",
            (
                f"wheels.hello: the wheel in 'wheels/hello-1.0-py3-none-any' is"
                f" {Digest.of(pack(wheel))}, the lock pins {pinned}"
            ),
        )
    ]
    assert builder("check").status == 4


def test_a_wheel_whose_directory_is_gone_is_found(builder: Builder, project: Path) -> None:
    (project / "wheels").rename(project / "moved")
    ((severity, where, message),) = findings(builder)
    assert (severity, where) == ("error", "lockfiles/wheels.yaml:3")
    assert message.endswith("no such directory")
    assert builder("check").status == 3


BROKEN = {
    "lockfiles/vllm.yaml": "version: 1\nvllm: [\n",
    "lockfiles/genesis.yaml": "version: 1\ngenesis: {x: {}}\n",
    "lockfiles/waivers.yaml": "version: 1\nwaivers: {x: {}}\n",
    "lockfiles/images/hello.yaml": "version: 2\n",
    "variants/broken.yaml": "version: 1\nbase: scratch\nsteps: [{overlay: nowhere}]\n",
    "overlays/broken/overlay.yaml": "version: 1\nfiles: x\n",
    "builder.yaml": "version: 1\nstore: [x]\n",
}


def test_a_broken_file_hides_nothing_of_the_others(builder: Builder, project: Path) -> None:
    for file, text in BROKEN.items():
        write(project, file, text)
    write(project, "wheels/hello-1.0-py3-none-any/hello/limits.py", "REPEAT = 9\n")
    found = findings(builder)
    places = {where.partition(":")[0] for severity, where, _ in found if severity == "error"}
    assert places == {*BROKEN, "lockfiles/wheels.yaml"}
    assert len(found) == len({(where, message) for _, where, message in found})


@pytest.mark.parametrize("file", BROKEN)
def test_one_mistake_is_one_finding(file: str, builder: Builder, project: Path) -> None:
    """Neither a reader and a schema, nor two recipes that use it, say it twice; and nothing is
    called unused because its user cannot be read."""
    write(project, file, BROKEN[file])
    found = [item for item in findings(builder) if item[0] == "error"]
    assert len(found) == 1
    assert found[0][1].partition(":")[0] == file
    assert builder("check").status == 3


def test_a_recipe_that_names_a_pin_of_a_broken_lock_repeats_nothing(
    builder: Builder, project: Path
) -> None:
    write(project, "lockfiles/wheels.yaml", "version: 1\nwheels: {hello: {}}\n")
    assert [where for _, where, _ in findings(builder)] == ["lockfiles/wheels.yaml:2"]


def test_what_nothing_reads_is_named_with_what_was_meant(builder: Builder, project: Path) -> None:
    write(project, "lockfiles/wheel.yaml", "version: 1\n")
    write(project, "lockfiles/images/hello.json", "{}")
    write(project, "overlays/stray.txt", "x")
    ran = builder("check", "--json").json["findings"]
    assert [(item["where"], item["message"], item["hint"]) for item in ran] == [
        ("lockfiles/wheel.yaml", "nothing reads it", "did you mean 'lockfiles/wheels.yaml'?"),
        ("lockfiles/images/hello.json", "nothing reads it", "remove it"),
        ("overlays/stray.txt", "nothing reads it", "remove it"),
    ]


def test_a_recipe_with_a_bad_name_is_an_error(builder: Builder, project: Path) -> None:
    write(project, "variants/Hello.yml", "version: 1\n")
    assert findings(builder) == [("error", "variants/Hello.yml", "not the name of a recipe")]


def test_pins_overlays_and_models_that_nothing_uses_are_named(
    builder: Builder, project: Path
) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    write(
        project,
        "lockfiles/models.yaml",
        "version: 1\nmodels:\n  big:\n    follows: {repository: a/b}\n"
        f"    commit: '{commit}'\n    files: {{config.json: {{}}}}\n",
    )
    write(
        project,
        "lockfiles/sources.yaml",
        "version: 1\nsources:\n  club:\n    follows: {repository: https://git.example/a}\n"
        f"    commit: '{commit}'\n    tree: '{commit}'\n"
        f"    files: {{x.py: {{digest: '{ZERO}', size: 1}}}}\n",
    )
    write(
        project,
        "overlays/unused/overlay.yaml",
        f"version: 1\nremove:\n  - {{path: a, replaces: {ZERO}}}\n",
    )
    assert findings(builder) == [
        ("warning", "lockfiles/models.yaml:3", "models.big: 1 of 1 files are without a digest"),
        ("warning", "lockfiles/sources.yaml:3", "sources.club: no variant uses it"),
        ("warning", "lockfiles/models.yaml:3", "models.big: no variant uses it"),
        ("warning", "overlays/unused", "no variant uses it"),
    ]
    used = (project / "variants/hello.yaml").read_text() + "models: [big]\n"
    write(project, "variants/hello.yaml", used)
    assert "models.big: no variant uses it" not in {message for *_, message in findings(builder)}
    assert findings(builder, "hello") == [
        ("warning", "lockfiles/models.yaml:3", "models.big: 1 of 1 files are without a digest")
    ], "with names, what nobody uses is not asked"


def test_a_base_that_is_named_by_its_index_alone_is_told_what_to_record(
    builder: Builder, project: Path
) -> None:
    pin = "  nightly:\n    follows: {image: registry.example/vllm, tag: nightly}\n"
    write(project, "lockfiles/vllm.yaml", f"version: 1\nvllm:\n{pin}    index: {ZERO}\n")
    write(
        project,
        "variants/hello.yaml",
        "version: 1\nbase: {pin: nightly}\nsteps: [{overlay: greeting}]\n",
    )
    document = builder("check", "hello", "--json").json["findings"]
    assert [(item["where"], item["message"], item["hint"]) for item in document] == [
        (
            "lockfiles/vllm.yaml:3",
            "vllm.nightly: locked without a manifest for linux/amd64",
            (
                "each build asks the registry for what is missing: builder lock nightly writes it"
                " down"
            ),
        ),
        (
            "lockfiles/vllm.yaml:3",
            "vllm.nightly: nobody keeps the bytes of this base: if upstream deletes it, it is lost",
            "keep them: builder escrow hello --to PLACE",
        ),
    ]


def test_a_glob_that_matches_nothing_of_a_local_diff_is_found(
    builder: Builder, project: Path
) -> None:
    overlay = "overlays/greeting/overlay.yaml"
    text = (project / overlay).read_text()
    write(project, "overlays/greeting/x.diff", DIFF)
    write(project, overlay, f"{text}patch: {{file: x.diff, ignore: [x.py, 'tests/**']}}\n")
    ((severity, where, message),) = findings(builder)
    assert (severity, where.partition(":")[0]) == ("error", overlay)
    assert message == "patch.ignore: 'tests/**' matches no path of the diff"
    write(project, "overlays/greeting/x.diff", "no diff\n")
    assert len(findings(builder)) == 1


def test_diffs_of_pulls_are_looked_at_when_they_are_at_hand(builder: Builder, demo: Path) -> None:
    acme = "https://git.example.invalid/acme"
    upstream, patches = f"{demo}/demo/upstream.fast-export", f"{demo}/demo/patches.fast-export"
    mirrors = f"{{{acme}/vllm: {upstream}, {acme}/vllm-patches: {patches}}}"
    variant = demo / "variants/demo.yaml"
    text = variant.read_text()
    assert len(findings(builder, "-C", str(demo), "demo")) == 3, "nobody keeps what git has"
    write(demo, "builder.yaml", f"version: 1\nmirrors: {{git: {mirrors}}}\n")
    variant.write_text(text.replace('ignore: ["tests/**"]', 'ignore: ["tests/**", "doc/**"]'))
    assert findings(builder, "-C", str(demo), "demo") == []

    variant.write_text(text)
    assert builder("-C", demo, "build", "demo").status == 0
    variant.write_text(text.replace('ignore: ["tests/**"]', 'ignore: ["tests/**", "doc/**"]'))
    ((severity, where, message),) = findings(builder, "-C", str(demo), "demo")
    assert (severity, where) == ("error", "variants/demo.yaml:11")
    assert message == "steps[1].ignore: 'doc/**' matches no path of the diff"


def test_a_result_with_another_count_of_layers_is_stale(builder: Builder, project: Path) -> None:
    builder("accept", "hello", "--platform", "linux/arm64")
    assert findings(builder) == []
    text = (project / "variants/hello.yaml").read_text()
    write(project, "variants/hello.yaml", text.replace("  - overlay: greeting", "  # - overlay"))
    assert (
        "warning",
        "lockfiles/images/hello.yaml:4",
        "results.linux/arm64: accepted with 2 layers, and the variant has 1 steps",
    ) in findings(builder)


def test_a_base_layout_that_is_not_there_is_found(builder: Builder, project: Path) -> None:
    digest = write_base(project / "base")
    text = f"version: 1\nbase: {{layout: base, digest: '{digest}'}}\n"
    write(project, "variants/on-base.yaml", text)
    assert findings(builder) == []
    (project / "base").rename(project / "moved")
    ((severity, where, message),) = findings(builder)
    assert (severity, where) == ("error", "variants/on-base.yaml:1")
    assert message == "base.layout: no directory 'base' in the project"


def test_an_unknown_variant_is_refused_not_found(builder: Builder) -> None:
    ran = builder("check", "hello", "helo")
    assert (ran.status, ran.out) == (3, "")


def test_a_source_that_a_pull_is_published_in_is_used(builder: Builder, project: Path) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    write(
        project,
        "lockfiles/sources.yaml",
        "version: 1\nsources:\n  club:\n    follows: {repository: https://git.example/a}\n"
        f"    commit: '{commit}'\n    tree: '{commit}'\n"
        f"    files: {{it.patch: {{digest: '{ZERO}', size: 1}}}}\n",
    )
    write(
        project,
        "lockfiles/pulls.yaml",
        "version: 1\npulls:\n  rebase:\n    follows: {repository: a/b, pull: 1}\n"
        f"    published: {{source: club, path: it.patch}}\n    diff: {ZERO}\n",
    )
    unused = {message for *_, message in findings(builder)}
    assert unused == {"pulls.rebase: no variant uses it", "sources.club: no variant uses it"}
    text = (project / "variants/hello.yaml").read_text()
    write(project, "variants/hello.yaml", text.replace("steps:\n", "steps:\n  - pull: rebase\n"))
    lost = "if upstream deletes it, it is lost"
    assert [message for *_, message in findings(builder)] == [
        f"sources.club: nobody keeps the bytes of this source: {lost}"
    ]


def test_the_hub_is_asked_about_models_where_upstream_is(
    builder: Builder, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with stand_in_hub() as hub:
        model = hub.model("Team/Tiny", tiny())
        pins = {
            "tiny": pin_of(tiny(), commit=ObjectId(model.refs["main"]), follows="main"),
            "other": pin_of({}, name="other", repository="Team/Gone"),
        }
        write(project, "lockfiles/models.yaml", write_pins(ModelPin, pins).decode())
        write(
            project,
            "variants/hello.yaml",
            (project / "variants/hello.yaml").read_text() + "models: [tiny]\n",
        )
        new = model.commit(tiny() | {"README.md": b"new"})
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        assert builder("check").status == 0
        assert hub.calls == []
        named = builder("check", "hello", "--upstream", "--json")
        everything = builder("check", "--upstream", "--json")
    messages = [item["message"] for item in named.json["findings"]]
    assert named.status == 0
    assert any(f"'main' moved: it is at {new[:12]} now" in message for message in messages)
    assert "models.other: no files are locked" in messages
    assert everything.status == 7
    assert "Team/Gone: the hub has no such model" in everything.json["findings"][0]["message"]


def test_a_host_may_hold_a_check_for_so_long_and_no_longer(
    builder: Builder, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builder.cli.check._HOST_LIMIT", 0.0)
    with stand_in_hub() as hub:
        commit = hub.model("Team/Tiny", tiny()).refs["main"]
        pins = {"tiny": pin_of(tiny(), commit=ObjectId(commit), follows="main")}
        write(project, "lockfiles/models.yaml", write_pins(ModelPin, pins).decode())
        monkeypatch.setenv("HF_ENDPOINT", hub.endpoint)
        ran = builder("check", "--upstream", "--json")
    assert ran.status == 8
    said = f"{hub.host} has taken over 0 s for its answers in all"
    assert said in ran.json["findings"][0]["message"]
