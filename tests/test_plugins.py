"""The plugins of tests/plugins, each run on a small suite of its own in another process."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """An empty suite with our plugins, away from our own settings."""
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("CI", "true")
    # Half of the time of these tests otherwise.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    pytester.makeini("[pytest]\nmarkers =\n    online: x\n    requires: x\n")
    pytester.makeconftest((ROOT / "conftest.py").read_text())
    return pytester


def test_ci_fails_when_more_tests_were_skipped_than_expected(suite: pytest.Pytester) -> None:
    suite.makepyfile("import pytest\ndef test_one(): pytest.skip('no such thing')\n")
    result = suite.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*= 1 skipped =*",
            "test_ci_fails*.py::test_one: no such thing",
            "CI expects at most 0 skipped, got 1: install what is missing, or raise *",
        ]
    )


def test_ci_accepts_the_expected_number_of_skips_and_still_lists_them(
    suite: pytest.Pytester,
) -> None:
    suite.makepyfile("import pytest\ndef test_one(): pytest.skip('no such thing')\n")
    result = suite.runpytest_subprocess("--expected-skips=1")
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(["test_ci_accepts*.py::test_one: no such thing"])
    result.stdout.no_fnmatch_line("CI expects*")


def test_a_missing_tool_is_named_with_its_package(
    suite: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite.makeconftest(
        (ROOT / "conftest.py").read_text()
        + "from tests.plugins.requires import TOOLS\nTOOLS['no-such-tool'] = 'no-such-package'\n"
    )
    monkeypatch.delenv("CI")
    suite.makepyfile("import pytest\n@pytest.mark.requires('no-such-tool')\ndef test_one(): ...\n")
    result = suite.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.OK
    result.stdout.fnmatch_lines(
        ["*::test_one: no-such-tool is not installed (Debian package no-such-package)"]
    )


def test_a_misspelt_tool_is_an_error_and_no_skip(suite: pytest.Pytester) -> None:
    suite.makepyfile("import pytest\n@pytest.mark.requires('gti')\ndef test_one(): ...\n")
    result = suite.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["*LookupError: unknown tool 'gti': add it to TOOLS in *"])


@pytest.mark.parametrize(
    "call",
    [
        pytest.param("socket.create_connection(('192.0.2.1', 9), 1)", id="address"),
        pytest.param("socket.getaddrinfo('example.org', 80)", id="name"),
        pytest.param(
            "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'', ('192.0.2.1', 9))",
            id="datagram",
        ),
    ],
)
def test_reaching_for_the_network_fails_even_where_the_code_shrugs_it_off(
    suite: pytest.Pytester, call: str
) -> None:
    suite.makepyfile(
        f"""
        import contextlib
        import socket

        def test_one():
            with contextlib.suppress(OSError):
                {call}
        """
    )
    result = suite.runpytest_subprocess()
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["the test reached for the network without the marker 'online': *"])


def test_loopback_and_names_that_cannot_exist_are_no_network(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import socket
        import pytest

        def test_loopback():
            with socket.create_server(("127.0.0.1", 0)) as server:
                socket.create_connection(server.getsockname()).close()

        def test_invalid_name():
            with pytest.raises(socket.gaierror):
                socket.getaddrinfo("registry.invalid", 443)
        """
    )
    suite.runpytest_subprocess().assert_outcomes(passed=2)


def test_a_process_and_a_listener_left_behind_fail_the_run(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import socket
        import subprocess

        def test_innocent(): ...

        def test_one():
            global process, server
            process = subprocess.Popen(["sleep", "5"])
            server = socket.create_server(("127.0.0.1", 0))
        """
    )
    result = suite.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        [
            "*= left behind =*",
            "process *: sleep 5 (there since test_a_process*::test_one)",
            "listener *: port * (there since test_a_process*::test_one)",
        ]
    )


def test_a_service_of_the_whole_session_is_not_left_behind(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import subprocess
        import pytest

        @pytest.fixture(scope="session", autouse=True)
        def service():
            process = subprocess.Popen(["sleep", "5"])
            yield
            process.kill()
            process.wait()

        def test_one(): ...
        def test_two(): ...
        """
    )
    result = suite.runpytest_subprocess()
    assert result.ret == pytest.ExitCode.OK


@pytest.mark.parametrize(
    ("leave", "what"),
    [
        pytest.param("os.environ['LEFT'] = '1'", "environment", id="environment"),
        pytest.param("os.chdir('/')", "working directory", id="working directory"),
        pytest.param("os.umask(0o777)", "umask", id="umask"),
        pytest.param(
            "signal.signal(signal.SIGUSR1, signal.SIG_IGN)", "signal handlers", id="signal"
        ),
        pytest.param("sys.path.append('/left')", "import path", id="import path"),
        pytest.param("caplog.handler.addFilter(lambda _: True)", "root logger", id="handler"),
        pytest.param("logging.getLogger('builder').setLevel(1)", "logger builder", id="level"),
    ],
)
def test_what_a_test_leaves_changed_is_an_error_of_that_test(
    suite: pytest.Pytester, leave: str, what: str
) -> None:
    suite.makepyfile(
        f"""
        import logging, os, signal, sys
        import pytest

        @pytest.fixture(scope="module", autouse=True)
        def wider():
            with pytest.MonkeyPatch.context() as patched:
                patched.setenv("WIDER", "1")
                yield

        def test_innocent(monkeypatch):
            monkeypatch.setenv("MINE", "1")

        def test_guilty(caplog):
            {leave}
        """
    )
    result = suite.runpytest_subprocess()
    result.assert_outcomes(passed=2, errors=1)
    result.stdout.fnmatch_lines(
        ["* at teardown of test_guilty *", f"*: this test left another {what} behind"]
    )
