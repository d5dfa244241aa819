"""Each test leaves the process as it found it, so that no test depends on which ran before it.

Environment, working directory, umask, signal handlers, import path and the loggers are compared
around each test. What fixtures of wider scope set up is no offence: it is there before the first
comparison, and stays until after the last one.
"""

import logging
import os
import signal
import sys
from collections.abc import Iterator

import pytest

_PYTESTS_OWN = "PYTEST_CURRENT_TEST"
_TIMEOUTS_OWN = signal.SIGALRM  # pytest-timeout sets it, and takes it back early where a test fails


def _umask() -> int:
    os.umask(mask := os.umask(0o022))
    return mask


def _logger(name: str | None) -> tuple[object, ...]:
    logger = logging.getLogger(name)
    handlers = [(id(handler), handler.level, *handler.filters) for handler in logger.handlers]
    return (logger.level, logger.propagate, logger.disabled, *logger.filters, *handlers)


def _now() -> dict[str, object]:
    return {
        "environment": {key: value for key, value in os.environ.items() if key != _PYTESTS_OWN},
        "working directory": os.getcwd(),
        "umask": _umask(),
        "signal handlers": {
            number: signal.getsignal(number) for number in signal.valid_signals() - {_TIMEOUTS_OWN}
        },
        "import path": list(sys.path),
        "root logger": _logger(None),
        "logger builder": _logger("builder"),
    }


@pytest.fixture(autouse=True)
def unchanged() -> Iterator[None]:
    """Compare what is global to the process before a test and after it."""
    before = _now()
    yield
    after = _now()
    for what, was in before.items():
        assert after[what] == was, f"this test left another {what} behind"
