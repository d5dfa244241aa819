"""docs/recipes.md: its examples are one project, which is built as the page says."""

import gzip
import io
import json
import re
import subprocess
import sys
import tarfile
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from builder.errors import ProjectError
from builder.lock import codec
from builder.lock.model import GenesisPin, ImagePin, ModelPin, PullPin, SourcePin, Waiver, WheelPin
from builder.project import Project
from builder.schema_check import check, kind_of
from builder.settings.model import GenesisPolicy
from builder.variant import (
    GenesisStep,
    LayoutBase,
    OverlayStep,
    PinnedBase,
    PullStep,
    ScratchBase,
    ScriptStep,
    SourceStep,
    Variant,
    WheelsStep,
)
from tests.docs.conftest import Compare
from tests.docs.pages import EXAMPLES, ROOT, Terminal, copy_project, files_of, with_files
from tests.lock.documents import changed

PAGE = ROOT / "docs" / "recipes.md"
TEXT = PAGE.read_text(encoding="utf-8")
SHOWN = files_of(TEXT)
BUILT = {
    *("demo", "edited", "entry", "overlay", "pull", "retired", "script", "source", "tiny"),
    "wheels",
}
READ_ONLY = {"patch-set", "pinned"}
"""The variants whose base is an image of Docker Hub."""
PACKAGES = "usr/local/lib/python3.12/dist-packages"


@pytest.fixture(scope="module")
def project() -> Project:
    return Project(EXAMPLES)


# --- the page and the project ------------------------------------------------------------------


@pytest.mark.golden
def test_the_page_shows_the_files_of_the_examples(compare: Compare) -> None:
    compare(PAGE, with_files(PAGE.read_text(encoding="utf-8"), EXAMPLES))


def test_the_page_shows_every_file_that_a_person_would_write() -> None:
    written = {
        file.relative_to(EXAMPLES).as_posix()
        for folder in ("variants", "overlays", "lockfiles")
        for file in (EXAMPLES / folder).rglob("*")
        if file.is_file()
    }
    assert set(SHOWN) == written | {"builder.yaml"}


def test_every_example_of_yaml_names_its_file() -> None:
    assert TEXT.count("```yaml") == sum(file.endswith(".yaml") for file in SHOWN)


def test_the_examples_are_a_project(project: Project) -> None:
    variants = [project.variant(name) for name in project.variants()]
    assert {variant.name for variant in variants} == BUILT | READ_ONLY
    for variant in variants:
        project.lock_for(variant)
        project.overlays_of(variant)
    assert {name for variant in variants for name in project.overlays_of(variant)} == set(
        project.overlays
    )
    registries = {item.host: item.location for item in project.settings.registries}
    assert registries == {"docker.io": None, "registry.example": "registry.lan:5000"}


@pytest.mark.parametrize(
    "name, kind",
    [
        ("pull", PullStep),
        ("overlay", OverlayStep),
        ("source", SourceStep),
        ("wheels", WheelsStep),
        ("patch-set", GenesisStep),
        ("script", ScriptStep),
    ],
)
def test_every_kind_of_step_has_an_example_of_its_own(
    project: Project, name: str, kind: type
) -> None:
    variant: Variant = project.variant(name)
    assert {type(step) for step in variant.steps} == {kind}


def test_every_kind_of_base_has_an_example(project: Project) -> None:
    kinds = {type(project.variant(name).base) for name in project.variants()}
    assert kinds == {LayoutBase, PinnedBase, ScratchBase}


def test_only_a_base_in_a_registry_keeps_an_example_from_being_built(project: Project) -> None:
    pinned = {
        name for name in project.variants() if isinstance(project.variant(name).base, PinnedBase)
    }
    assert pinned == READ_ONLY


def test_every_kind_of_pin_has_an_example(project: Project) -> None:
    lock = project.lock
    kinds = (lock.images, lock.pulls, lock.sources, lock.wheels, lock.genesis, lock.models)
    for pins in (*kinds, lock.waivers):
        assert pins
    assert set(lock.results) == {"overlay"}


