"""What a bump's trial costs: ten variants of ten diffs each, on a base whose files are indexed."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import unified_diff
from pathlib import Path

from builder.reference import Reference
from tests.bench.base import BaseImage, make_base
from tests.bench.measure import Row, alternate
from tests.bench.workshop import MB, Workshop, push
from tests.claims import Claims
from tests.commands import Builder, empty_store

_COUNT = 10
_PYTHON = {"version": "3.12", "packages": "usr/local/lib/python3.12/dist-packages"}


def _files(release: int) -> dict[str, bytes]:
    """The modules of a release, some 25 kB each."""
    body = "".join(
        f"def function_{n}(value: int) -> int:\n    return value + {n}\n\n\n" for n in range(400)
    )
    head = f"RELEASE = {release}\n\n\n\n"  # out of the context of the diffs
    return {
        f"vllm/module_{number}.py": f"{head}LIMIT = {number}\n\n\n{body}".encode()
        for number in range(_COUNT)
    } | {"vllm/__init__.py": b""}


def _diff(path: str, old: str, new: str) -> str:
    lines = old.splitlines(keepends=True), new.splitlines(keepends=True)
    return "".join(unified_diff(*lines, f"a/{path}", f"b/{path}"))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Project:
    root: Path

    def write(self, registry: str, base: BaseImage) -> None:
        """The pin and the variants."""
        pin = {
            "follows": {"image": f"{registry}/bench/trial", "tag": "r0"},
            "platforms": {"linux/amd64": {"manifest": str(base.manifest.digest)}},
        }
        self._put("lockfiles/vllm.yaml", {"version": 1, "vllm": {"base": pin}})
        for variant in range(_COUNT):
            steps = [{"overlay": f"o{variant}-{number}"} for number in range(_COUNT)]
            recipe = {"version": 1, "base": {"pin": "base"}, "python": _PYTHON, "steps": steps}
            self._put(f"variants/v{variant}.yaml", recipe)

    def patch(self, run: int) -> None:
        """The diffs of run ``run``: no store has seen them."""
        for variant in range(_COUNT):
            for number in range(_COUNT):
                path = f"vllm/module_{number}.py"
                old = _files(0)[path].decode()
                new = old.replace(f"LIMIT = {number}\n", f"LIMIT = {run}{variant:02}{number:02}\n")
                directory = f"overlays/o{variant}-{number}"
                rule = {"file": "it.diff", "root": ".", "strip": 1}
                self._put(f"{directory}/overlay.yaml", {"version": 1, "patch": rule})
                (self.root / directory / "it.diff").write_text(_diff(path, old, new))

    def _put(self, file: str, value: Mapping[str, object]) -> None:
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value))


def trial(shop: Workshop, claims: Claims, times: int) -> list[Row]:
    """``builder bump vllm base TAG --dry-run``."""
    place = shop.scratch / "trial"
    bases = []
    for release in (0, 1):
        directory = place / f"r{release}"
        directory.mkdir(parents=True)
        base = make_base(directory, sizes=[MB, MB], files=_files(release))
        push(base, Reference.parse(f"{shop.registry.host}/bench/trial:r{release}"))
        bases.append(base)
    project = _Project(root=place / "project")
    project.write(shop.registry.host, bases[0])
    builder = Builder(store=empty_store(place / "store"), project=project.root)
    reports: list[bytes] = []

    def ours(run: int) -> float:
        project.patch(run + 10)
        done = builder.run("bump", "vllm", "base", "r1", "--dry-run", "--json")
        reports.append(done.stdout)
        return done.seconds

    ours(-1)  # the base's files are indexed then
    medians = alternate({"ours": ours}, times)
    steps = [s for v in json.loads(reports[-1])["variants"] for s in v["steps"]]
    claims.holds(
        f"a bump tries {_COUNT} variants of {_COUNT} diffs, and all apply",
        len(steps) == _COUNT**2 and all(step["verdict"] == "applied" for step in steps),
        str(len(steps)),
    )
    what = f"bump, {_COUNT} variants of {_COUNT} diffs"
    return [Row(what=what, ours=medians["ours"], limit=3.0, peers={})]
