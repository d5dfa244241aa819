"""A bump for those who decide about it: as text, as Markdown for a pull request, as JSON. Pure.

What comes from upstream (subjects of commits, tags, messages) stands in code, where it is no
Markdown, mentions nobody and closes no issue.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from builder import quoting
from builder.bump import Bump
from builder.errors import PatchError
from builder.lock.model import GenesisPin, ImagePin, ModelPin, Pin, PullPin, SourcePin, WheelPin
from builder.moves import Move
from builder.trial import StepTrial, VariantTrial
from builder.upstream import Commit, Distance

_COMMITS = 50
"""How many commits a report lists; the JSON has all."""
_FILES = 10


def title(bump: Bump) -> str:
    """One line: ``bump genesis genesis-v7.72.2: 7b9fd3194ee6 -> fbecee31c0de``. Pins that say more
    than before and are the same are locked: ``lock vllm base, wheel pandas``."""
    if not bump.changes:
        return "nothing changes" if bump.moves else "nothing to lock"
    moved = [move for move in bump.moves if move.changes]
    first = next((move for move in moved if not _stays(move)), None)
    if first is None:
        return f"lock {', '.join(f'{move.kind} {move.pin.name}' for move in moved)}"
    names = ", ".join(move.pin.name for move in moved)
    what = f"{first.kind} {names}"
    if first.before is None:
        return f"add {what}: {shown(first.pin)}"
    old, new = shown(first.before), shown(first.pin)
    if old == new:  # another file under the same version
        old, new = _closely(first.before), _closely(first.pin)
    return f"bump {what}: {old} -> {new}"


def _stays(move: Move) -> bool:
    """Whether the pin is what it was, and only says more."""
    return move.before is not None and _closely(move.before) == _closely(move.pin)


def _closely(pin: Pin) -> str:
    return f"{shown(pin)} ({pin.digest.short})" if isinstance(pin, WheelPin) else shown(pin)


def shown(pin: Pin) -> str:
    """What a pin is, short."""
    match pin:
        case ImagePin():
            digest = pin.index or next((item.manifest for _, item in pin.platforms), None)
            return f"{pin.follows.tag}@{digest.short if digest else 'nothing'}"
        case GenesisPin() | SourcePin() | ModelPin():
            return pin.commit.short
        case PullPin():
            return pin.diff.short if pin.head is None else pin.head.short
        case WheelPin():
            return quoting.plain(pin.version)


def document(bump: Bump, *, written: tuple[str, ...] = ()) -> dict[str, Any]:
    """The report as JSON."""
    return {
        "title": title(bump),
        "changes": bump.changes,
        "written": list(written),
        "moves": [_move(move) for move in bump.moves],
        "variants": [_variant(trial) for trial in bump.trials],
        "not_tried": list(bump.not_tried),
        "landed": [
            {"variant": item.variant, "step": item.step, "pull": item.pull, "commit": item.commit}
            for item in bump.landed
        ],
        "remarks": list(bump.remarks),
    }


def _move(move: Move) -> dict[str, Any]:
    distance = move.resolved.distance
    return {
        "kind": move.kind,
        "name": move.pin.name,
        "from": None if move.before is None else shown(move.before),
        "to": shown(move.pin),
        "changes": move.changes,
        "remarks": list(move.resolved.remarks),
        "merged": move.resolved.merged,
        "all_commits": None if distance is None else distance.complete,
        "commits": None if distance is None else list(map(_commit, distance.ahead)),
        "lost_commits": None if distance is None else list(map(_commit, distance.behind)),
    }


def _commit(commit: Commit) -> dict[str, Any]:
    return {"id": commit.id, "time": commit.time, "subject": commit.subject}


def _variant(trial: VariantTrial) -> dict[str, Any]:
    return {
        "variant": trial.variant,
        "passes": trial.passes,
        "image": None if trial.image is None else str(trial.image),
        "accepted": None if trial.accepted is None else str(trial.accepted),
        "size": trial.size,
        "refusals": [error.record() for error in trial.refusals],
        "warnings": list(trial.warnings),
        "steps": list(map(_step, trial.steps)),
    }


def _step(step: StepTrial) -> dict[str, Any]:
    return {
        "step": step.step.name,
        "kind": step.step.kind,
        "verdict": step.verdict,
        "passes": step.passes,
        "below": step.below,
        "files": [] if step.output is None else [item.record() for item in step.output.files],
        "changed_below": list(step.changed_below),
        "changed": list(step.changed),
        "patches": list(step.patches),
        "error": None if step.error is None else step.error.record(),
    }


def text(bump: Bump) -> str:
    """The report for a terminal."""
    lines = [title(bump)]
    for move in bump.moves:
        lines += [f"  {line}" for line in _about(move)]
    for trial in bump.trials:
        lines += ["", *_trial(trial)]
    if bump.not_tried:
        lines += ["", f"not tried: {', '.join(bump.not_tried)}"]
    lines += _landings(bump)
    return "\n".join(lines)


def _about(move: Move) -> Iterator[str]:
    if not move.changes:
        yield f"{move.pin.name} is what it was"
    if (distance := move.resolved.distance) is not None and move.changes:
        yield _apart(distance)
        for mark, commits in (("", distance.ahead), ("lost: ", distance.behind)):
            yield from (f"  {mark}{_line(commit)}" for commit in commits[:_COMMITS])
            if (more := len(commits) - _COMMITS) > 0:
                yield f"  {mark}and {more} more"
    yield from map(quoting.plain, move.resolved.remarks)


def _trial(trial: VariantTrial) -> Iterator[str]:
    yield f"{trial.variant}: {_conclusion(trial)}"
    yield from (f"  refused: {quoting.first_line(error.message)}" for error in trial.refusals)
    width = max((len(step.step.name) for step in trial.steps), default=0)
    for step in trial.steps:
        yield f"  {step.step.name.ljust(width)}  {step.verdict}"
        yield from (f"    {line}" for line in _details(step))
    yield from (f"  warning: {quoting.plain(line)}" for line in trial.warnings)


def _conclusion(trial: VariantTrial) -> str:
    if not trial.passes:
        failed = sum(not step.passes for step in trial.steps)
        return f"fails, {failed} of {len(trial.steps)} steps" if failed else "fails"
    size = "" if trial.size is None else f", {_size(trial.size)}"
    if trial.accepted is None:
        return f"passes, {trial.image}{size}"
    same = trial.accepted == trial.image
    return f"passes, {'the accepted image' if same else f'another image, {trial.image}'}{size}"


def _size(count: int) -> str:
    return f"{count / 1e6:.1f} MB in a registry"


def _details(step: StepTrial) -> Iterator[str]:
    if step.error is not None:
        yield quoting.first_line(step.error.message)
        if isinstance(step.error, PatchError):
            yield from map(quoting.plain, step.error.findings)
        if step.error.hint:
            yield f"hint: {quoting.plain(step.error.hint)}"
    if step.below is not None:
        yield f"tried without {step.below}, which failed"
    if step.output is not None:
        for file in step.output.files:
            if any(file.offsets):
                offsets = ", ".join(f"{offset:+d}" for offset in file.offsets if offset)
                yield f"{quoting.plain(file.path)}: offset {offsets}"
    yield from _few("upstream changed", step.changed_below)
    yield from _few("comes out differently", step.changed)
    yield from map(quoting.plain, step.patches)


def _few(what: str, paths: tuple[str, ...]) -> Iterator[str]:
    if paths:
        more = f" and {len(paths) - _FILES} more" if len(paths) > _FILES else ""
        yield f"{what}: {', '.join(map(quoting.plain, paths[:_FILES]))}{more}"


def _landings(bump: Bump) -> list[str]:
    lines = [
        f"{item.variant}: pull request {item.pull} of step {item.step} has landed: {item.commit}"
        " is in the history of the base"
        for item in bump.landed
    ]
    lines += map(quoting.plain, bump.remarks)
    return ["", *lines] if lines else []


def markdown(bump: Bump) -> str:
    """The report for the body of a pull request."""
    lines = [f"**{_conclusions(bump)}**", ""]
    for move in bump.moves:
        old = "new" if move.before is None else quoting.code(shown(move.before))
        lines.append(
            f"- {move.kind} {quoting.code(move.pin.name)}: {old} → {quoting.code(shown(move.pin))}"
        )
        lines += [f"  - {quoting.code(remark)}" for remark in move.resolved.remarks]
    for move in bump.moves:
        lines += _history(move)
    if bump.trials:
        lines += ["", "| variant | step | verdict | |", "| --- | --- | --- | --- |"]
        lines += [row for trial in bump.trials for row in _rows(trial)]
    if bump.not_tried:
        lines += ["", f"Not tried: {', '.join(map(quoting.code, bump.not_tried))}."]
    lines += [f"- {quoting.code(line)}" if line else "" for line in _landings(bump)]
    return "\n".join(lines) + "\n"


def _conclusions(bump: Bump) -> str:
    total, failing = len(bump.trials), len(bump.failing)
    if not total:
        return "No variant uses it."
    if total == 1:
        return "The one variant that uses it " + ("fails." if failing else "passes.")
    return f"{failing} of {total} variants fail." if failing else f"All {total} variants pass."


def _history(move: Move) -> Iterator[str]:
    if (distance := move.resolved.distance) is None or not (distance.ahead or distance.behind):
        return
    commits = [
        *(f"+ {_line(commit)}" for commit in distance.ahead),
        *(f"- {_line(commit)}" for commit in distance.behind),
    ]
    if (more := len(commits) - _COMMITS) > 0:
        commits[_COMMITS:] = [f"and {more} more"]
    yield from (
        "",
        f"<details><summary>{_apart(distance)}</summary>",
        "",
        *quoting.fenced(commits),
        "",
        "</details>",
    )


def _rows(trial: VariantTrial) -> Iterator[str]:
    name = quoting.code(trial.variant)
    size = "" if trial.size is None else _size(trial.size)
    yield f"| {name} | | **{'passes' if trial.passes else 'fails'}** | {size} |"
    for error in trial.refusals:
        yield f"| | | refused | {quoting.code(quoting.first_line(error.message))} |"
    for step in trial.steps:
        details = "<br>".join(map(quoting.code, _details(step)))
        yield f"| | {quoting.code(step.step.name)} | {step.verdict} | {details} |"
    for line in trial.warnings:
        yield f"| | | warning | {quoting.code(line)} |"


def _apart(distance: Distance) -> str:
    ahead, lost = len(distance.ahead), len(distance.behind)
    least = "" if distance.complete else "at least "
    return f"{least}{ahead} commit{'' if ahead == 1 else 's'} more, {lost} lost"


def _line(commit: Commit) -> str:
    day = f"{datetime.fromtimestamp(commit.time, UTC):%Y-%m-%d}"
    return f"{day} {commit.id[:12]} {quoting.plain(commit.subject)}"