def test_the_page_has_every_rule_with_its_usual_level() -> None:
    _, _, section = TEXT.partition("### Policy\n")
    shown = re.findall(r"^\| `([a-z-]+)` \| (\w+) \|", section, re.MULTILINE)
    usual = {field.name: getattr(GenesisPolicy(), field.name) for field in fields(GenesisPolicy)}
    assert shown == [(rule.replace("_", "-"), str(level)) for rule, level in usual.items()]


@pytest.mark.parametrize("file", [file for file in SHOWN if file.endswith(".yaml")])
def test_every_example_fits_its_schema(file: str) -> None:
    kind = kind_of(file)
    assert kind is not None
    check(SHOWN[file].encode(), kind=kind, file=file)


def test_the_lockfiles_of_the_page_are_in_the_form_that_we_write(project: Project) -> None:
    lock = project.lock
    written = {
        codec.IMAGES: codec.write_pins(ImagePin, lock.images),
        codec.PULLS: codec.write_pins(PullPin, lock.pulls),
        codec.SOURCES: codec.write_pins(SourcePin, lock.sources),
        codec.WHEELS: codec.write_pins(WheelPin, lock.wheels),
        codec.GENESIS: codec.write_pins(GenesisPin, lock.genesis),
        codec.MODELS: codec.write_pins(ModelPin, lock.models),
        codec.WAIVERS: codec.write_pins(Waiver, lock.waivers),
        "lockfiles/images/overlay.yaml": codec.write_results("overlay", lock.results["overlay"]),
    }
    for file, data in written.items():
        assert data.decode() == SHOWN[file]


def test_the_message_on_the_page_is_the_message_that_we_give() -> None:
    data = changed("vllm", "index: sha256:", "index: sha256:beefbeef12 # ")
    with pytest.raises(ProjectError) as caught:
        codec.read_images(data)
    assert f"\n{caught.value.message}\n" in TEXT


# --- the commands of the page, and what they make ----------------------------------------------


class Baked:
    """What the commands of the page left behind, read without any code of builder's."""

    def __init__(self, store: Path, page: str) -> None:
        self._store = store
        self.page = page

    def blob(self, digest: str) -> bytes:
        return (self._store / "blobs" / "sha256" / digest.removeprefix("sha256:")).read_bytes()

    def manifest(self, variant: str) -> dict[str, Any]:
        index = json.loads((self._store / "index.json").read_text())
        (digest,) = (
            item["digest"]
            for item in index["manifests"]
            if item["annotations"]["org.opencontainers.image.ref.name"] == variant
        )
        manifest: dict[str, Any] = json.loads(self.blob(digest))
        return manifest

    def config(self, variant: str) -> dict[str, Any]:
        config: dict[str, Any] = json.loads(self.blob(self.manifest(variant)["config"]["digest"]))
        return config

    def layers(self, variant: str) -> list[dict[str, tuple[int, bytes]]]:
        """Mode and content of the files of each layer, bottom first."""
        return [
            _untarred(self._blob_of_layer(item["digest"]))
            for item in self.manifest(variant)["layers"]
        ]

    def added(self, variant: str) -> list[dict[str, tuple[int, bytes]]]:
        """The layers above those of the variant ``tiny``."""
        return self.layers(variant)[1:]

    def _blob_of_layer(self, digest: str) -> bytes:
        return gzip.decompress(self.blob(digest))


def _untarred(data: bytes) -> dict[str, tuple[int, bytes]]:
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        found = {}
        for member in archive:
            if member.isfile():
                content = archive.extractfile(member)
                assert content is not None
                found[member.name] = (member.mode, content.read())
        return found


@pytest.fixture(scope="module")
def baked(tmp_path_factory: pytest.TempPathFactory) -> Baked:
    """The page after its commands were run, in a copy of this repository."""
    tmp = tmp_path_factory.mktemp("recipes")
    terminal = Terminal(directory=copy_project(tmp / "here"), home=tmp / "home")
    return Baked(tmp / "home" / "store", terminal.replay(PAGE.read_text(encoding="utf-8")))


