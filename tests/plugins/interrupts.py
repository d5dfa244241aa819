"""Interrupts reach the programs that tests start, also where the shell has these tests in the
background: a shell without job control has its background ignore SIGINT, and what is ignored stays
ignored in every child."""

import signal


def pytest_configure() -> None:
    """Take SIGINT as a foreground process does; a child that is executed has its default then."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
