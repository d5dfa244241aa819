"""A project to measure: three patched files, and a stack of overlays of which one is edited."""

from dataclasses import dataclass
from pathlib import Path

from builder.digest import Digest

THREE = ("vllm/config.py", "vllm/engine/core.py", "vllm/worker/runner.py")
"""What the variant ``three`` patches."""
EDITED = "vllm/entrypoints/extra.py"
"""What the middle overlay of the variant ``stack`` adds."""


def base_files() -> dict[str, bytes]:
    """The files that the base has for us, about 25 kB each."""
    body = "".join(
        f"def function_{n}(value: int) -> int:\n    return value + {n}\n\n\n" for n in range(400)
    )
    return {path: f'"""{path}"""\n\nLIMIT = 128\n\n\n{body}'.encode() for path in THREE} | {
        "vllm/__init__.py": b"",
        "vllm/engine/__init__.py": b"",
        "vllm/worker/__init__.py": b"",
    }


def patched(number: int) -> dict[str, bytes]:
    """What they are patched to in run ``number``, for peers that copy files."""
    limit = f"\nLIMIT = {1000 + number}\n".encode()
    files = base_files()
    return {path: files[path].replace(b"\nLIMIT = 128\n", limit) for path in THREE}


def edited(number: int) -> bytes:
    """The file of the middle overlay in run ``number``."""
    return f"# edit {number}\nVALUE = {number}\n".encode() + b"# what stays\n" * 500


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchProject:
    """The project's directory. Variants come in two sizes of base: ``three-small``,
    ``three-large``, ``stack-large``."""

    root: Path

    def write(self, registry: str, bases: dict[str, Digest]) -> None:
        """Everything, as of run 0."""
        pins = "".join(
            f"  {name}:\n"
            f"    follows: {{image: '{registry}/bench/base', tag: {name}}}\n"
            f"    platforms: {{linux/amd64: {{manifest: '{digest}'}}}}\n"
            for name, digest in bases.items()
        )
        self._put("lockfiles/vllm.yaml", f"version: 1\nvllm:\n{pins}")
        for name in bases:
            self._variant(f"three-{name}", name, ("three",))
            self._variant(f"stack-{name}", name, ("three", "middle", "top"))
        self.patch(0)
        self.edit(0)
        top = "vllm/entrypoints/top.py"
        self._put("overlays/top/overlay.yaml", _whole(top, "top.py"))
        self._put("overlays/top/top.py", "TOP = True\n")

    def patch(self, number: int) -> None:
        """Let the variants named ``three`` patch their files as of run ``number``."""
        edits = "".join(
            f"  - path: {path}\n    edits:\n"
            f'      - anchor: "LIMIT = 128\\n"\n        replace: "LIMIT = {1000 + number}\\n"\n'
            for path in THREE
        )
        self._put("overlays/three/overlay.yaml", f"version: 1\nedits:\n{edits}")

    def edit(self, number: int) -> None:
        """Edit the middle overlay of the stack."""
        self._put("overlays/middle/overlay.yaml", _whole(EDITED, "extra.py"))
        self._put("overlays/middle/extra.py", edited(number).decode())

    def _variant(self, name: str, base: str, overlays: tuple[str, ...]) -> None:
        steps = "".join(f"  - overlay: {overlay}\n" for overlay in overlays)
        python = "python: {version: '3.12', packages: usr/local/lib/python3.12/dist-packages}\n"
        text = f"version: 1\nbase: {{pin: {base}}}\n{python}steps:\n{steps}"
        self._put(f"variants/{name}.yaml", text)

    def _put(self, path: str, text: str) -> None:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)


def _whole(path: str, file: str) -> str:
    return f"version: 1\nfiles:\n  - path: {path}\n    file: {file}\n    replaces: nothing\n"
