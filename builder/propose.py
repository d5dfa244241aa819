"""A pin that moved and passes, as a branch and a pull request of its own.

The branch has one commit on top of the base: the lock with the pin, and the accepted results as
they would be. It is ours as long as its last commit is one that :func:`propose` made; whatever a
person has put there stays.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from builder import report
from builder.errors import BuilderError, ProjectError
from builder.lock.edit import file_of
from builder.lock.kinds import pins_of
from builder.lock.model import Pin
from builder.nightly import Outcome
from builder.project import Project
from builder.upstream import Branches, Proposals, Start, Tip
from builder.value import value

PREFIX = "builder/bump"
BODY_LIMIT = 60_000
"""Characters of a pull request's body; GitHub takes 65536."""
_MARK = "Builder-Tree: "


@value
class Proposed:
    """What became of a proposal. ``pushed`` is the commit that the branch was moved to; ``url`` and
    ``state`` are those of the pull request, ``None`` and ``held`` where a person has pushed to the
    branch."""

    branch: str
    pushed: str | None = None
    url: str | None = None
    state: str


def branch_of(kind: str, name: str) -> str:
    """The branch of a pin: ``builder/bump/genesis/genesis-v7.72.2``.

    Raises:
        ProjectError: git takes no branch of this name.
    """
    if name.endswith(".lock"):
        raise ProjectError(
            f"{kind} {name}: no branch can be named {PREFIX}/{kind}/{name}",
            hint="git keeps names that end in .lock to itself: rename the pin",
        )
    return f"{PREFIX}/{kind}/{name}"


def propose(
    project: Project,
    outcome: Outcome,
    start: Start,
    *,
    branches: Branches,
    proposals: Proposals,
    put: Callable[[bytes | None, Pin], bytes],
) -> Proposed:
    """Bring the branch and the pull request of ``outcome``, which passes, up to date.

    A branch that has the same lock on the same base already is left as it is, and a pull request
    that says the same, too.

    Raises:
        BuilderError: As the ports.
    """
    if outcome.bump is None:
        raise RuntimeError(f"{outcome.kind} {outcome.name}: nothing to propose")
    branch = branch_of(outcome.kind, outcome.name)
    tip = branches.tip(branch)
    if tip is not None and not _ours(tip):
        return Proposed(branch=branch, state="held")
    files: dict[str, bytes] = {}
    for move in outcome.bump.moves:
        pin = replace(move.pin, failing=())
        file = file_of(pin)
        if tip is not None:
            pin = _as_proposed(project, pin, move.kind, branches.read(tip.commit, file))
        if move.changes:
            files[file] = put(files.get(file, project.lockfile(file)), pin)
    files |= outcome.results
    title = report.title(outcome.bump)
    pushed = _pushed(branches, branch, files, start=start, tip=tip, title=title)
    proposal = proposals.open_or_update(
        head=branch, base=start.branch, title=title, body=body(outcome)
    )
    return Proposed(branch=branch, pushed=pushed, url=proposal.url, state=proposal.state)


def _pushed(
    branches: Branches,
    branch: str,
    files: Mapping[str, bytes],
    *,
    start: Start,
    tip: Tip | None,
    title: str,
) -> str | None:
    """Push the branch where it has something else; the commit, if so."""
    tree = branches.tree(start.commit, files)
    if tip is not None and (tip.tree, tip.parents) == (tree, (start.commit,)):
        return None
    commit = branches.commit(tree, start.commit, f"{title}\n\n{_MARK}{tree}\n")
    branches.push(branch, commit, expected=None if tip is None else tip.commit)
    return commit


def _ours(tip: Tip) -> bool:
    """Whether nobody has changed the commit: it says its own tree, and it is no merge."""
    marks = [line for line in tip.message.splitlines() if line.startswith(_MARK)]
    return marks == [f"{_MARK}{tip.tree}"] and len(tip.parents) == 1


def _as_proposed(project: Project, pin: Pin, kind: str, data: bytes | None) -> Pin:
    """``pin`` with the time at which it was proposed, where the branch has this very pin: a night
    later it is no other proposal."""
    if data is None:
        return pin
    try:
        there = pins_of(Project(project.root, replaced={file_of(pin): data}), kind).get(pin.name)
    except BuilderError:
        return pin  # nothing that we would have proposed
    if there is not None and replace(there, locked=pin.locked) == pin:
        return replace(pin, locked=there.locked)
    return pin


def body(outcome: Outcome) -> str:
    """The pull request's text: the report, and what merging it accepts."""
    if outcome.bump is None:
        raise RuntimeError(f"{outcome.kind} {outcome.name}: nothing to report")
    lines = [report.markdown(outcome.bump).rstrip("\n")]
    if outcome.baked:
        lines += ["", "| variant | image | accepted so far |", "| --- | --- | --- |"]
    for item in outcome.baked:
        same = item.accepted == item.image
        accepted = "the same" if same else "-" if item.accepted is None else item.accepted.short
        lines.append(
            f"| {report.code(item.variant)} | {report.code(str(item.image))} | {accepted} |"
        )
    if outcome.results:
        files = ", ".join(map(report.code, sorted(outcome.results)))
        lines += ["", f"Merging this accepts the images above: it renews {files}."]
    lines += ["", *(f"- {report.code(remark)}" for remark in outcome.remarks)]
    return shortened("\n".join(lines).rstrip("\n") + "\n", BODY_LIMIT)


def shortened(text: str, limit: int) -> str:
    """Markdown of at most ``limit`` characters: whole lines, whatever they opened closed again."""
    if len(text) <= limit:
        return text
    end = "\n\nThe report is longer than fits here: run `builder nightly` for all of it.\n"
    kept: list[str] = []
    room, fence, details = limit - len(end) - 200, "", 0
    for line in text.split("\n"):
        if (room := room - len(line) - 1) < 0:
            break
        kept.append(line)
        if line.startswith("```"):
            fence = "" if line == fence else fence or line
        elif not fence:
            details += line.count("<details>") - line.count("</details>")
    closing = [fence] if fence else []
    closing += ["", "</details>"] * details
    return "\n".join(kept + closing) + end
