"""What a program finds, and what comes back of what it did."""

import re

import pytest

from builder.adapters.sandbox import EngineSandbox, NamespaceSandbox
from builder.errors import SandboxError
from builder.sandbox import (
    Finished,
    Job,
    Laid,
    LeftFile,
    LeftLink,
    LeftOther,
    Limits,
    Sandbox,
)
from tests.adapters.sandbox.conftest import ENGINE
from tests.adapters.sandbox.honest import HONEST, HONEST_END
from tests.adapters.sandbox.jobs import QUICK, ROOT, python


def test_an_honest_program_finds_its_files_and_all_that_it_changed_comes_back(
    sandbox: Sandbox,
) -> None:
    assert sandbox.run(HONEST) == HONEST_END


def test_a_shell_is_there_and_a_program_by_its_path(sandbox: Sandbox) -> None:
    job = Job(
        command=("sh", "-c", 'echo "$1" >x; exit 4', "sh", "word"),
        roots=("opt/a",),
        files=(),
        working="/opt/a",
    )
    assert sandbox.run(job) == Finished(
        status=4,
        stdout=b"",
        stderr=b"",
        left=(LeftFile(path="opt/a/x", data=b"word\n", mode=0o644),),
    )
    listing = Job(command=("/bin/ls", "/opt/a"), roots=("opt/a",), files=())
    assert sandbox.run(listing) == Finished(status=0, stdout=b"", stderr=b"")


def test_a_program_that_is_not_there_is_told_as_that(sandbox: Sandbox) -> None:
    with pytest.raises(SandboxError) as caught:
        sandbox.run(Job(command=("/bin/nothing",), roots=("opt/a",), files=()))
    assert caught.value.message == "sandbox: '/bin/nothing': No such file or directory"


def test_its_own_directory_may_hide_one_of_the_systems(sandbox: Sandbox) -> None:
    """The root has what was laid and nothing else, also where the sandbox has such a directory,
    and what is beside it is still there."""
    text = "import os; print(os.listdir('.')); open('new', 'w')"
    done = sandbox.run(python(text, root="usr/share/doc/a/b"))
    assert (done.status, done.stdout) == (0, b"['keep']\n"), done.stderr
    assert done.left == (LeftFile(path="usr/share/doc/a/b/new", data=b"", mode=0o644),)


def test_a_write_through_a_mapping_is_seen_though_no_time_changes(sandbox: Sandbox) -> None:
    done = sandbox.run(
        python(
            """
            import mmap, os
            file = os.open("m", os.O_RDWR)
            before = os.fstat(file)
            view = mmap.mmap(file, 4)
            view[:]
            view[0:1] = b"X"
            view.flush()
            os.utime("m", ns=(before.st_atime_ns, before.st_mtime_ns))
            """,
            Laid(path=f"{ROOT}/m", data=b"same"),
        )
    )
    assert done.left == (LeftFile(path=f"{ROOT}/m", data=b"Xame", mode=0o644),)


def test_hostile_names_come_back_as_they_are(sandbox: Sandbox) -> None:
    done = sandbox.run(
        python(
            r"""
            import os
            for name in (b"\xff\xfe", b"new\nline", b"-rf", b"a" * 255, "ü".encode(), b" "):
                open(name, "w").close()
            os.symlink(b"\xff", b"link")
            """,
            Laid(path=f"{ROOT}/in\udcffvalid", data=b"kept"),
        )
    )
    assert done.status == 0, done.stderr
    assert [each.path.removeprefix(f"{ROOT}/") for each in done.left] == sorted(
        [" ", "-rf", "a" * 255, "link", "new\nline", "ü", "\udcff\udcfe"]
    )
    assert LeftLink(path=f"{ROOT}/link", target="\udcff") in done.left
    assert done.removed == ()


def test_what_is_no_file_comes_back_as_a_word_and_is_not_opened(sandbox: Sandbox) -> None:
    done = sandbox.run(
        python(
            """
            import os, socket, stat
            os.mkfifo("pipe")
            socket.socket(socket.AF_UNIX).bind("socket")
            os.mknod("whiteout", stat.S_IFCHR, 0)
            """
        )
    )
    assert done.status == 0, done.stderr
    assert done.left == (
        LeftOther(path=f"{ROOT}/pipe", kind="a named pipe"),
        LeftOther(path=f"{ROOT}/socket", kind="a socket"),
        LeftOther(path=f"{ROOT}/whiteout", kind="a character device"),
    )


