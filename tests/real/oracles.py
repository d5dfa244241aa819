"""What the patched files must be: made from the wheel's own files with sed, GNU patch and git."""

import shutil
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.commands import ROOT, CommandError, run

PATCH_HOME = "models/gemma-4-31b/vllm/patches/vllm-pr40391-v0.22.0"
"""Where club-3090 keeps its rebase of PR 40391."""

_SED = {
    "vllm/v1/sample/rejection_sampler.py": ["s/^MAX_SPEC_LEN = 128$/MAX_SPEC_LEN = 8/"],
    "vllm/entrypoints/constants.py": [
        "s/^H11_MAX_HEADER_COUNT_DEFAULT = 256/H11_MAX_HEADER_COUNT_DEFAULT = 512/"
    ],
}
_SED_LAST = {
    "vllm/envs.py": [
        's/("VLLM_NO_USAGE_STATS", "0") == "1"/("VLLM_NO_USAGE_STATS", "1") == "1"/',
        "s/VLLM_NO_USAGE_STATS: bool = False/VLLM_NO_USAGE_STATS: bool = True/",
    ],
}
_WHOLE = {
    "vllm/v1/metrics/__init__.py": "metrics_init.py",
    "vllm/v1/metrics/builder_facts.py": "builder_facts.py",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Rebase:
    """The files of the published rebase, as git has them."""

    patch: bytes
    new_file: bytes


def guards(wheel: Path, scratch: Path) -> dict[str, bytes]:
    """The files that ``vllm-0.22.0-guards`` changes, by their path in the wheel, as they must be.

    Raises:
        CommandError: A tool refuses, or leaves a file as it was.
    """
    files = [*_SED, *_SED_LAST]
    _extract(wheel, files, scratch)
    _sed(_SED | _SED_LAST, scratch)
    return {path: (scratch / path).read_bytes() for path in files} | _whole_files()


def pr40391(wheel: Path, rebase: Rebase, scratch: Path) -> dict[str, dict[str, bytes]]:
    """The files that ``vllm-0.22.0-pr40391`` changes, once for each tool that applies its diff."""
    answers = {}
    for tool, command in (
        ("GNU patch", ("patch", "-p1", "--fuzz=0", "--no-backup-if-mismatch", "--batch")),
        ("git apply", ("git", "-c", "core.autocrlf=false", "apply", "-p1")),
    ):
        place = scratch / tool.replace(" ", "-")
        patched = patched_paths(rebase.patch)
        _extract(wheel, [*dict.fromkeys([*patched, *_SED, *_SED_LAST])], place)
        _sed(_SED, place)
        run(command, directory=place, given=rebase.patch)
        _sed(_SED_LAST, place)
        files = [*dict.fromkeys([*patched, *_SED, *_SED_LAST])]
        answers[tool] = {path: (place / path).read_bytes() for path in files} | _whole_files()
        answers[tool]["vllm/v1/worker/kv_cache_shape_utils.py"] = rebase.new_file
    return answers


def patched_paths(patch: bytes) -> tuple[str, ...]:
    """The files that a plain diff of changed files names."""
    lines = patch.decode().splitlines()
    return tuple(line.removeprefix("+++ b/") for line in lines if line.startswith("+++ b/"))


def fetch_rebase(mirror: Path, commit: str) -> Rebase:
    """The published files, read by git itself from a local repository.

    Raises:
        CommandError: Git does not have them there.
    """

    def show(name: str) -> bytes:
        return run(
            ("git", "-C", mirror, "cat-file", "blob", f"{commit}:{PATCH_HOME}/{name}")
        ).stdout

    return Rebase(patch=show("pr40391-v0.22.0.patch"), new_file=show("kv_cache_shape_utils.py"))


def _extract(wheel: Path, paths: list[str], scratch: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        for path in paths:
            target = scratch / path
            target.parent.mkdir(parents=True, exist_ok=True)
            with archive.open(path) as source, target.open("wb") as copy:
                shutil.copyfileobj(source, copy)


def _sed(scripts: Mapping[str, list[str]], scratch: Path) -> None:
    for path, expressions in scripts.items():
        target = scratch / path
        for expression in expressions:
            before = target.read_bytes()
            after = run(("sed", "-e", expression, target)).stdout
            if before == after:
                raise CommandError(f"sed -e {expression!r} leaves {path!r} as it was")
            target.write_bytes(after)


def _whole_files() -> dict[str, bytes]:
    home = ROOT / "overlays" / "vllm-0.22.0-guards" / "files"
    return {path: (home / name).read_bytes() for path, name in _WHOLE.items()}
