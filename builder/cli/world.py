"""Wire the adapters to the ports, each when it is first needed."""

from pathlib import Path

from builder.adapters.store import FileStore
from builder.base import Origin
from builder.cli.progress import progress_for
from builder.cli.settings import Settings
from builder.pipeline import World
from builder.oci import Platform
from builder.ports import Engine, Git, Registry, Wheels
from builder.project import Project

DEFAULT_PLATFORM = Platform("linux", "amd64")


def open_project(settings: Settings) -> Project:
    """The project in ``-C DIR``."""
    return Project(settings.directory)


def platform_of(project: Project, asked: Platform | None) -> Platform:
    """``--platform``, the project's, or linux/amd64."""
    return asked or project.settings.platform or DEFAULT_PLATFORM


def open_store(settings: Settings, project: Project | None = None) -> FileStore:
    """The store that the command line, the environment or the project names."""
    if settings.store is None and project is not None and project.settings.store is not None:
        return FileStore(project.root / project.settings.store)
    return FileStore(settings.store_path)


def open_world(settings: Settings, project: Project) -> World:
    """Everything that the flow may touch."""
    store = open_store(settings, project)

    def make_registry() -> Registry:
        from builder.adapters.registry import RegistryClient

        return RegistryClient(registry_configuration(settings, project))

    def make_git() -> Git:
        from builder.adapters.git import GitMirror

        return GitMirror(
            store.root / "git",
            mirrors=_git_mirrors(settings, project),
            offline=settings.offline,
        )

    def make_wheels() -> Wheels:
        from builder.adapters.wheelhouse import Wheelhouse

        return Wheelhouse(project.root, cache=store.root / "wheels", offline=settings.offline)

    def open_layout(path: Path) -> Origin:
        from builder.adapters.layout import LayoutOrigin

        return LayoutOrigin(path)

    def make_engine() -> Engine:
        from builder.adapters.engine import DockerEngine

        return DockerEngine(settings.environment.get("DOCKER_HOST"))

    return World(
        store=store,
        progress=progress_for(settings),
        make_registry=make_registry,
        make_git=make_git,
        make_wheels=make_wheels,
        make_engine=make_engine,
        open_layout=open_layout,
        make_layout=FileStore,
    )


def _git_mirrors(settings: Settings, project: Project) -> dict[str, str]:
    """The project's git mirrors (paths are relative to it), under those of the environment."""
    ours = {
        prefix: target if ":" in target else str(project.root / target)
        for prefix, target in project.settings.git_mirrors
    }
    return ours | settings.mirrors
