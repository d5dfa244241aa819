"""Scripts in variants: cached like any step, refused like any step, and run nowhere unguarded."""

import json
import subprocess
import time
from typing import Any

import pytest

from builder.errors import PatchError, ProjectError
from tests.flow.conftest import Log
from tests.flow.images import MadeImage, image, serve
from tests.flow.worlds import (
    BASE,
    CONFIG,
    Tiny,
    at_packages,
    base_image,
    cached,
    clean_environment,
    command,
    content,
)
from tests.standin.registry import StandIn
from tests.unguarded import Unguarded

PYTHON = """\
import os, pathlib
config = pathlib.Path(os.environ["BUILDER_PACKAGES"], "vllm", "config.py")
text = config.read_text()
assert text.count("128") == 1, "the anchor is gone"
config.write_text(text.replace("128", "256"))
print("patched", config.name)
"""
SHELL = """\
set -eu
sed -i s/256/384/ "$BUILDER_PACKAGES/vllm/config.py"
"""


def step(script: str = "fix.py", *touches: str, **fields: Any) -> dict[str, Any]:
    return {
        "script": {"overlay": "scripts", "path": script},
        "interpreter": "sh" if script.endswith(".sh") else "python",
        "touches": list(touches) or ["vllm/config.py"],
        "name": script.replace(".", "-"),
        **fields,
    }


@pytest.fixture
def sandbox() -> Unguarded:
    return Unguarded()


@pytest.fixture
def base() -> MadeImage:
    return base_image()


@pytest.fixture
def project(tiny: Tiny, registry: StandIn, base: MadeImage) -> Tiny:
    """A script in Python, and one in shell that works on what the first one made."""
    serve(registry, base)
    tiny.pin(base)
    tiny.script("scripts", fix_py=PYTHON, fix_sh=SHELL)
    tiny.variant("it", step("fix.py"), step("fix.sh"))
    return tiny


def test_each_script_makes_a_layer_over_the_one_before(project: Tiny, sandbox: Unguarded) -> None:
    made = project.bake(sandbox=sandbox)
    assert content(made, at_packages("vllm/config.py"), project.store) == b"SIZE = 384\n"
    first, second = (item.output for item in made.steps)
    assert (first.summary, second.summary) == ("fix.py: 1 file", "fix.sh: 1 file")
    assert first.files[0].post == second.files[0].pre
    assert (first.sandbox, second.sandbox) == ("unguarded", "unguarded")
    assert [item.step.request.pins for item in made.steps] == [("overlay scripts",)] * 2


def test_a_second_build_starts_no_sandbox(project: Tiny, sandbox: Unguarded, log: Log) -> None:
    project.bake(sandbox=sandbox)
    log.lines.clear()
    again = project.bake(sandbox=Refusing())
    assert cached(again) == {"fix-py": True, "fix-sh": True}
    assert log.runs() == []
    assert len(sandbox.jobs) == 2


class Refusing(Unguarded):
    """Nothing is to be run in it."""

    def run(self, job: object) -> Any:
        raise AssertionError("a sandbox was started")


def test_another_base_with_the_same_package_starts_no_sandbox_either(
    project: Tiny, registry: StandIn, sandbox: Unguarded
) -> None:
    """Early cut-off: the script saw the package, and the package is the same."""
    project.bake(sandbox=sandbox)
    other = image({"etc/hostname": b"other\n"}, {**BASE, "opt/new": b"new"})
    serve(registry, other)
    project.pin(other)
    again = project.bake(sandbox=Refusing())
    assert cached(again) == {"fix-py": True, "fix-sh": True}
    assert again.base is not None
    assert again.base.manifest.digest == other.manifest.digest


def test_another_file_of_the_package_lets_the_script_run_again(
    project: Tiny, registry: StandIn, sandbox: Unguarded
) -> None:
    project.bake(sandbox=sandbox)
    other = image({}, {**BASE, at_packages("vllm/sub/more.py"): b"new"})
    serve(registry, other)
    project.pin(other)
    assert cached(project.bake(sandbox=sandbox)) == {"fix-py": False, "fix-sh": False}


def test_another_script_runs(project: Tiny, sandbox: Unguarded) -> None:
    project.bake(sandbox=sandbox)
    project.script("scripts", fix_py=PYTHON, fix_sh=SHELL.replace("384", "512"))
    made = project.bake(sandbox=sandbox)
    assert cached(made) == {"fix-py": True, "fix-sh": False}
    assert content(made, at_packages("vllm/config.py"), project.store) == b"SIZE = 512\n"


def test_running_it_again_gives_the_same_bytes(project: Tiny, sandbox: Unguarded) -> None:
    assert project.bake(sandbox=sandbox).image == project.bake(sandbox=sandbox, check=True).image
    assert len(sandbox.jobs) == 4


