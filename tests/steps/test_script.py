"""Scripts: what they are run with, and what they are held to."""

from typing import NoReturn

import pytest

from builder.changes import Inline, Put, Remove
from builder.digest import Digest, ObjectId
from builder.errors import PatchError, SandboxError
from builder.lock.model import SourceFile, SourcePin
from builder.observed import Observed
from builder.outcome import FileOutcome, Outcome
from builder.python_layout import PythonLayout
from builder.sandbox import Laid, Sandbox
from builder.steps.request import Materials
from builder.steps.script import AnyScript, OwnScript, PinnedScript, ScriptRequest
from builder.variant import Script
from builder.verdict import Verdict
from tests.fakes import File, Link, Node, TreeView
from tests.unguarded import Unguarded

P = "usr/local/lib/python3.12/dist-packages"
LAYOUT = PythonLayout(
    version="3.12", packages=P, prefix="usr/local", interpreter="/usr/bin/python3"
)
CONFIG = f"{P}/vllm/config.py"
TREE: dict[str, Node] = {
    CONFIG: b"SIZE = 128\n",
    f"{P}/vllm/_C.so": bytes(10),
    f"{P}/vllm/sub/module.py": b"x = 1\n",
    f"{P}/torch/__init__.py": b"",
    f"{P}/single.py": b"one\n",
    "opt/app/run.sh": File(b"#!/bin/sh\necho old\n", mode=0o755),
    "opt/app/big.bin": bytes(10),
    "opt/link": Link("app"),
    "opt/file-link": Link("app/run.sh"),
}
PYTHON = """\
import os, pathlib, sys
packages = pathlib.Path(os.environ["BUILDER_PACKAGES"])
config = packages / "vllm" / "config.py"
"""
AT = "variants/it.yaml:5: steps[0]"


def own(text: str, file: str = "tools/fix.py") -> OwnScript:
    return OwnScript(overlay="fix", script=Script(file=file, data=text.encode()))


class Own:
    """:class:`builder.steps.request.Materials` of a project without pins."""

    def __init__(self, sandbox: Sandbox, files: dict[str, bytes] | None = None) -> None:
        self.sandbox = sandbox
        self._files = files or {}

    def source(self, pin: SourcePin, path: str) -> bytes:
        return self._files[path]

    def nothing(self, *_: object) -> NoReturn:
        raise AssertionError("nobody asks for it")

    payload = plugin = pull = wheel = nothing


@pytest.fixture
def sandbox() -> Unguarded:
    return Unguarded()


def requested(
    script: AnyScript | str,
    *touches: str,
    interpreter: str = "python",
    arguments: tuple[str, ...] = (),
    environment: tuple[tuple[str, str], ...] = (),
) -> ScriptRequest:
    return ScriptRequest(
        script=own(script) if isinstance(script, str) else script,
        interpreter=interpreter,
        touches=touches or ("vllm/config.py",),
        arguments=arguments,
        environment=environment,
        python=LAYOUT,
        at=AT,
    )


def run(request: ScriptRequest, sandbox: Unguarded) -> Outcome:
    materials: Materials = Own(sandbox)
    return request.run(Observed(TreeView(TREE)), materials)


def refused(request: ScriptRequest, sandbox: Unguarded) -> PatchError:
    with pytest.raises(PatchError) as caught:
        run(request, sandbox)
    assert caught.value.verdict == Verdict.REFUSED
    return caught.value


def test_a_script_changes_adds_and_removes_what_it_declares(sandbox: Unguarded) -> None:
    script = PYTHON + (
        "config.write_text(config.read_text().replace('128', '256'))\n"
        "(packages / 'vllm' / 'new.py').write_text('new')\n"
        "(packages / 'vllm' / 'sub' / 'module.py').unlink()\n"
    )
    outcome = run(requested(script, "vllm/config.py", "vllm/new.py", "vllm/sub/module.py"), sandbox)
    assert outcome.changes == (
        Put(path=CONFIG, content=Inline(b"SIZE = 256\n")),
        Put(path=f"{P}/vllm/new.py", content=Inline(b"new"), mode=0o644),
        Remove(path=f"{P}/vllm/sub/module.py"),
    )
    assert outcome.files[0] == FileOutcome(
        path=CONFIG,
        verdict=Verdict.APPLIED,
        pre=Digest.of(b"SIZE = 128\n"),
        post=Digest.of(b"SIZE = 256\n"),
    )
    assert (outcome.summary, outcome.sandbox) == ("fix.py: 3 files", "unguarded")


