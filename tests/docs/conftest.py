"""A page against the truth, and ``make golden`` to bring the truth into the page."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

Compare = Callable[[Path, str], None]
"""``compare(page, truth)``"""


@pytest.fixture
def compare(pytestconfig: pytest.Config) -> Compare:
    """Compare a page with what it should be, or write it under ``--rewrite-golden``."""

    def hold(page: Path, truth: str) -> None:
        shown = page.read_text(encoding="utf-8")
        if _steady(shown) == _steady(truth):
            return
        if pytestconfig.getoption("rewrite_golden"):
            page.write_text(truth, encoding="utf-8")
            return
        assert shown == truth, f"{page.name} shows something else: run make golden"

    return hold


def _steady(page: str) -> str:
    """Without the sizes of what zlib packed: memos of the store are no bytes of an image, and
    each version of zlib has its own."""
    return re.sub(r"^(notes|total) +[0-9.]+ k?B$", r"\1", page, flags=re.MULTILINE)
