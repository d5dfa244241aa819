"""Everything outside that the flow may touch, in one value that the command line makes."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from builder.base import Base
from builder.origin import Origin
from builder.ports import Engine, Git, Progress, Registry, Store, Wheels

if TYPE_CHECKING:
    from builder.sandbox import Sandbox
    from builder.upstream import Forge, History, Hub


@dataclass(frozen=True, kw_only=True)
class World:
    """What the flow may touch. The adapters that a no-op build does not need are made when they
    are first asked for."""

    store: Store
    progress: Progress
    make_registry: Callable[[], Registry]
    make_git: Callable[[], Git]
    make_wheels: Callable[[], Wheels]
    make_engine: Callable[[], Engine]
    make_sandbox: "Callable[[Base | None], Sandbox]"
    make_history: "Callable[[], History]"
    make_forge: "Callable[[], Forge]"
    make_hub: "Callable[[], Hub]"
    today: date
    """In UTC."""
    now: str
    """In UTC, as locks write it: ``2026-05-11T00:00:00Z``."""
    open_layout: Callable[[Path], Origin]
    make_layout: Callable[[Path], Store]

    @cached_property
    def registry(self) -> Registry:
        return self.make_registry()

    @cached_property
    def history(self) -> "History":
        return self.make_history()

    @cached_property
    def forge(self) -> "Forge":
        return self.make_forge()

    @cached_property
    def hub(self) -> "Hub":
        return self.make_hub()

    @cached_property
    def git(self) -> Git:
        return self.make_git()

    @cached_property
    def engine(self) -> Engine:
        return self.make_engine()

    @cached_property
    def wheels(self) -> Wheels:
        return self.make_wheels()
