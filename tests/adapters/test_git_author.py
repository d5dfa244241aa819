"""Who answers for a waiver, where nobody says so: as the user's own git has it."""

from pathlib import Path

import pytest

from builder.adapters.git_author import Identity, git_author
from tests.adapters.git_world import Upstream

pytestmark = pytest.mark.requires("git")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without any configuration of git."""
    path = tmp_path / "home"
    path.mkdir()
    for name in ("GIT_CONFIG_GLOBAL", "XDG_CONFIG_HOME", "GIT_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return path


def configure(file: Path, name: str, email: str) -> None:
    with file.open("a") as config:
        config.write(f"[user]\n\tname = {name}\n\temail = {email}\n")


def test_the_author_is_the_user_of_git(home: Path, tmp_path: Path) -> None:
    configure(home / ".gitconfig", "Ada Lovelace", "ada@example.org")
    assert git_author(tmp_path) == Identity(name="Ada Lovelace", email="ada@example.org")


def test_the_project_has_the_last_word(home: Path, tmp_path: Path) -> None:
    configure(home / ".gitconfig", "Ada Lovelace", "ada@example.org")
    repository = Upstream.make(tmp_path / "project").path
    configure(repository / "config", "A. L.", "al@work.example")
    assert git_author(repository) == Identity(name="A. L.", email="al@work.example")
    assert git_author(tmp_path) == Identity(name="Ada Lovelace", email="ada@example.org")


@pytest.mark.parametrize(
    "config",
    [
        pytest.param("", id="nothing"),
        pytest.param("[user]\n\tname = Ada\n", id="no address"),
        pytest.param("[user]\n\temail = a@example.org\n", id="no name"),
        pytest.param('[user]\n\tname = ""\n\temail = a@example.org\n', id="an empty name"),
        pytest.param("[user]\n\tname\n\temail = a@example.org\n", id="a name without a value"),
        pytest.param("[user\n", id="a broken file"),
    ],
)
def test_half_an_author_is_none_and_nothing_is_guessed(
    home: Path, tmp_path: Path, config: str
) -> None:
    (home / ".gitconfig").write_text(config)
    assert git_author(tmp_path) is None


def test_without_git_there_is_no_author(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(home))
    assert git_author(tmp_path) is None
