"""Pins written into the lockfiles of a project: all or none, and never over what others wrote."""

import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from builder.digest import Digest
from builder.errors import EnvironmentFault, ProjectError
from builder.lock import codec
from builder.lock.edit import put
from builder.lock.model import Pin, PullPin, WheelPin
from builder.project import Project
from tests.lock.documents import DOCUMENTS, FILES

A = Digest("a" * 64)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with all lockfiles and nothing else."""
    (tmp_path / "variants").mkdir()
    (tmp_path / "lockfiles/images").mkdir(parents=True)
    for kind, file in FILES.items():
        if file.startswith("lockfiles/"):
            (tmp_path / file).write_text(DOCUMENTS[kind])
    return tmp_path


def wheel(name: str) -> WheelPin:
    return WheelPin(
        name=name, project=name, version="1", filename=f"{name}-1-py3-none-any.whl", digest=A
    )


def pull(root: Path) -> PullPin:
    return replace(next(iter(Project(root).pulls.values())), diff=A)


def seen(root: Path, *files: str) -> dict[str, bytes | None]:
    project = Project(root)
    return {file: project.lockfile(file) for file in files}


def test_pins_of_several_kinds_are_written_and_the_changed_files_named(root: Path) -> None:
    (root / codec.GENESIS).unlink()
    before = seen(root, codec.WHEELS, codec.PULLS, codec.SOURCES)
    changed = pull(root)
    pins: list[Pin] = [wheel("a"), wheel("b"), changed, next(iter(Project(root).sources.values()))]
    written = Project(root).put_pins(pins, seen=before)
    assert written == (codec.WHEELS, codec.PULLS)
    after = Project(root)
    assert {"a", "b"} < {*after.wheels}
    assert after.pulls[changed.name] == changed
    assert (root / codec.SOURCES).read_bytes() == before[codec.SOURCES]


def test_a_lockfile_that_is_not_there_is_made(root: Path) -> None:
    (root / codec.WHEELS).unlink()
    project = Project(root)
    assert project.put_pins([wheel("a")], seen={codec.WHEELS: None}) == (codec.WHEELS,)
    assert Project(root).wheels == {"a": wheel("a")}


@pytest.mark.parametrize("by", ["changed", "made", "removed"])
def test_what_others_wrote_meanwhile_is_not_written_over(root: Path, by: str) -> None:
    if by == "made":
        (root / codec.PULLS).unlink()
    known = seen(root, codec.WHEELS, codec.PULLS)
    pins: list[Pin] = [wheel("a")]
    pins += [pull(root)] if by != "made" else []
    if by == "removed":
        (root / codec.PULLS).unlink()
    else:
        (root / codec.PULLS).write_text(DOCUMENTS["pulls"] + "# by hand\n")
    now = {file: (root / file).read_bytes() for file in codec.FILES if (root / file).exists()}
    with pytest.raises(ProjectError) as caught:
        Project(root).put_pins(pins, seen=known)
    assert caught.value.exit_status == 3
    assert caught.value.message == (
        "lockfiles/pulls.yaml: changed since it was read, and nothing was written"
    )
    assert caught.value.hint == "look at what changed there, then run it again"
    assert {file: (root / file).read_bytes() for file in now} == now


def test_a_trial_does_not_hide_what_is_on_disk(root: Path) -> None:
    """A project that is looked at as it would be is written as it is."""
    trial = Project(root, replaced={codec.WHEELS: put(None, wheel("tried"))})
    with pytest.raises(ProjectError, match="changed since it was read"):
        trial.put_pins([wheel("a")], seen={codec.WHEELS: trial.lockfile(codec.WHEELS)})
    assert "tried" not in (root / codec.WHEELS).read_text()


def test_a_pin_of_a_lockfile_that_nobody_looked_at_is_a_bug(root: Path) -> None:
    with pytest.raises(KeyError):
        Project(root).put_pins([wheel("a"), pull(root)], seen=seen(root, codec.WHEELS))
    assert "a" not in Project(root).wheels


def test_a_corrupt_lockfile_is_an_error_and_not_one_without_pins(root: Path) -> None:
    (root / codec.WHEELS).write_bytes(b"version: 1\nwheels: [")
    with pytest.raises(ProjectError, match=r"lockfiles/wheels\.yaml:3:1: not YAML"):
        Project(root).put_pins([wheel("a")], seen=seen(root, codec.WHEELS))
    assert (root / codec.WHEELS).read_bytes() == b"version: 1\nwheels: ["


def test_no_file_is_written_where_another_cannot_be(root: Path) -> None:
    (root / "lockfiles/.wheels.yaml.tmp/in the way").mkdir(parents=True)
    before = seen(root, codec.PULLS, codec.WHEELS)
    with pytest.raises(EnvironmentFault, match=r"lockfiles/wheels\.yaml: cannot be written"):
        Project(root).put_pins([pull(root), wheel("a")], seen=before)
    assert seen(root, codec.PULLS, codec.WHEELS) == before
    assert not (root / "lockfiles/.pulls.yaml.tmp").exists()


def test_a_link_stays_a_link(root: Path) -> None:
    (root / codec.WHEELS).rename(root / "elsewhere.yaml")
    (root / codec.WHEELS).symlink_to("../elsewhere.yaml")
    Project(root).put_pins([wheel("a")], seen=seen(root, codec.WHEELS))
    assert (root / codec.WHEELS).is_symlink()
    assert b"a-1-py3-none-any.whl" in (root / "elsewhere.yaml").read_bytes()


def test_a_read_only_directory_is_said_to_be(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> int:
        raise PermissionError(13, "Permission denied")  # chmod would not keep root out

    known = seen(root, codec.WHEELS)
    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(EnvironmentFault) as caught:
        Project(root).put_pins([wheel("a")], seen=known)
    assert caught.value.message == "lockfiles/wheels.yaml: cannot be written: Permission denied"


PUT = """
import sys
from pathlib import Path
from builder.digest import Digest
from builder.errors import ProjectError
from builder.lock import codec
from builder.lock.model import WheelPin
from builder.project import Project

