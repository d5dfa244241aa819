"""Variants, overlays and settings: what is read, and what is refused."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields

import pytest

from builder.errors import ProjectError
from builder.lock import codec
from builder.lock.model import GenesisPin, ImagePin, Lock, ModelPin, PullPin, SourcePin, WheelPin
from builder.oci import Platform
from builder.recipe import read_overlay, read_variant
from builder.reference import Reference
from builder.settings.model import (
    GenesisPolicy,
    GitMirror,
    Level,
    ProjectSettings,
    RegistrySettings,
    SandboxSettings,
)
from builder.settings.reader import read_settings
from builder.variant import (
    Action,
    Edit,
    EditRule,
    FileRule,
    GenesisStep,
    ImageSettings,
    LayoutBase,
    Overlay,
    OverlayStep,
    PatchRule,
    PinnedBase,
    Placement,
    PullStep,
    Python,
    RemoveRule,
    ScratchBase,
    Script,
    ScriptFile,
    ScriptStep,
    SourceStep,
    Variant,
    WheelsStep,
)
from tests.lock.bad_documents import Bad
from tests.lock.bad_recipes import BAD_RECIPES
from tests.lock.documents import DOCUMENTS, FILES, OVERLAY_FILES, READERS, A, B, C, changed


def test_a_variant_is_read_with_all_that_it_can_say() -> None:
    assert READERS["variant"](DOCUMENTS["variant"].encode()) == Variant(
        name="demo",
        description="all that a variant can say",
        base=PinnedBase(pin="known-good"),
        python=Python(version="3.12", packages="usr/local/lib/python3.12/dist-packages"),
        steps=(
            PullStep(
                name="vllm-41800",
                pull="vllm-41800",
                ignore=("tests/*", "docs/**"),
                root=".",
                strip=1,
                until_upstream=True,
            ),
            OverlayStep(name="padding", overlay="marlin-pad"),
            SourceStep(
                name="club",
                source="club",
                files=(
                    Placement(
                        source="patches/marlin.diff",
                        target="/opt/marlin.diff",
                        replaces=None,
                        mode=0o755,
                    ),
                    Placement(source="templates/a b.jinja", target="vllm/a.jinja", replaces=A),
                ),
                until_upstream=True,
            ),
            WheelsStep(name="wheels", wheels=("xxhash",)),
            GenesisStep(name="patches", genesis="v7.72.2", platform="cuda-8.6", speculative="mtp"),
            ScriptStep(
                name="marlin-pad",
                script=ScriptFile(overlay="marlin-pad", path="tools/fix.py"),
                interpreter="python",
                touches=("vllm/config.py", "/opt/new"),
                arguments=("--all", ""),
                environment=(("LEVEL", "2"),),
            ),
            ScriptStep(
                name="shell",
                script=ScriptFile(source="club", path="patches/marlin.diff"),
                interpreter="sh",
                touches=("vllm/a.py",),
            ),
        ),
        image=ImageSettings(
            env=(("VLLM_USE", "1"), ("OLD", None), ("EMPTY", ""), ("NO", "no")),
            labels=(("org.example.name", "demo"), ("gone", None)),
            entrypoint=("python3", "-m", "vllm"),
            command=(),
            workdir="/srv",
            user="1000:1000",
        ),
        models=("qwen3.6-27b",),
    )


@pytest.mark.parametrize(
    "text, base",
    [
        ("scratch", ScratchBase()),
        (f"{{layout: bases/demo, digest: {A}}}", LayoutBase(layout="bases/demo", digest=A)),
    ],
    ids=["scratch", "a layout"],
)
def test_a_variant_needs_only_a_base(text: str, base: ScratchBase | LayoutBase) -> None:
    data = f"version: 1\nbase: {text}\n".encode()
    assert read_variant(data, name="x", file="variants/x.yaml") == Variant(name="x", base=base)


def test_every_step_knows_its_place() -> None:
    variant = read_variant(DOCUMENTS["variant"].encode(), name="demo", file=FILES["variant"])
    assert [step.at for step in variant.steps] == [
        "variants/demo.yaml:6: steps[0]",
        "variants/demo.yaml:11: steps[1]",
        "variants/demo.yaml:13: steps[2]",
        "variants/demo.yaml:21: steps[3]",
        "variants/demo.yaml:22: steps[4]",
        "variants/demo.yaml:26: steps[5]",
        "variants/demo.yaml:31: steps[6]",
    ]


def test_an_overlay_is_read_with_the_bytes_of_its_files() -> None:
    assert READERS["overlay"](DOCUMENTS["overlay"].encode()) == Overlay(
        name="demo",
        files=(
            FileRule(
                target="vllm/marlin.py",
                file="marlin.py",
                data=b"new marlin",
                replaces=A,
                mode=0o644,
            ),
            FileRule(target="/opt/new.py", file="new/new.py", data=b"new", replaces=None),
        ),
        remove=(RemoveRule(target="vllm/old.py", replaces=B),),
        edits=(
            EditRule(
                target="vllm/config.py",
                edits=(
                    Edit(
                        anchor=b"def old():\n\treturn 1\n",
                        action=Action.REPLACE,
                        text=b"",
                        count=2,
                    ),
                    Edit(anchor=b"x", action=Action.INSERT_BEFORE, text="é".encode()),
                    Edit(anchor=b"y", action=Action.INSERT_AFTER, text=b"z"),
                ),
                replaces=C,
            ),
        ),
        patch=PatchRule(file="fix.diff", data=b"diff", root="/", strip=0, ignore=("tests/*",)),
        scripts=(Script(file="tools/fix.py", data=b"fix"),),
    )


def test_an_overlay_must_do_something() -> None:
    with pytest.raises(ProjectError) as caught:
        read_overlay(
            b"version: 1\n", name="x", directory="overlays/x", present=(), load=lambda _: b""
        )
    assert caught.value.message == "overlays/x/overlay.yaml:1: an overlay that does nothing"
    assert caught.value.hint == "give files, remove, edits, patch or scripts"


def test_no_file_is_loaded_that_the_overlay_does_not_name() -> None:
    loaded: list[str] = []

    def load(path: str) -> bytes:
        loaded.append(path)
        return b""

    read_overlay(
        DOCUMENTS["overlay"].encode(),
        name="demo",
        directory="overlays/demo",
        present=OVERLAY_FILES,
        load=load,
    )
    assert loaded == ["marlin.py", "new/new.py", "fix.diff", "tools/fix.py"]


def test_settings_are_read_with_all_that_they_can_say() -> None:
    assert read_settings(DOCUMENTS["settings"].encode()) == ProjectSettings(
        platform=Platform("linux", "arm64", "v8"),
        git_mirrors=(
            GitMirror(prefix="https://github.com/", target="https://git.example/mirror/"),
        ),
        registries=(
            RegistrySettings(
                host="docker.io",
                location="hub.example:5000/hub",
                mirrors=("mirror.example/docker", "localhost:5001"),
                plain_http=True,
                ca="certificates/ca.pem",
                tags=True,
            ),
        ),
        store=".store",
        genesis=GenesisPolicy(
            allowlist=Level.WARNING,
            pending=Level.OFF,
            no_list=Level.ERROR,
            unknown_flag=Level.WARNING,
            odd_value=Level.OFF,
            no_effect=Level.ERROR,
            conflict=Level.OFF,
            unmet_requirement=Level.WARNING,
            retired=Level.ERROR,
            superseded=Level.OFF,
            version_range=Level.OFF,
        ),
        sandbox=SandboxSettings(
            use="docker-engine",
            image=Reference.parse(f"hub.example/python@sha256:{'1' * 64}"),
        ),
    )


def test_settings_may_say_nothing() -> None:
    assert read_settings(b"version: 1") == ProjectSettings()


@pytest.mark.parametrize("text", ["policy: {}", "policy: {genesis: {}}"])
def test_a_policy_that_says_nothing_is_the_usual_one(text: str) -> None:
    assert read_settings(f"version: 1\n{text}\n".encode()).genesis == GenesisPolicy()


def test_the_usual_policy_stops_what_gives_another_image_than_was_meant() -> None:
    levels = {rule.name: getattr(GenesisPolicy(), rule.name) for rule in fields(GenesisPolicy)}
    told = {"no_list", "no_effect", "retired", "superseded", "version_range"}
    assert levels == {rule: "warning" if rule in told else "error" for rule in levels}


@pytest.mark.parametrize("bad", [pytest.param(bad, id=bad.id) for bad in BAD_RECIPES])
def test_a_wrong_recipe_is_refused_with_its_place(bad: Bad) -> None:
    with pytest.raises(ProjectError) as caught:
        READERS[bad.kind](bad.data)
    assert (caught.value.message, caught.value.hint) == (bad.message, bad.hint)


@dataclass
class Pins:
    """The pins of a lock, and which kinds a reader asked for."""

    lock: Lock
    names: tuple[str, ...] = ("marlin-pad",)

    def __post_init__(self) -> None:
        self.asked: list[str] = []

    @property
    def images(self) -> Mapping[str, ImagePin]:
        self.asked.append("images")
        return self.lock.images

    @property
    def pulls(self) -> Mapping[str, PullPin]:
        self.asked.append("pulls")
        return self.lock.pulls

    @property
    def sources(self) -> Mapping[str, SourcePin]:
        self.asked.append("sources")
        return self.lock.sources

    @property
    def wheels(self) -> Mapping[str, WheelPin]:
        self.asked.append("wheels")
        return self.lock.wheels

    @property
    def genesis(self) -> Mapping[str, GenesisPin]:
        self.asked.append("genesis")
        return self.lock.genesis

    @property
    def models(self) -> Mapping[str, ModelPin]:
        self.asked.append("models")
        return self.lock.models

    @property
    def overlays(self) -> Collection[str]:
        self.asked.append("overlays")
        return self.names


@pytest.fixture
def pins() -> Pins:
    files = {FILES[kind]: DOCUMENTS[kind].encode() for kind in DOCUMENTS if "lock" in FILES[kind]}
    return Pins(codec.read_lock(files))


def test_every_name_of_a_variant_leads_somewhere(pins: Pins) -> None:
    data = DOCUMENTS["variant"].encode()
    known = read_variant(data, name="demo", file=FILES["variant"], known=pins)
    assert known == READERS["variant"](data)


def test_a_variant_asks_only_for_the_kinds_that_it_names(pins: Pins) -> None:
    data = b"version: 1\nbase: scratch\nsteps: [{overlay: marlin-pad}]\n"
    read_variant(data, name="x", file="variants/x.yaml", known=pins)
    assert pins.asked == ["overlays"]


@pytest.mark.parametrize(
    "old, new, message, hint",
    [
        pytest.param(
            "{pin: known-good}",
            "{pin: known-god}",
            "variants/demo.yaml:3: base.pin: no vllm 'known-god' in lockfiles/vllm.yaml",
            "did you mean 'known-good'?",
            id="a base with a slip",
        ),
        pytest.param(
            "pull: vllm-41800",
            "pull: vllm-4180",
            "variants/demo.yaml:6: steps[0].pull: no pull 'vllm-4180' in lockfiles/pulls.yaml",
            "did you mean 'vllm-41800'?",
            id="a pull with a slip",
        ),
        pytest.param(
            "overlay: marlin-pad",
            "overlay: zzz",
            "variants/demo.yaml:11: steps[1].overlay: no overlay 'zzz' in overlays",
            "write overlays/zzz/overlay.yaml",
            id="an overlay like no other",
        ),
        pytest.param(
            "source: club",
            "source: zzz",
            "variants/demo.yaml:13: steps[2].source: no source 'zzz' in lockfiles/sources.yaml",
            "builder add source URL PATH pins one, in lockfiles/sources.yaml",
            id="a source like no other",
        ),
        pytest.param(
            "from: patches/marlin.diff",
            "from: patches/marlin.dif",
            "variants/demo.yaml:16: steps[2].files[0].from: source 'club' pins no file"
            " 'patches/marlin.dif'",
            "did you mean 'patches/marlin.diff'?",
            id="a file that the source does not pin",
        ),
        pytest.param(
            "wheels: [xxhash]",
            "wheels: [xxhash, xxhsh]",
            "variants/demo.yaml:21: steps[3].wheels[1]: no wheel 'xxhsh' in lockfiles/wheels.yaml",
            "did you mean 'xxhash'?",
            id="a wheel with a slip",
        ),
        pytest.param(
            "genesis: v7.72.2",
            "genesis: v7.72",
            "variants/demo.yaml:22: steps[4].genesis: no genesis 'v7.72' in lockfiles/genesis.yaml",
            "did you mean 'v7.72.2'?",
            id="a patch set with a slip",
        ),
        pytest.param(
            "script: {source: club, path: patches/marlin.diff}",
            "script: {source: club, path: patches/marlin.sh}",
            "variants/demo.yaml:31: steps[6].script.path: source 'club' pins no file"
            " 'patches/marlin.sh'",
            "did you mean 'patches/marlin.diff'?",
            id="a script that the source does not pin",
        ),
        pytest.param(
            "script: {overlay: marlin-pad,",
            "script: {overlay: marlin-path,",
            "variants/demo.yaml:26: steps[5].script.overlay: no overlay 'marlin-path' in overlays",
            "did you mean 'marlin-pad'?",
            id="a script of an overlay with a slip",
        ),
        pytest.param(
            "models: [qwen3.6-27b]",
            "models: [qwen]",
            "variants/demo.yaml:42: models[0]: no model 'qwen' in lockfiles/models.yaml",
            "builder add model OWNER/NAME pins one, in lockfiles/models.yaml",
            id="a model that is not pinned",
        ),
    ],
)
def test_a_name_that_leads_nowhere_is_refused_with_the_nearest(
    pins: Pins, old: str, new: str, message: str, hint: str
) -> None:
    data = changed("variant", old, new)
    with pytest.raises(ProjectError) as caught:
        read_variant(data, name="demo", file=FILES["variant"], known=pins)
    assert (caught.value.message, caught.value.hint) == (message, hint)
