"""Wire the adapters to the ports, each when it is first needed."""

from contextlib import ExitStack
from dataclasses import replace
from datetime import UTC, date, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from builder.adapters.store import FileStore
from builder.base import Base
from builder.cli.progress import progress_for
from builder.cli.settings import Settings
from builder.digest import Digest
from builder.errors import EnvironmentFault, UsageError
from builder.oci import Platform
from builder.origin import Origin
from builder.ports import Engine, Git, Registry, Wheels
from builder.project import Acceptance, Project
from builder.settings.model import ProjectSettings
from builder.world import World

if TYPE_CHECKING:
    from builder.adapters.registry.configuration import RegistryConfiguration
    from builder.adapters.trust import FileMemory
    from builder.sandbox import Sandbox
    from builder.upstream import Forge, History, Hub

DEFAULT_PLATFORM = Platform("linux", "amd64")


def open_project(settings: Settings) -> Project:
    """The project in ``-C DIR``, which knows what was accepted of its trust policy."""
    return Project(settings.directory, acceptance=acceptance_of(settings))


def acceptance_of(settings: Settings) -> Acceptance:
    """What this user accepted, and the version that ``BUILDER_TRUST`` names by its digest."""
    given = settings.environment.get("BUILDER_TRUST")
    anchor = Digest.parse(given, at="BUILDER_TRUST", refusal=UsageError) if given else None
    return Acceptance(memory=lambda: memory_of(settings), anchor=anchor)


def memory_of(settings: Settings) -> "FileMemory":
    """What this user accepted of the project in ``-C DIR``."""
    from builder.adapters.trust import FileMemory, state_directory

    return FileMemory(state_directory(settings.environment), settings.directory)


def is_project(settings: Settings) -> bool:
    """Whether there is a project in ``-C DIR``."""
    return (settings.directory / "variants").is_dir()


def platform_of(ours: ProjectSettings, asked: Platform | None) -> Platform:
    """``--platform``, the project's, or linux/amd64."""
    return asked or ours.platform or DEFAULT_PLATFORM


def store_of(settings: Settings) -> FileStore:
    """The store for commands that look after it: they work without a project, too."""
    if settings.store is not None or not is_project(settings):
        return FileStore(settings.store_path)
    return open_store(settings, open_project(settings).settings)


def moment() -> datetime:
    """The time in UTC, by the clock of this machine: when something is signed."""
    return datetime.now(UTC)


def today() -> date:
    """The day in UTC, by the clock of this machine: what waivers end by."""
    return moment().date()


def now() -> str:
    """The time in UTC, as locks write it."""
    return f"{moment():%Y-%m-%dT%H:%M:%SZ}"


def open_store(settings: Settings, ours: ProjectSettings | None = None) -> FileStore:
    """The store that the command line, the environment or the project names."""
    if settings.store is None and ours is not None and ours.store is not None:
        return FileStore(settings.directory / ours.store)
    return FileStore(settings.store_path)


def open_world(
    settings: Settings,
    ours: ProjectSettings,
    store: FileStore | None = None,
    *,
    closing: ExitStack | None = None,
    host_limit: float | None = None,
) -> World:
    """Everything that the flow may touch.

    Args:
        settings: The shared options.
        ours: What the project in ``-C DIR`` says; the defaults where there is none.
        store: Without it, the one of the settings.
        closing: Closes what was opened, when it is left.
        host_limit: Seconds that one registry, or the hub, may take for all of its answers.
    """
    if store is None:
        store = open_store(settings, ours)
    adapters = _Adapters(settings, ours, store, closing or ExitStack(), host_limit)
    return World(
        store=store,
        progress=progress_for(settings),
        make_registry=adapters.registry,
        make_git=adapters.git,
        make_wheels=adapters.wheels,
        make_engine=adapters.engine,
        make_sandbox=adapters.sandbox,
        make_history=adapters.history,
        make_forge=adapters.forge,
        make_hub=adapters.hub,
        today=today(),
        now=now(),
        open_layout=adapters.layout,
        make_layout=FileStore,
    )


