"""One bake: the patch set's own program on a copy of the packages, and what came of it."""

import json
import logging
import re
from collections.abc import Iterator, Mapping, Sequence

from builder.changes import Change
from builder.errors import PatchError
from builder.genesis.program import HARNESS
from builder.genesis.said import Said, ended, markers, parse
from builder.observed import Observed
from builder.outcome import FileOutcome, PatchOutcome, PatchState
from builder.python_layout import PythonLayout, project_of, vllm_build
from builder.sandbox import INPUTS, Finished, Job, Laid, LeftFile, Sandbox
from builder.steps.genesis_payload import Payload
from builder.steps.scratch import laid, last_lines, taken
from builder.value import field, value
from builder.verdict import Verdict

_log = logging.getLogger(__name__)


_TORCH = re.compile(r"^Requires-Dist: *torch *== *([0-9][^;\s]*)", re.MULTILINE)


@value
class Target:
    """What a patch set is baked for: its module, and what it decides by."""

    module: str
    vendor: str
    """``cuda``"""
    capability: tuple[int, int] | None
    environment: Mapping[str, str]


@value
class Baked:
    """What a bake came to, the payload itself left out."""

    changes: tuple[Change, ...]
    files: tuple[FileOutcome, ...]
    patches: tuple[PatchOutcome, ...]
    summary: str


@value
class _Found:
    """What the files say: those that are different, and whom their markers name."""

    changed: frozenset[str]
    marked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def bake(
    view: Observed,
    layout: PythonLayout,
    target: Target,
    payload: Payload,
    *,
    sandbox: Sandbox,
    at: str,
) -> Baked:
    """Run the module over the packages of the image, with the payload laid into them.

    Raises:
        PatchError: ``refused``: a patch failed; the program ended in another way than by having
            run its patches; or what it says and what the files say do not fit each other.
        SandboxError: It took more than it may, or left what may not be taken.
    """
    job = _job(view, layout, target, payload, at=at)
    finished = sandbox.run(job)
    said = parse(finished.stdout)
    _refuse_abnormal(finished, said, at=at)
    _refuse_own(finished, payload, at=at)
    changes, files = taken(finished, view, job=job, at=at)
    found = _found(finished, files)
    patches = _outcomes(said, found, at=at)
    return Baked(changes=changes, files=files, patches=patches, summary=_summary(patches, found))


def _job(
    view: Observed,
    layout: PythonLayout,
    target: Target,
    payload: Payload,
    *,
    at: str,
) -> Job:
    version, torch = _versions(view, layout, at=at)
    told = {
        "packages": f"/{layout.packages}",
        "module": target.module,
        "version": version,
        "vendor": target.vendor,
        "capability": target.capability,
        "stand_ins": {"torch": torch},
    }
    return Job(
        # Not -I: it would ignore PYTHONHASHSEED, and the order of a set must not change a layer.
        command=("python", "-s", "-S", "-P", "-B", f"{INPUTS}/harness.py", f"{INPUTS}/bake.json"),
        environment=target.environment,
        roots=(layout.packages,),
        files=(
            *laid(view, (f"{layout.packages}/vllm",)),
            *(Laid(path=path, data=data, mode=mode) for path, data, mode in payload.files),
            *(Laid(path=path, data=data, mode=mode) for path, data, mode in payload.through),
        ),
        inputs=(
            Laid(path="harness.py", data=HARNESS),
            Laid(path="bake.json", data=json.dumps(told).encode()),
        ),
    )


def _versions(view: Observed, layout: PythonLayout, *, at: str) -> tuple[str, str]:
    """Of the image's vLLM, and of the torch that it has, or else of the one that vLLM requires."""
    build, path = vllm_build(view, layout), f"{layout.packages}/vllm"
    package = view.stat(path)
    if build is None or package is None:
        raise PatchError(
            f"{at}: no vLLM in {layout.packages!r}",
            verdict=Verdict.FILE_MISSING,
            path=path,
            hint="the base, or a step before this one, must bring it",
        )
    if not package.is_directory:
        raise PatchError(
            f"{at}: {path!r} is a {package.kind}, and what is baked is a directory",
            verdict=Verdict.REFUSED,
            path=path,
        )
    names = view.children(layout.packages, prefix="torch-")
    stems = (name.rpartition(".")[0] for name in names if project_of(name) == "torch")
    torch = next((stem.split("-")[1] for stem in stems), None)
    if torch is None:
        required = _TORCH.search(_metadata(view, layout))
        torch = required[1] if required else "0"
    return build.version, torch


