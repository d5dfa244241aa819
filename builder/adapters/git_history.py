"""The History port."""

from collections.abc import Mapping
from pathlib import Path

from builder.upstream import Commit, Distance


class GitHistory:
    """See :class:`builder.upstream.History`."""

    def __init__(self, root: Path, *, mirrors: Mapping[str, str], offline: bool) -> None:
        self._root, self._mirrors, self._offline = root, dict(mirrors), offline

    def refs(self, repository: str) -> Mapping[str, str]:
        raise NotImplementedError

    def default_branch(self, repository: str) -> str:
        raise NotImplementedError

    def reachable(self, repository: str, commit: str) -> tuple[str, ...]:
        raise NotImplementedError

    def commit(self, repository: str, commit: str) -> Commit:
        raise NotImplementedError

    def merge_base(self, repository: str, one: str, other: str) -> str | None:
        raise NotImplementedError

    def distance(self, repository: str, old: str, new: str) -> Distance:
        raise NotImplementedError

    def is_ancestor(self, repository: str, ancestor: str, commit: str) -> bool:
        raise NotImplementedError
