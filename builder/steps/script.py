"""``script``: a patch script, run in the sandbox and held to the files that it declares.

A script changes what it likes and says what it likes; what counts is the comparison of the files
before and after with what the recipe says of them. Where a script is a search and a replacement,
anchored edits of an overlay say the same without running anything.
"""

import posixpath
import re
from typing import Any, ClassVar, TypeAlias

from builder.digest import Digest
from builder.errors import PatchError
from builder.lock.model import SourcePin
from builder.observed import Observed
from builder.outcome import FileOutcome, Outcome
from builder.python_layout import PythonLayout
from builder.sandbox import INPUTS, Finished, Job, Laid
from builder.steps.request import Materials, layout_of, locate
from builder.value import field, value
from builder.variant import Script
from builder.verdict import Verdict

PACKAGES = "BUILDER_PACKAGES"
"""The variable that has the packages directory, with a leading slash."""

# No packages of the sandbox's own Python, no directory of the script, nothing compiled. Not -I: it
# would ignore PYTHONHASHSEED, too, and the order of a set must not change a layer.
_COMMANDS = {
    "python": ("python", "-s", "-S", "-P", "-B"),
    "sh": ("sh",),
    "bash": ("/bin/bash",),
}
_SCRIPT = f"{INPUTS}/script"
# What every program needs to start, and what a sandbox has of its own: a copy of a directory of the
# image in the place of one of these would hide it.
_TAKEN = re.compile(
    r"(?:builder|dev|proc|sys|tmp)(?:/.*)?|(?:usr/)?lib(?:32|64|x32)?(?:/[^/]*-linux-gnu[^/]*)?"
)


@value
class OwnScript:
    """A script that stands in an overlay of the project."""

    overlay: str
    script: Script

    @property
    def pin(self) -> str:
        return f"overlay {self.overlay}"

    @property
    def path(self) -> str:
        return self.script.file

    @property
    def digest(self) -> Digest:
        return Digest.of(self.script.data)

    def read(self, materials: Materials) -> bytes:  # noqa: ARG002 - has its bytes
        return self.script.data


@value
class PinnedScript:
    """A script that a source pin has."""

    source: SourcePin
    path: str

    @property
    def pin(self) -> str:
        return f"source {self.source.name}"

    @property
    def digest(self) -> Digest:
        return next(file.digest for file in self.source.files if file.path == self.path)

    def read(self, materials: Materials) -> bytes:
        return materials.source(self.source, self.path)


AnyScript: TypeAlias = OwnScript | PinnedScript


@value
class ScriptRequest:
    """Run ``script`` over the files that it ``touches``.

    It sees all of the top package of each of them that is in the packages directory (``vllm/``);
    of a file elsewhere, that file alone. Its own bytes are at ``/builder/in/script``.
    """

    kind: ClassVar[str] = "script"

    script: AnyScript
    interpreter: str
    """``python``, ``sh`` or ``bash``."""
    touches: tuple[str, ...]
    arguments: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    python: PythonLayout | None = None
    at: str = field(default="", compare=False)

    @property
    def until_upstream(self) -> bool:
        return False

    @property
    def pins(self) -> tuple[str, ...]:
        return (self.script.pin,)

    def record(self) -> dict[str, Any]:
        return {
            "script": str(self.script.digest),
            "interpreter": self.interpreter,
            "touches": sorted(self.touches),
            "arguments": list(self.arguments),
            "environment": dict(self.environment),
            "python": None if self.python is None else self.python.record(),
        }

    def run(self, view: Observed, materials: Materials) -> Outcome:
        from builder.steps.scratch import taken  # noqa: PLC0415 - see builder.steps.request

        layout = layout_of(view, self.python)
        touched = tuple(self._located(target, view, layout) for target in self.touches)
        job = self._job(view, layout, touched, self.script.read(materials))
        finished = materials.sandbox.run(job)
        if finished.status != 0:
            raise PatchError(
                f"{self.at}: {self.script.path!r} ended with exit status {finished.status}",
                verdict=Verdict.REFUSED,
                hint="the last lines of its output are above",
                difference=_last_lines(finished),
            )
        changes, files = taken(finished, view, job=job, at=self.at)
        self._hold(touched, files, finished)
        count = "1 file" if len(files) == 1 else f"{len(files)} files"
        return Outcome(
            changes=changes,
            files=files,
            summary=f"{posixpath.basename(self.script.path)}: {count}",
            sandbox=materials.sandbox.name,
        )

    def _located(self, target: str, view: Observed, layout: PythonLayout) -> str:
        """The path of a target: that of a regular file by its own name, or of nothing yet."""
        path = locate(target, layout)
        entry = view.stat(path)
        if (real := view.resolve(path)) != path:
            found = f"leads through a link, to {real!r}"
        elif "/" not in path:
            found = "stands in the root of the image, of which no program gets a copy"
        elif _TAKEN.fullmatch(posixpath.dirname(path)):
            found = "stands where the sandbox has files of its own"
        elif entry is not None and not entry.is_file:
            found = f"is a {entry.kind}" + (f" to {entry.target!r}" if entry.target else "")
        else:
            return path
        raise PatchError(
            f"{self.at}: touches: {path!r} {found}, wanted the path of a file",
            verdict=Verdict.REFUSED,
            path=path,
            hint="name the file itself",
        )

    def _job(
        self, view: Observed, layout: PythonLayout, touched: tuple[str, ...], script: bytes
    ) -> Job:
        from builder.steps.scratch import laid  # noqa: PLC0415 - see builder.steps.request

        tops = {top for path in touched if (top := _top_package(path, layout)) is not None}
        alone = {posixpath.dirname(path) for path in touched if _top_package(path, layout) is None}
        roots = tops | alone
        seed = {"PYTHONHASHSEED": "0"} if self.interpreter == "python" else {}
        return Job(
            command=(*_COMMANDS[self.interpreter], _SCRIPT, *self.arguments),
            environment={PACKAGES: f"/{layout.packages}", **seed, **dict(self.environment)},
            roots=tuple(sorted(root for root in roots if not _is_inside(root, roots))),
            files=laid(view, sorted(tops), whole=touched),
            inputs=(Laid(path="script", data=script, mode=0o755),),
        )

    def _hold(
        self, touched: tuple[str, ...], files: tuple[FileOutcome, ...], finished: Finished
    ) -> None:
        """Changed is what was declared, no more and no less."""
        changed = {file.path for file in files}
        findings = [
            *(f"{path}: changed, and not declared" for path in sorted(changed - set(touched))),
            *(f"{path}: declared, and not changed" for path in sorted(set(touched) - changed)),
        ]
        if findings:
            raise PatchError(
                f"{self.at}: {self.script.path!r} and its 'touches' do not agree",
                verdict=Verdict.REFUSED,
                findings=tuple(findings),
                hint="a file that it should change and does not is a change that was lost, or is"
                " upstream already; one that it changes besides belongs under 'touches'",
                difference=_last_lines(finished),
            )


def _top_package(path: str, layout: PythonLayout) -> str | None:
    """The directory of the packages directory that the file is in, if it is in one."""
    start = f"{layout.packages}/"
    name, slash, _ = path.removeprefix(start).partition("/")
    return f"{start}{name}" if path.startswith(start) and slash else None


def _is_inside(path: str, directories: set[str]) -> bool:
    return any(path.startswith(f"{directory}/") for directory in directories)


def _last_lines(finished: Finished) -> str | None:
    """The end of what it said: complaints where there are some."""
    from builder.steps.scratch import last_lines  # noqa: PLC0415 - see builder.steps.request

    return last_lines(finished.stderr.strip() or finished.stdout.strip())
