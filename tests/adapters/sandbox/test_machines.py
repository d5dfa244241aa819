"""Machines and users that a sandbox works for, and what is said where it does not."""

import gc
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager
from io import BytesIO
from pathlib import Path

import pytest

from builder.adapters.sandbox import EngineSandbox, NamespaceSandbox, choose, namespaces
from builder.errors import EnvironmentFault
from builder.sandbox import Job, Sandbox
from tests.adapters.sandbox.conftest import ENGINE
from tests.adapters.sandbox.image import archive, imported
from tests.adapters.sandbox.jobs import python

# The SDK (7.2) leaves a socket open where it cannot connect; it is collected here, not later.
_LEAKS = pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning", "ignore:unclosed:ResourceWarning"
)
REPOSITORY = Path(__file__).parents[3]
NOBODY = 65534


@pytest.fixture
def common(tmp_path: Path) -> Iterator[Path]:
    """A directory that every user may read, with a Python and what it needs to run a sandbox."""
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        with tarfile.open(fileobj=BytesIO(archive())) as tar:
            tar.extractall(directory, filter="tar")
        shutil.copytree(REPOSITORY / "builder", directory / "builder")
        for part in ("tests", "tests/adapters", "tests/adapters/sandbox"):
            (directory / part).mkdir()
            for file in (REPOSITORY / part).glob("[_hj]*.py"):
                shutil.copy(file, directory / part)
        yield directory


@pytest.mark.requires("root")
def test_an_ordinary_user_gets_the_same_with_a_python_of_their_own(common: Path) -> None:
    script = """
import os, sys
from builder.adapters.sandbox import NamespaceSandbox
from tests.adapters.sandbox.honest import HONEST, HONEST_END
from tests.adapters.sandbox.jobs import refusal, said
sandbox = NamespaceSandbox()
assert sandbox.run(HONEST) == HONEST_END
print(said(sandbox, "import os; print(os.getuid(), open('/proc/self/uid_map').read().split())"))
for path in ("/builder/in/x", "/usr/x", "/etc/passwd"):
    print(refusal(sandbox, f"open({path!r}, 'w')"))
print(refusal(sandbox, "open('/proc/1/mem')"))
for process in ("self", "1"):
    print(said(sandbox, f"print([l[8:-1] for l in open('/proc/{process}/status') if 'Cap' in l])"))
"""
    done = subprocess.run(
        [common / "usr/bin/python3", "-B", "-c", script],
        cwd=common,
        env={"LD_LIBRARY_PATH": str(common / "usr/lib")},
        capture_output=True,
        text=True,
        check=False,
        user=NOBODY,
        group=NOBODY,
        extra_groups=[],
    )
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        f"1000 ['1000', '{NOBODY}', '1']",
        "",
        "OSError: [Errno 30] Read-only file system: '/builder/in/x'",
        "OSError: [Errno 30] Read-only file system: '/usr/x'",
        "OSError: [Errno 30] Read-only file system: '/etc/passwd'",
        "PermissionError: [Errno 13] Permission denied: '/proc/1/mem'",
        f"{['0' * 16] * 5}",
        "",
        f"{['0' * 16] * 5}",
        "",
    ]


@pytest.mark.requires("root")
def test_the_groups_of_root_are_not_those_of_the_program() -> None:
    script = """
from builder.adapters.sandbox import NamespaceSandbox
from tests.adapters.sandbox.jobs import said
print(said(NamespaceSandbox(), "import os; print(os.getgroups())"))
"""
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
        extra_groups=[0, 4, 24],
    )
    assert done.stdout == "[]\n\n"


CHOOSE = """
import sys
from builder.adapters.sandbox import choose
from builder.errors import EnvironmentFault
try:
    print(choose().name)
except EnvironmentFault as error:
    print(error.message, error.hint, sep="\\n")
"""


