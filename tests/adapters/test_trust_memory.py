"""What a user accepted: kept outside of the project, only ever replaced by something newer."""

import json
import os
import stat
import threading
from pathlib import Path

import pytest

from builder.adapters.trust import FileMemory, state_directory
from builder.errors import EnvironmentFault, IntegrityError
from tests.trust.keys import policy_text

ONE, TWO = policy_text().encode(), policy_text(version=2).encode()


@pytest.fixture
def memory(tmp_path: Path) -> FileMemory:
    (tmp_path / "project").mkdir()
    return FileMemory(tmp_path / "state", tmp_path / "project")


def test_nothing_was_accepted_at_first_and_nothing_is_made(memory: FileMemory) -> None:
    assert memory.recall() is None
    assert not memory.path.parent.exists()


def test_what_is_accepted_is_kept_byte_for_byte(memory: FileMemory, tmp_path: Path) -> None:
    raw = ONE + "# naïve ☃\r\n".encode()
    memory.remember(raw)
    again = FileMemory(tmp_path / "state", tmp_path / "project")
    assert again.recall() == raw
    assert stat.S_IMODE(memory.path.stat().st_mode) == 0o600
    assert json.loads(memory.path.read_bytes())["project"] == str(tmp_path / "project")
    assert sorted(memory.path.parent.iterdir()) == [memory.path]


def test_a_newer_version_replaces_an_older_one_and_never_the_other_way(memory: FileMemory) -> None:
    memory.remember(TWO)
    memory.remember(ONE)
    assert memory.recall() == TWO
    memory.remember(policy_text(version=3).encode())
    memory.remember(policy_text(version=3, expires="2029-01-01").encode())
    assert memory.recall() == policy_text(version=3).encode()


def test_of_many_that_accept_at_once_the_highest_stays(memory: FileMemory, tmp_path: Path) -> None:
    texts = [policy_text(version=number).encode() for number in range(1, 13)]

    def accept(raw: bytes) -> None:
        FileMemory(tmp_path / "state", tmp_path / "project").remember(raw)

    threads = [threading.Thread(target=accept, args=(raw,)) for raw in reversed(texts)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert memory.recall() == texts[-1]


def test_a_project_is_known_by_its_place_however_it_is_named(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    (tmp_path / "link").symlink_to("project")
    FileMemory(tmp_path / "state", tmp_path / "link").remember(ONE)
    assert FileMemory(tmp_path / "state", tmp_path / "project").recall() == ONE
    assert FileMemory(tmp_path / "state", tmp_path / "other").recall() is None


@pytest.mark.parametrize("data", [b"", b"{}", b"[]", b'{"policy": 1}', b'{"policy": "a"', b"\xff"])
def test_what_is_damaged_is_never_taken_for_nothing(memory: FileMemory, data: bytes) -> None:
    memory.remember(ONE)
    memory.path.write_bytes(data)
    with pytest.raises(IntegrityError) as caught:
        memory.recall()
    assert "builder trust forget" in (caught.value.hint or "")
    assert memory.forget()
    assert memory.recall() is None
    assert not memory.forget()


def test_a_directory_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "state").write_bytes(b"")
    memory = FileMemory(tmp_path / "state", tmp_path)
    with pytest.raises(EnvironmentFault, match="cannot be written: File exists"):
        memory.remember(ONE)
    with pytest.raises(EnvironmentFault, match="cannot be read"):
        memory.recall()


def test_a_file_that_a_killed_process_left_is_no_hindrance(memory: FileMemory) -> None:
    memory.path.parent.mkdir()
    memory.path.with_suffix(".tmp").write_bytes(b"half")
    memory.remember(ONE)
    assert memory.recall() == ONE
    assert os.listdir(memory.path.parent) == [memory.path.name]


@pytest.mark.parametrize(
    ("environment", "path"),
    [
        ({"XDG_STATE_HOME": "/state", "HOME": "/home"}, "/state/builder/trust"),
        ({"XDG_STATE_HOME": "state", "HOME": "/home"}, "/home/.local/state/builder/trust"),
        ({"HOME": "/home"}, "/home/.local/state/builder/trust"),
    ],
)
def test_the_place_is_that_of_the_users_state(environment: dict[str, str], path: str) -> None:
    assert state_directory(environment) == Path(path)