@pytest.mark.golden
@pytest.mark.requires("git", "unshare")
def test_the_commands_of_the_page_print_what_it_shows(baked: Baked, compare: Compare) -> None:
    compare(PAGE, with_files(baked.page, EXAMPLES))


@pytest.mark.requires("git", "unshare")
def test_the_page_builds_every_example_that_can_be_built_offline(baked: Baked) -> None:
    for name in BUILT:
        assert baked.manifest(name)["schemaVersion"] == 2


def wheel(name: str, file: str) -> bytes:
    return (EXAMPLES / "wheels" / name / file).read_bytes()


@pytest.mark.requires("git", "unshare")
def test_scratch_and_wheels_make_a_base(baked: Baked) -> None:
    (layer,) = baked.layers("tiny")
    stem = "vllm-0.1.0-py3-none-any"
    assert layer[f"{PACKAGES}/vllm/config.py"] == (0o644, wheel(stem, "vllm/config.py"))
    assert layer[f"{PACKAGES}/vllm-0.1.0.dist-info/INSTALLER"] == (0o644, b"builder\n")
    config = baked.config("tiny")["config"]
    assert config["Env"] == ["VLLM_CACHE_ROOT=/cache", "VLLM_OLD_FLAG=1"]
    assert config["Entrypoint"] == ["python3", "-m", "vllm"]


@pytest.mark.requires("git", "unshare")
def test_what_stands_on_a_layout_keeps_its_layers(baked: Baked) -> None:
    base = baked.manifest("tiny")["layers"]
    for name in sorted(BUILT - {"tiny", "retired"}):
        assert baked.manifest(name)["layers"][:1] == base


@pytest.mark.requires("git", "unshare")
def test_an_entry_point_of_ones_own_runs_the_command_or_fails(baked: Baked, tmp_path: Path) -> None:
    (layer,) = baked.added("entry")
    mode, script = layer["usr/local/bin/start"]
    assert mode == 0o755
    assert baked.config("entry")["config"]["Entrypoint"][0] == "/usr/local/bin/start"
    start = tmp_path / "start"
    start.write_bytes(script)

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["sh", start, "echo", "served"],
            env={"MODEL": str(tmp_path), "PATH": "/usr/bin:/bin"},
            capture_output=True,
            text=True,
            check=False,
        )

    refused = run()
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == f"start: no model in '{tmp_path}'\n"
    (tmp_path / "config.json").touch()
    assert run().stdout == "served\n"


@pytest.mark.requires("git", "unshare")
def test_the_image_settings_are_merged_into_the_base(baked: Baked) -> None:
    config = baked.config("demo")["config"]
    assert config["Env"] == ["VLLM_CACHE_ROOT=/cache", "VLLM_USE_V1=1"]
    assert config["Labels"] == {"org.opencontainers.image.title": "demo"}
    assert config["Cmd"] == ["--port", "8015"]
    assert config["Entrypoint"] == ["python3", "-m", "vllm"]


@pytest.mark.requires("git", "unshare")
def test_pull_applies_the_diff_and_leaves_out_what_is_ignored(baked: Baked) -> None:
    tile, marlin = baked.added("pull")
    # The stand-in's next version is the one that has the pull request.
    upstream = wheel("vllm-0.2.0-py3-none-any", "vllm/config.py")
    assert tile == {f"{PACKAGES}/vllm/config.py": (0o644, upstream)}
    assert marlin == {
        f"{PACKAGES}/vllm/kernels/marlin.py": (
            0o644,
            (EXAMPLES / "overlays/marlin-pad/marlin.py").read_bytes(),
        )
    }


