"""The package's own log on stderr: what a user should know, and with ``-v`` what takes time."""

import logging
import sys


def configure_logging(level: int) -> None:
    """Send the log of ``builder`` to stderr from this level on. Other packages' logs are not
    touched: those of HTTP clients print addresses that hold secrets."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("builder: %(message)s"))
    logger = logging.getLogger("builder")
    logger.handlers[:] = [handler]
    logger.setLevel(level)
    logger.propagate = False
