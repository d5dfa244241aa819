"""Text of others, in errors and in the log: shown, never obeyed by the terminal."""

import json
import logging

import pytest

from builder.cli import app
from builder.cli.log import configure_logging
from builder.errors import IntegrityError

STEERS = "sets\x1b]0;title\x07 back\rspace\x9b2J \udcff\u202e end\n\ttab"
SHOWN = r"sets\x1b]0;title\x07 back\rspace\x9b2J \udcff\u202e end" + "\n\ttab"


def test_an_error_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    app.report(IntegrityError(STEERS, hint=STEERS), document=None)
    assert capsys.readouterr().err == f"builder: error: {SHOWN}\n  hint: {SHOWN}\n"


def test_a_document_has_the_text_as_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    app.report(IntegrityError(STEERS), document={})
    assert json.loads(capsys.readouterr().out)["error"]["message"] == STEERS


def test_the_log_does_not_steer_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("builder")
    before = logger.handlers[:], logger.level, logger.propagate
    try:
        configure_logging(logging.WARNING)
        logging.getLogger("builder.here").warning("%s", STEERS)
    finally:
        logger.handlers[:], level, logger.propagate = before
        logger.setLevel(level)
    assert capsys.readouterr().err == f"builder: {SHOWN}\n"
