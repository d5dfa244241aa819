"""A git repository of the test, behind the real ports, with a forge that is a fake."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from builder.adapters.git import GitMirror
from builder.adapters.git_history import GitHistory
from builder.lock.model import GenesisPin, PullPin, SourcePin
from builder.resolve.found import Resolved
from builder.resolve.patch_sets import resolve_genesis
from builder.resolve.pulls import resolve_pull
from builder.resolve.sources import resolve_source
from builder.upstream import PullFacts
from tests.adapters.git_world import Files, Upstream
from tests.fakes import FakeForge
from tests.memory_store import MemoryStore

URL = "https://code.example/acme/vllm"
THEN, NOW = "2026-05-11T00:00:00Z", "2026-06-01T00:00:00Z"
NOBODY = "0123456789" * 4


@dataclass
class CommitWorld:
    """The repository ``URL``. Each question is a run of its own."""

    root: Path
    upstream: Upstream = field(init=False)
    forge: FakeForge = field(default_factory=FakeForge)
    store: MemoryStore = field(default_factory=MemoryStore)

    def __post_init__(self) -> None:
        self.upstream = Upstream.make(self.root / "upstream.git")

    @property
    def git(self) -> GitMirror:
        mirrors = {URL: str(self.upstream.path)}
        return GitMirror(self.root / "store", mirrors=mirrors, offline=True)

    @property
    def history(self) -> GitHistory:
        mirrors = {URL: str(self.upstream.path)}
        return GitHistory(self.root / "store", mirrors=mirrors, offline=True)

    def commit(self, ref: str, files: Files, *parents: str) -> str:
        """A commit on a branch, or a full ref; the first parent is the one it goes on from."""
        name = ref if ref.startswith("refs/") else f"refs/heads/{ref}"
        parent, *others = parents or (None,)
        return self.upstream.commit(
            name, files, parent=parent, merged=tuple(each for each in others if each)
        )

    def says(self, number: int, *, head: str, **fields: Any) -> None:
        """What the forge says of a pull request."""
        facts = {"title": "Fix it", "state": "open", "base_ref": "main", **fields}
        self.forge = FakeForge({number: PullFacts(head=head, **facts)})

    def pull(self, number: int = 7, *, before: PullPin | None = None) -> Resolved[PullPin]:
        return resolve_pull(
            URL,
            number,
            name="fix",
            git=self.git,
            history=self.history,
            forge=self.forge,
            store=self.store,
            now=THEN if before is None else NOW,
            before=before,
        )

    def source(
        self,
        target: str | None,
        *paths: str,
        follows: str | None = "main",
        before: SourcePin | None = None,
    ) -> Resolved[SourcePin]:
        return resolve_source(
            URL,
            target,
            paths,
            name="club",
            follows=follows,
            git=self.git,
            history=self.history,
            now=THEN if before is None else NOW,
            before=before,
        )

    def genesis(
        self,
        target: str | None,
        *,
        follows: str | None = "main",
        before: GenesisPin | None = None,
    ) -> Resolved[GenesisPin]:
        return resolve_genesis(
            URL,
            target,
            name="patches",
            follows=follows,
            git=self.git,
            history=self.history,
            now=THEN if before is None else NOW,
            before=before,
        )
