"""``builder init``: a project that bakes at once, and nothing half-made."""

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from builder.cli import start
from builder.digest import Digest
from builder.wheel_pack import pack
from tests.cli.conftest import DEMO, Builder, tree
from tests.plugins.golden import Golden

FILES = """\
.gitignore
README.md
builder.yaml
lockfiles/wheels.yaml
overlays/greeting/files/limits.py
overlays/greeting/overlay.yaml
variants/hello.yaml
wheels/hello-1.0-py3-none-any/hello-1.0.dist-info/METADATA
wheels/hello-1.0-py3-none-any/hello-1.0.dist-info/WHEEL
wheels/hello-1.0-py3-none-any/hello/__init__.py
wheels/hello-1.0-py3-none-any/hello/__main__.py
wheels/hello-1.0-py3-none-any/hello/greeting.py
wheels/hello-1.0-py3-none-any/hello/limits.py
"""


def test_a_new_project_bakes_at_once_and_has_nothing_to_report(
    builder: Builder, tmp_path: Path, golden: Golden
) -> None:
    new = tmp_path / "some where"
    ran = builder("init", new)
    assert (ran.status, ran.out) == (0, FILES)
    assert ran.err == f"next: builder -C '{new}' build hello\n"
    assert sorted(name for name, data in tree(new).items() if data is not None) == sorted(
        FILES.split()
    )

    built = builder("-C", new, "--offline", "build", "hello")
    assert (built.status, built.err) == (0, "")
    golden("cli/build.txt", built.out)
    assert builder("-C", new, "check").out == "nothing to report\n"


def test_the_lock_pins_what_the_wheel_packs_to(project: Path, golden: Golden) -> None:
    packed = pack(project / "wheels/hello-1.0-py3-none-any")
    lock = (project / "lockfiles/wheels.yaml").read_text()
    assert f"    digest: {Digest.of(packed)}\n" in lock
    golden("cli/init-wheels.yaml", lock)


def test_it_works_where_one_stands_and_beside_files_of_others(
    builder: Builder, tmp_path: Path
) -> None:
    new = tmp_path / "new"
    (new / ".git").mkdir(parents=True)
    (new / "LICENSE").write_text("mine")
    ran = builder("-C", new, "init")
    assert (ran.status, ran.out) == (0, FILES)
    assert (new / "LICENSE").read_text() == "mine"
    os.chdir(new)
    assert builder("init").status == 2


def test_the_commands_of_its_readme_work(builder: Builder, project: Path) -> None:
    readme = (project / "README.md").read_text()
    lines = [line.strip() for line in readme.splitlines() if line.startswith("    builder ")]
    assert len(lines) == 9
    for line in lines:
        words = line.partition("#")[0].split()[1:]
        if words[0] == "add":  # asks the network
            words = [*words[:2], "--help"]
        assert (builder(*words).status, line) == (0, line)


def test_json_lists_the_files(builder: Builder, tmp_path: Path) -> None:
    ran = builder("--json", "init", tmp_path / "new")
    assert ran.json == {"directory": str(tmp_path / "new"), "files": FILES.split()}


@pytest.mark.parametrize("name", ["builder.yaml", "variants", "lockfiles", "overlays"])
def test_a_project_is_left_alone(builder: Builder, tmp_path: Path, name: str) -> None:
    new = tmp_path / "new"
    (new / name).mkdir(parents=True)
    before = tree(new)
    ran = builder("init", new)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        f"builder: error: {new}: there is a project already: {name!r}\n"
        "  hint: give another directory: builder init DIR\n"
    )
    assert tree(new) == before


@pytest.mark.parametrize("name", ["README.md", ".gitignore", "wheels"])
def test_a_file_in_the_way_is_not_overwritten(builder: Builder, tmp_path: Path, name: str) -> None:
    new = tmp_path / "new"
    new.mkdir()
    (new / name).write_text("mine")
    ran = builder("init", new)
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        f"builder: error: {new}: {name!r} is there already, and init overwrites nothing\n"
        "  hint: move it away, or give another directory: builder init DIR\n"
    )
    assert tree(new) == {name: b"mine"}


def test_a_link_in_the_way_is_not_written_through(builder: Builder, tmp_path: Path) -> None:
    new, outside = tmp_path / "new", tmp_path / "outside"
    new.mkdir()
    outside.mkdir()
    (new / "wheels").symlink_to(outside)
    assert builder("init", new).status == 2
    assert (tree(outside), [path.name for path in new.iterdir()]) == ({}, ["wheels"])


def test_a_file_is_no_place_for_a_project(builder: Builder, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    ran = builder("init", tmp_path / "file")
    assert ran.status == 2
    assert ran.err == (
        f"builder: error: {tmp_path / 'file'}: expected a directory, got something else\n"
    )


def test_a_failure_half_way_leaves_nothing(tmp_path: Path, environment: dict[str, str]) -> None:
    (tmp_path / "kept").mkdir()
    before = tree(tmp_path)
    for directory in (tmp_path / "new/deep", tmp_path / "kept"):
        done = subprocess.run(
            ["sh", "-c", 'ulimit -f 1; exec "$0" -m builder init "$1"', sys.executable, directory],
            env=environment | {"PYTHONPATH": str(DEMO), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            text=True,
            check=False,
        )
        assert (done.returncode, done.stdout) == (9, "")
        assert done.stderr == f"builder: error: {directory}: cannot be written: File too large\n"
        assert tree(tmp_path) == before


def test_an_interruption_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(directory: Path) -> bytes:
        raise KeyboardInterrupt

    monkeypatch.setattr(start, "pack", interrupted)
    with pytest.raises(KeyboardInterrupt):
        start.start_project(tmp_path / "new")
    assert tree(tmp_path) == {}


def test_its_overlay_refuses_another_wheel(builder: Builder, project: Path) -> None:
    """The guard of the template is a real one."""
    (project / "wheels/hello-1.0-py3-none-any/hello/limits.py").write_text("REPEAT = 7\n")
    ran = builder("build", "hello")
    assert ran.status == 4
    lock = project / "lockfiles/wheels.yaml"
    packed = Digest.of(pack(project / "wheels/hello-1.0-py3-none-any"))
    lines = lock.read_text().splitlines()
    lock.write_text(
        "\n".join(f"    digest: {packed}" if "digest:" in line else line for line in lines) + "\n"
    )
    ran = builder("build", "hello")
    assert ran.status == 6
    assert "hello/limits.py" in ran.err


def test_the_template_ships(tmp_path: Path) -> None:
    """Dot files and all: what an installed builder has is what the wheel has."""
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys; from flit_core import buildapi; print(buildapi.build_wheel(sys.argv[1]))",
            str(tmp_path),
        ],
        cwd=DEMO,
        capture_output=True,
        text=True,
        check=True,
    )
    with zipfile.ZipFile(tmp_path / done.stdout.split()[-1]) as wheel:
        names = {name.partition("builder/cli/template/")[2] for name in wheel.namelist()}
        assert "builder/cli/help.txt" in wheel.namelist()
    assert names - {""} == set(FILES.split()) - {"lockfiles/wheels.yaml"}
