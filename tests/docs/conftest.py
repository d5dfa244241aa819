"""A page against the truth, and ``make golden`` to bring the truth into the page."""

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
        if shown == truth:
            return
        if pytestconfig.getoption("rewrite_golden"):
            page.write_text(truth, encoding="utf-8")
            return
        assert shown == truth, f"{page.name} shows something else: run make golden"

    return hold