@pytest.mark.requires("git", "unshare")
def test_overlay_replaces_adds_removes_edits_and_patches(baked: Baked) -> None:
    whole, edited = baked.added("overlay")
    overlay = EXAMPLES / "overlays" / "marlin-pad"
    assert whole == {
        f"{PACKAGES}/vllm/kernels/marlin.py": (0o644, (overlay / "marlin.py").read_bytes()),
        f"{PACKAGES}/vllm/kernels/.wh.old.py": (0o644, b""),
        "opt/marlin/NOTICE": (0o444, b"Pads sub-tile shapes.\n"),
    }
    assert edited.pop(f"{PACKAGES}/vllm/tool_parsers/parser.py") == (0o644, b"deferred = True\n")
    assert edited == {
        f"{PACKAGES}/vllm/config.py": (
            0o644,
            wheel("vllm-0.1.0-py3-none-any", "vllm/config.py")
            .replace(b"import os\n", b"import os\nimport sys\n")
            .replace(b"return n\n", b"return max(n, 64)\n")
            .replace(b"LIMIT = 4", b"LIMIT = 8"),
        )
    }


@pytest.mark.requires("git", "unshare")
def test_the_patch_script_of_the_page_does_what_its_overlay_does(
    baked: Baked, tmp_path: Path
) -> None:
    _, _, rest = TEXT.partition("<!-- script: tile-64.py -->\n```python\n")
    script, file = tmp_path / "tile-64.py", tmp_path / "config.py"
    script.write_text(rest.partition("```")[0])
    file.write_bytes(wheel("vllm-0.1.0-py3-none-any", "vllm/config.py"))
    subprocess.run([sys.executable, script, file], check=True, stdout=subprocess.DEVNULL)
    _, edited = baked.added("overlay")
    assert edited[f"{PACKAGES}/vllm/config.py"][1] == file.read_bytes()


@pytest.mark.requires("git", "unshare")
def test_the_script_and_the_edit_of_the_page_make_one_layer(baked: Baked) -> None:
    (layer,) = baked.added("script")
    assert layer == {f"{PACKAGES}/vllm/tool_parsers/parser.py": (0o644, b"deferred = True\n")}
    assert baked.manifest("script")["layers"] == baked.manifest("edited")["layers"]


@pytest.mark.requires("git", "unshare")
def test_source_places_files_with_guards(baked: Baked) -> None:
    (layer,) = baked.added("source")
    assert set(layer) == {"opt/templates/qwen3.jinja", f"{PACKAGES}/vllm/tool_parsers/parser.py"}
    assert layer["opt/templates/qwen3.jinja"][0] == 0o444
    assert layer[f"{PACKAGES}/vllm/tool_parsers/parser.py"] == (
        0o644,
        b"deferred = True\nretries = 2\n",
    )


@pytest.mark.requires("git", "unshare")
def test_wheels_installs_into_the_packages_that_were_found(baked: Baked) -> None:
    (layer,) = baked.added("wheels")
    stem = "tile_report-1.0-py3-none-any"
    assert layer[f"{PACKAGES}/tile_report.py"] == (0o644, wheel(stem, "tile_report.py"))
    mode, script = layer["usr/local/bin/tile-report"]
    assert mode == 0o755
    assert script.startswith(b"#!/usr/bin/python3\n")


@pytest.mark.requires("git", "unshare")
def test_what_upstream_has_is_left_out_and_the_rest_is_made(baked: Baked) -> None:
    base, *added = baked.layers("retired")
    assert base[f"{PACKAGES}/vllm/config.py"][1] == wheel(
        "vllm-0.2.0-py3-none-any", "vllm/config.py"
    )
    assert [sorted(layer) for layer in added] == [
        [
            "opt/marlin/NOTICE",
            f"{PACKAGES}/vllm/kernels/.wh.old.py",
            f"{PACKAGES}/vllm/kernels/marlin.py",
        ]
    ]


@pytest.mark.requires("git", "unshare")
def test_no_layer_of_a_patch_holds_a_record(baked: Baked) -> None:
    for name in ("demo", "overlay", "pull", "source"):
        for layer in baked.added(name):
            assert not [path for path in layer if path.endswith("RECORD")]
