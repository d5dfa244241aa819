"""A patch set that is baked, beside its own program run by itself on a directory."""

import json
import logging
import shutil
import sys
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NoReturn

from builder import notes, pipeline
from builder.adapters.store import FileStore
from builder.bake import base_view
from builder.base import Base
from builder.build_record import Build
from builder.cli.settings import Settings
from builder.cli.world import DEFAULT_PLATFORM, open_project, open_store, open_world
from builder.layer_files import OwnLayer
from builder.observed import Observed
from builder.project import Project
from builder.sandbox import Finished, Job, Laid, Sandbox
from builder.steps.genesis import GenesisRequest
from builder.tree import View
from builder.world import World
from tests.bench.measure import Row, alternate
from tests.claims import Claims
from tests.commands import run

_OWN = "its own program"


@dataclass(slots=True)
class Recorded:
    """A sandbox that keeps the last job."""

    sandbox: Sandbox
    job: Job | None = None

    @property
    def name(self) -> str:
        return self.sandbox.name

    def run(self, job: Job) -> Finished:
        self.job = job
        return self.sandbox.run(job)


@dataclass(frozen=True, kw_only=True)
class PatchSet:
    """A variant with a patch set, built once: all below that step is in the store."""

    project: Project
    world: World
    store: FileStore
    built: Build
    recorded: Recorded = field(repr=False)

    @classmethod
    def make(cls, settings: Settings, variant: str) -> "PatchSet":
        """Build it.

        Raises:
            BuilderError: It cannot be built.
        """
        project = open_project(settings)
        store = open_store(settings, project.settings)
        world = open_world(settings, project.settings, store)
        # What it warns of is told where it is baked for its own sake.
        logging.getLogger("builder").addHandler(logging.NullHandler())
        recorded = Recorded(world.make_sandbox(None))
        world = replace(world, make_sandbox=lambda _: recorded)
        with world.store.lease():
            built = pipeline.build(project, variant, world=world, platform=DEFAULT_PLATFORM)
        return cls(project=project, world=world, store=store, built=built, recorded=recorded)

    @property
    def base(self) -> Base | None:
        return self.built.base

    def rows(self, claims: Claims, times: int, *, what: str, times_own: float | None) -> list[Row]:
        """The bake beside the patch set's own run, and what it takes to ask whether it may be laid
        into its base; ``times_own`` is the limit as a multiple of its own run."""
        self._built_again(claims, what)
        with self.world.store.lease():
            self.bake()  # for the job, and for the modules that it loads
            medians = alternate({"ours": lambda _: self.bake(), _OWN: lambda _: self.own()}, times)
            judged = alternate({"ours": lambda _: self.judge()}, times)
        return [
            Row(
                what=f"bake {what}",
                ours=medians.pop("ours"),
                peers=medians,
                limit=3,
                times_peer=times_own,
            ),
            Row(what=f"allowlist and lint of {what}", ours=judged["ours"], peers={}, limit=0.2),
        ]

    def bake(self) -> float:
        """Run the step, with all that it reads in the store."""
        request, view = self._step()
        bytes_of = pipeline.materials(self.project, self.built.variant, self.world, self.base)
        start = time.perf_counter()
        request.run(Observed(view), bytes_of)
        return time.perf_counter() - start

    def own(self) -> float:
        """Run the program of the last bake by itself: in no sandbox, on a directory."""
        job = self.recorded.job
        if job is None:
            raise RuntimeError("nothing was baked")
        with TemporaryDirectory() as temporary:
            root = Path(temporary)
            for item in job.files:
                _lay(item, root / item.path)
            inputs = {item.path: item.data or b"" for item in job.inputs}
            told = json.loads(inputs["bake.json"])
            told["packages"] = f"{root}{told['packages']}"
            (root / "bake.json").write_text(json.dumps(told))
            (root / "harness.py").write_bytes(inputs["harness.py"])
            options = [word for word in job.command[1:] if word.startswith("-")]
            command: list[str | Path] = [
                sys.executable,
                *options,
                root / "harness.py",
                root / "bake.json",
            ]
            return run(command, environment=job.environment).seconds

    def judge(self) -> float:
        """Ask what the patch set says of its base and its environment, of a mirror that is warm:
        nothing of it was kept."""
        for kind in (notes.FACTS, notes.TREE):
            shutil.rmtree(self.store.paths.root / "notes" / kind, ignore_errors=True)
        bytes_of = pipeline.materials(self.project, self.built.variant, self.world, self.base)
        start = time.perf_counter()
        pipeline.admitted(
            self.project, self.built.plan, self.base, world=self.world, materials=bytes_of
        )
        return time.perf_counter() - start

    def _step(self) -> tuple[GenesisRequest, View]:
        view = base_view(self.base, store=self.world.store, progress=self.world.progress)
        for item in self.built.steps:
            if isinstance(item.step.request, GenesisRequest):
                return item.step.request, view
            if item.output.layer is not None:
                view = view.over(OwnLayer(item.output.layer, self.world.store))
        raise LookupError(f"{self.built.variant.name} has no patch set")

    def _built_again(self, claims: Claims, what: str) -> None:
        world = replace(self.world, make_sandbox=_none)
        with world.store.lease():
            again = pipeline.build(
                self.project, self.built.variant.name, world=world, platform=DEFAULT_PLATFORM
            )
        same = again.image.digest == self.built.image.digest
        claims.holds(f"{what}: a second build starts no sandbox, and gives the same image", same)


def _none(_: Base | None) -> NoReturn:
    raise RuntimeError("a sandbox was started")


def _lay(item: Laid, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("wb") as file:
        if item.data is None:
            file.truncate(item.size)
        else:
            file.write(item.data)
    path.chmod(item.mode)
