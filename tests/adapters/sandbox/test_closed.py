"""What a program cannot see, reach or become."""

import socket
from pathlib import Path

import pytest

from builder.adapters.sandbox import EngineSandbox, NamespaceSandbox
from builder.sandbox import Job, Laid, Sandbox
from tests.adapters.sandbox.conftest import ENGINE
from tests.adapters.sandbox.jobs import ROOT, python, refusal, said

ENVIRONMENT = {
    "HOME": "/tmp/home",
    "LC_ALL": "C.UTF-8",
    "PATH": "/builder/bin:/usr/local/bin:/usr/bin:/bin",
    "PYTHONDONTWRITEBYTECODE": "1",
    "PYTHONHASHSEED": "0",
    "SOURCE_DATE_EPOCH": "315532800",
    "TMPDIR": "/tmp",
    "TZ": "UTC",
}


def test_nothing_of_our_environment_is_there(
    sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "secret")
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    monkeypatch.setenv("PYTHONHASHSEED", "7")
    text = (
        "import os; os.environ.pop('LD_LIBRARY_PATH', 0); print(dict(sorted(os.environ.items())))"
    )
    assert said(sandbox, text) == f"{ENVIRONMENT}\n"


def test_a_job_sets_what_it_likes_but_home_temporary_directory_and_zone(sandbox: Sandbox) -> None:
    job = Job(
        command=("sh", "-c", "echo $A $HOME $TMPDIR $TZ $PYTHONHASHSEED"),
        environment={"A": "a b", "HOME": "/x", "TMPDIR": "/x", "TZ": "x", "PYTHONHASHSEED": "3"},
        roots=(ROOT,),
        files=(),
    )
    assert sandbox.run(job).stdout == b"a b /tmp/home /tmp UTC 3\n"


def test_zone_locale_hash_seed_and_bytecode_are_fixed(sandbox: Sandbox) -> None:
    text = """
    import os, sys, time
    print(time.tzname, time.localtime(0).tm_hour)
    print(sys.flags.hash_randomization, sys.dont_write_bytecode, sys.getfilesystemencoding())
    print(os.path.expanduser("~"), os.getuid(), os.getgid(), os.getgroups(), os.uname().nodename)
    """
    assert said(sandbox, text) == (
        "('UTC', 'UTC') 0\n0 True utf-8\n/tmp/home 1000 1000 [] builder\n"
    )
    assert len({said(sandbox, "print(hash('a'))") for _ in range(2)}) == 1


def test_process_1_has_always_the_same_command_line(sandbox: Sandbox) -> None:
    """Patch sets look for arguments of the server in it."""
    text = "import os; print(os.getppid(), open('/proc/1/cmdline').read().split(chr(0)))"
    assert said(sandbox, text) == (
        "1 ['python3', '-I', '-S', '-c', "
        "\"import sys;r=sys.stdin.buffer.read;exec(r(int.from_bytes(r(8),'big')))\", '']\n"
    )


def test_nothing_of_ours_is_seen(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("s")
    paths = [str(tmp_path / "secret"), str(Path(__file__)), str(Path.home()), "/etc/shadow"]
    text = f"import os; print([path for path in {paths!r} if os.path.exists(path)])"
    assert said(sandbox, text) == "[]\n"
    assert said(sandbox, "import os; print(os.listdir('/tmp'), os.listdir('/tmp/home'))") == (
        "['home'] []\n"
    )


def test_what_is_installed_beside_us_cannot_be_imported(sandbox: Sandbox) -> None:
    text = """
    from importlib.util import find_spec
    print([name for name in ("builder", "pip", "yaml", "pytest") if find_spec(name)])
    """
    assert said(sandbox, text) == "[]\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("s.create_connection(('1.1.1.1', 53), 5)", id="connect"),
        pytest.param("s.create_connection(('127.0.0.1', 22), 5)", id="connect to loopback"),
        pytest.param("s.socket(s.AF_INET, s.SOCK_DGRAM)", id="datagrams"),
        pytest.param("s.socket(s.AF_INET6)", id="version 6"),
        pytest.param("s.create_server(('127.0.0.1', 0))", id="listen"),
        pytest.param("s.socket(s.AF_NETLINK, s.SOCK_RAW)", id="netlink"),
        pytest.param("s.socket(40)", id="the host of a virtual machine"),
        pytest.param("s.socket(38, s.SOCK_SEQPACKET)", id="the kernel's ciphers"),
    ],
)
def test_there_is_no_network(sandbox: Sandbox, text: str) -> None:
    assert refusal(sandbox, f"import socket as s; {text}") == (
        "PermissionError: [Errno 1] Operation not permitted"
    )


def test_names_are_not_looked_up(sandbox: Sandbox) -> None:
    assert refusal(sandbox, "import socket; socket.getaddrinfo('example.org', 443)").startswith(
        ("socket.gaierror: ", "PermissionError: ")
    )


def test_abstract_sockets_of_the_host_are_not_there(sandbox: Sandbox) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("\0builder-test")
        listening.listen()
        text = r"import socket; socket.socket(socket.AF_UNIX).connect('\0builder-test')"
        assert refusal(sandbox, text) == "ConnectionRefusedError: [Errno 111] Connection refused"


def test_its_processes_may_talk_to_each_other(sandbox: Sandbox) -> None:
    text = "import socket; a, b = socket.socketpair(); a.send(b'x'); print(b.recv(1))"
    assert said(sandbox, text) == "b'x'\n"