def test_a_shell_script_changes_a_file_elsewhere(sandbox: Unguarded) -> None:
    script = own('sed -i s/old/new/ "$1"\n', file="fix.sh")
    outcome = run(
        requested(script, "/opt/app/run.sh", interpreter="sh", arguments=("/opt/app/run.sh",)),
        sandbox,
    )
    assert outcome.changes == (
        Put(path="opt/app/run.sh", content=Inline(b"#!/bin/sh\necho new\n")),
    )
    assert outcome.summary == "fix.sh: 1 file"


def test_a_script_of_a_source_is_run_by_its_pinned_bytes(sandbox: Unguarded) -> None:
    data = (PYTHON + "config.write_text('')\n").encode()
    pin = SourcePin(
        name="club",
        repository="https://git.example/club",
        commit=ObjectId("1" * 40),
        tree=ObjectId("2" * 40),
        files=(SourceFile(path="a/fix.py", digest=Digest.of(data), size=len(data)),),
    )
    request = requested(PinnedScript(source=pin, path="a/fix.py"))
    materials: Materials = Own(sandbox, {"a/fix.py": data})
    outcome = request.run(Observed(TreeView(TREE)), materials)
    assert [file.path for file in outcome.files] == [CONFIG]
    assert request.pins == ("source club",)
    assert request.record()["script"] == str(Digest.of(data))


# --- what it is shown ----------------------------------------------------------------------------


def test_a_script_sees_the_whole_package_of_what_it_touches(sandbox: Unguarded) -> None:
    script = PYTHON + "config.write_text('')\n"
    run(requested(script), sandbox)
    (job,) = sandbox.jobs
    assert job.roots == (f"{P}/vllm",)
    assert job.files == (
        Laid(path=f"{P}/vllm/_C.so", data=None, size=10),
        Laid(path=CONFIG, data=b"SIZE = 128\n"),
        Laid(path=f"{P}/vllm/sub/module.py", data=b"x = 1\n"),
    )
    assert job.inputs == (Laid(path="script", data=script.encode(), mode=0o755),)


def test_of_a_file_elsewhere_a_script_sees_that_file_alone(sandbox: Unguarded) -> None:
    text = 'for file in "$@"; do echo >> "$file"; done\n'
    targets = (f"/{P}/single.py", "/opt/app/big.bin")
    request = requested(own(text), *targets, interpreter="sh", arguments=targets)
    run(request, sandbox)
    (job,) = sandbox.jobs
    assert job.roots == ("opt/app", P)
    assert [item.path for item in job.files] == ["opt/app/big.bin", f"{P}/single.py"]


def test_a_root_inside_another_is_none(sandbox: Unguarded) -> None:
    script = PYTHON + "config.write_text('')\n(packages / 'single.py').write_text('')\n"
    run(requested(script, "vllm/config.py", "single.py"), sandbox)
    (job,) = sandbox.jobs
    assert job.roots == (P,)
    assert len(job.files) == 4


def test_a_library_that_is_declared_is_there_with_its_content(sandbox: Unguarded) -> None:
    script = PYTHON + (
        "so = packages / 'vllm' / '_C.so'\nso.write_bytes(so.read_bytes().replace(b'\\0', b'1'))\n"
    )
    outcome = run(requested(script, "vllm/_C.so"), sandbox)
    assert outcome.changes == (Put(path=f"{P}/vllm/_C.so", content=Inline(b"1" * 10)),)


def test_arguments_and_environment_are_those_of_the_recipe(sandbox: Unguarded) -> None:
    script = PYTHON + (
        "config.write_text(repr((sys.argv[1:], os.environ['LEVEL'], 'PYTHONPATH' in os.environ,\n"
        "    os.environ['PYTHONHASHSEED'], str(packages) in sys.path)))\n"
    )
    request = requested(script, arguments=("--all", ""), environment=(("LEVEL", "2"),))
    (change,) = run(request, sandbox).changes
    assert isinstance(change, Put)
    assert change.content == Inline(b"(['--all', ''], '2', False, '0', False)")
    assert sandbox.jobs[0].command == (
        *("python", "-s", "-S", "-P", "-B", "/builder/in/script"),
        *("--all", ""),
    )
    assert sandbox.jobs[0].environment == {
        "BUILDER_PACKAGES": f"/{P}",
        "PYTHONHASHSEED": "0",
        "LEVEL": "2",
    }


