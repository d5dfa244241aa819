"""A project on disk: what is read and when, what is refused, and that locks appear whole."""

import json
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from builder.adapters.store.notes import check_reference_name
from builder.errors import EnvironmentFault, ProjectError, UsageError
from builder.lock import codec
from builder.lock.model import Lock
from builder.project import Project
from builder.project_files import Files
from builder.recipe import read_variant
from builder.settings.model import ProjectSettings
from tests.lock.documents import DOCUMENTS, FILES, OVERLAY_FILES, READERS
from tests.soon import cost

MakeProject = Callable[..., Path]


def write(root: Path, files: dict[str, str | bytes]) -> Path:
    for name, data in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data.encode() if isinstance(data, str) else data)
    return root


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project with one document of each kind; its variant applies the overlay ``marlin-pad``."""
    write(tmp_path, {FILES[kind]: DOCUMENTS[kind] for kind in DOCUMENTS if kind != "overlay"})
    overlay = dict(OVERLAY_FILES) | {"overlay.yaml": DOCUMENTS["overlay"].encode()}
    return write(tmp_path, {f"overlays/marlin-pad/{name}": data for name, data in overlay.items()})


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The files that are read, in order."""
    names: list[str] = []
    real = Files.read

    def read(self: Files, file: str, *, limit: int) -> bytes | None:
        names.append(file)
        return real(self, file, limit=limit)

    monkeypatch.setattr(Files, "read", read)
    return names


def test_a_project_gives_the_values_of_its_files(root: Path) -> None:
    project = Project(root)
    files = {FILES[kind]: DOCUMENTS[kind].encode() for kind in DOCUMENTS if "lock" in FILES[kind]}
    assert project.settings == READERS["settings"](DOCUMENTS["settings"].encode())
    assert project.lock == codec.read_lock(files)
    assert project.variants() == ("demo",)
    assert project.variant("demo") == READERS["variant"](DOCUMENTS["variant"].encode())
    assert project.overlays == ("marlin-pad",)
    overlay = project.overlay("marlin-pad")
    assert overlay.files[1].data == b"new"
    assert overlay.at == "overlays/marlin-pad/overlay.yaml:1"


def test_a_directory_of_variants_is_a_project(tmp_path: Path) -> None:
    (tmp_path / "variants").mkdir()
    project = Project(tmp_path)
    assert project.variants() == ()
    assert project.settings == ProjectSettings()
    assert project.lock == Lock()
    assert project.overlays == ()