refused = 0
for name in sys.argv[2:]:
    file = f"{name}-1-py3-none-any.whl"
    pin = WheelPin(name=name, project=name, version="1", filename=file, digest=Digest("a" * 64))
    while True:
        project = Project(Path(sys.argv[1]))
        try:
            project.put_pins([pin], seen={codec.WHEELS: project.lockfile(codec.WHEELS)})
            break
        except ProjectError as error:
            assert "changed since it was read" in error.message, error
            refused += 1
"""


def python(root: Path, program: str, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", program, str(root), *arguments],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
    )


def test_twenty_writers_at_once_lose_nothing(root: Path) -> None:
    before = set(Project(root).wheels)
    names = [[f"p{number}"] for number in range(20)]
    processes = [python(root, PUT, *some) for some in names]
    for process in processes:
        process.communicate()
    assert [process.returncode for process in processes] == [0] * 20
    assert set(Project(root).wheels) == before.union(*names)


KILLED = """
import os, signal
from pathlib import Path

Path.replace = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_kill_between_write_and_rename_leaves_the_old_file(root: Path) -> None:
    before = (root / codec.WHEELS).read_bytes()
    process = python(root, KILLED + PUT, "a")
    process.communicate()
    assert process.returncode == -signal.SIGKILL
    assert (root / codec.WHEELS).read_bytes() == before
    assert Project(root).put_pins([wheel("b")], seen=seen(root, codec.WHEELS)) == (codec.WHEELS,)
    assert not list(root.glob("lockfiles/.*"))


def test_a_link_that_leads_nowhere_is_no_lockfile_that_is_not_there(root: Path) -> None:
    (root / codec.WHEELS).unlink(missing_ok=True)
    (root / codec.WHEELS).symlink_to("nowhere.yaml")
    with pytest.raises(ProjectError) as caught:
        _ = Project(root).wheels
    assert caught.value.message == f"{codec.WHEELS}: a link that leads nowhere"
