"""Patch sets that lie, and bases that are not what they should be, in the sandbox."""

import importlib.util
import marshal
import sys
from collections.abc import Mapping
from typing import NoReturn

import pytest

from builder.adapters.sandbox import NamespaceSandbox
from builder.digest import ObjectId
from builder.errors import PatchError, SandboxError
from builder.git_tree import tree_id
from builder.lock.model import GenesisPin, Subtree
from builder.observed import Observed
from builder.outcome import Outcome, PatchState
from builder.ports import GitFile, GitSubtree
from builder.python_layout import PythonLayout
from builder.steps.genesis import GenesisRequest
from tests.fakes import Link, Node, TreeView

pytestmark = pytest.mark.requires("unshare")

P = "usr/local/lib/python3.12/dist-packages"
LAYOUT = PythonLayout(
    version="3.12", packages=P, prefix="usr/local", interpreter="/usr/bin/python3"
)
COMMIT = ObjectId("c" * 40)
METADATA: dict[str, Node] = {
    f"{P}/vllm-0.22.0.dist-info/METADATA": b"Name: vllm\nVersion: 0.22.0\n"
}
TREE: dict[str, Node] = {
    **METADATA,
    f"{P}/vllm/__init__.py": b"",
    f"{P}/vllm/config.py": b"SIZE = 128\n",
}
START = """
import logging, os, pathlib, vllm
log = logging.getLogger("genesis.apply_all")
config = pathlib.Path(vllm.__file__).parent / "config.py"
def tell(says, name):
    log.info(f"[Genesis] {says}: %s — %s", name, "so it is")
def patch(name):
    config.write_text(f"# [Genesis wiring marker: Genesis {name} v1]\\nSIZE = 256\\n")
    tell("applied", name)
"""


class OneSet:
    """:class:`builder.steps.request.Materials` of one patch set without a plugin."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        kept = (GitFile(path=path, mode="100644", data=files[path]) for path in sorted(files))
        self.sandbox = NamespaceSandbox()
        self.files = GitSubtree(tree="0" * 40, files=tuple(kept))

    def payload(self, pin: GenesisPin) -> GitSubtree:
        assert pin.payload is not None
        return self.files

    def plugin(self, pin: GenesisPin) -> None:
        assert pin.plugin is None

    def nothing(self, *_: object) -> NoReturn:
        raise AssertionError("nobody asks for it")

    source = pull = wheel = nothing


def bake(
    text: str, *, base: Mapping[str, Node] = TREE, more: Mapping[str, bytes] | None = None
) -> Outcome:
    """Bake a patch set of one module over a package of one."""
    apply = {"patches/apply_all.py": (START + text).encode()}
    materials = OneSet({"__init__.py": b"", "patches/__init__.py": b"", **apply, **(more or {})})
    tree = tree_id(materials.files.files, like=COMMIT)
    pin = GenesisPin(
        name="set",
        repository="https://git.example/set",
        commit=COMMIT,
        tree=COMMIT,
        payload=Subtree(path="vllm/_genesis", tree=tree),
    )
    request = GenesisRequest(pin=pin, platform="cuda-8.6", python=LAYOUT, at="steps[0]")
    return request.run(Observed(TreeView(base)), materials)


def refusal(text: str, base: Mapping[str, Node] = TREE) -> PatchError:
    with pytest.raises(PatchError) as caught:
        bake(text, base=base)
    return caught.value


def test_an_honest_one_is_taken() -> None:
    made = bake("patch('P1')")
    assert [(patch.name, patch.state, patch.files) for patch in made.patches] == [
        ("P1", PatchState.APPLIED, (f"{P}/vllm/config.py",))
    ]
    assert made.sandbox == "linux-namespaces"


def test_one_that_ends_its_process_in_the_middle_is_not_whole() -> None:
    error = refusal("patch('P1')\nos._exit(0)\npatch('P2')")
    assert error.message == (
        "steps[0]: the patch set ended abruptly with exit status 0, having told of 1 patches"
    )


def test_a_failure_is_not_covered_by_what_is_said_later() -> None:
    error = refusal("tell('FAILED', 'P1 wide')\npatch('P1')\ntell('applied', 'P1 wide')")
    assert error.message == "steps[0]: 1 of 3 patches failed"
    assert error.findings == ("P1: so it is",)


def test_a_file_that_is_large_and_empty_is_not_taken() -> None:
    """It costs the program nothing, and us its size in memory and in the layer."""
    error = refusal("os.truncate(config, 400 << 20)\ntell('applied', 'P1')")
    assert isinstance(error, SandboxError)
    assert error.message.endswith("it left more bytes than it may write, in sparse files")


def test_what_a_payload_has_compiled_is_neither_believed_nor_laid() -> None:
    """Its apply module, compiled so that no Python looks at the source, does nothing."""
    code = marshal.dumps(compile("", "apply_all.py", "exec"))
    unchecked = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + bytes(8) + code
    tag = sys.implementation.cache_tag
    made = bake(
        "patch('P1')",
        more={f"patches/__pycache__/apply_all.{tag}.pyc": unchecked, "alone.pyc": b"x"},
    )
    assert [patch.state for patch in made.patches] == [PatchState.APPLIED]
    assert [change.path.removeprefix(f"{P}/vllm/") for change in made.changes] == [
        "_genesis/__init__.py",
        "_genesis/patches/__init__.py",
        "_genesis/patches/apply_all.py",
        "config.py",
    ]


@pytest.mark.parametrize(
    ("base", "message"),
    [
        pytest.param({"etc/x": b""}, f"no vLLM in {P!r}", id="none"),
        pytest.param(METADATA, f"no vLLM in {P!r}", id="nothing but what says so"),
        pytest.param(
            {**METADATA, f"{P}/vllm": Link("/opt/vllm"), "opt/vllm/config.py": b""},
            f"'{P}/vllm' is a symlink, and what is baked is a directory",
            id="a link to one",
        ),
        pytest.param(
            {**METADATA, f"{P}/vllm": b""},
            f"'{P}/vllm' is a file, and what is baked is a directory",
            id="a file",
        ),
    ],
)
def test_only_a_directory_is_a_package_to_bake(base: Mapping[str, Node], message: str) -> None:
    assert refusal("patch('P1')", base).message == f"steps[0]: {message}"
