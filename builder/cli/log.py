"""The package's own log on stderr: what a user should know, and with ``-v`` what takes time."""

import logging
import sys
from typing import Any

from builder import quoting


class _Stderr(logging.StreamHandler[Any]):
    """The stderr of the moment: bars that are drawn there put their own in its place, and let
    lines pass above them."""

    def __init__(self) -> None:
        logging.Handler.__init__(self)

    @property
    def stream(self) -> Any:
        return sys.stderr

    @stream.setter
    def stream(self, value: Any) -> None:
        raise AttributeError("stream")


class _Harmless(logging.Formatter):
    """Names and messages of others are in what is told: they may not steer a terminal."""

    def format(self, record: logging.LogRecord) -> str:
        return quoting.harmless(super().format(record))


def configure_logging(level: int) -> None:
    """Send the log of ``builder`` to stderr from this level on. Other packages' logs are not
    touched: those of HTTP clients print addresses that hold secrets."""
    handler = _Stderr()
    handler.setFormatter(_Harmless("builder: %(message)s"))
    logger = logging.getLogger("builder")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False
