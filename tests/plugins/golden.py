"""Expected output kept in tests/golden/, rewritten by ``make golden`` and reviewed as a diff.

A golden digest or document is a promise about bytes. The commit that changes one says why, and
where it is bytes of an image it raises ``builder.ASSEMBLY`` in the same commit.
"""

from pathlib import Path
from typing import Protocol

import pytest

_PROJECT = Path(__file__).parents[2]
_ROOT = _PROJECT / "tests/golden"
_REWRITTEN = pytest.StashKey[list[str]]()


class Golden(Protocol):
    """What the fixture gives."""

    def __call__(self, name: str, got: str, *, root: Path = _ROOT) -> None:
        """Compare ``got`` with the file NAME below ``root``: tests/golden, or the place of
        something that is generated and ships."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite-golden", action="store_true", help="accept what tests/golden lacks")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "golden: compares with a file of tests/golden")
    config.stash[_REWRITTEN] = []


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "golden" in getattr(item, "fixturenames", ()):
            item.add_marker("golden")


@pytest.fixture
def golden(pytestconfig: pytest.Config) -> Golden:
    """Compare text with a file of tests/golden, or write it under ``--rewrite-golden``."""

    def compare(name: str, got: str, *, root: Path = _ROOT) -> None:
        path = root / name
        shown = path.relative_to(_PROJECT)
        wanted = path.read_bytes().decode() if path.exists() else None
        if wanted == got:
            return
        if pytestconfig.getoption("rewrite_golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(got.encode())
            pytestconfig.stash[_REWRITTEN].append(str(shown))
            return
        assert wanted is not None, f"{shown} does not exist: run make golden"
        assert got == wanted, f"differs from {shown}: run make golden, review the diff"

    return compare


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    for name in config.stash[_REWRITTEN]:
        terminalreporter.line(f"rewritten: {name}")