def _metadata(view: Observed, layout: PythonLayout) -> str:
    for name in view.children(layout.packages, prefix="vllm-"):
        path = f"{layout.packages}/{name}/METADATA"
        if project_of(name) == "vllm" and view.stat(path) is not None:
            return view.read(path).decode("utf-8", "replace")
    return ""


def _refuse_abnormal(finished: Finished, said: Sequence[Said], *, at: str) -> None:
    """The program ran its patches and ended as it does: 0, or 1 where some failed."""
    failed = [item for item in said if item.says == "failed"]
    if failed:
        raise PatchError(
            f"{at}: {len(failed)} of {len(said)} patches failed",
            verdict=Verdict.REFUSED,
            findings=tuple(f"{item.name}: {item.reason}" for item in failed),
            hint="switch them off in the variant's image.env, or pin a commit that fits the base",
        )
    in_order = ended(finished.stdout)
    if finished.status == 0 and said and in_order:
        return
    raise PatchError(
        f"{at}: the patch set ended {'' if in_order else 'abruptly '}with exit status"
        f" {finished.status}, having told of {len(said)} patches",
        verdict=Verdict.REFUSED,
        hint="the last lines of its output are above; it runs with a bare vllm package, an inert"
        " torch and the standard library",
        difference=last_lines(finished.stdout + b"\n" + finished.stderr),
    )


def _refuse_own(finished: Finished, payload: Payload, *, at: str) -> None:
    own = {path for path, _, _ in (*payload.files, *payload.through)}
    touched = sorted(own & {item.path for item in finished.left} | own & set(finished.removed))
    if touched:
        raise PatchError(
            f"{at}: the patch set changes its own files: {', '.join(touched[:5])}",
            verdict=Verdict.REFUSED,
            path=touched[0],
        )


def _found(finished: Finished, files: Sequence[FileOutcome]) -> _Found:
    texts = {item.path: item.data for item in finished.left if isinstance(item, LeftFile)}
    changed = frozenset(item.path for item in files)
    return _Found(
        changed=changed,
        marked={path: tuple(markers(texts[path])) for path in sorted(changed & texts.keys())},
    )


def _outcomes(said: Sequence[Said], found: _Found, *, at: str) -> tuple[PatchOutcome, ...]:
    """What each patch came to: where files are different for it, they decide, not its word."""
    outcomes = []
    for item in said:
        files = tuple(sorted(found.changed & set(item.wrote)))
        state = PatchState.APPLIED if files else PatchState(item.says)
        if state is PatchState.APPLIED and not files:
            state = PatchState.RUNTIME_ONLY
        if files and item.says == "skipped":
            told = "%s: %s says that it was skipped, and changed %s: %s"
            _log.warning(told, at, item.name, ", ".join(files), item.reason)
        outcomes.append(PatchOutcome(name=item.name, state=state, reason=item.reason, files=files))
    if findings := (*_unclaimed(outcomes, found), *_marked_by_others(outcomes, found)):
        raise PatchError(
            f"{at}: what the patch set says and what the files say do not fit",
            verdict=Verdict.REFUSED,
            findings=findings,
        )
    _warn_unmarked(outcomes, found, at=at)
    return tuple(outcomes)


def _unclaimed(outcomes: Sequence[PatchOutcome], found: _Found) -> Iterator[str]:
    claimed = {path for item in outcomes for path in item.files}
    for path in sorted(found.changed - claimed):
        yield f"{path}: is different, and no patch wrote to it"


def _marked_by_others(outcomes: Sequence[PatchOutcome], found: _Found) -> Iterator[str]:
    wrote = {item.name.casefold(): item.files for item in outcomes}
    for path, names in found.marked.items():
        for name in names:
            if path not in wrote.get(name.casefold(), ()):
                yield f"{path}: has the marker of {name}, which did not write to it"


def _warn_unmarked(outcomes: Sequence[PatchOutcome], found: _Found, *, at: str) -> None:
    for item in outcomes:
        for path in item.files:
            names = {name.casefold() for name in found.marked.get(path, ())}
            if item.state is PatchState.APPLIED and item.name.casefold() not in names:
                _log.warning("%s: %s wrote to %s and left no marker there", at, item.name, path)


def _summary(patches: Sequence[PatchOutcome], found: _Found) -> str:
    count = {state: sum(item.state is state for item in patches) for state in PatchState}
    in_files, in_memory = count[PatchState.APPLIED], count[PatchState.RUNTIME_ONLY]
    marks = sum(map(len, found.marked.values()))
    return (
        f"{in_files + in_memory} applied ({in_memory} at run time only),"
        f" {count[PatchState.SKIPPED]} skipped; {_several(len(found.changed), 'file')},"
        f" {_several(marks, 'marker')}"
    )


def _several(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
