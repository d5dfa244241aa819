"""A project with a patch set of our own in a real git repository: as little of one as there can be,
in the shape that the first era has."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.adapters.git_world import Upstream, git

REPOSITORY = "https://git.example.invalid/acme/patches"
GUARDS = 'KNOWN_GOOD_VLLM_PINS: tuple[str, ...] = ("0.20.1",)\n'
DISPATCHER = """\
PATCH_REGISTRY = {
    "P1": {"title": "one", "env_flag": "GENESIS_ENABLE_P1", "conflicts_with": ["P2"]},
    "P2": {"title": "two", "env_flag": "GENESIS_ENABLE_P2"},
    "P3": {"title": "three", "env_flag": "GENESIS_ENABLE_P3", "lifecycle": "retired"},
}
"""
ZERO = "sha256:" + "0" * 64


@dataclass(frozen=True, kw_only=True)
class PatchWorld:
    """Where the repository is, and the one commit in it."""

    upstream: Path
    commit: str
    tree: str
    payload: str

    @property
    def mirrors(self) -> str:
        """``BUILDER_MIRRORS``."""
        return f"{REPOSITORY}={self.upstream}"

    def lock(self) -> str:
        """``lockfiles/genesis.yaml``."""
        return (
            f"version: 1\ngenesis:\n  v1:\n    follows: {{repository: {REPOSITORY}}}\n"
            f"    commit: '{self.commit}'\n    tree: '{self.tree}'\n"
            f"    payload: {{path: vllm/_genesis, tree: '{self.payload}'}}\n"
        )


def patch_world(
    directory: Path, *, guards: str = GUARDS, more: Mapping[str, str] | None = None
) -> PatchWorld:
    """Make the repository; ``more`` are files of the payload, such as one that applies patches."""
    upstream = Upstream.make(directory / "patches.git")
    files = {"guards.py": guards, "dispatcher.py": DISPATCHER, "__init__.py": "", **(more or {})}
    commit = upstream.commit(
        "refs/heads/dev", {f"vllm/_genesis/{name}": text.encode() for name, text in files.items()}
    )

    def object_id(what: str) -> str:
        return git(upstream.path, "rev-parse", f"{commit}{what}")

    return PatchWorld(
        upstream=upstream.path,
        commit=commit,
        tree=object_id("^{tree}"),
        payload=object_id(":vllm/_genesis"),
    )


def write_patched(
    project: Path, world: PatchWorld, *, vllm: str = "0.20.2", env: str = "{}"
) -> None:
    """Give a project the variant ``night``: a wheel of vLLM, and the patch set on it."""
    (project / "lockfiles/genesis.yaml").write_text(world.lock())
    wheels = project / "lockfiles/wheels.yaml"
    others = wheels.read_text().partition("  vllm:\n")[0]
    wheels.write_text(
        f"{others}  vllm:\n    follows: {{project: vllm, version: {vllm}}}\n"
        f"    filename: vllm-{vllm}-py3-none-any.whl\n    digest: '{ZERO}'\n"
    )
    (project / "variants/night.yaml").write_text(
        "version: 1\nbase: scratch\n"
        "python: {version: '3.12', packages: usr/lib/python3.12/site-packages}\n"
        "steps:\n  - wheels: [vllm]\n  - genesis: v1\n    platform: cuda-8.6\n"
        f"image:\n  env: {env}\n"
    )
