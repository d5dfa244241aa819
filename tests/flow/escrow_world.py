"""A project that needs one thing of each kind from outside, and the ways to lose them."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder import diff
from builder.build_record import Build
from builder.digest import Digest
from builder.escrow.keep import Kept, keep, record
from builder.escrow.place import opened, parse
from tests.adapters.git_world import Files, Upstream, git
from tests.flow.images import MadeImage, serve
from tests.flow.worlds import AMD64, CONFIG, REGISTRY, Done, Tiny
from tests.standin.registry import StandIn
from tests.wheel.wheels import FILENAME, wheel

KEPT = "kept.test"
"""The name under which the project knows the registry that keeps its copies."""
TO = f"{KEPT}/acme/escrow"
WHEEL = wheel({"demo/__init__.py": b"x = 1\n"})
REPOSITORY = "https://git.test/team/code"
PATCHES = "https://git.test/team/patches"
TREE = {
    "chat.jinja": b"{{ chat }}\n",
    "empty": b"",
    "vllm/config.py": CONFIG,
    "big.bin": bytes(range(256)) * 40,
}


def registries(origin: StandIn, kept: StandIn) -> dict[str, Any]:
    """The two registries, for builder.yaml."""
    return {
        REGISTRY: {"location": origin.host},
        KEPT: {"location": kept.host},
    }


@dataclass(kw_only=True)
class Based:
    """A project whose base lives elsewhere: ``it`` edits a file of it."""

    tiny: Tiny
    made: MadeImage
    origin: StandIn
    kept: StandIn
    environment: dict[str, str] = field(default_factory=dict)

    def run(self, *arguments: str) -> Done:
        return self.tiny.run(*arguments, store=None, **self.environment)

    def escrow(self, *names: str, to: str = TO) -> Mapping[str, Kept]:
        """Keep all that ``it``, or those that are named, needs, in this process; by pin."""
        project, world = self.tiny.world()
        place = opened(
            parse(to, root=self.tiny.root, at="--to"),
            root=self.tiny.root,
            registry=lambda: world.registry,
            make_layout=world.make_layout,
            progress=world.progress,
        )
        found = list(keep(project, names or ("it",), place, world=world, platform=AMD64))
        record(project, found)
        return {item.pin.name: item for item in found}

    def bake(self, name: str = "it") -> Build:
        return self.tiny.bake(name)

    def forget(self) -> None:
        """An empty machine."""
        shutil.rmtree(self.tiny.store_path, ignore_errors=True)

    def lose(self) -> None:
        """Upstream has nothing of it any more, and answers so."""
        self.origin.manifests.clear()
        self.origin.blobs.clear()

    def lock_text(self, kind: str) -> str:
        return (self.tiny.root / f"lockfiles/{kind}.yaml").read_text()


@dataclass(kw_only=True)
class Outside(Based):
    """A project with a base, a pull request, a source, a wheel and a patch set, all of which live
    elsewhere: ``it`` uses the first three, ``all`` the first four, ``patched`` the base and the
    patch set."""

    upstream: Upstream
    patches: Upstream
    index: Path

    def lose(self) -> None:
        super().lose()
        for repository in (self.upstream, self.patches):
            shutil.rmtree(repository.path)
            Upstream.make(repository.path).commit("refs/heads/main", {"README": b"anew\n"})
        for file in self.index.iterdir():
            file.unlink()


def based(directory: Path, origin: StandIn, kept: StandIn, made: MadeImage) -> Based:
    """Make the project below ``directory``."""
    tiny = Tiny.make(directory, registries=registries(origin, kept))
    serve(origin, made)
    tiny.pin(made)
    tiny.edit("it", "vllm/config.py", "128", "256")
    tiny.variant("it", "it")
    return Based(tiny=tiny, made=made, origin=origin, kept=kept)


def outside(directory: Path, origin: StandIn, kept: StandIn, made: MadeImage) -> Outside:
    """Make the project, and all that it needs, below ``directory``."""
    tiny = Tiny.make(directory)
    tiny.document(
        "builder.yaml",
        {
            "version": 1,
            "registries": registries(origin, kept),
            "mirrors": {"git": {"https://git.test/": "../git/"}},
        },
    )
    (directory / "git" / "team").mkdir(parents=True)
    index = directory / "index"
    index.mkdir()
    (index / FILENAME).write_bytes(WHEEL)
    serve(origin, made)
    tiny.pin(made)
    world = Outside(
        tiny=tiny,
        made=made,
        origin=origin,
        kept=kept,
        upstream=Upstream.make(directory / "git/team/code.git"),
        patches=Upstream.make(directory / "git/team/patches.git"),
        index=index,
        environment={"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index), "no_proxy": "*"},
    )
    _pin_code(world)
    _pin_patches(world)
    tiny.lock(
        "wheels",
        "demo",
        {
            "follows": {"project": "demo", "version": "1.0"},
            "filename": FILENAME,
            "digest": str(Digest.of(WHEEL)),
        },
    )
    placed = {"from": "chat.jinja", "to": "/opt/chat.jinja", "replaces": "nothing"}
    steps = ({"pull": "seven"}, {"source": "code", "files": [placed]})
    tiny.variant("it", *steps)
    tiny.variant("all", *steps, {"wheels": ["demo"]})
    tiny.variant("patched", {"genesis": "v1", "platform": "cuda-8.6"})
    return world


def _pin_code(world: Outside) -> None:
    base = world.upstream.commit("refs/heads/main", TREE)
    after = TREE | {"vllm/config.py": b"SIZE = 256\n"}
    head = world.upstream.commit("refs/pull/7/head", after, parent=base)
    change = git(world.upstream.path, "diff", base, head).encode() + b"\n"
    world.tiny.lock(
        "pulls",
        "seven",
        {
            "follows": {"repository": REPOSITORY, "pull": 7},
            "base": base,
            "head": head,
            "diff": str(diff.canonical(diff.parse(change, at="a test's diff"))),
            "root": ".",
            "strip": 1,
        },
    )
    world.tiny.lock("sources", "code", source_pin(world, base))


def source_pin(world: Outside, commit: str) -> Mapping[str, Any]:
    """All files of a commit but those of the package."""
    return {
        "follows": {"repository": REPOSITORY, "ref": "main"},
        "commit": commit,
        "tree": git(world.upstream.path, "rev-parse", f"{commit}^{{tree}}"),
        "files": {
            path: {"digest": str(Digest.of(data)), "size": len(data)}
            for path, data in TREE.items()
            if not path.startswith("vllm/")
        },
    }


def _pin_patches(world: Outside) -> None:
    files: Files = {
        "vllm/_genesis/__init__.py": b"",
        "vllm/_genesis/run": ("100755", b"#!/bin/sh\n"),
        "vllm/_genesis/link": ("120000", b"run"),
        "plugin/setup.py": b"setup()\n",
    }
    commit = world.patches.commit("refs/heads/main", files)

    def tree(path: str) -> dict[str, str]:
        return {"path": path, "tree": git(world.patches.path, "rev-parse", f"{commit}:{path}")}

    world.tiny.lock(
        "genesis",
        "v1",
        {
            "follows": {"repository": PATCHES, "ref": "main"},
            "commit": commit,
            "tree": git(world.patches.path, "rev-parse", f"{commit}^{{tree}}"),
            "payload": tree("vllm/_genesis"),
            "plugin": tree("plugin"),
        },
    )
