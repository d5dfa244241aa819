"""A machine with the stand-in vLLM installed, on which the demo's patch set is applied for real."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.adapters.git_world import Upstream, git

ROOT = Path(__file__).parents[2]
STREAM = ROOT / "demo/patches.fast-export"
STAND_IN = next((ROOT / "demo/wheels").glob("vllm-*"))

ON_PATH = """
import runpy, sys
sys.path[:0] = {paths!r}
sys.argv[:] = {arguments!r}
runpy.run_module({module!r}, run_name="__main__", alter_sys=True)
"""

PLATFORM = """
class Capability:
    major, minor = {major}, {minor}

class Platform:
    def is_cuda(self): return True
    def get_device_capability(self): return Capability()

current_platform = Platform()
"""

TORCH = """
float16 = "float16"

def inference_mode():
    return lambda function: function
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """How a program ended on the machine; ``outcomes`` are those that the patch set told, by the
    ids of its patches."""

    status: int
    said: str
    outcomes: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Machine:
    """``packages`` with the stand-in and the payload, an empty home, and what was asked for."""

    packages: Path
    home: Path
    modules: Path

    @classmethod
    def make(
        cls,
        directory: Path,
        *,
        commit: str,
        capability: tuple[int, int] | None = (8, 6),
        torch: bool = True,
    ) -> "Machine":
        """Install the payload of ``commit`` over the stand-in."""
        machine = cls(
            packages=directory / "packages",
            home=directory / "home",
            modules=directory / "modules",
        )
        for made in (machine.packages, machine.home, machine.modules):
            made.mkdir(parents=True)
        shutil.copytree(STAND_IN / "vllm", machine.packages / "vllm")
        payload = machine.packages / "vllm/_genesis"
        for path, data in files(repository(directory), f"{commit}:vllm/_genesis"):
            (payload / path).parent.mkdir(parents=True, exist_ok=True)
            (payload / path).write_bytes(data)
        if capability is not None:
            text = PLATFORM.format(major=capability[0], minor=capability[1])
            (machine.packages / "vllm/platforms.py").write_text(text, encoding="utf-8")
        if torch:
            (machine.modules / "torch.py").write_text(TORCH, encoding="utf-8")
        return machine

    def apply(self, *arguments: str, **environment: str) -> Ended:
        """Apply the patch set, as it is applied at a boot."""
        done = self.run("vllm._genesis.patches.apply_all", *arguments, **environment)
        told = re.findall(r"\[Genesis\] (?:DRIFT )?(applied|skipped|FAILED): (\w+)", done.said)
        return Ended(
            status=done.status,
            said=done.said,
            outcomes={patch: outcome.lower() for outcome, patch in told},
        )

    def run(self, module: str, *arguments: str, **environment: str) -> Ended:
        """``python -m MODULE ARGUMENTS`` with nothing of the user's surroundings."""
        paths = [str(self.packages), str(self.modules)]
        program = ON_PATH.format(paths=paths, arguments=[module, *arguments], module=module)
        done = subprocess.run(
            (sys.executable, "-B", "-I", "-c", program),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={"HOME": str(self.home), **environment},
            check=False,
        )
        return Ended(status=done.returncode, said=done.stdout.decode())

    def sources(self) -> Mapping[str, bytes]:
        """The modules of the stand-in, without the payload."""
        return {
            str(path.relative_to(self.packages)): path.read_bytes()
            for path in sorted(self.packages.rglob("*.py"))
            if "_genesis" not in path.parts and path.name != "platforms.py"
        }

    def changed(self) -> list[str]:
        """The modules that are not what the stand-in's are."""
        return [
            path for path, data in self.sources().items() if data != (STAND_IN / path).read_bytes()
        ]


def repository(directory: Path) -> Path:
    """The patch set's repository, below ``directory``."""
    path = directory / "patches.git"
    if not path.exists():
        Upstream.make(path)
        git(path, "fast-import", "--quiet", data=STREAM.read_bytes())
    return path


def files(repository: Path, tree: str) -> Iterator[tuple[str, bytes]]:
    """The files of a tree, by path."""
    for line in git(repository, "ls-tree", "-r", tree).splitlines():
        entry, path = line.split("\t")
        # Text of ours: git() strips the end, and each of these ends with one line feed.
        yield path, git(repository, "cat-file", "blob", entry.split()[2]).encode() + b"\n"
