"""``composes/*.yml``: complete, pinned where there is a result, and in step with the images."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from builder.check.composes import judged
from builder.compose.document import read
from builder.compose.judge import State
from builder.oci import Platform
from builder.project import Project

ROOT = Path(__file__).parents[2]
PROJECT = Project(ROOT)
STATES = {
    "composes/demo.yml": ("demo", State.PINNED),
    "composes/tq3-mtp-genesis.yml": ("tq3-mtp-genesis", State.UNPROVEN),
}


def service(file: str) -> dict[str, Any]:
    (found,) = yaml.safe_load((ROOT / file).read_text(encoding="utf-8"))["services"].values()
    assert isinstance(found, dict)
    return found


def test_each_stands_as_its_readme_says() -> None:
    assert PROJECT.composes() == tuple(sorted(STATES))
    for file, (name, state) in STATES.items():
        document = read((ROOT / file).read_bytes(), file=file)
        (found,) = judged(PROJECT, document, mapped={}, platform=Platform("linux", "amd64"))
        assert (found.runs, found.state) == (name, state)


@pytest.mark.parametrize("file", STATES)
def test_each_is_complete(file: str) -> None:
    found = service(file)
    wanted = {
        "image", "labels", "command", "environment", "volumes", "ports", "shm_size", "ulimits",
        "deploy", "healthcheck", "restart",
    }  # fmt: skip
    assert set(found) == wanted
    (device,) = found["deploy"]["resources"]["reservations"]["devices"]
    assert (device["driver"], device["capabilities"]) == ("nvidia", ["gpu"])


def test_the_arguments_are_those_of_the_image() -> None:
    found = service("composes/tq3-mtp-genesis.yml")
    defaults = [re.sub(r"\$\{\w+:-([^}]*)\}", r"\1", item) for item in found["command"]]
    assert tuple(defaults) == PROJECT.variant("tq3-mtp-genesis").image.command
    assert found["ports"] == ["${BIND_HOST:-127.0.0.1}:${PORT:-8015}:8000"]


def test_nothing_that_the_patch_set_was_baked_with_is_set_again() -> None:
    found = service("composes/tq3-mtp-genesis.yml")
    assert not [name for name in found["environment"] if name.startswith("GENESIS_")]
