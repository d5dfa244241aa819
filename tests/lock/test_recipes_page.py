"""docs/recipes.md: its examples are one project, which the real code reads."""

import re
from pathlib import Path

import pytest

from builder.errors import ProjectError
from builder.lock import codec
from builder.project import Project
from builder.schema_check import check, kind_of
from builder.variant import OverlayStep, PullStep, SourceStep, Variant, WheelsStep
from tests.lock.documents import changed

PAGE = Path(__file__).parents[2] / "docs" / "recipes.md"
EXAMPLE = re.compile(r"^<!-- file: (\S+) -->\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
EXAMPLES = dict(EXAMPLE.findall(PAGE.read_text(encoding="utf-8")))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    for file, text in EXAMPLES.items():
        path = tmp_path / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Project(tmp_path)


def test_every_example_of_yaml_names_its_file() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert text.count("```yaml") == sum(file.endswith(".yaml") for file in EXAMPLES)


def test_the_examples_are_a_project(project: Project) -> None:
    variants = [project.variant(name) for name in project.variants()]
    assert [variant.name for variant in variants] == [
        "demo",
        "from-scratch",
        "overlay",
        "pull",
        "source",
        "wheels",
    ]
    for variant in variants:
        project.lock_for(variant)
        project.overlays_of(variant)
    assert {name for variant in variants for name in project.overlays_of(variant)} == set(
        project.overlays
    )
    assert project.settings.registry("registry.example").location == "localhost:5000"


@pytest.mark.parametrize(
    "name, kind",
    [("pull", PullStep), ("overlay", OverlayStep), ("source", SourceStep), ("wheels", WheelsStep)],
)
def test_every_kind_of_step_has_an_example(project: Project, name: str, kind: type) -> None:
    variant: Variant = project.variant(name)
    assert {type(step) for step in variant.steps} == {kind}


def test_every_kind_of_pin_has_an_example(project: Project) -> None:
    lock = project.lock
    for pins in (lock.images, lock.pulls, lock.sources, lock.wheels, lock.genesis, lock.models):
        assert pins
    assert set(lock.results) == {"demo"}


@pytest.mark.parametrize("file", [file for file in EXAMPLES if file.endswith(".yaml")])
def test_every_example_fits_its_schema(file: str) -> None:
    kind = kind_of(file)
    assert kind is not None
    check(EXAMPLES[file].encode(), kind=kind, file=file)


def test_the_lockfiles_of_the_page_are_in_the_form_that_we_write(project: Project) -> None:
    lock = project.lock
    written = {
        codec.IMAGES: codec.write_images(lock.images),
        codec.PULLS: codec.write_pulls(lock.pulls),
        codec.SOURCES: codec.write_sources(lock.sources),
        codec.WHEELS: codec.write_wheels(lock.wheels),
        codec.GENESIS: codec.write_genesis(lock.genesis),
        codec.MODELS: codec.write_models(lock.models),
        "lockfiles/images/demo.yaml": codec.write_results("demo", lock.results["demo"]),
    }
    for file, data in written.items():
        assert data.decode() == EXAMPLES[file]


def test_the_message_on_the_page_is_the_message_that_we_give() -> None:
    data = changed("vllm", "index: sha256:", "index: sha256:beefbeef12 # ")
    with pytest.raises(ProjectError) as caught:
        codec.read_images(data)
    assert f"\n{caught.value.message}\n" in PAGE.read_text(encoding="utf-8")