def chosen_in(shell: str) -> list[str]:
    """What ``choose`` says where namespaces are as ``shell`` makes them."""
    done = subprocess.run(
        ["unshare", "--user", "--map-root-user", "sh", "-c", f'{shell} exec "$@"', "sh"]
        + [sys.executable, "-c", CHOOSE],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.splitlines()


@pytest.mark.requires("unshare")
def test_root_of_a_user_namespace_without_other_users_gets_one() -> None:
    assert chosen_in("") == ["linux-namespaces"]


@pytest.mark.requires("unshare")
def test_where_namespaces_are_forbidden_it_is_said_what_allows_them() -> None:
    assert chosen_in("echo 0 >/proc/sys/user/max_user_namespaces;") == [
        "sandbox: linux-namespaces: unshare: No space left on device",
        "sudo sysctl -w user.max_user_namespaces=15000, or start a Docker Engine",
    ]


def test_namespaces_are_chosen_where_they_work_and_no_engine_is_asked() -> None:
    def never() -> Sandbox:
        raise AssertionError("not needed")

    assert isinstance(choose(engine=never), NamespaceSandbox)


class _WithoutNamespaces(NamespaceSandbox):
    def run(self, job: Job) -> None:  # type: ignore[override]  # it never returns
        raise EnvironmentFault("sandbox: linux-namespaces: no", hint="allow them")


@ENGINE
def test_an_engine_is_chosen_otherwise(
    engine_sandbox: EngineSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builder.adapters.sandbox.choice.NamespaceSandbox", _WithoutNamespaces)
    assert choose(engine=lambda: engine_sandbox) is engine_sandbox


@_LEAKS
def test_with_neither_both_reasons_are_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builder.adapters.sandbox.choice.NamespaceSandbox", _WithoutNamespaces)
    said = hint = None
    try:
        choose(engine=lambda: EngineSandbox("x", base_url=f"unix://{tmp_path}/none"))
    except EnvironmentFault as error:
        said, hint = error.message, error.hint
    gc.collect()
    assert said is not None
    assert said.startswith(
        "sandbox: linux-namespaces: no; and sandbox: docker-engine: no answer from the Docker "
        f"Engine at unix://{tmp_path}/none: "
    )
    assert hint == "allow them"


def test_a_setting_that_forbids_namespaces_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(namespaces, "_SETTINGS", (("kernel/ostype", "Linux", "Other"),))
    assert namespaces._hint() == "sudo sysctl -w kernel.ostype=Other, or start a Docker Engine"
    monkeypatch.setattr(namespaces, "_SETTINGS", (("kernel/none", "1", "0"),))
    assert namespaces._hint().startswith("a container may not make namespaces")


@ENGINE
def test_an_image_that_the_engine_has_not_is_a_fault(engine_host: str) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        EngineSandbox("sha256:" + "0" * 64, base_url=engine_host).run(python("pass"))
    assert caught.value.message.startswith("sandbox: docker-engine: No such image: sha256:000")


@ENGINE
def test_an_image_without_python_is_a_fault(engine_host: str) -> None:
    empty = BytesIO()
    with tarfile.open(fileobj=empty, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("x"))
    image = imported(engine_host, empty.getvalue())
    with pytest.raises(EnvironmentFault, match='"python3": executable file not found'):
        EngineSandbox(image, base_url=engine_host).run(python("pass"))


@contextmanager
def failing_engine(host: str, directory: Path) -> Iterator[tuple[str, threading.Event]]:
    """The way to an engine, and what cuts it."""
    path = f"{directory}/d.sock"
    cut = threading.Event()
    links: list[socket.socket] = []

    def pump(source: socket.socket, target: socket.socket) -> None:
        try:
            while data := source.recv(1 << 16):
                target.sendall(data)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            pass

    def serve(listening: socket.socket) -> None:
        while True:
            try:
                client, _ = listening.accept()
            except OSError:
                return
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(host.removeprefix("unix://"))
            links.extend((client, engine))
            for pair in ((client, engine), (engine, client)):
                threading.Thread(target=pump, args=pair, daemon=True).start()

    with closing(socket.socket(socket.AF_UNIX)) as listening:
        listening.bind(path)
        listening.listen()
        threading.Thread(target=serve, args=(listening,), daemon=True).start()

        def watch() -> None:
            cut.wait()
            listening.shutdown(socket.SHUT_RDWR)
            listening.close()
            os.unlink(path)
            for link in links:
                link.shutdown(socket.SHUT_RDWR)

        watcher = threading.Thread(target=watch)
        watcher.start()
        try:
            yield f"unix://{path}", cut
        finally:
            cut.set()
            watcher.join()
            for link in links:
                link.close()


@ENGINE
@_LEAKS
def test_an_engine_that_goes_away_is_a_fault(
    engine_sandbox: EngineSandbox, engine_host: str
) -> None:
    with (
        tempfile.TemporaryDirectory(dir="/tmp") as name,
        failing_engine(engine_host, Path(name)) as (host, cut),
    ):
        timer = threading.Timer(1.5, cut.set)
        timer.start()
        said = None
        try:
            EngineSandbox(engine_sandbox._image, base_url=host).run(
                python("import time; time.sleep(15)")
            )
        except EnvironmentFault as error:
            said = error.message
        timer.join()
    gc.collect()
    assert said is not None
    assert said.startswith("sandbox: docker-engine: no answer from the Docker Engine at unix://")
