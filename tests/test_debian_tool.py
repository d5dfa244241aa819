"""Tools of a newer Debian, where its archive cannot be asked."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.commands import CommandError
from tests.real import debian_tool

pytestmark = pytest.mark.requires("apt-get")
NOBODY = "http://127.0.0.1:1/debian"


@pytest.fixture(autouse=True)
def unreachable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    monkeypatch.setattr(debian_tool, "_archive", lambda: NOBODY)
    monkeypatch.setenv("BUILDER_TEST_CACHE", str(tmp_path))
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    debian_tool._suite.cache_clear()
    yield
    debian_tool._suite.cache_clear()


def test_an_archive_that_does_not_answer_is_the_reason_and_is_asked_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.raises(CommandError) as first:
        debian_tool.debian_tool("crane", "sid", "usr/bin/crane")
    assert first.value.said.startswith(f"E: Failed to fetch {NOBODY}/dists/sid/InRelease")

    def asked(*_: object, **__: object) -> None:
        raise AssertionError("asked again")

    monkeypatch.setattr(debian_tool, "run", asked)
    with pytest.raises(CommandError) as second:
        debian_tool.debian_tool("cosign", "sid", "usr/bin/cosign")
    assert second.value.said == first.value.said


def test_what_an_earlier_run_unpacked_serves(tmp_path: Path) -> None:
    program = tmp_path / "debs/sid/crane" / ("0" * 64) / "usr/bin/crane"
    program.parent.mkdir(parents=True)
    program.touch()
    assert debian_tool.debian_tool("crane", "sid", "usr/bin/crane") == program
