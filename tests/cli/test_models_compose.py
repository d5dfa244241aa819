"""``builder models verify --compose``: what a deployment loads is what was locked."""

import os
import shutil
from pathlib import Path

import pytest

from builder.digest import ObjectId
from builder.lock.codec import write_pins
from builder.lock.model import ModelPin
from tests.cli.conftest import Builder, Ran
from tests.models.worlds import COMMIT, SHARDS, lay, pin_of, tiny
from tests.soon import within

FILES = tiny()
DRAFT = {"config.json": b"{}\n"}
VLLM = """\
services:
  engine:
    image: x
    labels: [builder.variant=hello]
    volumes: ["${MODEL_DIR:-./models}:/root/.cache/huggingface:ro"]
    command: [--model, /root/.cache/huggingface/tiny]
"""


@pytest.fixture
def place(project: Path, tmp_path: Path) -> Path:
    """A project whose variant ``hello`` has the model ``tiny``, beside which ``draft`` and ``gguf``
    are pinned; and a directory with a compose file and the models."""
    pins = {
        "tiny": pin_of(FILES),
        "draft": pin_of(DRAFT, name="draft", repository="Team/Draft-1B"),
        "gguf": pin_of({"q4/a.gguf": b"gguf"}, name="gguf", repository="Team/Some-GGUF"),
    }
    (project / "lockfiles/models.yaml").write_bytes(write_pins(ModelPin, pins))
    with (project / "variants/hello.yaml").open("a") as variant:
        variant.write("models: [tiny]\n")
    directory = tmp_path / "deploy"
    lay(directory / "models/tiny", FILES)
    lay(directory / "models/Draft-1B", DRAFT)
    lay(directory / "models/gguf", {"q4/a.gguf": b"gguf"})
    return directory


@pytest.fixture
def verify(builder: Builder, place: Path) -> Builder:
    def call(compose: str, *options: str) -> Ran:
        (place / "compose.yml").write_text(compose)
        return builder("models", "verify", "--compose", place / "compose.yml", *options)

    return call


def loaded(ran: Ran) -> list[tuple[str | None, str | None]]:
    return [(item["model"], item["problem"]) for item in ran.json["loaded"]]


def problem(ran: Ran) -> str:
    """The one thing that could not be verified."""
    assert ran.status == 3
    (found,) = [item["problem"] for item in ran.json["loaded"] if item["problem"] is not None]
    return str(found)


def test_what_a_service_loads_is_verified_where_it_is_mounted_from(
    verify: Builder, place: Path
) -> None:
    ran = verify(VLLM)
    size = sum(map(len, FILES.values()))
    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (
        "SERVICE  OPTION   MODEL  DIRECTORY\n"
        f"engine   --model  tiny   {place}/models/tiny\n"
        "MODEL  SIZE   OK  MISSING  EXTRA  SHORT  WRONG  UNHASHED\n"
        f"tiny   {size} B  4   0        0      0      0      0\n"
    )
    document = verify(VLLM, "--json").json
    assert document["compose"] == [str(place / "compose.yml")]
    assert document["loaded"] == [
        {
            "service": "engine",
            "file": str(place / "compose.yml"),
            "line": 2,
            "option": "--model",
            "named": "/root/.cache/huggingface/tiny",
            "model": "tiny",
            "directory": f"{place}/models/tiny",
            "problem": None,
            "hint": None,
            "remark": None,
        }
    ]
    assert document["models"][0]["counts"]["ok"] == 4


def test_a_flipped_bit_fails_with_the_status_of_bytes(verify: Builder, place: Path) -> None:
    path = place / "models/tiny" / SHARDS[0]
    data = path.read_bytes()
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    ran = verify(VLLM)
    assert ran.status == 4
    assert f"tiny: {SHARDS[0]}: wrong: expected sha256:" in ran.out


