"""The digest of what a diff means: the same for every dress that the same change comes in.

GitHub's diffs change their bytes when a repository grows (longer ``index`` lines) or git is
upgraded (mail signatures, function names behind ``@@``). The digest covers kinds, paths, modes,
positions and every byte of content; not ids, prose, section headings, or the order of files.
"""

from collections import defaultdict
from typing import Any

from builder.canonical import encode
from builder.diff.model import Diff, FileChange, Hunk
from builder.diff.parse import own_names
from builder.digest import Digest, Hasher

_FORMAT = "builder.diff/1"


def canonical(diff: Diff) -> Digest:
    """The digest of the change that ``diff`` makes. Equal for diffs that differ in dress only.

    Changes of different files commute, so only the order of changes to one file counts, whether
    they came as one diff, as mails, or one behind the other.
    """
    rank: dict[str, int] = defaultdict(int)
    ranked: list[tuple[int, bytes]] = []
    commit: list[tuple[set[str], int]] = []
    current = -1
    for change in diff.changes:
        if change.commit != current:
            for names, level in commit:
                rank.update({name: max(rank[name], level + 1) for name in names})
            commit, current = [], change.commit
        names = {name for name in own_names(change) if name is not None}
        level = max(rank[name] for name in names)
        commit.append((names, level))
        ranked.append((level, encode(_record(change))))
    changes = [[level, Digest.of(record).hex] for level, record in sorted(ranked)]
    return Digest.of(encode({"format": _FORMAT, "changes": changes}))


def _record(change: FileChange) -> dict[str, Any]:
    return {
        "kind": str(change.kind),
        "old": _path(change.old_path),
        "new": _path(change.new_path),
        "old_mode": change.old_mode,
        "new_mode": change.new_mode,
        "hunks": [_hunk(hunk) for hunk in change.hunks],
        "unfit": change.unfit,
        "payload": Digest.of(change.payload).hex,
    }


def _hunk(hunk: Hunk) -> list[Any]:
    # A line without a newline can only be the last of its side, and the next line starts with an
    # operation: a length before each line keeps the encoding free of doubt all the same.
    lines = (b"%s%d:%s" % (op.encode(), len(text), text) for op, text in hunk.lines)
    content = Hasher(lines).digest().hex
    return [hunk.old_start, hunk.old_count, hunk.new_start, hunk.new_count, content]


def _path(path: str | None) -> str | None:
    """Any bytes as text that JSON can hold: one character for each byte."""
    return None if path is None else path.encode("utf-8", "surrogateescape").decode("latin-1")