# --- what it is held to --------------------------------------------------------------------------


def test_what_is_changed_and_not_declared_fails_with_all_names(sandbox: Unguarded) -> None:
    script = PYTHON + (
        "config.write_text('')\n(packages / 'vllm' / 'new.py').write_text('')\n"
        "(packages / 'vllm' / 'sub' / 'module.py').unlink()\nprint('all done')\n"
    )
    error = refused(requested(script), sandbox)
    assert error.message == f"{AT}: 'tools/fix.py' and its 'touches' do not agree"
    assert error.findings == (
        f"{P}/vllm/new.py: changed, and not declared",
        f"{P}/vllm/sub/module.py: changed, and not declared",
    )
    assert error.difference == "all done"


def test_what_is_declared_and_not_changed_fails_with_all_names(sandbox: Unguarded) -> None:
    script = PYTHON + "config.write_text(config.read_text())\nprint('patched', config.name)\n"
    error = refused(requested(script, "vllm/config.py", "vllm/none.py"), sandbox)
    assert error.findings == (
        f"{CONFIG}: declared, and not changed",
        f"{P}/vllm/none.py: declared, and not changed",
    )
    assert error.difference == "patched config.py"
    assert error.hint == (
        "a file that it should change and does not is a change that was lost, or is upstream"
        " already; one that it changes besides belongs under 'touches'"
    )


def test_a_script_that_fails_is_quoted_by_its_last_lines(sandbox: Unguarded) -> None:
    script = "import sys\nfor n in range(30): print('line', n, file=sys.stderr)\nsys.exit(3)\n"
    error = refused(requested(script), sandbox)
    assert error.message == f"{AT}: 'tools/fix.py' ended with exit status 3"
    assert error.difference == "\n".join(f"line {n}" for n in range(10, 30))


def test_what_a_script_says_does_not_steer_the_terminal(sandbox: Unguarded) -> None:
    script = """import sys
sys.stdout.buffer.write(b"\\x1b]0;title\\x07\\t\\xff\\r\\n" + 10_000 * b"x")
sys.exit(1)
"""
    error = refused(requested(script), sandbox)
    assert error.difference == "\\x1b]0;title\\x07\t\ufffd\n" + 500 * "x"


def test_a_script_that_fails_without_a_complaint_is_quoted_by_what_it_printed(
    sandbox: Unguarded,
) -> None:
    error = refused(requested("echo no anchor; exit 1", interpreter="sh"), sandbox)
    assert error.difference == "no anchor"


def test_a_script_that_fails_without_a_word_is_refused_all_the_same(sandbox: Unguarded) -> None:
    error = refused(requested("exit 1", interpreter="sh"), sandbox)
    assert error.difference is None


def test_a_link_that_is_left_is_refused(sandbox: Unguarded) -> None:
    script = PYTHON + "config.unlink()\nconfig.symlink_to('/etc/passwd')\n"
    with pytest.raises(SandboxError) as caught:
        run(requested(script), sandbox)
    assert caught.value.message == (
        f"{AT}: the program left what cannot be taken: {CONFIG!r}, a link to '/etc/passwd'"
    )


@pytest.mark.parametrize(
    "target, said",
    [
        pytest.param(
            "/opt/link/run.sh",
            "'opt/link/run.sh' leads through a link, to 'opt/app/run.sh'",
            id="through a link",
        ),
        pytest.param("/opt/file-link", "'opt/file-link' is a symlink to 'app/run.sh'", id="a link"),
        pytest.param("vllm/sub", f"'{P}/vllm/sub' is a dir", id="a directory"),
        pytest.param(
            "/top",
            "'top' stands in the root of the image, of which no program gets a copy",
            id="in the root",
        ),
        *(
            pytest.param(f"/{path}", f"{path!r} stands where the sandbox has files of its own")
            for path in (
                "tmp/x",
                "tmp/home/x",
                "dev/shm/x",
                "proc/x",
                "builder/in/x",
                "lib64/x",
                "usr/lib/x",
                "usr/lib/x86_64-linux-gnu/x",
            )
        ),
    ],
)
def test_only_plain_files_are_touched(sandbox: Unguarded, target: str, said: str) -> None:
    error = refused(requested("", target), sandbox)
    assert error.message == f"{AT}: touches: {said}, wanted the path of a file"
    assert sandbox.jobs == []