@pytest.mark.parametrize(
    "path",
    [
        *("/x", "/etc/x", "/etc/passwd", "/usr/bin/x", "/usr/lib/x", "/usr/local/x", "/dev/x"),
        *("/bin/x", "/proc/x", "/builder/x", "/builder/in/x", "/builder/in/given", "/var/x"),
        *("/usr/local/lib/x", "/usr/local/lib/python3.12/x", "/proc/1/oom_score_adj"),
        *("/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger", "/sys/kernel/mm/ksm/run"),
    ],
)
def test_nothing_can_be_written_outside(sandbox: Sandbox, path: str) -> None:
    job = python(f"open({path!r}, 'w').write('x')")
    given = Job(
        command=job.command,
        roots=job.roots,
        files=job.files,
        inputs=(Laid(path="given", data=b"", mode=0o666),),
    )
    done = sandbox.run(given)
    assert (done.status, done.left) == (1, ())
    assert any(
        word in done.stderr for word in (b"Read-only file system", b"Permission", b"No such file")
    )
    assert b"Error: [Errno " in done.stderr


def test_links_lead_nowhere(sandbox: Sandbox) -> None:
    text = """
    import os
    os.symlink("/etc/passwd", "out")
    os.symlink("../" * 20 + "etc/passwd", "up")
    for name in ("out", "up"):
        try:
            open(name, "a")
        except OSError as error:
            print(type(error).__name__)
        os.remove(name)
    """
    assert said(sandbox, text) in (
        "OSError\nOSError\n",
        "PermissionError\nPermissionError\n",
        "FileNotFoundError\nFileNotFoundError\n",
    )


@pytest.mark.parametrize(
    "call",
    [
        pytest.param("libc.unshare(0x10000000)", id="a user namespace"),
        pytest.param("libc.unshare(0x20000)", id="a mount namespace"),
        pytest.param("libc.mount(b'none', b'/tmp', b'tmpfs', 0, None)", id="a mount"),
        pytest.param("libc.umount2(b'/proc', 2)", id="an unmount"),
        pytest.param("libc.chroot(b'/tmp')", id="a root directory"),
        pytest.param("libc.ptrace(16, 1, 0, 0)", id="trace the parent"),
        pytest.param("libc.setuid(0)", id="root"),
        pytest.param("libc.setgroups(0, None)", id="groups"),
        pytest.param("libc.memfd_create(b'x', 0)", id="memory of no process"),
        pytest.param("libc.shmget(0, 1 << 20, 0o1600)", id="shared memory of no process"),
        pytest.param("libc.syscall(425, 8, bytes(120))", id="io_uring"),
        pytest.param("libc.syscall(0x40000000 + 39)", id="calls by another name"),
        pytest.param("libc.syscall(CLONE, 0x10000011, 0, 0, 0, 0)", id="clone into a namespace"),
        pytest.param("libc.kill(1, 9) or 1 / (os.getppid() == 1) and -1", id="kill process 1"),
    ],
)
def test_no_call_leads_out(sandbox: Sandbox, call: str) -> None:
    text = f"""
    import ctypes, os
    libc = ctypes.CDLL(None)
    CLONE = {{"x86_64": 56, "aarch64": 220}}[os.uname().machine]
    print({call})
    """
    assert said(sandbox, text) == "-1\n"


def test_the_memory_of_process_1_is_closed(sandbox: Sandbox) -> None:
    for path in ("mem", "environ", "fd/0", "maps"):
        assert refusal(sandbox, f"open('/proc/1/{path}', 'rb').read(1)").startswith(
            "PermissionError: [Errno 13] Permission denied"
        )


@pytest.mark.parametrize("process", ["self", "1"])
def test_it_has_no_powers_and_gains_none(sandbox: Sandbox, process: str) -> None:
    text = f"""
    wanted = ("Cap", "NoNewPrivs", "Seccomp:")
    print([line.split()[1] for line in open("/proc/{process}/status") if line.startswith(wanted)])
    """
    assert said(sandbox, text) == f"{['0' * 16] * 5 + ['1', '2']}\n"


def test_it_is_the_first_to_go_where_memory_runs_out(sandbox: Sandbox) -> None:
    assert said(sandbox, "print(open('/proc/self/oom_score_adj').read())") == "1000\n\n"


def test_a_setuid_bit_gives_nothing(sandbox: Sandbox) -> None:
    text = """
    import os, shutil, subprocess
    shutil.copy("/bin/cat", "/tmp/cat")
    os.chmod("/tmp/cat", 0o6755)
    print(subprocess.run(["/tmp/cat", "/proc/self/status"], capture_output=True, text=True)
          .stdout.split("Uid:")[1].split("\\n")[0].split())
    """
    assert said(sandbox, text) == "['1000', '1000', '1000', '1000']\n"


def test_other_processes_of_the_machine_are_not_there(sandbox: Sandbox) -> None:
    text = """
    import os
    print({name for name in os.listdir("/proc") if name.isdigit()} == {"1", str(os.getpid())})
    """
    assert said(sandbox, text) == "True\n"


def test_of_the_host_only_processes_are_in_proc() -> None:
    assert (
        said(NamespaceSandbox(), "import os; print(os.path.exists('/proc/cpuinfo'))") == "False\n"
    )


def test_an_own_name(sandbox: Sandbox) -> None:
    assert sandbox.name in {"linux-namespaces", "docker-engine"}


@ENGINE
def test_their_names_differ(engine_sandbox: EngineSandbox) -> None:
    assert engine_sandbox.name != NamespaceSandbox().name
