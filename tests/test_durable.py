"""Files that appear whole, with the modes that were asked for."""

import os
import stat
import threading
from pathlib import Path

import pytest

from builder import durable
from builder.errors import EnvironmentFault


@pytest.mark.parametrize(("mode", "expected"), [(None, 0o640), (0o600, 0o600), (0o666, 0o666)])
def test_a_staged_file_has_the_mode_asked_for_or_the_umasks(
    tmp_path: Path, mode: int | None, expected: int
) -> None:
    old = os.umask(0o027)
    try:
        with durable.staged(tmp_path / ".x.tmp", b"data", mode) as ready:
            assert stat.S_IMODE(ready.stat().st_mode) == expected
            durable.rename(ready, tmp_path / "x")
    finally:
        os.umask(old)
    assert (tmp_path / "x").read_bytes() == b"data"
    assert os.listdir(tmp_path) == ["x"]


def test_a_staged_file_that_is_not_renamed_is_gone_and_the_old_one_stands(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(b"old")
    with pytest.raises(ZeroDivisionError), durable.staged(tmp_path / ".x.tmp", b"new", None):
        raise ZeroDivisionError
    assert os.listdir(tmp_path) == ["x"]
    assert (tmp_path / "x").read_bytes() == b"old"


def test_what_a_killed_process_left_is_replaced_and_a_link_there_is_not_followed(
    tmp_path: Path,
) -> None:
    (tmp_path / "victim").write_bytes(b"mine")
    (tmp_path / ".x.tmp").symlink_to("victim")
    with durable.staged(tmp_path / ".x.tmp", b"data", 0o600) as ready:
        assert not ready.is_symlink()
        assert ready.read_bytes() == b"data"
    assert (tmp_path / "victim").read_bytes() == b"mine"


def test_a_directory_is_held_by_one_at_a_time(tmp_path: Path) -> None:
    order: list[str] = []

    def second() -> None:
        with durable.held(tmp_path):
            order.append("second")

    with durable.held(tmp_path):
        thread = threading.Thread(target=second)
        thread.start()
        thread.join(0.2)
        assert thread.is_alive()
        order.append("first")
    thread.join(10)
    assert order == ["first", "second"]


def test_a_refusal_names_what_could_not_be_written(tmp_path: Path) -> None:
    with (
        pytest.raises(EnvironmentFault) as caught,
        durable.writing("a file", hint="a way out"),
        durable.staged(tmp_path / "none" / "x", b"", None),
    ):
        pass
    assert caught.value.message == "a file: cannot be written: No such file or directory"
    assert caught.value.hint == "a way out"