def test_a_hard_link_is_one_more_file_and_none_leads_elsewhere(sandbox: Sandbox) -> None:
    done = sandbox.run(
        python(
            """
            import os
            os.link("keep", "again")
            for outside in ("/bin/ls", "/tmp/mine"):
                open("/tmp/mine", "w")
                try:
                    os.link(outside, "stolen")
                except OSError as error:
                    print(error.strerror)
            """
        )
    )
    assert done.stdout == b"Invalid cross-device link\n" * 2
    assert done.left == (LeftFile(path=f"{ROOT}/again", data=b"", mode=0o644),)


def test_what_may_not_be_read_is_read_all_the_same(sandbox: Sandbox) -> None:
    done = sandbox.run(
        python(
            """
            import os
            os.makedirs("closed/in")
            open("closed/in/file", "w").write("x")
            os.chmod("closed/in/file", 0)
            os.chmod("keep", 0)
            os.chmod("closed/in", 0)
            os.chmod("closed", 0)
            os.chmod(".", 0)
            """
        )
    )
    assert done.left == (
        LeftFile(path=f"{ROOT}/closed/in/file", data=b"x", mode=0),
        LeftFile(path=f"{ROOT}/keep", data=b"", mode=0),
    )


@pytest.mark.parametrize(
    "text, reason",
    [
        pytest.param(
            "open('sparse', 'w').truncate(1 << 40)",
            "it left more bytes than it may write, in sparse files",
            id="a sparse file",
        ),
        pytest.param(
            "import os\nfor _ in range(100): os.mkdir('d' * 99); os.chdir('d' * 99)",
            "it left a directory that cannot be read: File name too long",
            id="names longer than a path",
        ),
        pytest.param(
            "for n in range(10**6): open(str(n), 'w').close()",
            "it made more than 100000 files",
            id="a million files",
        ),
    ],
)
def test_more_than_can_be_taken_back_is_refused(sandbox: Sandbox, text: str, reason: str) -> None:
    with pytest.raises(SandboxError) as caught:
        sandbox.run(python(text, limits=Limits(seconds=60.0, disk=64 << 20)))
    assert caught.value.message.endswith(f": {reason}")
    assert caught.value.exit_status == 6


def test_a_file_outside_of_the_roots_is_a_mistake_of_the_caller(sandbox: Sandbox) -> None:
    job = Job(command=("sh",), roots=("opt/a",), files=(Laid(path="opt/ab", data=b""),))
    with pytest.raises(RuntimeError, match=r"'opt/ab' is in none of \('opt/a',\)"):
        sandbox.run(job)


@pytest.mark.parametrize("path", ["opt/a/../../etc/passwd", "opt/a//b", "opt/a/./b", "opt/a/"])
def test_a_path_that_leads_elsewhere_is_refused_before_anything_runs(
    sandbox: Sandbox, path: str
) -> None:
    laid = (Laid(path=path, data=b""),)
    message = re.escape(f"sandbox: expected a path from the root, got {path!r}")
    with pytest.raises(SandboxError, match=message):
        sandbox.run(Job(command=("sh",), roots=("opt/a",), files=laid))
    with pytest.raises(SandboxError, match=message):
        sandbox.run(Job(command=("sh",), roots=("opt/a",), files=(), inputs=laid))


def test_a_zero_byte_is_refused_before_anything_runs(sandbox: Sandbox) -> None:
    job = Job(command=("sh", "-c", "a\0b"), roots=("opt/a",), files=(), limits=QUICK)
    with pytest.raises(SandboxError, match="a zero byte in"):
        sandbox.run(job)


@ENGINE
def test_both_give_the_same(engine_sandbox: EngineSandbox) -> None:
    assert NamespaceSandbox().run(HONEST) == engine_sandbox.run(HONEST) == HONEST_END