def test_a_script_whose_anchor_is_gone_leaves_nothing(
    project: Tiny, registry: StandIn, sandbox: Unguarded
) -> None:
    other = image({}, {**BASE, at_packages("vllm/config.py"): b"SIZE = 64\n"})
    serve(registry, other)
    project.pin(other)
    with pytest.raises(PatchError) as caught:
        project.bake(sandbox=sandbox)
    assert caught.value.message == (
        "variants/it.yaml:7: steps[0]: 'fix.py' ended with exit status 1"
    )
    assert caught.value.difference is not None
    assert caught.value.difference.endswith("AssertionError: the anchor is gone")
    assert project.references() == {}


def test_what_was_compiled_from_a_changed_file_goes_with_it(
    project: Tiny, registry: StandIn, sandbox: Unguarded
) -> None:
    compiled = at_packages("vllm/__pycache__/config.cpython-312.pyc")
    other = image({}, {**BASE, compiled: b"old code"})
    serve(registry, other)
    project.pin(other)
    made = project.bake(sandbox=sandbox)
    assert content(made, compiled, project.store) is None


def test_an_overlay_of_nothing_but_scripts_is_not_applied(project: Tiny) -> None:
    project.variant("it", "scripts")
    with pytest.raises(ProjectError) as caught:
        project.bake()
    assert caught.value.message == (
        "variants/it.yaml:7: steps[0]: overlay 'scripts' has nothing but scripts, so that applying"
        " it does nothing"
    )
    assert caught.value.hint == "run one of them by a step of the kind 'script'"


def test_a_script_that_its_overlay_does_not_list_is_no_script(project: Tiny) -> None:
    project.variant("it", step("overlay.yaml"))
    with pytest.raises(ProjectError) as caught:
        project.bake()
    assert caught.value.message == (
        "variants/it.yaml:7: steps[0].script: overlays/scripts/overlay.yaml lists no script"
        " 'overlay.yaml'"
    )
    assert caught.value.hint == "it has: fix.py, fix.sh"


@pytest.mark.requires("unshare")
def test_the_command_line_runs_them_in_a_sandbox(project: Tiny) -> None:
    done = project.run("build", "it", "--json")
    assert (done.status, done.err) == (0, "")
    record = json.loads(
        project.store.note("image", done.json["images"][0]["digest"].removeprefix("sha256:"))
        or b"{}"
    )
    assert [item["output"]["sandbox"] for item in record["steps"]] == ["linux-namespaces"] * 2
    in_sandbox = done.json["images"][0]["layers"]
    unguarded = project.bake(sandbox=Unguarded(), check=True)
    assert [str(item.output.layer.diff_id) for item in unguarded.steps if item.output.layer] == [
        layer["diff_id"] for layer in in_sandbox
    ]


@pytest.mark.requires("unshare")
def test_a_script_that_reaches_elsewhere_is_refused(project: Tiny) -> None:
    project.script("scripts", fix_py="import pathlib\npathlib.Path('/etc/new').write_text('x')\n")
    project.variant("it", step("fix.py"))
    done = project.run("build", "it")
    assert done.status == 6
    assert done.first == (
        "builder: error: variants/it.yaml:7: steps[0]: 'fix.py' ended with exit status 1"
    )
    assert "Read-only file system" in done.err
    assert project.references() == {}


def test_the_plan_of_a_script_needs_no_sandbox(project: Tiny) -> None:
    done = project.run("plan", "it", "--json")
    assert (done.status, done.err) == (0, "")
    assert [item["kind"] for item in done.json["steps"]] == ["script", "script"]


def test_check_knows_what_scripts_use(project: Tiny) -> None:
    project.overlay("unused", files={"vllm/config.py": (CONFIG, b"other")})
    findings = project.run("check", "--json").json["findings"]
    assert [item["where"] for item in findings if item["message"] == "no variant uses it"] == [
        "overlays/unused"
    ]


@pytest.mark.requires("unshare")
def test_a_build_that_is_killed_while_a_script_runs_leaves_nothing_of_it(project: Tiny) -> None:
    half = "config.write_text('HALF = True')\nimport time\ntime.sleep(3)\n"
    slow = PYTHON.replace("config.write_text(", f"{half}config.write_text(")
    project.script("scripts", fix_py=slow, fix_sh=SHELL)
    with subprocess.Popen(
        command("build", "it"),
        cwd=project.root,
        env=clean_environment(project.root.parent, project.store_path),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    ) as process:
        time.sleep(2)
        assert process.poll() is None
        process.kill()
    assert project.references() == {}
    made = project.bake(sandbox=Unguarded())
    assert cached(made) == {"fix-py": False, "fix-sh": False}
    assert content(made, at_packages("vllm/config.py"), project.store) == b"SIZE = 384\n"
