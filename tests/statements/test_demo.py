"""The statements of the demo: the same bytes wherever it was built, and nothing of the machine."""

import json
import os
import pwd
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from builder.digest import Digest
from builder.schema_check import schema
from builder.statements import Kind
from tests.commands import ROOT, clean_environment
from tests.docs.pages import copy_project
from tests.plugins.golden import Golden
from tests.test_json_text import depth

pytestmark = pytest.mark.requires("git")

CANARY = "canary123"


NOTHING: Mapping[str, str] = {}


def run(
    project: Path,
    home: Path,
    *arguments: str,
    umask: int = 0o022,
    environment: Mapping[str, str] = NOTHING,
) -> bytes:
    """What a command prints."""
    return subprocess.run(
        [sys.executable, "-m", "builder", "--store", home / "store", *arguments],
        cwd=project,
        env=clean_environment(PYTHONPATH=str(ROOT), HOME=str(home)) | dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        umask=umask,
        check=True,
    ).stdout


def said(project: Path, home: Path, environment: Mapping[str, str] = NOTHING) -> dict[str, bytes]:
    """All statements of the demo, by their kind."""
    command = ("manifest", "demo", "--type")
    return {
        str(kind): run(project, home, *command, str(kind), environment=environment) for kind in Kind
    }


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """The project and the home directory of somebody who has built the demo."""
    place = tmp_path_factory.mktemp(CANARY)
    project = copy_project(place / "project")
    (place / "home").mkdir()
    run(project, place / "home", "build", "demo")
    yield project, place / "home"
    shutil.rmtree(place)


def test_they_are_nowhere_near_as_deep_as_what_is_read(demo: tuple[Path, Path]) -> None:
    """The number is that of DEPTH_LIMIT's docstring."""
    assert max(depth(json.loads(text)) for text in said(*demo).values()) == 10


def test_the_demo_says_what_it_said_before(demo: tuple[Path, Path], golden: Golden) -> None:
    """A change of these digests changes what is signed: the commit says why."""
    lines = [f"{Digest.of(raw)}  {kind}\n" for kind, raw in said(*demo).items()]
    golden("statements/demo.txt", "".join(lines))


def test_the_demo_is_of_the_form_that_the_schema_says(demo: tuple[Path, Path]) -> None:
    document = json.loads(said(*demo)["manifest"])
    Draft202012Validator(schema("manifest")).validate(document["predicate"])
    assert document["predicateType"] == schema("manifest")["$id"]


CONDITIONS: Mapping[str, str] = {
    "TZ": "Asia/Kathmandu",
    "LC_ALL": "C",
    "PYTHONUTF8": "0",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONHASHSEED": "7",
    "SOURCE_DATE_EPOCH": "1700000000",
    "USER": "somebody-else",
}


def test_another_machine_says_the_same(demo: tuple[Path, Path], tmp_path: Path) -> None:
    elsewhere, home = tmp_path / "an other näme", tmp_path / "home"
    home.mkdir()
    copy_project(elsewhere)
    for path in elsewhere.rglob("*"):
        os.utime(path, (315532800, 315532800), follow_symlinks=False)
    run(elsewhere, home, "build", "demo", umask=0o077, environment=CONDITIONS)
    assert said(elsewhere, home, CONDITIONS) == said(*demo)


def test_more_pins_and_another_day_change_no_byte(demo: tuple[Path, Path], tmp_path: Path) -> None:
    """What other variants pin is not about this image, nor is when somebody looked at the pins."""
    before = said(*demo)
    project = copy_project(tmp_path / "project")
    for name, locked in (
        ("pulls", "    strip: 1\n"),
        ("genesis", "    reachable: [refs/pull/1/head]\n"),
    ):
        path = project / f"lockfiles/{name}.yaml"
        text = path.read_text()
        assert locked in text
        day = '    locked: "2026-05-11T00:00:00Z"\n'
        path.write_text(text.replace(locked, f"{locked}{day}", 1) + "# a remark\n")
    home = tmp_path / "home"
    home.mkdir()
    run(project, home, "build", "demo")
    assert said(project, home) == before


def test_nothing_of_the_machine_is_in_it(demo: tuple[Path, Path]) -> None:
    project, home = demo
    secrets = dict.fromkeys(("HF_TOKEN", "GITHUB_TOKEN", "USER"), CANARY)
    run(project, home, "build", "demo", "--check", environment=secrets)
    image = json.loads(run(project, home, "build", "demo", "--json"))["images"][0]["digest"]
    record = (home / f"store/notes/image/{image.removeprefix('sha256:')}").read_bytes()
    machine = {
        CANARY,
        str(project),
        str(home),
        str(ROOT),
        socket.gethostname(),
        sys.prefix,
    }
    if (name := pwd.getpwuid(os.getuid()).pw_name) != "root":
        machine.add(name)
    for raw in (*said(*demo).values(), record):
        assert [item for item in machine if item.encode() in raw] == []
        assert b"/root/" not in raw
        assert b"/tmp/" not in raw
        assert b"/home/" not in raw
    assert all(b"linux-namespaces" not in raw for raw in said(*demo).values())
