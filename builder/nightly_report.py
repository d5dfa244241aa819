"""A night for those who read of it in the morning: as text, as Markdown, as JSON. Pure."""

from collections.abc import Iterator, Sequence
from typing import Any

from builder import report
from builder.errors import BuilderError
from builder.nightly import Baked, Outcome, State
from builder.propose import Proposed, shortened
from builder.value import value

LIMIT = 900_000
"""Characters of the Markdown; the summary of a step of GitHub Actions takes a MiB."""
_SAID = {
    "opened": "opened",
    "updated": "updated",
    "unchanged": "is up to date",
    "closed": "was closed by a person, and stays so",
    "held": "is left alone: somebody else has pushed to it",
}


@value
class Morning:
    """An outcome, and what became of its proposal, or went wrong with it."""

    outcome: Outcome
    proposed: Proposed | None = None
    error: BuilderError | None = None

    @property
    def errors(self) -> tuple[BuilderError, ...]:
        """Everything that is wrong."""
        errors = self.outcome.errors
        return errors if self.error is None else (*errors, self.error)


def text(item: Morning) -> str:
    """One outcome for a terminal: a line, and the report of a pin that moved."""
    outcome = item.outcome
    lines = [_line(item)]
    if outcome.bump is not None and outcome.bump.changes:
        lines += [f"  {line}".rstrip() for line in report.text(outcome.bump).splitlines()]
    elif outcome.bump is not None:
        remarks = (line for move in outcome.bump.moves for line in move.resolved.remarks)
        lines += [f"  {report.plain(remark)}" for remark in remarks]
    lines += [f"  built {_built(made)}" for made in outcome.baked]
    if outcome.state is not State.LEFT:
        lines += [f"  {report.plain(remark)}" for remark in outcome.remarks]
    if outcome.error is not None and outcome.error.hint:
        lines.append(f"  hint: {report.plain(outcome.error.hint)}")
    if item.proposed is not None:
        lines.append(f"  {_proposal(item.proposed)}")
    if item.error is not None:
        lines.append(f"  not proposed: {report.first(item.error.message)}")
        lines += [f"  hint: {report.plain(item.error.hint)}"] if item.error.hint else []
    return "\n".join(lines)


def _line(item: Morning) -> str:
    outcome = item.outcome
    reason = ""
    if outcome.error is not None:
        reason = report.first(outcome.error.message)
    elif outcome.state is State.LEFT:
        reason = outcome.remarks[0]
    said = f"{outcome.kind} {outcome.name}: {outcome.state}"
    return f"{said}: {reason}" if reason else said


def _built(made: Baked) -> str:
    if made.accepted is None:
        return f"{made.variant}: {made.image}"
    same = made.accepted == made.image
    return f"{made.variant}: {'the accepted image' if same else f'another image, {made.image}'}"


def _proposal(proposed: Proposed) -> str:
    where = proposed.branch if proposed.url is None else proposed.url
    pushed = "" if proposed.pushed is None else f", {proposed.pushed[:12]} pushed"
    return f"{where} {_SAID[proposed.state]}{pushed}"


def document(items: Sequence[Morning], *, status: int) -> dict[str, Any]:
    """The night as JSON."""
    return {"status": status, "pins": [_pin(item) for item in items]}


def _pin(item: Morning) -> dict[str, Any]:
    outcome, proposed = item.outcome, item.proposed
    error = outcome.error or item.error
    return {
        "kind": outcome.kind,
        "name": outcome.name,
        "state": str(outcome.state),
        "remarks": list(outcome.remarks),
        "error": None if error is None else error.record(),
        "report": None if outcome.bump is None else report.document(outcome.bump),
        "images": [
            {
                "variant": made.variant,
                "image": str(made.image),
                "accepted": None if made.accepted is None else str(made.accepted),
            }
            for made in outcome.baked
        ],
        "proposal": proposed
        and {
            "branch": proposed.branch,
            "pushed": proposed.pushed,
            "url": proposed.url,
            "state": proposed.state,
        },
    }


def markdown(items: Sequence[Morning]) -> str:
    """The night for the summary of a CI: what needs somebody first, then every report."""
    counts = ", ".join(
        f"{number} {state}"
        for state in State
        if (number := sum(item.outcome.state is state for item in items))
    )
    lines = ["## builder nightly", "", f"**{counts or 'no pins'}**"]
    told = [item for item in items if item.outcome.state is not State.LEFT]
    if told:
        lines += ["", "| pin | | |", "| --- | --- | --- |", *map(_row, told)]
    for item in told:
        lines += _details(item)
    if left := [item for item in items if item.outcome.state is State.LEFT]:
        lines += ["", "<details><summary>left alone</summary>", ""]
        lines += [f"- {report.code(_line(item))}" for item in left]
        lines += ["", "</details>"]
    return shortened("\n".join(lines) + "\n", LIMIT)


def _row(item: Morning) -> str:
    outcome = item.outcome
    title = "" if outcome.bump is None else report.title(outcome.bump)
    if outcome.error is not None:
        title = report.first(outcome.error.message)
    cells = [report.code(title)] if title and outcome.state is not State.CURRENT else []
    if outcome.state is State.CURRENT and outcome.bump is not None:
        remarks = (line for move in outcome.bump.moves for line in move.resolved.remarks)
        cells += map(report.code, remarks)
    if item.proposed is not None:
        cells.append(_proposal(item.proposed))
    if item.error is not None:
        cells.append(f"not proposed: {report.code(report.first(item.error.message))}")
    name = report.code(f"{outcome.kind} {outcome.name}")
    return f"| {name} | **{outcome.state}** | {'<br>'.join(cells)} |"


def _details(item: Morning) -> Iterator[str]:
    bump = item.outcome.bump
    if bump is None or not bump.changes:
        return
    yield from ("", f"### {report.code(report.title(bump))}", "", report.markdown(bump).rstrip())
    yield from (f"- {report.code(remark)}" for remark in item.outcome.remarks)
