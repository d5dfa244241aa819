"""The entry point of ``variants/tq3-mtp-genesis.yaml``, run as a container runs it, and the recipe
against its own comments."""

import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from builder.project import Project
from builder.variant import GenesisStep, ScriptStep, SourceStep

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "overlays/tq3-mtp-genesis/files/entrypoint.sh"
MARKER = "# [Genesis wiring marker: Genesis P67 of some version]\n"
PAYLOAD = "vllm/_genesis/patches/apply_all.py"
ATTENTION = "vllm/v1/attention/backends/turboquant_attn.py"
BAKED = {"vllm/__init__.py": "", PAYLOAD: "", ATTENTION: f"# another\n{MARKER}"}
REST = ("show", "--speculative-config", '{"method": "mtp"}', "")
SHOW = '#!/bin/sh\nprintf \'%s\\n\' "$0" "$@"\n'


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A file system of a few files, with a ``python3`` and a program ``show``."""

    programs: Path
    packages: Path

    @classmethod
    def make(cls, directory: Path, files: Mapping[str, str]) -> "Container":
        container = cls(programs=directory / "bin", packages=directory / "packages")
        container.programs.mkdir()
        (container.programs / "python3").symlink_to(sys.executable)
        for name in ("grep", "printf"):
            found = shutil.which(name)
            assert found is not None
            (container.programs / name).symlink_to(found)
        show = container.programs / "show"
        show.write_text(SHOW, encoding="utf-8")
        show.chmod(0o755)
        for path, text in files.items():
            (container.packages / path).parent.mkdir(parents=True, exist_ok=True)
            (container.packages / path).write_text(text, encoding="utf-8")
        return container

    def start(self, *arguments: str, **environment: str) -> tuple[int, str, str]:
        """Status, stdout, stderr."""
        done = subprocess.run(
            ("/bin/sh", SCRIPT, *arguments),
            capture_output=True,
            text=True,
            cwd=self.programs,
            env={"PATH": str(self.programs), "PYTHONPATH": str(self.packages), **environment},
            check=False,
        )
        return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("policy", [None, "warn", "strict"])
def test_a_sound_image_runs_what_it_is_given(policy: str | None, tmp_path: Path) -> None:
    container = Container.make(tmp_path, BAKED)
    environment = {} if policy is None else {"GENESIS_VLLM_PIN_POLICY": policy}
    status, said, complaints = container.start(*REST, **environment)
    assert (status, complaints) == (0, "")
    assert said == "\n".join((str(container.programs / "show"), *REST[1:])) + "\n"


@pytest.mark.parametrize(
    ("without", "environment", "arguments", "complaint"),
    [
        pytest.param((), {}, (), "nothing to run: expected a command", id="no command"),
        pytest.param((), {}, ("vllm",), "no program 'vllm' in this image", id="no program"),
        pytest.param(tuple(BAKED), {}, REST, "no vllm package in this image", id="no vllm"),
        pytest.param((PAYLOAD,), {}, REST, "no Genesis payload in ", id="an empty mount"),
        pytest.param((ATTENTION,), {}, REST, "P67 is not in ", id="a file that is gone"),
        pytest.param(
            (),
            {"GENESIS_VLLM_PIN_POLICY": "Strict"},
            REST,
            "GENESIS_VLLM_PIN_POLICY is 'Strict', wanted warn or strict",
            id="a misspelt policy",
        ),
    ],
)
def test_an_image_that_is_not_what_was_baked_is_refused(
    without: tuple[str, ...],
    environment: Mapping[str, str],
    arguments: tuple[str, ...],
    complaint: str,
    tmp_path: Path,
) -> None:
    files = {path: text for path, text in BAKED.items() if path not in without}
    status, said, complaints = Container.make(tmp_path, files).start(*arguments, **environment)
    assert (status, said) == (1, "")
    assert complaints.startswith("tq3-mtp-genesis: ")
    assert complaint in complaints


def test_a_file_that_was_mounted_over_the_baked_one_is_seen(tmp_path: Path) -> None:
    files = {**BAKED, ATTENTION: f"x = 1  {MARKER}"}
    status, said, complaints = Container.make(tmp_path, files).start(*REST)
    assert (status, said) == (1, "")
    assert "this is not the file that was baked" in complaints


def test_python_that_does_not_run_is_not_taken_for_an_image_without_vllm(tmp_path: Path) -> None:
    container = Container.make(tmp_path, BAKED)
    (container.programs / "python3").unlink()
    status, _, complaints = container.start(*REST)
    assert status == 1
    assert "python3 does not run" in complaints


def test_the_entry_point_is_the_overlays_and_then_the_bases() -> None:
    project = Project(ROOT)
    variant = project.variant("tq3-mtp-genesis")
    (file,) = project.overlay("tq3-mtp-genesis").files
    assert variant.image.entrypoint == (file.target, "vllm", "serve")
    assert (file.mode, file.data) == (0o755, SCRIPT.read_bytes())


def test_the_steps_stand_in_the_order_that_they_need() -> None:
    variant = Project(ROOT).variant("tq3-mtp-genesis")
    names = [step.name for step in variant.steps]
    (genesis,) = [step for step in variant.steps if isinstance(step, GenesisStep)]
    assert (genesis.platform, genesis.speculative) == ("cuda-8.6", "mtp")
    scripts = [step.name for step in variant.steps if isinstance(step, ScriptStep)]
    assert min(map(names.index, scripts)) > names.index(genesis.name)
    (marlin,) = [step for step in variant.steps if step.name == "marlin-pad"]
    assert isinstance(marlin, SourceStep)
    assert marlin.until_upstream
    pin = Project(ROOT).sources[marlin.source]
    for placement in marlin.files:
        published = pin.file(placement.source)
        assert published is not None
        assert placement.replaces == published.digest