class _Adapters:
    """Each one is loaded when it is made."""

    def __init__(
        self,
        settings: Settings,
        ours: ProjectSettings,
        store: FileStore,
        closing: ExitStack,
        host_limit: float | None,
    ) -> None:
        self.settings = settings
        self.ours = ours
        self.store = store
        self.closing = closing
        self.host_limit = host_limit

    def registry(self) -> Registry:
        from builder.adapters.registry.client import RegistryClient

        configuration = _registry_configuration(self.settings, self.ours)
        client = RegistryClient(replace(configuration, host_limit=self.host_limit))
        return self.closing.enter_context(client)

    def git(self) -> Git:
        from builder.adapters.git import GitMirror

        return GitMirror(
            self.store.paths.root / "git",
            mirrors=_git_mirrors(self.settings, self.ours),
            offline=self.settings.offline,
        )

    def history(self) -> "History":
        from builder.adapters.git_history import GitHistory

        return GitHistory(
            self.store.paths.root / "git",
            mirrors=_git_mirrors(self.settings, self.ours),
            offline=self.settings.offline,
        )

    def forge(self) -> "Forge":
        from builder.adapters.forge import ForgeClient

        environment = self.settings.environment
        client = ForgeClient(
            {item.host: item.api for item in self.ours.forges},
            token=environment.get("GITHUB_TOKEN") or environment.get("GH_TOKEN"),
            offline=self.settings.offline,
        )
        self.closing.callback(client.close)
        return client

    def hub(self) -> "Hub":
        from builder.adapters.hub import HubClient
        from builder.adapters.hub_settings import HubSettings

        settings = HubSettings.of(self.settings.environment, offline=self.settings.offline)
        client = HubClient(settings, host_limit=self.host_limit)
        self.closing.callback(client.close)
        return client

    def wheels(self) -> Wheels:
        from builder.adapters.wheelhouse import Wheelhouse

        cache = self.store.paths.root / "wheels"
        return Wheelhouse(self.settings.directory, cache=cache, offline=self.settings.offline)

    def layout(self, path: Path) -> Origin:
        from builder.adapters.layout import LayoutOrigin

        return LayoutOrigin(path)

    def engine(self) -> Engine:
        from builder.adapters.engine import DockerEngine

        return DockerEngine(self.engine_url)

    @property
    def engine_url(self) -> str | None:
        return self.settings.environment.get("DOCKER_HOST")

    def sandbox(self, base: Base | None) -> "Sandbox":
        """As builder.yaml says; otherwise namespaces where they work, and else the engine."""
        from builder.adapters.sandbox import NamespaceSandbox, choose

        use = self.ours.sandbox.use
        if use == "linux-namespaces":
            return NamespaceSandbox()
        if use == "docker-engine":
            return self._container(base)
        return choose(engine=lambda: self._container(base))

    def _container(self, base: Base | None) -> "Sandbox":
        from builder.adapters.sandbox import EngineSandbox
        from builder.load import pull

        stated = self.ours.sandbox.image
        engine = self.engine()
        if stated is not None:
            engine.pull(stated)
            return EngineSandbox(f"{stated.name}@{stated.digest}", base_url=self.engine_url)
        if base is None or not base.sources:
            raise EnvironmentFault(
                "sandbox: docker-engine: the variant has no base image that a program could run in",
                hint="name one with Python in it in builder.yaml, under sandbox.image",
            )
        image_id = base.manifest.config.digest
        if not engine.has_image(image_id):
            pull(base, engine)
        return EngineSandbox(str(image_id), base_url=self.engine_url)


def _git_mirrors(settings: Settings, ours: ProjectSettings) -> dict[str, str]:
    """The project's git mirrors (paths are relative to it), under those of the environment."""
    stated = {
        mirror.prefix: mirror.target
        if ":" in mirror.target
        else str(settings.directory.resolve() / mirror.target)
        for mirror in ours.git_mirrors
    }
    return stated | {prefix: to for prefix, to in settings.mirrors.items() if "/" in prefix}


def _registry_configuration(settings: Settings, ours: ProjectSettings) -> "RegistryConfiguration":
    """The project's registries, under the locations that the environment gives."""
    from builder.adapters.registry.configuration import HostConfiguration, RegistryConfiguration

    hosts = {
        item.host: HostConfiguration(
            location=item.location,
            mirrors=item.mirrors,
            mirror_tags=item.tags,
            plain_http=True if item.plain_http else None,
            ca_file=None if item.ca is None else settings.directory / item.ca,
        )
        for item in ours.registries
    }
    for host, location in settings.mirrors.items():
        if "/" not in host:
            hosts[host] = replace(hosts.get(host) or HostConfiguration(), location=location)
    return RegistryConfiguration(
        hosts=hosts, docker_config=_docker_config(settings), offline=settings.offline
    )


def _docker_config(settings: Settings) -> Path | None:
    """Docker's own rule: ``$DOCKER_CONFIG/config.json``, or the one in the home directory."""
    if directory := settings.environment.get("DOCKER_CONFIG"):
        return Path(directory) / "config.json"
    home = settings.environment.get("HOME")
    return Path(home) / ".docker" / "config.json" if home else None
