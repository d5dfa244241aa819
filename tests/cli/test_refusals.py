"""What the command line refuses: words, statuses, streams, and nothing changed by it."""

import json
import logging
from pathlib import Path

import pytest

from builder.cli import show
from builder.cli.log import configure_logging
from builder.cli.settings import Settings
from builder.errors import PatchError
from builder.verdict import Verdict
from tests.cli.conftest import DEMO, Builder, tree

REFUSED = [
    (("biuld", "hello"), 2, "no command 'biuld' in builder", "did you mean 'build'?"),
    (("xyzzy",), 2, "no command 'xyzzy' in builder", "builder --help lists them"),
    (("store", "vrify"), 2, "no command 'vrify' in builder store", "did you mean 'verify'?"),
    (("store", "x"), 2, "no command 'x' in builder store", "builder store --help lists them"),
    (("--jsn", "plan"), 2, "no such option '--jsn'", "did you mean '--json'?"),
    (("plan", "hello", "-x"), 2, "no such option '-x'", "builder plan --help says what it takes"),
    (("plan",), 2, "missing argument 'VARIANT'", "builder plan --help says what it takes"),
    (("build",), 2, "missing argument 'VARIANT...'", "builder build --help says what it takes"),
    (
        ("plan", "hello", "more"),
        2,
        "got unexpected extra argument (more)",
        "builder plan --help says what it takes",
    ),
    (
        ("graph", "hello", "--format", "png"),
        2,
        "invalid value for '--format': 'png' is not one of 'dot', 'mermaid', 'svg'",
        "builder graph --help says what it takes",
    ),
    (
        ("-C", "nowhere", "variants"),
        2,
        "invalid value for '-C': Directory 'nowhere' does not exist",
        "builder --help says what it takes",
    ),
    (
        ("build", "hello", "hello", "--push", "a"),
        2,
        "--push takes one variant",
        "push them one after the other",
    ),
    (
        ("push", "hello", "UPPER"),
        2,
        "image reference: 'UPPER': 'UPPER' is not a repository",
        "repositories are lower case, with single separators",
    ),
    (
        ("load", "hello", "--name", "UPPER"),
        2,
        "--name: 'UPPER': 'UPPER' is not a repository",
        "repositories are lower case, with single separators",
    ),
    (
        ("load", "hello", "--name", f"a@sha256:{64 * '0'}"),
        2,
        f"--name: 'a@sha256:{64 * '0'}': a name that is given has no digest",
        "leave the digest out",
    ),
    (("explain", "sha256:12", "hello"), 2, "digest: sha256 takes 64 hex digits, got 2: '12'", None),
    (("why", "hello", "../x"), 3, "variant 'hello' was not built for linux/amd64 yet", None),
    (("plan", "helo"), 3, "no variant 'helo' in variants", "did you mean 'hello'?"),
    (("build", "xyzzy"), 3, "no variant 'xyzzy' in variants", "builder variants lists them"),
    (("accept", "helo"), 3, "no variant 'helo' in variants", "did you mean 'hello'?"),
    (("check", "helo"), 3, "no variant 'helo' in variants", "did you mean 'hello'?"),
    *(
        (
            ("push", "hello", f"{scheme}:layout/a"),
            2,
            f"image reference: '{scheme}:layout/a': '{scheme}:layout' is not a registry",
            None,
        )
        for scheme in ("oci", "docker")
    ),
    (
        ("push", "hello", "oci:/layout"),
        2,
        "image reference: 'oci:/layout': 'oci:' is not a registry",
        "REGISTRY/REPOSITORY:TAG is meant; on disk, builder build V --out DIR makes a layout",
    ),
    (("push", "helo", "localhost:1/a"), 3, "no variant 'helo' in variants", None),
    (("load", "helo"), 3, "no variant 'helo' in variants", None),
    (("graph", "helo"), 3, "no variant 'helo' in variants", None),
    (
        ("-C", "overlays", "variants"),
        3,
        "overlays: no project here, there is no directory 'variants'",
        "-C . is a project: did you mean that one?",
    ),
    (("build", "hello", "--platform", "vax"), 2, None, None),
]
IDS = [" ".join(arguments) for arguments, *_ in REFUSED]


@pytest.mark.parametrize(("arguments", "status", "message", "hint"), REFUSED, ids=IDS)
def test_a_refusal_is_on_stderr_with_its_status_and_changes_nothing(
    arguments: tuple[str, ...],
    status: int,
    message: str | None,
    hint: str | None,
    builder: Builder,
    project: Path,
    store: Path,
) -> None:
    before = tree(project)
    ran = builder(*arguments)
    assert (ran.status, ran.out) == (status, "")
    first, *rest = ran.err.splitlines()
    assert first.startswith("builder: error: ")
    assert message is None or first == f"builder: error: {message}"
    assert hint is None or rest == [f"  hint: {hint}"]
    assert not any(line.endswith(".") for line in ran.err.splitlines())
    assert tree(project) == before
    assert not store.exists()


