"""Where a commit of the patch set keeps what, by the path of its payload.

Read from the history of the public repository (2026-04-25 to 2026-07-02). The version strings in
its files say nothing of it: one stands in several releases.
"""

from builder.value import value

PLUGIN_GROUP = "vllm.general_plugins"
"""The group of entry points that vLLM loads in each of its processes."""
PLUGIN_NAME = "genesis_v7"
"""The name of the entry point, in every era."""


@value
class Era:
    """A layout of the repository. Paths of files are relative to the payload."""

    name: str
    payload: str
    """The directory in the repository."""
    package: str
    """Where it goes, below the packages directory."""
    apply: str
    """The module that applies the patches when it is run."""
    hook: str
    """What the entry point of the plugin names."""
    plugins: tuple[str, ...] = ()
    """Directories in the repository that may hold the plugin, where it is not in the payload."""
    guards: tuple[str, ...]
    """Where the allowlist may be."""
    always_listed: bool
    """Whether each commit of the era has an allowlist: a guards file without one then imports it
    from elsewhere."""
    registry: tuple[str, ...]
    """Where the registry of patches may be."""
    deciding: str
    """The module that turns flags into decisions."""
    flags: str | None = None
    """A module with the names of flags, without their prefixes."""
    twins: bool = False
    """Whether a flag ``GENESIS_X`` is read as ``SNDR_X`` too, and that one wins."""


ERAS = (
    Era(
        name="v7",
        payload="vllm/_genesis",
        package="vllm/_genesis",
        apply="vllm._genesis.patches.apply_all",
        hook="genesis_v7:register",
        plugins=("tools/genesis_vllm_plugin", "genesis_vllm_plugin"),
        guards=("guards.py",),
        always_listed=False,
        registry=("dispatcher.py",),
        deciding="dispatcher.py",
    ),
    Era(
        name="v8-v11",
        payload="vllm/sndr_core",
        package="vllm/sndr_core",
        apply="vllm.sndr_core.apply",
        hook="vllm.sndr_core.plugin:register",
        guards=("detection/guards.py",),
        always_listed=True,
        registry=("dispatcher/registry.py",),
        deciding="dispatcher/decision.py",
        flags="env.py",
        twins=True,
    ),
    Era(
        name="v12",
        payload="sndr",
        package="sndr",
        apply="sndr.apply",
        hook="sndr.plugin:register",
        guards=("engines/vllm/detection/guards.py",),
        always_listed=True,
        registry=("dispatcher/registry.py",),
        deciding="dispatcher/decision.py",
        flags="env.py",
        twins=True,
    ),
)


def era_of(payload: str) -> Era | None:
    """The era whose payload stands at ``payload`` in the repository."""
    return next((era for era in ERAS if era.payload == payload.strip("/")), None)
