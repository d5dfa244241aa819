"""The project as values. Each file is read once, when something asks for what it holds."""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from pathlib import Path

from builder.digest import Digest
from builder.errors import ProjectError
from builder.lock import codec
from builder.lock.model import Lock, Pin, Result
from builder.node import did_you_mean, is_name, nearest
from builder.project.trust import SIGNED, Acceptance, Trust
from builder.project_files import Files, elsewhere
from builder.recipe import OVERLAY_FILE, read_overlay, read_variant
from builder.settings.model import FILE as SETTINGS_FILE
from builder.settings.model import ProjectSettings
from builder.settings.reader import read_settings
from builder.strict_yaml import SIZE_LIMIT
from builder.trust.names import FILE as TRUST_FILE
from builder.variant import (
    GenesisStep,
    Overlay,
    OverlayStep,
    PinnedBase,
    PullStep,
    ScriptStep,
    SourceStep,
    Variant,
    WheelsStep,
)

OVERLAY_FILE_LIMIT = 64 << 20
"""The most bytes of one file of an overlay."""


class Project(Trust):
    """A directory with ``variants/``, ``lockfiles/``, ``overlays/`` and ``builder.yaml``.

    What was read is kept: open the project anew to see what :meth:`update` wrote. Files that are
    ``replaced`` are read as if they had these bytes: how a lock is tried before it is written.
    ``acceptance`` knows which trust policy was accepted; without it none was.

    Raises:
        ProjectError: From every member: a file is not what it must be.
    """

    def __init__(
        self,
        root: Path,
        *,
        replaced: Mapping[str, bytes] | None = None,
        acceptance: Acceptance | None = None,
    ) -> None:
        super().__init__(Files(root, replaced=replaced), acceptance)
        self.root = root
        self._variants: dict[str, Variant] = {}
        self._overlays: dict[str, Overlay] = {}
        if not self._files.is_directory("variants"):
            raise ProjectError(
                f"{root}: no project here, there is no directory 'variants'",
                hint=elsewhere(root),
            )

    @property
    def asked(self) -> Mapping[tuple[str, str], Digest | None]:
        """What the values so far were made of (:attr:`builder.project_files.Files.asked`)."""
        return self._files.asked

    @cached_property
    def settings(self) -> ProjectSettings:
        """``builder.yaml``, or the defaults where there is none."""
        data = self._read(SETTINGS_FILE)
        return ProjectSettings(at=SETTINGS_FILE) if data is None else read_settings(data)

    def variants(self) -> tuple[str, ...]:
        """The names of all variants, sorted."""
        return self._names_of("variants")

    def variant(self, name: str) -> Variant:
        """The recipe ``name``, every pin and overlay that it names being there."""
        if name in self._variants:
            return self._variants[name]
        file = f"variants/{name}.yaml"
        data = self._read(file) if is_name(name) else None
        if data is None:
            near = nearest(name, self.variants())
            raise ProjectError(
                f"no variant {name!r} in variants",
                hint=did_you_mean(near) or "builder variants lists them",
            )
        variant = read_variant(data, name=name, file=file, known=self)
        self._variants[name] = variant
        return variant

    @cached_property
    def lock(self) -> Lock:
        """All lockfiles."""
        files: dict[str, bytes] = {}
        for directory in ("lockfiles", "lockfiles/images"):
            for name in self._files.names(directory):
                file = f"{directory}/{name}"
                if file in SIGNED or file == "lockfiles/images":
                    continue
                if (data := self._read(file)) is not None:
                    files[file] = data
        return codec.read_lock(files)

    def lock_for(self, variant: Variant) -> Lock:
        """The lockfiles that a build of ``variant`` needs; no other one is read."""
        kinds = {type(step) for step in variant.steps}
        pulls = {step.pull for step in variant.steps if isinstance(step, PullStep)}
        published = [self.pulls[pull] for pull in pulls if self.pulls[pull].published is not None]
        scripts = [step.script for step in variant.steps if isinstance(step, ScriptStep)]
        sources = published or SourceStep in kinds or any(script.source for script in scripts)
        for pull in published:
            codec.check_published(pull, self.sources)
        return Lock(
            images=self.images if isinstance(variant.base, PinnedBase) else {},
            pulls=self.pulls if pulls else {},
            sources=self.sources if sources else {},
            wheels=self.wheels if WheelsStep in kinds else {},
            genesis=self.genesis if GenesisStep in kinds else {},
            models=self.models if variant.models else {},
            waivers=self.waivers if GenesisStep in kinds else {},
            results={variant.name: results} if (results := self.results(variant.name)) else {},
        )

    @cached_property
    def overlays(self) -> tuple[str, ...]:
        """The names of all overlays, sorted."""
        return tuple(
            name
            for name in self._files.names("overlays")
            if self._files.is_directory(f"overlays/{name}")
        )

    def overlay(self, name: str) -> Overlay:
        """The overlay ``name``, with the bytes of its files."""
        if name not in self._overlays:
            self._overlays[name] = self._read_overlay(name)
        return self._overlays[name]

    def _read_overlay(self, name: str) -> Overlay:
        directory = f"overlays/{name}"
        if name not in self.overlays:
            raise ProjectError(
                f"no overlay {name!r} in overlays",
                hint=did_you_mean(nearest(name, self.overlays)),
            )
        present = self._files.tree(directory)
        data = self._read(f"{directory}/{OVERLAY_FILE}")
        if data is None:
            raise ProjectError(
                f"{directory}: no {OVERLAY_FILE}",
                hint=f"write {directory}/{OVERLAY_FILE}: it says what the files are for",
            )
        return read_overlay(
            data, name=name, directory=directory, present=present, load=self._loader(directory)
        )

    def overlays_of(self, variant: Variant) -> Mapping[str, Overlay]:
        """The overlays that ``variant`` applies, or runs scripts of, by name."""
        names = {step.overlay for step in variant.steps if isinstance(step, OverlayStep)}
        scripts = [step.script for step in variant.steps if isinstance(step, ScriptStep)]
        names |= {script.overlay for script in scripts if script.overlay is not None}
        return {name: self.overlay(name) for name in sorted(names)}

    def update(self, file: str, change: Callable[[bytes | None], bytes]) -> bool:
        """Replace a lockfile by what ``change`` makes of its bytes (``None``: there is none).

        Two updates at once both take effect; a killed one leaves the old file. Returns whether
        the bytes differ. An error that ``change`` raises leaves the file as it was.

        Raises:
            EnvironmentFault: The file cannot be written.
        """
        return self._files.replace(file, change, limit=SIZE_LIMIT)

    def put_pins(self, pins: Iterable[Pin], *, seen: Mapping[str, bytes | None]) -> tuple[str, ...]:
        """Put ``pins`` into their lockfiles, and leave everything else in them as it is
        (:mod:`builder.lock.edit`); returns the files that changed. All are checked before one is
        written.

        Args:
            seen: The lockfiles as they were when the pins were made: those of all pins, at least.

        Raises:
            ProjectError: One of ``seen`` is not what it was.
            EnvironmentFault: A file cannot be written.
        """
        from builder.lock.edit import file_of, put  # noqa: PLC0415 - builds change no lock

        def change(old: Mapping[str, bytes | None]) -> Mapping[str, bytes]:
            for file, data in old.items():
                if data != seen[file]:
                    raise ProjectError(
                        f"{file}: changed since it was read, and nothing was written",
                        hint="look at what changed there, then run it again",
                    )
            new: dict[str, bytes] = {}
            for pin in pins:
                file = file_of(pin)
                new[file] = put(new.get(file, old[file]), pin)
            return new

        return self._files.replace_all(seen, change, limit=SIZE_LIMIT)

    def accept(self, result: Result) -> str:
        """Record ``result`` as what its variant bakes to on its platform; returns the file."""
        from builder.lock.edit import put_result  # noqa: PLC0415 - builds change no lock

        file = codec.results_file(result.variant)
        self.update(file, lambda data: put_result(data, result))
        return file

    @property
    def recipes(self) -> tuple[str, ...]:
        """As :meth:`variants`, whatever else stands beside them."""
        return tuple(name.removesuffix(".yaml") for name in self._recipes("variants"))

    def documents(self) -> tuple[str, ...]:
        """The name of every file that a build may read as YAML. That of an overlay may be absent;
        what stands in its place need not be a file."""
        present = set(self._files.names("lockfiles"))
        top = self._files.names(".")
        return (
            *(file for file in (SETTINGS_FILE, TRUST_FILE) if file in top),
            *(file for file in codec.FILES if file.partition("/")[2] in present),
            *(f"lockfiles/images/{name}" for name in self._recipes("lockfiles/images")),
            *(f"variants/{name}" for name in self._recipes("variants")),
            *(f"overlays/{name}/{OVERLAY_FILE}" for name in self.overlays),
        )

    def composes(self) -> tuple[str, ...]:
        """The compose files of the project, sorted: those below ``composes/`` and those that
        builder.yaml names."""
        below = self._files.tree("composes") if self._files.is_directory("composes") else ()
        found = {f"composes/{name}" for name in below if name.endswith((".yml", ".yaml"))}
        return tuple(sorted(found | {item.file for item in self.settings.composes}))

    def document(self, file: str) -> bytes:
        """The bytes of one of :meth:`documents` or :meth:`composes`, unparsed."""
        data = self._read(file)
        if data is None:
            raise ProjectError(f"{file}: no such file")
        return data

    def lockfile(self, file: str) -> bytes | None:
        """The bytes of a lockfile, unparsed; ``None`` where there is none."""
        return self._read(file)

    def strays(self) -> tuple[str, ...]:
        """What stands where only recipes and locks do, and is neither: nothing reads it."""
        known = {file.partition("/")[2] for file in (*codec.FILES, *SIGNED)} | {"images"}
        found = [
            f"lockfiles/{name}" for name in self._files.names("lockfiles") if name not in known
        ]
        for directory in ("lockfiles/images", "variants"):
            recipes = self._recipes(directory)
            names = self._files.names(directory)
            found += [f"{directory}/{name}" for name in names if name not in recipes]
        overlays = self._files.names("overlays")
        return (*found, *(f"overlays/{name}" for name in overlays if name not in self.overlays))

    def has_directory(self, path: str) -> bool:
        """Whether the project has this directory, which a recipe or a lock names."""
        return self._files.is_directory(path)

    def _recipes(self, directory: str) -> tuple[str, ...]:
        return tuple(
            name
            for name in self._files.names(directory)
            if name.endswith(".yaml") and is_name(name.removesuffix(".yaml"))
        )

    def _loader(self, directory: str) -> Callable[[str], bytes]:
        def load(path: str) -> bytes:
            data = self._files.read(f"{directory}/{path}", limit=OVERLAY_FILE_LIMIT)
            if data is None:
                raise ProjectError(f"{directory}/{path}: gone while it was read")
            return data

        return load

    def _names_of(self, directory: str) -> tuple[str, ...]:
        """The names of the recipes in a directory, in which nothing else may stand."""
        names = []
        for file in self._files.names(directory):
            name = file.removesuffix(".yaml")
            if name == file or not is_name(name):
                raise ProjectError(
                    f"{directory}/{file}: not the name of a recipe",
                    hint="recipes are NAME.yaml, with lower-case letters and digits, joined by"
                    " single '.', '_' or '-'",
                )
            names.append(name)
        return tuple(names)
