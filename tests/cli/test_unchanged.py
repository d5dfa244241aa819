"""The whole answer: a build that was asked before is answered at once, and only while it is true.

``recall`` gives the answer or ``None``; every test compares it with what a real run says.
"""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from builder import notes
from builder.adapters.store import FileStore
from builder.cli.unchanged import note, recall
from builder.oci import OCI_INDEX, Descriptor
from tests.cli.conftest import DEMO, Builder

Change = Callable[[Path, FileStore], object]
ARGUMENTS = ("hello",)


@pytest.fixture
def built(builder: Builder) -> Builder:
    """The command line after a first build, which every layer had to be made for."""
    assert "built" in builder("build", "hello").out
    return builder


def remembered(environment: dict[str, str], *arguments: str) -> str | None:
    return recall(arguments or ARGUMENTS, environment)


@pytest.mark.parametrize("arguments", [("hello",), ("--json", "hello"), ("hello", "--json")])
def test_the_second_answer_is_the_first_one_with_all_layers_cached(
    builder: Builder, environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    assert remembered(environment, *arguments) is None
    first = builder("build", *arguments)
    found = remembered(environment, *arguments)
    assert found == builder("build", *arguments).out
    assert found != first.out
    assert "cached" in found


LOADED = """
import sys
from builder.cli import main
try:
    main(["build", "hello"])
finally:
    heavy = {"click", "yaml", "json", "builder.plan", "builder.cli.app"}
    print(sorted(heavy & set(sys.modules)), file=sys.stderr)
"""


def test_nothing_is_loaded_for_it(built: Builder, environment: dict[str, str]) -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOADED],
        env=environment | {"PYTHONPATH": str(DEMO)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "[]\n")
    assert done.stdout == built("build", "hello").out


def _image(store: FileStore) -> Path:
    return Path(store.paths.blob(store.references()["hello"].digest))


def _layer(store: FileStore) -> Path:
    blobs = Path(store.paths.blobs).iterdir()
    return next(path for path in blobs if path.read_bytes()[:2] == b"\x1f\x8b")


def _accept(project: Path) -> None:
    (project / "lockfiles/images").mkdir()
    (project / "lockfiles/images/hello.yaml").write_text("version: 1\n")


def _truncate(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-1])


def _append(path: Path, text: str) -> None:
    path.write_text(path.read_text() + text)


CHANGES = [
    pytest.param(lambda p, s: _append(p / "variants/hello.yaml", "# x\n"), id="the recipe"),
    pytest.param(lambda p, s: _append(p / "lockfiles/wheels.yaml", "# x\n"), id="a lock"),
    pytest.param(
        lambda p, s: _append(p / "overlays/greeting/overlay.yaml", "# x\n"), id="an overlay"
    ),
    pytest.param(lambda p, s: (p / "overlays/greeting/new").touch(), id="a file of an overlay"),
    pytest.param(lambda p, s: (p / "overlays/new").mkdir(), id="another overlay"),
    pytest.param(
        lambda p, s: _append(p / "builder.yaml", "\nplatform: linux/arm64\n"), id="the settings"
    ),
    pytest.param(lambda p, s: (p / "variants/hello.yaml").unlink(), id="the recipe is gone"),
    pytest.param(lambda p, s: _accept(p), id="an accepted result"),
    pytest.param(lambda p, s: _image(s).unlink(), id="the manifest is gone"),
    pytest.param(lambda p, s: _layer(s).unlink(), id="a layer is gone"),
    pytest.param(lambda p, s: _truncate(_layer(s)), id="a layer is cut off"),
    pytest.param(lambda p, s: s.drop_reference("hello"), id="the name is gone"),
    pytest.param(lambda p, s: s.set_reference("hello", _other(s)), id="the name is another's"),
    pytest.param(lambda p, s: shutil.rmtree(s.paths.notes), id="the memos are gone"),
    pytest.param(lambda p, s: _half(s), id="half of the memo"),
]


def _other(store: FileStore) -> Descriptor:
    data = f'{{"schemaVersion":2,"mediaType":"{OCI_INDEX}","manifests":[]}}'.encode()
    return Descriptor(media_type=OCI_INDEX, digest=store.put(data), size=len(data))


def _half(store: FileStore) -> None:
    for key in store.notes(notes.ANSWER):
        path = Path(store.paths.note(notes.ANSWER, key))
        path.write_bytes(path.read_bytes()[:40])


@pytest.mark.parametrize("change", CHANGES)
def test_whatever_changes_it_is_not_answered_from_memory(
    built: Builder, project: Path, environment: dict[str, str], store: Path, change: Change
) -> None:
    assert remembered(environment) is not None
    change(project, FileStore(store))
    assert remembered(environment) is None


@pytest.mark.parametrize(("until", "holds"), [("2000-01-01", False), ("9999-12-31", True)])
def test_an_answer_with_a_last_day_is_none_after_it(
    built: Builder, environment: dict[str, str], store: Path, until: str, holds: bool
) -> None:
    kept = FileStore(store)
    (key,) = kept.notes(notes.ANSWER)
    answer = kept.note(notes.ANSWER, key)
    line = note({}, images=(), records=(), blobs=(), output="", until=until)
    assert answer is not None
    assert line == f"until {until} -\n\n".encode()
    kept.take_note(notes.ANSWER, key, line[:-1] + answer)
    assert (remembered(environment) is not None) is holds


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("--json",),
        ("hello", "--check"),
        ("hello", "--strict"),
        ("--offline", "hello"),
        ("hello", "hello"),
        ("other",),
    ],
)
def test_another_command_line_is_another_question(
    built: Builder, environment: dict[str, str], arguments: tuple[str, ...]
) -> None:
    assert recall(arguments, environment) is None


def test_another_place_or_store_is_another_question(
    built: Builder,
    project: Path,
    environment: dict[str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shutil.copytree(project, tmp_path / "copy")
    assert recall(ARGUMENTS, environment | {"BUILDER_STORE": str(tmp_path / "no store")}) is None
    monkeypatch.chdir(tmp_path / "copy")
    assert recall(ARGUMENTS, environment) is None


def test_a_build_with_options_leaves_no_answer(
    builder: Builder, environment: dict[str, str]
) -> None:
    for options in (("--check",), ("--strict",), ("--platform", "linux/arm64"), ("-v",)):
        assert builder("build", "hello", *options).status == 0
        assert remembered(environment) is None


def test_a_build_that_fails_leaves_no_answer(
    builder: Builder, project: Path, environment: dict[str, str]
) -> None:
    (project / "overlays/greeting/overlay.yaml").write_text("version: 1\n")
    assert builder("build", "hello").status == 3
    assert remembered(environment) is None
