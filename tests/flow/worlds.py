"""Tiny projects, written by the tests, and the ways to run builder on them."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeAlias

from builder import pipeline
from builder.adapters.store import FileStore
from builder.build_record import Build
from builder.cli.settings import Settings
from builder.cli.world import open_world
from builder.digest import Digest
from builder.oci import Platform
from builder.origin import Origin
from builder.project import Project
from builder.sandbox import Sandbox
from builder.world import World
from tests.flow.images import PACKAGES, MadeImage, Node, image

AMD64 = Platform("linux", "amd64")
ROOT = Path(__file__).parents[2]
REGISTRY = "registry.test"
"""The name under which the projects know their registry, wherever it listens today."""

Document: TypeAlias = Mapping[str, Any]

CONFIG = b"SIZE = 128\n"
MODULE = b"def answer():\n    return 41\n"
BASE: dict[str, Node] = {
    f"{PACKAGES}/vllm/__init__.py": b"",
    f"{PACKAGES}/vllm/config.py": CONFIG,
    f"{PACKAGES}/vllm/sub/__init__.py": b"",
    f"{PACKAGES}/vllm/sub/module.py": MODULE,
    "etc/os-release": b"ID=debian\n",
    "opt/data.bin": b"\0\1\2\3",
}
"""What most bases here hold."""


def base_image() -> MadeImage:
    """The usual base: a system below, the package above."""
    return image({"etc/hostname": b"base\n"}, BASE)


@dataclass(kw_only=True)
class Tiny:
    """A project in a directory, written file by file, with a store beside it."""

    root: Path
    store_path: Path
    settings: dict[str, Any] = field(default_factory=dict)
    _locks: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def make(cls, directory: Path, **settings: Any) -> "Tiny":
        """An empty project below ``directory``."""
        made = cls(root=directory / "project", store_path=directory / "store")
        (made.root / "variants").mkdir(parents=True)
        if settings:
            made.document("builder.yaml", {"version": 1, **settings})
        return made

    # --- writing -------------------------------------------------------------------------------

    def document(self, file: str, value: Document) -> None:
        """Write a YAML file; JSON is YAML, too."""
        path = self.root / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(value, indent=2))

    def lock(self, kind: str, name: str, value: Document) -> None:
        """Add a pin to, or change it in, the lockfile of its kind."""
        pins = self._locks.setdefault(kind, {})
        pins[name] = dict(value)
        self.document(f"lockfiles/{kind}.yaml", {"version": 1, kind: pins})

    def pin(
        self,
        made: MadeImage,
        *,
        name: str = "base",
        repository: str = f"{REGISTRY}/base",
        **fields: Any,
    ) -> None:
        """Pin a base image with all that is known of it."""
        value = {
            "follows": {"image": repository, "tag": "t"},
            "platforms": {"linux/amd64": made.pin()},
        }
        self.lock("vllm", name, value | fields)

    def variant(self, name: str, *steps: Document | str, base: Any = None, **fields: Any) -> None:
        """Write a recipe; a step that is a text is an overlay's name."""
        items = [{"overlay": step} if isinstance(step, str) else dict(step) for step in steps]
        base = {"pin": "base"} if base is None else base
        self.document(
            f"variants/{name}.yaml", {"version": 1, "base": base, "steps": items} | fields
        )

    def overlay(
        self,
        name: str,
        *,
        files: Mapping[str, tuple[bytes | None, bytes]] | None = None,
        remove: Mapping[str, bytes] | None = None,
        modes: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> None:
        """Write an overlay: target to (pre-image or ``None``, new content); target to pre-image of
        what is removed."""
        directory = self.root / "overlays" / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        document: dict[str, Any] = {"version": 1, **fields}
        rules = []
        for number, (target, (old, new)) in enumerate((files or {}).items()):
            (directory / f"{number}.new").write_bytes(new)
            rule = {"path": target, "file": f"{number}.new", "replaces": _replaces(old)}
            mode = (modes or {}).get(target)
            rules.append(rule if mode is None else rule | {"mode": mode})
        if rules:
            document["files"] = rules
        if remove:
            document["remove"] = [
                {"path": target, "replaces": _replaces(old)} for target, old in remove.items()
            ]
        self.document(f"overlays/{name}/overlay.yaml", document)

    def script(self, name: str, **scripts: str) -> None:
        """Write an overlay of nothing but scripts; ``fix_py`` is ``fix.py``."""
        directory = self.root / "overlays" / name
        shutil.rmtree(directory, ignore_errors=True)
        directory.mkdir(parents=True)
        files = {file.replace("_", "."): text for file, text in scripts.items()}
        for file, text in files.items():
            (directory / file).write_text(text)
        self.document(f"overlays/{name}/overlay.yaml", {"version": 1, "scripts": list(files)})

    def edit(self, name: str, target: str, old: str, new: str, **rule: Any) -> None:
        """Write an overlay of one anchored edit."""
        edits = [{"anchor": old, "replace": new}]
        self.overlay(name, edits=[{"path": target, "edits": edits, **rule}])

    # --- running -------------------------------------------------------------------------------

    @property
    def store(self) -> FileStore:
        return FileStore(self.store_path)

    def world(self, *, store: Path | None = None, **environment: str) -> tuple[Project, World]:
        """The project as it stands, and the real world."""
        project = Project(self.root)
        settings = Settings(
            directory=self.root, store=store or self.store_path, environment=environment
        )
        return project, open_world(settings, project.settings)

    def bake(
        self,
        name: str = "it",
        *,
        store: Path | None = None,
        platform: Platform = AMD64,
        origin: Origin | None = None,
        sandbox: Sandbox | None = None,
        **options: bool,
    ) -> Build:
        """Build a variant in this process."""
        project, world = self.world(store=store)
        if origin is not None:
            world = replace(world, open_layout=lambda _: origin)
        if sandbox is not None:
            world = replace(world, make_sandbox=lambda _: sandbox)
        with world.store.lease():
            return pipeline.build(project, name, world=world, platform=platform, **options)

    def run(self, *arguments: str, store: Path | None = None, **environment: str) -> "Done":
        """Run the command line in a process of its own."""
        done = subprocess.run(
            command(*arguments),
            cwd=self.root,
            env=clean_environment(self.root.parent, store or self.store_path) | environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        return Done(status=done.returncode, out=done.stdout, err=done.stderr)

    # --- looking -------------------------------------------------------------------------------

    def references(self) -> dict[str, str]:
        """The store's names, and what they stand for."""
        return {name: str(item.digest) for name, item in self.store.references().items()}

    def snapshot(self) -> dict[str, bytes]:
        """Every file of the project."""
        return {
            str(path.relative_to(self.root)): path.read_bytes()
            for path in sorted(self.root.rglob("*"))
            if path.is_file()
        }


@dataclass(frozen=True, kw_only=True)
class Done:
    """What a command line came to."""

    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)

    @property
    def first(self) -> str:
        """The first line of what it said to people."""
        return self.err.partition("\n")[0]


def command(*arguments: str) -> Sequence[str]:
    """The command line of this source tree, with this Python."""
    return (sys.executable, "-m", "builder", *arguments)


def clean_environment(home: Path, store: Path) -> dict[str, str]:
    """What builder is run with: nothing of the user's."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "PYTHONPATH": str(ROOT),
        "BUILDER_STORE": str(store),
    }


def at_packages(path: str) -> str:
    return f"{PACKAGES}/{path}"


def _replaces(old: bytes | None) -> str:
    return "nothing" if old is None else str(Digest.of(old))


def content(made: Build, path: str, store: FileStore) -> bytes | None:
    """What the image shows at a path, or ``None``: base and all, through builder's own view.

    Umoci and the engine say the same of whole images in other tests.
    """
    from builder.bake import base_view
    from builder.cli.progress import NoProgress
    from builder.layer_files import OwnLayer

    view = base_view(made.base, store=store, progress=NoProgress())
    for item in made.steps:
        if item.output.layer is not None:
            view = view.over(OwnLayer(item.output.layer, store))
    entry = view.stat(path)
    return None if entry is None else view.read(path)


def blobs(made: Build) -> list[str]:
    """The digests of our layers, bottom first."""
    return [str(item.output.layer.digest) for item in made.steps if item.output.layer is not None]


def cached(made: Build) -> dict[str, bool]:
    """Which steps did not have to run."""
    return {item.step.name: item.cached for item in made.steps}
