"""A patch set is laid, baked and judged: tiny ones of our own, run by a real sandbox."""

import json
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import NoReturn

import pytest

from builder.adapters.sandbox import NamespaceSandbox
from builder.changes import Change, Inline, Put, Symlink
from builder.digest import Digest, ObjectId
from builder.errors import PatchError, ProjectError
from builder.lock.model import GenesisPin, Subtree
from builder.observed import Observed
from builder.outcome import FileOutcome, Outcome, PatchOutcome, PatchState
from builder.ports import GitFile, GitSubtree
from builder.python_layout import PythonLayout
from builder.sandbox import Finished, Job
from builder.steps.genesis import GenesisRequest, capability
from builder.verdict import Verdict
from tests.fakes import File, Node, TreeView

AT = "variants/it.yaml:7: steps[0]"
PIN_AT = "lockfiles/genesis.yaml:3: genesis.v1"
ID = ObjectId("1" * 40)
P = "usr/lib/python3.12/site-packages"
LAYOUT = PythonLayout(version="3.12", packages=P, prefix="usr", interpreter="/usr/bin/python3")
CONFIG, MODEL = f"{P}/vllm/config.py", f"{P}/vllm/model.py"
METADATA = f"{P}/vllm-0.22.0.dist-info/METADATA"
TREE: Mapping[str, Node] = {
    f"{P}/vllm/__init__.py": b"raise RuntimeError('start-up code')\n",
    CONFIG: b"SIZE = 1\n",
    MODEL: File(b"LAYERS = 2\n", mode=0o755),
    METADATA: b"Version: 0.22.0\nRequires-Dist: torch==2.11.0 ; python_version > '3'\n",
}
APPLY = """\
import logging, os, pathlib, sys, torch, vllm
log = logging.getLogger("genesis.apply_all")
root = pathlib.Path(vllm.__file__).parent

def say(what, name, reason="done"):
    log.info("[Genesis] " + what + ": %s — %s", name, reason)

def write(name, path="config.py", text=""):
    mark = f"# [Genesis wiring marker: Genesis {name} wider cache v1]\\n" if name else ""
    file = root / path
    file.write_text(mark + (file.read_text() if file.exists() else "") + text)

"""
MARK = "# [Genesis wiring marker: Genesis {} wider cache v1]\n"
PROJECT = """\
[project]
name = "genesis-plugin"
version = "7.1"
[project.entry-points."vllm.general_plugins"]
genesis_v7 = "genesis_v7:register"
"""

pytestmark = pytest.mark.requires("unshare")


class Recorded(NamespaceSandbox):
    """Keeps the jobs that it ran."""

    def __init__(self) -> None:
        super().__init__()
        self.jobs: list[Job] = []

    def run(self, job: Job) -> Finished:
        self.jobs.append(job)
        return super().run(job)

    @property
    def told(self) -> Mapping[str, object]:
        """What the harness was told."""
        (job,) = self.jobs
        found = {item.path: item.data for item in job.inputs}
        told: Mapping[str, object] = json.loads(found["bake.json"] or b"")
        return told


@dataclass(kw_only=True)
class Pinned:
    """:class:`builder.steps.request.Materials` of one patch set."""

    files: tuple[GitFile, ...]
    beside: tuple[GitFile, ...] | None = None
    sandbox: Recorded

    def payload(self, pin: GenesisPin) -> GitSubtree:
        return GitSubtree(tree=str(ID), files=self.files)

    def plugin(self, pin: GenesisPin) -> GitSubtree | None:
        return None if self.beside is None else GitSubtree(tree=str(ID), files=self.beside)

    def nothing(self, *_: object) -> NoReturn:
        raise AssertionError("nobody asks for it")

    pull = source = wheel = nothing


@pytest.fixture
def sandbox() -> Recorded:
    return Recorded()


def blob(path: str, text: str = "", mode: str = "100644") -> GitFile:
    return GitFile(path=path, mode=mode, data=text.encode())


def requested(path: str = "vllm/_genesis", **fields: object) -> GenesisRequest:
    pin = GenesisPin(
        name="v1",
        repository="https://git.example/patches",
        commit=ID,
        tree=ID,
        payload=Subtree(path=path, tree=ID),
        at=PIN_AT,
    )
    request = GenesisRequest(pin=pin, platform="cuda-8.6", python=LAYOUT, at=AT)
    return replace(request, **fields)  # type: ignore[arg-type]  # its own fields


