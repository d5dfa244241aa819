"""Nothing is skipped in silence.

``@pytest.mark.requires("git", "skopeo")`` skips a test on a machine that lacks a tool, with a
reason that names the Debian package. Every skip, from whatever source, is listed in the summary,
and with ``CI=true`` the run fails when more tests were skipped than ``expected_skips`` of
pyproject.toml (or ``--expected-skips``) allows.
"""

import os
import shutil
from collections.abc import Generator

import pytest

TOOLS = {
    "apt-get": "apt",
    "bsdtar": "libarchive-tools",
    "buildah": "buildah",
    "busybox": "busybox-static",
    "docker": "docker.io",
    "docker-registry": "docker-registry",
    "dockerd": "docker.io",
    "dot": "graphviz",
    "git": "git",
    "make": "make",
    "openssl": "openssl",
    "patch": "patch",
    "podman": "podman",
    "skopeo": "skopeo",
    "ssh-keygen": "openssh-client",
    "tar": "tar",
    "umoci": "umoci",
    "unshare": "util-linux",
}
"""Each tool that a test may ask for, and the Debian package that brings it."""

_PATH = os.pathsep.join((os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin"))


def which(tool: str) -> str | None:
    """Where ``tool`` is, daemons of a root's path included, or ``None``.

    Raises:
        LookupError: The tool is not in the table; a misspelt one must not look like a missing one.
    """
    if tool not in TOOLS:
        raise LookupError(f"unknown tool {tool!r}: add it to TOOLS in {__file__}")
    return shutil.which(tool, path=_PATH)


def missing(*tools: str) -> str | None:
    """Why a test that wants ``tools`` cannot run here, or ``None``. ``root`` is a tool too."""
    for tool in tools:
        if tool == "root":
            if os.geteuid() != 0:
                return "needs to run as root"
        elif which(tool) is None:
            return f"{tool} is not installed (Debian package {TOOLS[tool]})"
    return None


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("expected_skips", "how many skipped tests CI accepts", default="0")
    parser.addoption("--expected-skips", type=int, help="override expected_skips")


def pytest_runtest_setup(item: pytest.Item) -> None:
    for marker in item.iter_markers("requires"):
        if reason := missing(*marker.args):
            pytest.skip(reason)


def _skipped(config: pytest.Config) -> list[tuple[str, str]]:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return []
    rows = []
    for report in reporter.stats.get("skipped", []):
        where = report.longrepr
        reason = str(where[2]) if isinstance(where, tuple) else str(where)
        rows.append((report.nodeid, reason.removeprefix("Skipped: ")))
    return rows


def _allowed(config: pytest.Config) -> int:
    option = config.getoption("expected_skips")
    return int(option if option is not None else config.getini("expected_skips"))


def _too_many(config: pytest.Config) -> bool:
    return os.environ.get("CI") == "true" and len(_skipped(config)) > _allowed(config)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, None, None]:
    if _too_many(session.config) and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    return (yield)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    rows = _skipped(config)
    if not rows:
        return
    terminalreporter.section(f"{len(rows)} skipped")
    for nodeid, reason in rows:
        terminalreporter.line(f"{nodeid}: {reason}")
    if _too_many(config):
        terminalreporter.line(
            f"CI expects at most {_allowed(config)} skipped, got {len(rows)}: "
            "install what is missing, or raise expected_skips with a reason",
            red=True,
        )