@pytest.mark.parametrize(("arguments", "status", "message", "hint"), REFUSED, ids=IDS)
@pytest.mark.parametrize("where", ["before", "after"])
def test_with_json_it_is_the_one_document_too(
    arguments: tuple[str, ...],
    status: int,
    message: str | None,
    hint: str | None,
    where: str,
    builder: Builder,
) -> None:
    plain = builder(*arguments)
    ran = builder(*(("--json", *arguments) if where == "before" else (*arguments, "--json")))
    assert (ran.status, ran.err) == (status, plain.err)
    error = ran.json["error"]
    assert list(ran.json) == ["error"]
    assert list(error) == ["message", "hint", "exit_status"]
    assert (error["exit_status"], error["message"]) == (status, message or error["message"])
    assert hint is None or error["hint"] == hint


def test_a_step_that_does_not_apply_says_which_file_and_how(
    builder: Builder, project: Path, store: Path
) -> None:
    overlay = project / "overlays/greeting/overlay.yaml"
    overlay.write_text(overlay.read_text().replace("anchor: Goodbye", "anchor: Farewell"))
    ran = builder("--json", "build", "hello")
    assert ran.status == 6
    error = ran.json["error"]
    keys = ["message", "hint", "exit_status", "verdict", "path", "findings", "difference"]
    assert list(error) == keys
    assert (error["verdict"], error["path"], error["difference"]) == (
        "drift-anchor",
        "usr/local/lib/python3.12/dist-packages/hello/greeting.py",
        None,
    )
    assert ran.err.startswith(f"builder: error: {error['message']}\n")
    index = json.loads((store / "index.json").read_text())
    assert index["manifests"] == [], "no image is referenced"


def test_one_file_that_does_not_apply_has_its_verdict_and_what_would_be_lost(
    builder: Builder, project: Path
) -> None:
    overlay = project / "overlays/greeting"
    (overlay / "files/limits.py").write_text("MINE = 1\n")
    (overlay / "overlay.yaml").write_text(
        "version: 1\n"
        "files:\n"
        "  - path: hello/limits.py\n"
        "    file: files/limits.py\n"
        f"    replaces: sha256:{'0' * 64}\n"
    )
    ran = builder("--json", "build", "hello")
    error = ran.json["error"]
    assert error["difference"].splitlines()[:2] == [
        "--- image/usr/local/lib/python3.12/dist-packages/hello/limits.py",
        "+++ step",
    ]
    assert error["difference"].endswith("\n+MINE = 1")
    assert ran.err == (
        f"builder: error: {error['message']}\n"
        "  verdict: refused\n"
        f"\n{error['difference']}\n\n"
        f"  hint: {error['hint']}\n"
    )


def test_a_bug_keeps_its_traceback_and_exits_1(command: Builder, project: Path) -> None:
    """There is no bug to show, so one is put where Python looks first."""
    broken = project / "broken/builder"
    broken.mkdir(parents=True)
    (broken / "__init__.py").write_text(
        "import pathlib, sys\n"
        "__path__ = [str(pathlib.Path(p) / 'builder') for p in sys.path[1:]"
        " if (pathlib.Path(p) / 'builder/cli').is_dir()]\n"
        "exec((pathlib.Path(__path__[0]) / '__init__.py').read_text())\n"
        "import builder.explain\n"
        "builder.explain.differences = lambda *a: 1 // 0\n"
    )
    assert command("build", "hello").status == 0
    ran = command("explain", "hello", "hello", PYTHONPATH=f"{broken.parent}:{DEMO}")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err.startswith("Traceback (most recent call last):\n")
    assert ran.err.endswith("ZeroDivisionError: integer division or modulo by zero\n")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ("bump",),
            "missing argument 'KIND'. Choose from: vllm, genesis, pull, source, wheel, model",
        ),
        (("add", "pull", "abc"), "invalid value for 'NUMBER': 'abc' is not a number"),
    ],
)
def test_what_the_parser_refuses_is_one_line(
    builder: Builder, arguments: tuple[str, ...], message: str
) -> None:
    ran = builder(*arguments)
    assert ran.err.splitlines()[0] == f"builder: error: {message}"


HOSTILE = "\x1b]0;mine\x07\x1b[2J\r\u202etxt"
SPELT = r"\x1b]0;mine\x07\x1b[2J\r\u202etxt"


def test_what_others_wrote_does_not_steer_the_terminal(
    builder: Builder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing of a refusal and of what is logged: line ends and tabs stay."""
    from builder.cli import variants

    def refuse(*_: object, **__: object) -> None:
        configure_logging(logging.WARNING)
        logging.getLogger("builder.x").warning("%s\nlogged", HOSTILE)
        raise PatchError(
            HOSTILE,
            hint=f"hint {HOSTILE}",
            verdict=Verdict.REFUSED,
            findings=(f"finding {HOSTILE}",),
            difference=f"-{HOSTILE}\n+\tx\n",
        )

    monkeypatch.setattr(variants.command, "callback", refuse)
    ran = builder("variants")
    assert ran.status == 6
    assert ran.err == (
        f"builder: {SPELT}\nlogged\n"
        f"builder: error: {SPELT}\n  finding {SPELT}\n"
        f"\n-{SPELT}\n+\tx\n\n\n  hint: hint {SPELT}\n"
    )


def test_results_do_not_steer_the_terminal_either(capsys: pytest.CaptureFixture[str]) -> None:
    show.result(Settings(directory=Path()), {}, f"one\n{HOSTILE}")
    assert capsys.readouterr().out == f"one\n{SPELT}\n"