def test_another_directory_is_no_project(tmp_path: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        Project(tmp_path)
    assert caught.value.message == f"{tmp_path}: no project here, there is no directory 'variants'"
    assert caught.value.hint == (
        "give the project's directory with -C, or start one with builder init"
    )


def test_a_build_reads_only_what_its_variant_names(root: Path, reads: list[str]) -> None:
    write(
        root,
        {
            "variants/small.yaml": "version: 1\nbase: {pin: known-good}\n",
            "variants/broken.yaml": "?",
            "lockfiles/pulls.yaml": "?",
        },
    )
    project = Project(root)
    variant = project.variant("small")
    lock = project.lock_for(variant)
    assert project.overlays_of(variant) == {}
    assert reads == [
        "variants/small.yaml",
        "lockfiles/vllm.yaml",
        "lockfiles/images/small.yaml",
    ]
    assert lock == Lock(images=codec.read_images(DOCUMENTS["vllm"].encode()))


def test_a_build_reads_every_file_once(root: Path, reads: list[str]) -> None:
    project = Project(root)
    variant = project.variant("demo")
    lock = project.lock_for(variant)
    assert list(project.overlays_of(variant)) == ["marlin-pad"]
    assert sorted(reads) == sorted(set(reads))
    assert lock == Lock(
        images=project.images,
        pulls=project.pulls,
        sources=project.sources,
        wheels=project.wheels,
        genesis=project.genesis,
        models=project.models,
        waivers=project.waivers,
        results={"demo": project.results("demo")},
    )


def test_a_published_diff_brings_its_source_along(root: Path, reads: list[str]) -> None:
    recipe = "version: 1\nbase: scratch\nsteps: [{pull: vllm-40361}]\n"
    write(root, {"variants/x.yaml": recipe})
    project = Project(root)
    assert list(project.lock_for(project.variant("x")).sources) == ["club"]
    assert "lockfiles/vllm.yaml" not in reads


def test_a_script_of_a_source_brings_its_pin_along(root: Path, reads: list[str]) -> None:
    script = "{source: club, path: patches/marlin.diff}"
    step = f"{{script: {script}, interpreter: sh, touches: [a]}}"
    write(root, {"variants/x.yaml": f"version: 1\nbase: scratch\nsteps: [{step}]\n"})
    project = Project(root)
    variant = project.variant("x")
    assert list(project.lock_for(variant).sources) == ["club"]
    assert project.overlays_of(variant) == {}
    assert "lockfiles/genesis.yaml" not in reads


def test_a_script_of_an_overlay_brings_the_overlay_along(root: Path, reads: list[str]) -> None:
    script = "{overlay: marlin-pad, path: tools/fix.py}"
    step = f"{{script: {script}, interpreter: sh, touches: [a]}}"
    write(root, {"variants/x.yaml": f"version: 1\nbase: scratch\nsteps: [{step}]\n"})
    project = Project(root)
    variant = project.variant("x")
    assert list(project.overlays_of(variant)) == ["marlin-pad"]
    assert project.lock_for(variant) == Lock()
    assert "lockfiles/sources.yaml" not in reads


def test_a_variant_with_its_locks_costs_little_more_than_to_parse_them(root: Path) -> None:
    def read() -> None:
        project = Project(root)
        variant = project.variant("demo")
        project.lock_for(variant)
        project.overlays_of(variant)

    def parse() -> None:
        for path in root.rglob("*.yaml"):
            yaml.load(path.read_bytes(), yaml.CSafeLoader)

    assert cost(read, rounds=10) < 4 * cost(parse, rounds=10), "it is twice as much"


@pytest.mark.parametrize(
    "name, hint",
    [
        ("dmeo", "did you mean 'demo'?"),
        ("Demo", "did you mean 'demo'?"),
        ("zzz", "builder variants lists them"),
        ("../variants/demo", "builder variants lists them"),
    ],
    ids=["a slip", "upper case", "like no other", "a path"],
)
def test_a_variant_that_is_not_there_is_refused(root: Path, name: str, hint: str) -> None:
    with pytest.raises(ProjectError) as caught:
        Project(root).variant(name)
    assert caught.value.message == f"no variant {name!r} in variants"
    assert caught.value.hint == hint


def test_a_recipe_under_another_ending_is_not_passed_over(root: Path) -> None:
    write(root, {"variants/other.yml": "", "variants/README.md": "", "variants/.hidden": ""})
    with pytest.raises(ProjectError) as caught:
        Project(root).variants()
    assert caught.value.message == "variants/other.yml: not the name of a recipe"


def test_a_lockfile_with_a_name_of_its_own_is_not_passed_over(root: Path) -> None:
    write(root, {"lockfiles/wheel.yaml": "version: 1\nwheels: {}\n"})
    with pytest.raises(ProjectError) as caught:
        _ = Project(root).lock
    assert caught.value.message == "lockfiles/wheel.yaml: not a lockfile"


def test_a_lockfile_that_is_cut_off_is_an_error_and_never_no_pins(root: Path) -> None:
    (root / codec.IMAGES).write_bytes(b"")
    with pytest.raises(ProjectError) as caught:
        Project(root).variant("demo")
    assert caught.value.message == "lockfiles/vllm.yaml:1:1: an empty document"


def test_a_directory_in_the_place_of_a_file_is_refused(root: Path) -> None:
    (root / "builder.yaml").unlink()
    (root / "builder.yaml").mkdir()
    with pytest.raises(ProjectError) as caught:
        _ = Project(root).settings
    assert caught.value.message == "builder.yaml: expected a file, got something else"


def test_a_pipe_in_the_place_of_a_file_does_not_block(root: Path) -> None:
    (root / "builder.yaml").unlink()
    os.mkfifo(root / "builder.yaml")
    with pytest.raises(ProjectError) as caught:
        _ = Project(root).settings
    assert caught.value.message == "builder.yaml: expected a file, got something else"


def test_a_file_over_the_limit_is_not_read_whole(root: Path) -> None:
    with (root / "builder.yaml").open("wb") as stream:
        stream.truncate(1 << 40)
    with pytest.raises(ProjectError) as caught:
        _ = Project(root).settings
    assert caught.value.message == "builder.yaml: more than 4194304 bytes"


def overlay_error(root: Path) -> tuple[str, str | None]:
    with pytest.raises(ProjectError) as caught:
        Project(root).overlay("marlin-pad")
    return caught.value.message, caught.value.hint


def test_a_file_of_an_overlay_may_not_lead_out_of_the_project(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = tmp_path_factory.mktemp("elsewhere") / "secret"
    secret.write_bytes(b"secret")
    real = os.path.realpath(secret)
    (root / "overlays/marlin-pad/marlin.py").unlink()
    (root / "overlays/marlin-pad/marlin.py").symlink_to(secret)
    assert overlay_error(root) == (
        f"overlays/marlin-pad/marlin.py: a link that leads out of the project, to {real!r}",
        "put the file itself there",
    )


def test_a_file_of_an_overlay_may_not_be_a_link_in_a_circle(root: Path) -> None:
    (root / "overlays/marlin-pad/marlin.py").unlink()
    (root / "overlays/marlin-pad/marlin.py").symlink_to("marlin.py")
    assert overlay_error(root) == (
        "overlays/marlin-pad/marlin.py: cannot be read: Too many levels of symbolic links",
        None,
    )


@pytest.mark.parametrize("name", ["a-", "a..b", "a__b", "a.-b", "a---b"])
def test_a_variant_that_no_store_could_name_is_refused_before_it_is_built(
    name: str, root: Path
) -> None:
    recipe = "version: 1\nbase: scratch\nsteps: []\n"
    write(root, {f"variants/{name}.yaml": recipe, "variants/a--b.c_d-1.yaml": recipe})
    assert Project(root).variant("a--b.c_d-1").name == "a--b.c_d-1"
    assert check_reference_name("a--b.c_d-1") == "a--b.c_d-1"
    with pytest.raises(UsageError):
        check_reference_name(name)
    with pytest.raises(ProjectError) as caught:
        Project(root).variant(name)
    assert caught.value.message == f"variants/{name}.yaml: not the name of a recipe"
    assert caught.value.hint == (
        "recipes are NAME.yaml, with lower-case letters and digits, joined by single '.', '_' or"
        " '-'"
    )


def test_an_overlay_may_not_be_elsewhere_as_a_whole(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (root / "overlays/marlin-pad").rename(elsewhere / "moved")
    (root / "overlays/marlin-pad").symlink_to(elsewhere / "moved")
    assert overlay_error(root)[0].startswith(
        "overlays/marlin-pad: a link that leads out of the project, to "
    )


def test_a_file_of_an_overlay_may_be_a_link_inside_the_project(root: Path) -> None:
    write(root, {"shared/marlin.py": b"shared"})
    (root / "overlays/marlin-pad/marlin.py").unlink()
    (root / "overlays/marlin-pad/marlin.py").symlink_to("../../shared/marlin.py")
    assert Project(root).overlay("marlin-pad").files[0].data == b"shared"


@pytest.mark.parametrize(
    "name, message",
    [
        pytest.param(
            "stray.py",
            "overlays/marlin-pad/stray.py: overlay.yaml does not use this file",
            id="a stray file",
        ),
        pytest.param(
            ".marlin.py.swp",
            "overlays/marlin-pad/.marlin.py.swp: overlay.yaml does not use this file",
            id="a hidden file",
        ),
        pytest.param(
            "sub/dir/stray.py",
            "overlays/marlin-pad/sub/dir/stray.py: overlay.yaml does not use this file",
            id="a file further down",
        ),
        pytest.param(
            "caf\udce9.py",
            "overlays/marlin-pad: the name of a file is not text: 'caf\\udce9.py'",
            id="a name that is not UTF-8",
        ),
    ],
)
def test_nothing_in_an_overlay_is_passed_over(root: Path, name: str, message: str) -> None:
    write(root, {f"overlays/marlin-pad/{name}": b""})
    assert overlay_error(root)[0] == message


def test_a_directory_without_a_recipe_is_no_overlay(root: Path) -> None:
    (root / "overlays/marlin-pad/overlay.yaml").unlink()
    assert overlay_error(root) == (
        "overlays/marlin-pad: no overlay.yaml",
        "write overlays/marlin-pad/overlay.yaml: it says what the files are for",
    )


def test_an_overlay_that_is_not_there_is_refused(root: Path) -> None:
    with pytest.raises(ProjectError) as caught:
        Project(root).overlay("marlin-pda")
    assert caught.value.message == "no overlay 'marlin-pda' in overlays"
    assert caught.value.hint == "did you mean 'marlin-pad'?"


def test_an_update_sees_the_bytes_and_puts_others_in_their_place(root: Path) -> None:
    path = root / codec.WHEELS
    path.chmod(0o640)
    old = path.read_bytes()
    seen: list[bytes | None] = []

    def change(data: bytes | None) -> bytes:
        seen.append(data)
        return b"new"

    assert Project(root).update(codec.WHEELS, change) is True
    assert seen == [old]
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert not list(root.glob("lockfiles/.*"))


def test_an_update_that_changes_nothing_writes_nothing(root: Path) -> None:
    before = (root / codec.WHEELS).stat()
    assert Project(root).update(codec.WHEELS, lambda data: data or b"") is False
    after = (root / codec.WHEELS).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_an_update_makes_the_file_that_is_not_there(root: Path) -> None:
    file = "lockfiles/images/new.yaml"
    assert Project(root).update(file, lambda data: b"absent" if data is None else b"there") is True
    assert (root / file).read_bytes() == b"absent"


def test_a_link_stays_a_link_under_an_update(root: Path) -> None:
    (root / codec.WHEELS).rename(root / "real.yaml")
    (root / codec.WHEELS).symlink_to("../real.yaml")
    Project(root).update(codec.WHEELS, lambda _: b"new")
    assert (root / codec.WHEELS).is_symlink()
    assert (root / "real.yaml").read_bytes() == b"new"


def test_an_error_in_an_update_leaves_the_file_as_it_was(root: Path) -> None:
    old = (root / codec.WHEELS).read_bytes()

    def change(_: bytes | None) -> bytes:
        raise ProjectError("no")

    with pytest.raises(ProjectError, match="no"):
        Project(root).update(codec.WHEELS, change)
    assert (root / codec.WHEELS).read_bytes() == old
    assert Project(root).update(codec.WHEELS, lambda _: b"next") is True, "the lock is free again"


def test_a_directory_that_cannot_be_written_is_said_to_be(root: Path) -> None:
    with pytest.raises(EnvironmentFault) as caught:
        Project(root).update("lockfiles/images/x.yaml", _break_rename(root))
    assert caught.value.message == "lockfiles/images/x.yaml: cannot be written: Is a directory"
    assert not list(root.glob("lockfiles/images/.*"))


def _break_rename(root: Path) -> Callable[[bytes | None], bytes]:
    """A change during which somebody puts a directory where the file should go."""

    def change(_: bytes | None) -> bytes:
        (root / "lockfiles/images/x.yaml").mkdir()
        return b"new"

    return change


ADD_ONE = """
import json, sys
from pathlib import Path
from builder.project import Project

def change(data):
    return json.dumps(json.loads(data or b"[]") + [int(sys.argv[2])]).encode()

Project(Path(sys.argv[1])).update("lockfiles/wheels.yaml", change)
"""


def python(root: Path, program: str, *arguments: str) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", program, str(root), *arguments],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
    )


def test_updates_at_once_all_take_effect(root: Path) -> None:
    (root / codec.WHEELS).unlink()
    processes = [python(root, ADD_ONE, str(number)) for number in range(8)]
    assert [process.wait() for process in processes] == [0] * 8
    for process in processes:
        process.communicate()
    assert sorted(json.loads((root / codec.WHEELS).read_bytes())) == list(range(8))


HANG_BEFORE_RENAME = """
import sys, time
from pathlib import Path
from builder.project import Project

def hang(self, target):
    print("written", flush=True)
    time.sleep(60)

Path.replace = hang
Project(Path(sys.argv[1])).update("lockfiles/wheels.yaml", lambda data: b"half")
"""


def test_a_killed_update_leaves_the_old_file_and_the_next_one_works(root: Path) -> None:
    old = (root / codec.WHEELS).read_bytes()
    process = python(root, HANG_BEFORE_RENAME)
    assert process.stdout is not None
    assert process.stdout.readline() == b"written\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    process.stdout.close()
    assert (root / codec.WHEELS).read_bytes() == old
    assert _lock_reads(root), "what is left over is no lockfile"
    assert Project(root).update(codec.WHEELS, lambda data: (data or b"") + b"# next\n") is True
    assert (root / codec.WHEELS).read_bytes() == old + b"# next\n"
    assert not list(root.glob("lockfiles/.*"))


def _lock_reads(root: Path) -> bool:
    return list(Project(root).lock.wheels) == ["xxhash"]


def test_the_recipe_on_disk_is_that_of_its_bytes(root: Path) -> None:
    data = (root / "variants/demo.yaml").read_bytes()
    assert Project(root).variant("demo") == read_variant(
        data, name="demo", file="variants/demo.yaml"
    )


def test_what_one_run_reads_is_of_one_state_of_the_files(root: Path) -> None:
    project = Project(root)
    first, results = project.overlay("marlin-pad"), project.results("demo")
    asked = dict(project.asked)
    (root / "overlays/marlin-pad/overlay.yaml").write_text("?")
    (root / "lockfiles/images/demo.yaml").write_text("?")
    assert project.overlay("marlin-pad") is first
    assert project.results("demo") is results
    assert project.asked == asked


def test_a_directory_that_changes_meanwhile_is_an_error_and_no_mixture(root: Path) -> None:
    project = Project(root)
    project.variants()
    asked = dict(project.asked)
    (root / "variants/late.yaml").write_text("version: 1\nbase: scratch\n")
    with pytest.raises(ProjectError) as caught:
        project.variants()
    assert caught.value.message == "variants: changed while the project was read"
    assert caught.value.hint == "run it again when nobody writes there"
    assert project.asked == asked