def run(
    sandbox: Recorded,
    apply: str,
    *more: GitFile,
    request: GenesisRequest | None = None,
    tree: Mapping[str, Node] = TREE,
    plugin: tuple[GitFile, ...] | None = None,
) -> Outcome:
    """Bake a payload of the first era whose module is ``apply``."""
    files = (
        blob("__init__.py"),
        blob("patches/__init__.py"),
        blob("patches/apply_all.py", APPLY + apply),
        *more,
    )
    materials = Pinned(files=files, beside=plugin, sandbox=sandbox)
    return (request or requested()).run(Observed(TreeView(tree)), materials)


def refused(sandbox: Recorded, apply: str, *more: GitFile, **given: object) -> PatchError:
    with pytest.raises(PatchError) as caught:
        run(sandbox, apply, *more, **given)  # type: ignore[arg-type]  # as run takes them
    assert caught.value.verdict == Verdict.REFUSED
    return caught.value


def put(outcome: Outcome) -> dict[str, Change]:
    return {change.path.removeprefix(f"{P}/"): change for change in outcome.changes}


# --- what comes of it ----------------------------------------------------------------------------


def test_a_layer_has_the_payload_and_what_it_changed(sandbox: Recorded) -> None:
    tool = blob("tool.sh", "echo\n", mode="100755")
    outcome = run(
        sandbox,
        "write('P1')\nwrite('P1', 'new.py', 'x = 1\\n')\nsay('applied', 'P1 wider cache')\n"
        "say('skipped', 'P2 more', 'opt-in')\nsay('applied', 'P3 in memory')\n",
        tool,
    )
    after = (MARK.format("P1") + "SIZE = 1\n").encode()
    changes = put(outcome)
    assert sorted(changes) == [
        "vllm/_genesis/__init__.py",
        "vllm/_genesis/patches/__init__.py",
        "vllm/_genesis/patches/apply_all.py",
        "vllm/_genesis/tool.sh",
        "vllm/config.py",
        "vllm/new.py",
    ]
    assert changes["vllm/config.py"] == Put(path=CONFIG, content=Inline(after))
    assert changes["vllm/_genesis/tool.sh"] == Put(
        path=f"{P}/vllm/_genesis/tool.sh", content=Inline(b"echo\n"), mode=0o755
    )
    assert outcome.files[0] == FileOutcome(
        path=CONFIG,
        verdict=Verdict.APPLIED,
        pre=Digest.of(b"SIZE = 1\n"),
        post=Digest.of(after),
    )
    assert outcome.patches == (
        PatchOutcome(
            name="P1",
            state=PatchState.APPLIED,
            reason="done",
            files=(CONFIG, f"{P}/vllm/new.py"),
        ),
        PatchOutcome(name="P2", state=PatchState.SKIPPED, reason="opt-in"),
        PatchOutcome(name="P3", state=PatchState.RUNTIME_ONLY, reason="done"),
    )
    assert outcome.summary == "2 applied (1 at run time only), 1 skipped; 2 files, 2 markers"
    assert outcome.sandbox == "linux-namespaces"


def test_what_it_decides_by_is_what_the_recipe_says(sandbox: Recorded) -> None:
    request = requested(
        platform="cuda-9.0", speculative="mtp", environment=(("GENESIS_ENABLE_P1", "1"),)
    )
    seen = (
        "from vllm.platforms import current_platform as p\n"
        "say('applied', 'P1', [vllm.__version__, tuple(p.get_device_capability()), sorted(\n"
        "    name + '=' + value for name, value in os.environ.items() if 'GENESIS' in name)])\n"
    )
    outcome = run(sandbox, seen, request=request)
    environment = ["GENESIS_ENABLE_P1=1", "GENESIS_FORCE_SPEC_DECODE=mtp"]
    assert outcome.patches[0].reason == str(["0.22.0", (9, 0), environment])
    (job,) = sandbox.jobs
    assert job.roots == (P,)
    assert [item.path.removeprefix(f"{P}/vllm/") for item in job.files] == [
        *("__init__.py", "config.py", "model.py"),
        *("_genesis/__init__.py", "_genesis/patches/__init__.py"),
        "_genesis/patches/apply_all.py",
    ]