def test_variables_are_those_of_the_environment_over_the_file_beside_it(
    verify: Builder, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (place / "models").rename(place / "elsewhere")
    assert "is not there: Docker would make it, empty" in problem(verify(VLLM, "--json"))
    (place / ".env").write_text("MODEL_DIR=./elsewhere\n")
    assert verify(VLLM).status == 0
    monkeypatch.setenv("MODEL_DIR", str(place))
    assert f"'{place}/tiny' is not there" in problem(verify(VLLM, "--json"))
    monkeypatch.delenv("MODEL_DIR")
    (place / ".env").write_text("MODEL DIR\n")
    ran = verify(VLLM)
    assert (ran.status, ran.out) == (3, "")
    assert f"{place}/.env:1: not a variable: 'MODEL DIR'" in ran.err


def test_the_arguments_of_the_variants_image_count_where_the_file_has_none(
    verify: Builder, place: Path, project: Path
) -> None:
    variant = project / "variants/hello.yaml"
    text = variant.read_text()
    assert "\nimage:\n" in text
    variant.write_text(text.replace("image:\n", "image:\n  command: [--model, /m/tiny]\n"))
    compose = (
        "services:\n  e: {labels: [builder.variant=hello], volumes: ['./models:/m'], image: x}\n"
    )
    assert loaded(verify(compose, "--json")) == [("tiny", None)]
    own = compose.replace("image: x", "image: x, entrypoint: [sleep, '1']")
    assert "its command line names no model; variant hello has tiny" in problem(
        verify(own, "--json")
    )


def test_a_draft_is_verified_too_and_a_model_that_is_not_loaded_is_told(
    verify: Builder, place: Path, project: Path
) -> None:
    variant = project / "variants/hello.yaml"
    variant.write_text(variant.read_text().replace("models: [tiny]", "models: [tiny, draft]"))
    ran = verify(VLLM)
    assert ran.status == 0
    assert "engine: variant hello has draft, which it does not load\n" in ran.out
    both = VLLM.replace(
        "/tiny]",
        "/tiny, --speculative-config,"
        ' \'{"model":"/root/.cache/huggingface/Draft-1B","n":${N:-3}}\']',
    )
    assert loaded(verify(both, "--json")) == [("tiny", None), ("draft", None)]
    (place / "models/Draft-1B/extra.bin").write_bytes(b"")
    assert verify(both).status == 4


def test_where_a_model_is_not_resolved_none_is_said_not_to_be_loaded(verify: Builder) -> None:
    ran = verify(VLLM.replace("/root/.cache/huggingface/tiny", "/opt/m"))
    assert ran.status == 3
    assert "is in no mount" in ran.out
    assert "does not load" not in ran.out


def test_a_service_of_no_variant_may_load_whatever_is_pinned(verify: Builder) -> None:
    compose = (
        "services:\n  l:\n    volumes: ['./models:/models:ro']\n"
        "    command: -m /models/gguf/q4/a.gguf --host 0.0.0.0\n  web: {image: nginx}\n"
    )
    assert loaded(verify(compose, "--json")) == [("gguf", None)]
    single = compose.replace("./models:/models", "./models/gguf/q4/a.gguf:/models/gguf/q4/a.gguf")
    assert loaded(verify(single, "--json")) == [("gguf", None)]


def test_a_name_at_the_hub_is_the_snapshot_that_the_container_would_take(
    verify: Builder, place: Path
) -> None:
    held = place / "hub/models--Team--Tiny"
    lay(held / "snapshots" / COMMIT, FILES)
    compose = (
        "services:\n  v:\n    volumes: ['./hub:/hf/hub']\n    environment: {HF_HOME: /hf}\n"
        "    command: [--model, Team/Tiny]\n"
    )
    assert "at 'main', and no file in" in problem(verify(compose, "--json"))
    (held / "refs").mkdir()
    (held / "refs/main").write_text("f" * 40)
    assert f"is '{'f' * 40}' in the cache, the lock has {COMMIT}" in problem(
        verify(compose, "--json")
    )
    (held / "refs/main").write_text(COMMIT)
    assert problem(verify(compose, "--json")) == (
        "it is loaded at 'main', of which the container asks the hub, and takes what is newer"
    )
    offline = compose.replace("/hf}", "/hf, HF_HUB_OFFLINE: 'true'}")
    assert loaded(verify(offline, "--json")) == [("tiny", None)]
    assert "asks the hub" in problem(verify(offline.replace("true", "0"), "--json"))
    assert "hub/models--team--tiny/refs' says" in problem(
        verify(offline.replace("Team/Tiny", "team/tiny"), "--json")
    ), "a name in other letters is another directory"
    (held / "refs/main").unlink()
    pinned = compose.replace("Team/Tiny]", f"Team/Tiny, --revision, {COMMIT}]")
    assert verify(pinned).status == 0
    other = compose.replace("Team/Tiny]", f"Team/Tiny, --revision, {'e' * 40}]")
    assert f"--revision {'e' * 40}, the lock has {COMMIT}" in problem(verify(other, "--json"))
    for option in ("--revision", "--tokenizer-revision", "--code-revision"):
        more = pinned.replace(f"{COMMIT}]", f"{COMMIT}, {option}, {'e' * 40}]")
        assert f"--revision {'e' * 40}, the lock has {COMMIT}" in problem(verify(more, "--json"))
    over = pinned.replace("'./hub:/hf/hub'", f"'./hub:/hf/hub', './x:/hf/{held.name}/blobs'")
    assert verify(over).status == 0
    over = over.replace("/hf/models", "/hf/hub/models")
    assert "is mounted over a part of it" in problem(verify(over, "--json"))
    shutil.rmtree(held / "snapshots")
    assert f"snapshots/{COMMIT}' is not there" in problem(verify(pinned, "--json"))


def test_a_path_to_a_snapshot_is_held_to_the_commit(verify: Builder, place: Path) -> None:
    held = place / "models/hub/models--Team--Tiny/snapshots"
    lay(held / COMMIT, FILES)
    inside = f"/root/.cache/huggingface/hub/models--Team--Tiny/snapshots/{COMMIT}"
    compose = VLLM.replace("/root/.cache/huggingface/tiny", inside)
    assert loaded(verify(compose, "--json")) == [("tiny", None)]
    other = str(ObjectId("e" * 40))
    (held / COMMIT).rename(held / other)
    assert f"it is commit {other}, the lock has {COMMIT}" in problem(
        verify(compose.replace(COMMIT, other), "--json")
    )


@pytest.mark.parametrize(
    ("change", "words"),
    [
        pytest.param(
            ("${MODEL_DIR:-./models}:", "models:"), "whose place only the engine knows", id="volume"
        ),
        pytest.param(
            ("${MODEL_DIR:-./models}:/root/.cache/huggingface:ro", "/root/.cache/huggingface"),
            "a volume without a name",
            id="anonymous volume",
        ),
        pytest.param(("${MODEL_DIR:-./models}", "${MODEL_DIR}"), "MODEL_DIR is not", id="unset"),
        pytest.param(("face/tiny]", "face/../x]"), "has '..' in it", id="a way up"),
        pytest.param(("/root/.cache/huggingface/tiny", "/opt/m"), "is in no mount", id="inside"),
        pytest.param(("face/tiny]", "face/other]"), "is not there", id="missing"),
        pytest.param(("[--model, ", "[--model, './tiny', --x, "), "neither an abs", id="relative"),
        pytest.param(
            ("]\n    command", ', "./x:/root/.cache/huggingface/tiny/config.json"]\n    command'),
            "is mounted over a part of it",
            id="mounted over",
        ),
        pytest.param(
            ("]\n    command", ', "./x:${NO}/root/.cache/huggingface/tiny"]\n    command'),
            "is not there: Docker would make it, empty",
            id="mounted over, by a variable that is not set",
        ),
        pytest.param(
            ("]\n    command", ', "./x://root/.cache//huggingface/tiny/"]\n    command'),
            "is not there: Docker would make it, empty",
            id="mounted over, with more slashes",
        ),
        pytest.param(
            ("image: x\n", "tmpfs: /root/.cache/huggingface/tiny:size=1g\n"),
            "is no directory of this machine",
            id="memory mounted over",
        ),
        pytest.param(
            ("image: x\n", "tmpfs: [/root/.cache/huggingface/tiny/sub]\n"),
            "is mounted over a part of it",
            id="memory mounted over a part",
        ),
        pytest.param(
            (
                "image: x\n",
                "configs: [{source: c, target: /root/.cache/huggingface/tiny/config.json}]\n",
            ),
            "is mounted over a part of it",
            id="a config mounted over",
        ),
        pytest.param(
            (
                "image: x\n",
                "secrets: [a, {source: c, target: /root/.cache/huggingface/tiny/config.json}]\n",
            ),
            "is mounted over a part of it",
            id="a secret mounted over",
        ),
        pytest.param(("${MODEL_DIR:-./models}", "/" + "a" * 300), "is not there", id="too long"),
        pytest.param(("${MODEL_DIR:-./models}", "/\\0"), "is not there", id="no path"),
        pytest.param(("image: x\n", 'env_file: ["\\0"]\n'), "is not there", id="no file"),
        pytest.param(
            ("/root/.cache/huggingface/tiny]", "Team/Tiny, --revision, ../../x]"),
            "is none of the hub's",
            id="no revision",
        ),
        pytest.param(("image: x\n", "extends: {service: e, file: f}\n"), "'extends'", id="extends"),
    ],
)  # fmt: skip
def test_what_cannot_be_followed_is_told_and_fails(
    verify: Builder, change: tuple[str, str], words: str
) -> None:
    assert change[0] in VLLM
    assert words in problem(verify(VLLM.replace(*change), "--json"))


def test_a_link_must_lead_to_the_same_place_in_the_container(verify: Builder, place: Path) -> None:
    (place / "models/tiny").rename(place / "models/real")
    (place / "models/tiny").symlink_to("real")
    assert verify(VLLM).status == 0
    (place / "models/tiny").unlink()
    (place / "models/tiny").symlink_to(place / "models/real")
    assert "which is another place where" in problem(verify(VLLM, "--json"))
    (place / "models/tiny").unlink()
    (place / "models/real").rename(place / "outside")
    (place / "models/tiny").symlink_to("../outside")
    assert "a link out of the directory" in problem(verify(VLLM, "--json"))
    (place / "models/tiny").unlink()
    shutil.copytree(place / "outside", place / "models/real")
    # Here it leads out and back in; in the container there is no 'models'.
    (place / "models/tiny").symlink_to("../models/real")
    assert "a link out of the directory" in problem(verify(VLLM, "--json"))
    (place / "models/tiny").unlink()
    (place / "models/tiny").symlink_to("tiny")
    assert verify(VLLM).status == 3


def test_a_model_that_no_pin_is_of_is_told_with_what_to_do(
    verify: Builder, place: Path, project: Path
) -> None:
    text = VLLM.replace("    labels: [builder.variant=hello]\n", "").replace("/tiny]", "/mine]")
    lay(place / "models/mine", FILES)
    ran = verify(text)
    assert ran.status == 3
    assert "engine: --model /root/.cache/huggingface/mine: no pin that it could be has" in ran.out
    assert "  hint: builder add model OWNER/NAME" in ran.out
    assert "1 of 1 models that services load cannot be verified" in ran.err
    # of a variant with one model it is that one, and held to it
    assert loaded(verify(VLLM.replace("/tiny]", "/mine]"), "--json")) == [("tiny", None)]
    pins = {name: pin_of(FILES, name=name, repository=f"{name}/mine") for name in ("a", "b")}
    (project / "variants/hello.yaml").write_text(
        (project / "variants/hello.yaml").read_text().replace("[tiny]", "[a, b]")
    )
    (project / "lockfiles/models.yaml").write_bytes(write_pins(ModelPin, pins))
    assert "is that of several pins: a, b" in problem(verify(text, "--json"))


def test_where_no_model_is_pinned_the_hint_is_to_pin_one(
    verify: Builder, place: Path, project: Path
) -> None:
    text = VLLM.replace("    labels: [builder.variant=hello]\n", "").replace("/tiny]", "/mine]")
    assert "  hint: builder models fetch VARIANT --dir " in verify(text).out
    variant = project / "variants/hello.yaml"
    variant.write_text(variant.read_text().replace("models: [tiny]\n", ""))
    (project / "lockfiles/models.yaml").unlink()
    ran = verify(text)
    assert ran.status == 3
    assert "no model is pinned: builder add model OWNER/NAME" in ran.out
    assert "models fetch" not in ran.out


def test_services_are_chosen_by_name(verify: Builder) -> None:
    two = VLLM + "  other: {image: x, command: [--model, /nowhere]}\n"
    assert verify(two).status == 3
    ran = verify(two, "--service", "engine", "--json")
    assert (ran.status, loaded(ran)) == (0, [("tiny", None)])
    ran = verify(two, "--service", "engin")
    assert ran.status == 3
    assert "no service 'engin'" in ran.err
    assert "engine" in ran.err.partition("hint")[2]


@pytest.mark.parametrize(
    "line",
    [
        ("hello",),
        (),
        ("--dir", "."),
        ("hello", "--compose", "c.yml"),
        ("--dir", ".", "--compose", "c.yml"),
        ("hello", "--dir", ".", "--service", "s"),
    ],
)
def test_a_variant_with_its_directory_or_a_compose_file(
    builder: Builder, line: tuple[str, ...]
) -> None:
    ran = builder("models", "verify", *line)
    assert (ran.status, ran.out) == (2, "")
    assert "models verify takes a variant and --dir, or --compose" in ran.err


def test_a_file_without_models_proves_nothing(verify: Builder, builder: Builder) -> None:
    ran = verify("services:\n  web: {image: nginx}\n")
    assert (ran.status, ran.out) == (3, "")
    assert "no service loads a model" in ran.err
    assert builder("models", "verify", "--compose", "none.yml").status == 3


def test_names_of_others_do_not_steer_the_terminal(verify: Builder) -> None:
    ran = verify('services:\n  "a\\e[2Jb": {command: [--model, "/x\\e[1m"]}\n')
    assert ran.status == 3
    assert "\x1b" not in ran.out + ran.err


def test_a_variable_that_is_not_set_is_shown_as_it_is_written(verify: Builder) -> None:
    ran = verify(VLLM.replace("/root/.cache/huggingface/tiny]", '"/m/${NO}"]'))
    assert "engine: --model /m/${NO}: NO is not set, and has no default\n" in ran.out


def test_what_says_a_branchs_commit_is_not_waited_for(verify: Builder, place: Path) -> None:
    refs = place / "models/hub/models--Team--Tiny/refs"
    refs.mkdir(parents=True)
    by_name = VLLM.replace("/root/.cache/huggingface/tiny]", "Team/Tiny]")
    os.mkfifo(refs / "main")
    assert "refs/main: expected a file, got something else" in problem(verify(by_name, "--json"))
    (refs / "main").unlink()
    (refs / "main").symlink_to("/dev/zero")
    assert "refs/main: expected a file, got something else" in problem(verify(by_name, "--json"))
    (refs / "main").unlink()
    (refs / "main").write_bytes(b" " * 5000)
    assert "refs/main: more than 4096 bytes" in problem(verify(by_name, "--json"))


def test_services_cost_one_look_each(verify: Builder) -> None:
    one = "{command: [--model, /m/tiny], volumes: ['./models:/m']}"
    many = "".join(f"  s{number}: {one}\n" for number in range(3000))
    with within(9):  # was 13
        assert verify(f"services:\n{many}").status == 0


def test_one_model_of_two_services_is_hashed_once(verify: Builder, store: Path) -> None:
    two = VLLM + VLLM.partition("services:\n")[2].replace("engine", "second")
    ran = verify(two, "--json", "--full")
    assert ran.status == 0
    assert len(ran.json["models"]) == 1
    assert len(ran.json["loaded"]) == 2
    assert os.listdir(store)


def test_several_files_are_one_project(builder: Builder, place: Path) -> None:
    (place / "base.yml").write_text(VLLM)
    (place / "other").mkdir()
    over = place / "other/over.yml"
    command = "[--model, /models/Draft-1B]"
    over.write_text(
        f"services:\n  engine: {{command: {command}, volumes: ['./models:/models'], labels: []}}\n"
        "  second: {extends: third}\n  third: {command: [--model, /models/gguf/q4/a.gguf],"
        " volumes: !override ['./models:/models']}\n"
    )
    given = ("models", "verify", "--compose", place / "base.yml", "--compose", over)
    ran = builder(*given, "--service", "third", "--service", "second", "--json")
    assert (ran.status, loaded(ran)) == (0, [("gguf", None), ("gguf", None)])
    assert ran.json["compose"] == [str(place / "base.yml"), str(over)]
    assert {item["file"] for item in ran.json["loaded"]} == {str(over)}
    ran = builder(*given)
    assert ran.status == 4  # the draft is not the one model of the variant that base.yml names
    assert f"engine   --model  tiny   {place}/models/Draft-1B\n" in ran.out
    over.write_text(over.read_text().replace("labels: []", "labels: [builder.variant=none]"))
    ran = builder(*given, "--json")
    assert (ran.status, [model for model, _ in loaded(ran)]) == (0, ["draft", "gguf", "gguf"])
    over.write_text(over.read_text().replace("gguf/q4", "none"))
    ran = builder(*given)
    assert ran.status == 3
    assert f"{place}/base.yml and {over}: 2 of 3 models that services load" in ran.err


def test_what_a_file_includes_is_verified_in_its_own_directory(
    builder: Builder, place: Path
) -> None:
    (place / "top.yml").write_text("include: [below/engine.yml]\n")
    (place / "below").mkdir()
    (place / "below/engine.yml").write_text(VLLM)
    (place / "below/.env").write_text("MODEL_DIR=../models\n")
    ran = builder("models", "verify", "--compose", place / "top.yml", "--json")
    assert (ran.status, loaded(ran)) == (0, [("tiny", None)])
    assert ran.json["loaded"][0]["directory"] == f"{place}/models/tiny"
    (place / "top.yml").write_text("include: [none.yml]\n")
    ran = builder("models", "verify", "--compose", place / "top.yml")
    assert (ran.status, ran.out) == (3, "")
    assert f"top.yml:1: include: '{place}/none.yml' is not there" in ran.err
    (place / "top.yml").write_text("volumes: {}\n")
    ran = builder("models", "verify", "--compose", place / "top.yml")
    assert (ran.status, "top.yml: no services" in ran.err) == (3, True)


def test_a_file_that_docker_compose_reads_too_is_told(
    verify: Builder, builder: Builder, place: Path
) -> None:
    (place / "compose.override.yml").write_text("services: {engine: {command: [--model, /x]}}\n")
    ran = verify(VLLM)
    assert ran.status == 0
    assert "docker compose reads compose.override.yml, too, where no file is named" in ran.err
    (place / "compose.yml").rename(place / "mine.yml")
    assert builder("models", "verify", "--compose", place / "mine.yml").err == ""
