"""No test reaches beyond loopback unless it is marked ``online``.

An audit hook sees every connection and name look-up of this process, also those of C extensions.
It refuses what leaves the machine as a machine without network would, and the test fails even if
the code under test took the refusal for an ordinary network error. Names under ``.invalid``
(RFC 2606) do not resolve and may be asked for. Child processes are not watched.
"""

import errno
import ipaddress
import os
import socket
import sys
from collections.abc import Generator

import pytest

_UNMARKED = "the test reached for the network without the marker 'online'"


class Guard:
    """What leaves this machine while a test runs is refused and remembered."""

    def __init__(self) -> None:
        self.armed = False
        self.refused: list[str] = []

    def audit(self, event: str, arguments: tuple[object, ...]) -> None:
        """Judge one audit event.

        Raises:
            OSError: It would leave the machine.
        """
        if not self.armed or not event.startswith("socket."):
            return
        if event in {"socket.connect", "socket.sendto"}:
            address = arguments[1]
            # Anything but a pair is another family: a path (AF_UNIX), a netlink group.
            if isinstance(address, tuple) and isinstance(address[0], str):
                self._check(address[0], error=OSError(errno.ENETUNREACH, "no network in tests"))
        elif event in {"socket.getaddrinfo", "socket.gethostbyname"}:
            host = arguments[0]
            if isinstance(host, bytes):
                host = host.decode(errors="replace")
            if isinstance(host, str):
                error = socket.gaierror(socket.EAI_NONAME, "no names in tests")
                self._check(host, error=error)

    def _check(self, host: str, *, error: OSError) -> None:
        if _is_here(host):
            return
        if not host.rstrip(".").endswith(".invalid"):
            self.refused.append(host)
        raise error


def _is_here(host: str) -> bool:
    if host in {"", "localhost", socket.gethostname()}:
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    return address.is_loopback or address.is_unspecified


_GUARD = Guard()
# Audit hooks stay for the life of the process, so there is one and it is armed per test.
sys.addaudithook(_GUARD.audit)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    _GUARD.armed = item.get_closest_marker("online") is None
    _GUARD.refused.clear()
    try:
        return (yield)
    finally:
        _GUARD.armed = False


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[None]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if _GUARD.refused and not report.failed:
        report.outcome = "failed"
        report.longrepr = f"{_UNMARKED}: {', '.join(dict.fromkeys(_GUARD.refused))}"
    if report.failed:
        _GUARD.refused.clear()
    return report


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """``BUILDER_TEST_ONLINE=0`` skips what is marked ``online``, each with its reason."""
    if os.environ.get("BUILDER_TEST_ONLINE") == "0":
        for item in items:
            if item.get_closest_marker("online"):
                item.add_marker(pytest.mark.skip(reason="BUILDER_TEST_ONLINE=0"))