@pytest.mark.parametrize(
    ("tree", "version"),
    [
        pytest.param(TREE, "2.11.0", id="that vLLM requires"),
        pytest.param(
            {**TREE, f"{P}/torch-2.12.0+cu130.dist-info/METADATA": b""},
            "2.12.0+cu130",
            id="that the image has",
        ),
        pytest.param(
            {**TREE, f"{P}/torch-2.12.0-py3.12.egg-info/PKG-INFO": b""},
            "2.12.0",
            id="that the image has as an egg",
        ),
        pytest.param(
            {**TREE, f"{P}/torch_audio-3.0.dist-info/METADATA": b"", METADATA: b"Version: 1\n"},
            "0",
            id="none",
        ),
    ],
)
def test_the_version_of_torch_is_that_of_the_image_or_of_what_vllm_requires(
    sandbox: Recorded, tree: Mapping[str, Node], version: str
) -> None:
    outcome = run(sandbox, "say('applied', 'P1', torch.__version__)\n", tree=tree)
    assert outcome.patches[0].reason == version
    assert sandbox.told["stand_ins"] == {"torch": version}


def test_a_patch_that_says_skipped_and_changed_a_file_was_applied(
    sandbox: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = run(sandbox, "write('P1')\nsay('skipped', 'P1', 'drift')\n")
    assert outcome.patches[0].state is PatchState.APPLIED
    assert [(record.levelno, record.getMessage()) for record in caplog.records] == [
        (logging.WARNING, f"{AT}: P1 says that it was skipped, and changed {CONFIG}: drift")
    ]


def test_a_patch_that_leaves_no_marker_is_told_of(
    sandbox: Recorded, caplog: pytest.LogCaptureFixture
) -> None:
    outcome = run(sandbox, "write(None, text='# more\\n')\nsay('applied', 'P1')\n")
    assert outcome.patches[0].files == (CONFIG,)
    assert [record.getMessage() for record in caplog.records] == [
        f"{AT}: P1 wrote to {CONFIG} and left no marker there"
    ]


def test_two_patches_of_one_file_each_have_it(sandbox: Recorded) -> None:
    outcome = run(
        sandbox,
        "write('P1')\nsay('applied', 'P1')\nwrite('p2')\nsay('applied', 'P2')\n",
    )
    assert [item.files for item in outcome.patches] == [(CONFIG,), (CONFIG,)]
    assert outcome.summary == "2 applied (0 at run time only), 0 skipped; 1 file, 2 markers"


def test_a_file_that_is_as_it_was_in_the_end_is_not_changed(sandbox: Recorded) -> None:
    outcome = run(
        sandbox,
        "before = (root / 'config.py').read_text()\nwrite('P1')\n"
        "(root / 'config.py').write_text(before)\nsay('applied', 'P1')\n",
    )
    assert outcome.patches[0].state is PatchState.RUNTIME_ONLY
    assert outcome.files == ()


# --- what workers are to call --------------------------------------------------------------------


def test_a_plugin_beside_the_payload_is_installed(sandbox: Recorded) -> None:
    plugin = (
        blob("genesis_v7/__init__.py", "def register(): ...\n"),
        blob("pyproject.toml", PROJECT),
    )
    changes = put(run(sandbox, "say('applied', 'P1')\n", plugin=plugin))
    info = "genesis_plugin-7.1.dist-info"
    assert _text(changes["genesis_v7/__init__.py"]) == "def register(): ...\n"
    assert _text(changes[f"{info}/entry_points.txt"]) == (
        "[vllm.general_plugins]\ngenesis_v7 = genesis_v7:register\n"
    )
    assert f"{info}/RECORD" in changes
    assert all("pyproject" not in path for path in changes)


@pytest.mark.parametrize(
    ("payload", "module", "hook"),
    [
        pytest.param("vllm/sndr_core", "apply", "vllm.sndr_core.plugin:register", id="v8-v11"),
        pytest.param("sndr", "apply", "sndr.plugin:register", id="v12"),
    ],
)
def test_a_payload_that_holds_its_plugin_gets_a_hook(
    sandbox: Recorded, payload: str, module: str, hook: str
) -> None:
    materials = Pinned(
        files=(blob("__init__.py"), blob(f"{module}.py", APPLY + "say('applied', 'P1')\n")),
        sandbox=sandbox,
    )
    outcome = requested(payload).run(Observed(TreeView(TREE)), materials)
    changes = put(outcome)
    assert f"{payload}/apply.py" in changes
    assert _text(changes["genesis_hook-1.dist-info/entry_points.txt"]) == (
        f"[vllm.general_plugins]\ngenesis_v7 = {hook}\n"
    )


def test_an_era_whose_plugin_stands_beside_gets_no_hook_for_itself(sandbox: Recorded) -> None:
    changes = put(run(sandbox, "say('applied', 'P1')\n"))
    assert [path for path in changes if "dist-info" in path] == []


def _text(change: Change) -> str:
    assert isinstance(change, Put)
    return change.content.open().read().decode()


# --- what is refused -----------------------------------------------------------------------------


def test_patches_that_failed_are_named(sandbox: Recorded) -> None:
    error = refused(
        sandbox,
        "say('applied', 'P1')\nsay('FAILED', 'P2 more', 'no anchor')\n"
        "try:\n    raise KeyError('k')\nexcept KeyError:\n"
        "    log.exception('[Genesis] EXCEPTION in %s', 'P3')\nsys.exit(1)\n",
    )
    assert error.message == f"{AT}: 2 of 3 patches failed"
    assert error.findings == ("P2: no anchor", "P3: KeyError: 'k'")
    assert error.hint == (
        "switch them off in the variant's image.env, or pin a commit that fits the base"
    )


@pytest.mark.parametrize(
    ("apply", "ended"),
    [
        pytest.param("say('applied', 'P1')\nsys.exit(3)\n", (3, 1), id="another status"),
        pytest.param("say('applied', 'P1')\nsys.exit(1)\n", (1, 1), id="1, and none failed"),
        pytest.param("", (0, 0), id="no patch was told of"),
        pytest.param("import numpy\n", (1, 0), id="a module is missing"),
    ],
)
def test_a_run_that_does_not_end_as_it_should_is_refused(
    sandbox: Recorded, apply: str, ended: tuple[int, int]
) -> None:
    error = refused(sandbox, f"print('the last line', file=sys.stderr)\n{apply}")
    status, told = ended
    assert error.message == (
        f"{AT}: the patch set ended with exit status {status}, having told of {told} patches"
    )
    assert error.hint == (
        "the last lines of its output are above; it runs with a bare vllm package, an inert torch"
        " and the standard library"
    )
    assert error.difference is not None
    assert "the last line" in error.difference


def test_of_a_long_output_the_last_lines_are_shown(sandbox: Recorded) -> None:
    error = refused(sandbox, "for n in range(30): print('line', n)\nsys.exit(3)\n")
    assert error.difference == "\n".join(f"line {n}" for n in range(10, 30))


def test_a_change_that_no_patch_made_is_refused(sandbox: Recorded) -> None:
    error = refused(sandbox, "say('applied', 'P1')\nwrite(None, text='# late\\n')\n")
    assert error.message == f"{AT}: what the patch set says and what the files say do not fit"
    assert error.findings == (f"{CONFIG}: is different, and no patch wrote to it",)


def test_a_file_that_is_only_made_executable_is_claimed_by_nobody(sandbox: Recorded) -> None:
    error = refused(sandbox, "(root / 'config.py').chmod(0o755)\nsay('applied', 'P1')\n")
    assert error.findings == (f"{CONFIG}: is different, and no patch wrote to it",)


def test_a_marker_of_a_patch_that_did_not_write_is_refused(sandbox: Recorded) -> None:
    error = refused(
        sandbox,
        "write('P9')\nsay('applied', 'P1')\nwrite('P2', 'model.py')\nwrite('P1', 'model.py')\n"
        "say('applied', 'P2')\n",
    )
    assert error.findings == (
        f"{CONFIG}: has the marker of P9, which did not write to it",
        f"{MODEL}: has the marker of P1, which did not write to it",
    )


@pytest.mark.parametrize(
    ("apply", "path"),
    [
        pytest.param("write('P1', '_genesis/__init__.py')\n", "__init__.py", id="changed"),
        pytest.param("(root / '_genesis/__init__.py').unlink()\n", "__init__.py", id="removed"),
    ],
)
def test_a_patch_set_that_changes_itself_is_refused(
    sandbox: Recorded, apply: str, path: str
) -> None:
    error = refused(sandbox, f"{apply}say('applied', 'P1')\n")
    own = f"{P}/vllm/_genesis/{path}"
    assert error.message == f"{AT}: the patch set changes its own files: {own}"
    assert error.path == own


def test_a_file_that_a_patch_set_adds_to_itself_is_of_no_patch(sandbox: Recorded) -> None:
    error = refused(sandbox, "say('applied', 'P1')\nwrite(None, '_genesis/cache.json', '{}')\n")
    assert error.findings == (
        f"{P}/vllm/_genesis/cache.json: is different, and no patch wrote to it",
    )


def test_what_another_build_laid_is_not_laid_over(sandbox: Recorded) -> None:
    tree = {**TREE, f"{P}/vllm/_genesis/old.py": b""}
    error = refused(sandbox, "", tree=tree)
    assert error.message == f"{AT}: '{P}/vllm/_genesis' is in the image already"
    assert error.path == f"{P}/vllm/_genesis"
    assert error.hint == "one patch set goes into an image, once, and into one that has none"
    assert sandbox.jobs == []


@pytest.mark.parametrize("target", ["/etc/passwd", "../config.py", "nowhere", "link", ".", ".."])
def test_a_link_that_leads_out_of_a_payload_is_refused(sandbox: Recorded, target: str) -> None:
    error = refused(sandbox, "", blob("link", target, mode="120000"))
    assert error.message == (
        f"{AT}: the link 'link' of the patch set leads to {target!r}, which is no file or directory"
        " of it"
    )
    assert error.path == f"{P}/vllm/_genesis/link"
    assert sandbox.jobs == []


def test_a_link_inside_a_payload_is_a_link_and_can_be_imported_through(sandbox: Recorded) -> None:
    outcome = run(
        sandbox,
        "from vllm._genesis.old.set import NAME\nwrite(NAME)\nsay('applied', NAME)\n",
        blob("new/set/__init__.py", "NAME = 'P1'\n"),
        blob("old/set", "../new/set", mode="120000"),
    )
    assert [patch.state for patch in outcome.patches] == ["applied"]
    links = [change for change in outcome.changes if isinstance(change, Symlink)]
    assert links == [Symlink(path=f"{P}/vllm/_genesis/old/set", target="../new/set")]
    paths = [change.path for change in outcome.changes]
    assert f"{P}/vllm/_genesis/new/set/__init__.py" in paths
    assert f"{P}/vllm/_genesis/old/set/__init__.py" not in paths


def test_an_image_without_vllm_is_refused(sandbox: Recorded) -> None:
    with pytest.raises(PatchError) as caught:
        run(sandbox, "", tree={f"{P}/other.py": b""})
    assert caught.value.message == f"{AT}: no vLLM in {P!r}"
    assert caught.value.verdict == Verdict.FILE_MISSING
    assert caught.value.hint == "the base, or a step before this one, must bring it"
    assert sandbox.jobs == []


def test_a_pin_without_a_payload_is_refused(sandbox: Recorded) -> None:
    request = requested()
    request = replace(request, pin=replace(request.pin, payload=None))
    with pytest.raises(ProjectError) as caught:
        run(sandbox, "", request=request)
    assert caught.value.message == (
        f"{PIN_AT}: no 'payload', so that nothing says what the patch set installs"
    )
    assert caught.value.hint == (
        "write the path and the tree id of its package, such as vllm/_genesis"
    )


def test_an_era_that_cannot_be_baked_is_named(sandbox: Recorded) -> None:
    with pytest.raises(ProjectError) as caught:
        run(sandbox, "", request=requested("genesis/monkeypatch"))
    assert caught.value.message == (
        f"{PIN_AT}: payload 'genesis/monkeypatch' is of no era of the patch set that can be baked"
    )
    assert caught.value.hint == "known: vllm/_genesis, vllm/sndr_core and sndr"


@pytest.mark.parametrize(
    ("platform", "found"),
    [
        ("cuda-8.6", ("cuda", (8, 6))),
        ("cuda-12.0", ("cuda", (12, 0))),
        ("rocm", ("rocm", None)),
        ("xpu", ("xpu", None)),
        ("cpu", ("cpu", None)),
    ],
)
def test_a_platform_is_a_vendor_and_for_cuda_a_capability(
    platform: str, found: tuple[str, tuple[int, int] | None]
) -> None:
    assert capability(platform, at=AT) == found


@pytest.mark.parametrize(
    "platform", ["cuda", "rocm-9.4", "cuda-8", "cuda-8.66", "CUDA-8.6", "tpu", "", "cuda-8.6\n"]
)
def test_another_platform_is_refused(sandbox: Recorded, platform: str) -> None:
    with pytest.raises(ProjectError) as caught:
        run(sandbox, "", request=requested(platform=platform))
    assert caught.value.message == (
        f"{AT}: platform: expected a vendor, with the compute capability for cuda, got {platform!r}"
    )
    assert caught.value.hint == "for example cuda-8.6"
    assert sandbox.jobs == []
