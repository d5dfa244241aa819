"""Models from a hub to a disk (cases 16, 17, 46)."""

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from builder.adapters.hub import HubClient
from builder.adapters.hub_settings import HubSettings
from builder.cli.start import start_project
from builder.digest import Digest, ObjectId
from builder.errors import (
    AuthError,
    EnvironmentFault,
    GoneError,
    IntegrityError,
    NetworkError,
    OfflineError,
    ProjectError,
)
from builder.lock.codec import write_pins
from builder.lock.model import ModelFile, ModelPin
from builder.models.fetch import fetch
from builder.models.place import place_of
from builder.models.standing import standing
from builder.models.verify import Verified
from tests.memory_store import MemoryStore
from tests.models.worlds import SHARDS, Counting, lay, pin_of, tiny, told
from tests.standin.hub import StandInHub, blob_id
from tests.standin.registry import Call, Reply, ranged

NAME = "Team/Tiny"
Fetch = Callable[..., Verified]
SOURCE = Path(__file__).parents[2]


def held(server: StandInHub, files: Mapping[str, bytes]) -> ModelPin:
    """Let the hub have a model of these files; its pin."""
    commit = server.model(NAME, dict(files)).refs["main"]
    return pin_of(files, commit=ObjectId(commit))


@pytest.fixture
def bring(hub: HubClient, store: MemoryStore, tmp_path: Path) -> Fetch:
    def call(pin: ModelPin, root: Path = tmp_path / "w", **given: Any) -> Verified:
        place = place_of(pin, root, alone=True, cache=given.pop("cache", None))
        arguments: dict[str, Any] = {
            "hub": hub,
            "store": store,
            "progress": Counting(),
            "clock": lambda: 0,
            "threads": 4,
        }
        (found,) = fetch([(pin, place)], **arguments | given)
        return found

    return call


def files_of(directory: Path) -> dict[str, bytes]:
    """The files of a model, what is kept about downloads left out."""
    return {
        str(path.relative_to(directory)): path.read_bytes()
        for path in sorted(directory.rglob("*"))
        if path.is_file() and ".cache" not in path.parts
    }


def parts(directory: Path) -> list[Path]:
    return sorted(directory.rglob("*.part"))


def test_a_model_comes_whole_and_is_verified(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    files = tiny() | {"sub/empty.txt": b"", "sub/same.txt": b"{}\n", "a b%.json": b"[]"}
    found = bring(held(server, files))
    assert found.ok
    assert files_of(tmp_path / "w") == files
    assert parts(tmp_path) == []


def test_what_is_there_is_not_asked_for(
    server: StandInHub, bring: Fetch, store: MemoryStore, tmp_path: Path
) -> None:
    pin = held(server, tiny())
    bring(pin)
    calls = len(server.calls)
    nobody = HubClient(HubSettings(offline="--offline"))
    assert bring(pin, hub=nobody).ok
    (tmp_path / "w/config.json").unlink()
    with pytest.raises(OfflineError, match="--offline forbids to ask"):
        bring(pin, hub=nobody)
    assert len(server.calls) == calls


def test_only_what_is_not_as_locked_is_fetched_and_other_files_stay(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    files = tiny()
    pin = held(server, files)
    outside = tmp_path / "outside"
    outside.write_bytes(b"mine")
    root = lay(tmp_path / "w", files | {"config.json": b"[]\n", "notes.md": b"mine"})
    (root / SHARDS[0]).write_bytes(files[SHARDS[0]][:-1])
    (root / SHARDS[1]).unlink()
    (root / SHARDS[1]).symlink_to(outside)
    found = bring(pin)
    assert told(found) == {"notes.md": "extra"}
    assert files_of(root) == files | {"notes.md": b"mine"}
    assert outside.read_bytes() == b"mine"
    asked = {call.path.rpartition("/")[2] for call in server.calls if "/resolve/" in call.path}
    assert asked == {"config.json", *SHARDS}


class Impatient(Counting):
    """Gives up after some bytes that were fetched."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def advance(self, count: int) -> None:
        self.left -= count
        if self.left < 0:
            raise KeyboardInterrupt


def test_an_interrupted_fetch_goes_on_where_it_was(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    data = random.Random(7).randbytes(9 << 20)
    pin = held(server, {"model.bin": data})
    for megabytes in (1, 4, 6):
        # Every byte is told twice: of its file, and of all.
        with pytest.raises(KeyboardInterrupt):
            bring(pin, progress=Impatient(megabytes << 21))
        (part,) = parts(tmp_path)
        assert data.startswith(part.read_bytes())
        assert not (tmp_path / "w/model.bin").exists()
    bring(pin)
    assert files_of(tmp_path / "w") == {"model.bin": data}
    starts = [call.headers.get("range", "bytes=0-") for call in server.storage.calls]
    assert starts[0] == "bytes=0-"
    assert [int(start[6:-1]) >> 20 for start in starts] == sorted(
        int(start[6:-1]) >> 20 for start in starts
    )
    assert starts[-1] != "bytes=0-"


def test_a_connection_that_is_cut_twenty_times_costs_no_byte_twice(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    dice = random.Random(20)
    data = dice.randbytes(26 << 20)
    pin = held(server, {"model.bin": data})
    sent = 0

    def cut(call: Call) -> Reply:
        nonlocal sent
        whole = ranged(call, data)
        count = min(len(whole.body), dice.randint(1 << 20, 5 << 18))
        sent += count
        return replace(whole, cut=count)

    server.storage.on("GET", "/objects/.*", *[cut] * 20)
    server.storage.on("GET", "/objects/.*", lambda call: ranged(call, data))
    bring(pin)
    assert (tmp_path / "w/model.bin").read_bytes() == data
    last = int(server.storage.calls[20].headers["range"][6:-1])
    assert len(server.storage.calls) == 21
    assert sent + len(data) - last <= 1.05 * len(data)


def test_a_server_that_ignores_ranges_is_read_from_the_start(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    data = random.Random(3).randbytes(3 << 20)
    pin = held(server, {"model.bin": data})
    server.storage.on("GET", "/objects/.*", Reply(body=data, cut=2 << 20), Reply(body=data))
    bring(pin)
    assert files_of(tmp_path / "w") == {"model.bin": data}


@pytest.mark.parametrize("path", ["config.json", SHARDS[0]])
def test_wrong_bytes_are_not_placed_and_not_kept(
    server: StandInHub, bring: Fetch, tmp_path: Path, path: str
) -> None:
    files = tiny()
    pin = held(server, files)
    lay(tmp_path / "w", {path: b"old"})
    wrong = bytes([files[path][0] ^ 1]) + files[path][1:]
    if path == SHARDS[0]:
        server.storage.on("GET", f"/objects/{Digest.of(files[path]).hex}", Reply(body=wrong))
    else:
        server.on("GET", f".*/{path}", Reply(body=wrong))
    with pytest.raises(IntegrityError, match=f"{path}: expected sha256:.*, got sha256:"):
        bring(pin, threads=1)
    assert (tmp_path / "w" / path).read_bytes() == b"old"
    assert [part for part in parts(tmp_path) if Digest.of(files[path]).hex in part.name] == []
    assert bring(pin).ok


def test_a_page_in_the_place_of_a_file_is_not_stored(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    pin = held(server, tiny())
    page = Reply(headers={"Content-Type": "text/html"}, body=b"<html>Log in</html>")
    server.on("GET", ".*/config.json", page)
    with pytest.raises(IntegrityError, match=r"config\.json") as caught:
        bring(pin, threads=1)
    assert "a login page" in str(caught.value.hint)
    assert not (tmp_path / "w/config.json").exists()


def test_a_page_in_the_place_of_the_rest_costs_nothing_of_what_is_there(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    data = random.Random(5).randbytes(4 << 20)
    pin = held(server, {"model.bin": data})
    with pytest.raises(KeyboardInterrupt):
        bring(pin, progress=Impatient(4 << 20))
    (part,) = parts(tmp_path)
    there = part.read_bytes()
    assert data.startswith(there)
    assert len(there) >= 1 << 20
    page = Reply(headers={"Content-Type": "text/html"}, body=b"<html>Log in</html>")
    server.storage.on("GET", "/objects/.*", page)
    with pytest.raises(IntegrityError, match=r"model\.bin: .* of type 'text/html'"):
        bring(pin)
    assert part.read_bytes() == there
    assert bring(pin).tensors == ()
    assert server.storage.calls[-1].headers["range"] == f"bytes={len(there)}-"


def test_a_damaged_part_is_found_and_dropped(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    data = random.Random(5).randbytes(4 << 20)
    pin = held(server, {"model.bin": data})
    with pytest.raises(KeyboardInterrupt):
        bring(pin, progress=Impatient(3 << 20))
    (part,) = parts(tmp_path)
    part.write_bytes(b"x" + part.read_bytes()[1:] + b"y" * len(data))
    with pytest.raises(IntegrityError, match="expected sha256:"):
        bring(pin)
    assert parts(tmp_path) == []
    assert bring(pin).tensors == ()


def test_a_file_that_cannot_be_verified_is_not_fetched(server: StandInHub, bring: Fetch) -> None:
    pin = held(server, tiny())
    for lacking in (ModelFile(path="a"), ModelFile(path="a", digest=Digest.of(b""))):
        with pytest.raises(ProjectError) as caught:
            bring(replace(pin, files=(*pin.files, lacking), at="lockfiles/models.yaml:3"))
        assert caught.value.message == (
            "lockfiles/models.yaml:3: 1 of 5 files are without digest or size, the first is 'a'"
        )
    assert server.calls == []


def test_space_is_looked_at_before_anything_is_fetched(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    pin = held(server, tiny())
    huge = ModelFile(path="huge.safetensors", digest=Digest.of(b""), size=1 << 60)
    with pytest.raises(EnvironmentFault, match=r"\d+ bytes are to be fetched, \d+ are free"):
        bring(replace(pin, files=(*pin.files, huge)))
    assert not [call for call in server.calls if "/resolve/" in call.path]
    assert files_of(tmp_path / "w") == {}


def test_a_place_on_two_file_systems_is_refused_before_anything_is_fetched(
    server: StandInHub, hub: HubClient, store: MemoryStore, tmp_path: Path
) -> None:
    pin = held(server, tiny())
    with tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        if os.stat(memory).st_dev == tmp_path.stat().st_dev:
            pytest.skip("temporary files are in memory, too")
        place = replace(place_of(pin, tmp_path / "w", alone=True), scratch=Path(memory))
        with pytest.raises(EnvironmentFault, match="another file system than that of") as caught:
            fetch(
                [(pin, place)],
                hub=hub,
                store=store,
                progress=Counting(),
                clock=lambda: 0,
                threads=1,
            )
    assert caught.value.message.startswith(repr(str(tmp_path)))
    assert not [call for call in server.calls if "/resolve/" in call.path]


def test_what_is_here_of_a_file_needs_no_space_again(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    pin = held(server, tiny())
    status = os.statvfs(tmp_path)
    margin = 256 << 20
    size = status.f_bavail * status.f_frsize + margin
    huge = ModelFile(path="huge.safetensors", digest=Digest.of(b""), size=size)
    pin = replace(pin, files=(*pin.files, huge))
    with pytest.raises(EnvironmentFault, match="bytes are to be fetched"):
        bring(pin)
    scratch = place_of(pin, tmp_path / "w", alone=True).scratch
    part = scratch / f"{Digest.of(b'').hex}-{Digest.of(huge.path.encode()).short}.part"
    with part.open("wb") as file:
        file.truncate(2 * margin)  # it takes no space
    with pytest.raises(GoneError):  # there was enough, and the hub has no such file
        bring(pin)


def test_a_squashed_commit_is_gone_with_the_bytes_that_nobody_has(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    pin = held(server, tiny())
    server.models[NAME].commit(tiny() | {"config.json": b"[]\n"})
    server.models[NAME].squash()
    with pytest.raises(GoneError, match="the hub has no revision") as caught:
        bring(pin)
    assert "can still be verified" in str(caught.value.hint)
    followed = replace(pin, follows="main")
    with pytest.raises(GoneError) as caught:
        bring(followed)
    assert caught.value.message == (
        f"model {NAME}: commit {pin.commit} is gone from the hub, and so are 1 of the 4 files to be"
        " fetched: config.json"
    )
    assert files_of(tmp_path / "w") == {}
    lay(tmp_path / "w", {"config.json": tiny()["config.json"]})
    assert bring(followed).ok


def test_a_squash_that_changes_no_file_takes_nothing_away(
    server: StandInHub, bring: Fetch, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pin = replace(held(server, tiny()), follows="main")
    new = server.models[NAME].commit(tiny() | {"README.md": b"squashed"})
    server.models[NAME].squash()
    server.renamed["Team/Old"] = NAME
    with caplog.at_level("WARNING", "builder"):
        assert bring(replace(pin, repository="Team/Old")).ok
    renamed, gone = caplog.messages
    assert renamed == (
        f"model tiny: the hub calls Team/Old {NAME} now; the old name leads there until somebody"
        " else takes it"
    )
    assert gone == (
        f"model tiny: commit {pin.commit.short} is gone from the hub; main is at {new[:12]}, where"
        " all 4 files are the same"
    )
    assert files_of(tmp_path / "w") == tiny()


def test_what_stands_at_the_hub_is_told(server: StandInHub, hub: HubClient) -> None:
    pin = replace(held(server, tiny()), follows="main")
    assert standing(pin, hub=hub).remarks == ()
    changed = {path: data for path, data in tiny().items() if path != SHARDS[1]}
    new = server.models[NAME].commit(changed | {"config.json": b"[]\n"})
    server.models[NAME].squash()
    found = standing(pin, hub=hub)
    assert found.differing == ("config.json", SHARDS[1])
    (remark,) = found.remarks
    assert remark == (
        f"commit {pin.commit.short} is gone from the hub; main is at {new[:12]}, where 2 of 4 files"
        f" differ: config.json, {SHARDS[1]}"
    )
    del server.models[NAME]
    with pytest.raises(GoneError, match="no such model"):
        standing(pin, hub=hub)


def part_of(root: Path, path: str, data: bytes) -> Path:
    """Where a file of a plain directory is as long as it is not whole."""
    name = f"{Digest.of(data).hex}-{Digest.of(path.encode()).short}.part"
    return root / ".cache/huggingface/builder" / name


def test_a_disk_that_takes_nothing_is_to_blame_by_name(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    pin = held(server, {"config.json": b"{}"})
    held_at = tmp_path / "w/models--Team--Tiny"
    lay(held_at, {"blobs": b""})
    with pytest.raises(EnvironmentFault) as caught:
        bring(pin)
    assert caught.value.message == (
        f"model {NAME}: config.json: {str(held_at / '.builder')!r}: File exists"
    )
    assert "goes on where it was" in str(caught.value.hint)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: path.mkdir(), id="a directory"),
        pytest.param(os.mkfifo, id="a pipe"),
        pytest.param(lambda path: path.symlink_to("../../../../mine"), id="a link to a file"),
        pytest.param(lambda path: path.symlink_to("nowhere"), id="a link to nothing"),
    ],
)
def test_what_no_download_left_is_not_written_to(
    server: StandInHub, bring: Fetch, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    (tmp_path / "mine").write_bytes(b"longer than the file")
    pin = held(server, {"config.json": b"{}"})
    part = part_of(tmp_path / "w", "config.json", b"{}")
    part.parent.mkdir(parents=True)
    make(part)
    with pytest.raises(EnvironmentFault) as caught:
        bring(pin)
    assert caught.value.message == (
        f"model {NAME}: config.json: {str(part)!r} is no regular file, and cannot have been left by"
        " a download"
    )
    assert caught.value.hint == "remove it"
    assert (tmp_path / "mine").read_bytes() == b"longer than the file"


def test_a_gate_and_a_locked_file_that_is_gone_say_what_they_are(
    server: StandInHub, bring: Fetch
) -> None:
    pin = held(server, tiny())
    server.models[NAME].gated = True
    with pytest.raises(AuthError, match="Access to model Team/Tiny is restricted") as caught:
        bring(pin, threads=1)
    assert f"accept its conditions at {server.endpoint}/{NAME}" in str(caught.value.hint)
    server.models[NAME].gated = False
    del server.models[NAME].commits[pin.commit.hex]["config.json"]
    with pytest.raises(GoneError, match=r"config\.json.*404 Not Found"):
        bring(pin, threads=1)


def test_a_token_opens_a_gate_and_stays_at_the_hub(server: StandInHub, bring: Fetch) -> None:
    pin = held(server, tiny())
    server.models[NAME].gated = True
    server.tokens["hf_good"] = {NAME}
    settings = HubSettings(endpoint=server.endpoint, token="hf_good", token_place="HF_TOKEN")
    assert bring(pin, hub=HubClient(settings)).ok
    assert {call.headers["authorization"] for call in server.calls} == {"Bearer hf_good"}
    assert server.storage.calls
    assert not [call for call in server.storage.calls if "authorization" in call.headers]


def test_a_hub_that_breaks_for_ever_is_the_networks_fault(server: StandInHub, bring: Fetch) -> None:
    pin = held(server, tiny())
    server.on("GET", ".*/resolve/.*", Reply(status=503), forever=True)
    with pytest.raises(NetworkError, match="answered 503"):
        bring(pin, threads=1)


def test_what_is_in_the_way_is_named_and_stays(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    pin = held(server, {"sub/config.json": b"{}"})
    root = tmp_path / "w"
    lay(root, {"sub": b"mine"})
    with pytest.raises(IntegrityError, match="a file is in its place"):
        bring(pin)
    (root / "sub").unlink()
    (root / "sub/config.json").mkdir(parents=True)
    with pytest.raises(IntegrityError, match="a directory is in its place"):
        bring(pin)
    (root / "sub/config.json").rmdir()
    (root / "sub").rmdir()
    (root / "sub").symlink_to(tmp_path)
    with pytest.raises(IntegrityError, match=r"/sub' leads out of '.*/w'$"):
        bring(pin)
    assert not (tmp_path / "config.json").exists()
    assert not [call for call in server.calls if "/resolve/" in call.path]


def test_a_cache_whose_bytes_lie_elsewhere_is_not_filled(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    """Whoever gets to see the cache alone would find nothing in it."""
    pin = held(server, tiny())
    (tmp_path / "elsewhere").mkdir()
    model = tmp_path / "w/models--Team--Tiny"
    model.mkdir(parents=True)
    (model / "blobs").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(IntegrityError, match=r"/blobs' leads out of '.*/w'$") as caught:
        bring(pin)
    assert caught.value.hint == "remove the link"
    assert not [call for call in server.calls if "/resolve/" in call.path]
    (model / "blobs").unlink()
    (model / "blobs").symlink_to("../other")
    (tmp_path / "w/other").mkdir()
    assert bring(pin).ok


def test_callers_at_the_same_time_fetch_once(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    pin = held(server, tiny())
    with ThreadPoolExecutor(4) as pool:
        found = [
            future.result()
            for future in [pool.submit(bring, pin, store=MemoryStore()) for _ in range(4)]
        ]
    assert all(item.ok for item in found)
    fetched = [call.path for call in server.calls if "/resolve/" in call.path]
    assert len(fetched) == len(set(fetched)) == 4


def test_the_hubs_cache_is_laid_out_as_the_hubs_own_library_does(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    files = tiny() | {"sub/copy.json": b"{}\n"}
    pin = held(server, files)
    found = bring(pin, cache=True)
    assert found.ok
    repository = tmp_path / "w/models--Team--Tiny"
    snapshot = repository / "snapshots" / pin.commit.hex
    assert os.readlink(snapshot / "config.json") == f"../../blobs/{blob_id(b'{}' + bytes([10]))}"
    assert os.readlink(snapshot / "sub/copy.json").startswith("../../../blobs/")
    weights = Digest.of(files[SHARDS[0]]).hex
    assert os.readlink(snapshot / SHARDS[0]) == f"../../blobs/{weights}"
    (repository / "blobs" / weights).write_bytes(b"rotten")
    assert bring(pin).ok


def test_a_link_that_a_killed_fetch_left_is_replaced(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    pin = held(server, tiny())
    scratch = tmp_path / "w/models--Team--Tiny/.builder"
    scratch.mkdir(parents=True)
    (scratch / "link").symlink_to("../blobs/one")
    assert bring(pin).ok
    assert [path.name for path in scratch.iterdir()] == ["lock"]


def test_the_bytes_of_another_revision_in_the_hubs_cache_are_linked(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    files = tiny()
    bring(held(server, files), cache=True)
    changed = files | {"config.json": b"[]\n"}
    commit = server.models[NAME].commit(changed)
    server.calls.clear()
    assert bring(pin_of(changed, commit=ObjectId(commit))).ok
    asked = [call.path for call in server.calls if "/resolve/" in call.path]
    assert asked == [f"/{NAME}/resolve/{commit}/config.json"]
    assert len(list((tmp_path / "w/models--Team--Tiny/snapshots").iterdir())) == 2


def test_a_killed_fetch_goes_on(server: StandInHub, tmp_path: Path) -> None:
    data = random.Random(9).randbytes(4 << 20)
    pin = held(server, {"model.bin": data})
    project = tmp_path / "project"
    start_project(project)
    (project / "lockfiles/models.yaml").write_bytes(write_pins(ModelPin, {"tiny": pin}))
    with (project / "variants/hello.yaml").open("a") as variant:
        variant.write("models: [tiny]\n")
    killed = threading.Event()

    def hang(call: Call) -> Reply:
        killed.wait(20)
        return Reply(status=503)

    server.storage.on("GET", ".*", Reply(body=data, cut=3 << 20), hang)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "PYTHONPATH": str(SOURCE),
        "BUILDER_STORE": str(tmp_path / "store"),
        "HF_ENDPOINT": server.endpoint,
    }
    line = [sys.executable, "-m", "builder", "models", "fetch", "hello", "--dir", "w"]
    process = subprocess.Popen(line, cwd=project, env=environment)
    end = time.monotonic() + 20
    while len(server.calls) < 3 and time.monotonic() < end:  # the commit, the file, and once more
        time.sleep(0.01)
    time.sleep(0.05)
    process.send_signal(signal.SIGKILL)
    process.wait()
    killed.set()
    (part,) = parts(project)
    assert part.read_bytes() == data[: 3 << 20]
    done = subprocess.run(line, cwd=project, env=environment, check=False, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")
    assert (project / "w/model.bin").read_bytes() == data
    assert server.storage.calls[-1].headers["range"] == f"bytes={3 << 20}-"


FETCH = """\
import sys
from dataclasses import replace
from builder.adapters.hub import HubClient
from builder.adapters.hub_settings import HubSettings
from builder.models.fetch import fetch
from builder.models.place import place_of
from pathlib import Path
from tests.memory_store import MemoryStore
from tests.models.worlds import Counting, pin_of
from builder.digest import Digest, ObjectId
from builder.lock.model import ModelFile
endpoint, commit, digest, size, root = sys.argv[1:]
file = ModelFile(path="model.bin", digest=Digest(digest), size=int(size))
pin = replace(pin_of({}, commit=ObjectId(commit)), files=(file,))
settings = HubSettings.of({"HF_ENDPOINT": endpoint, "HF_TOKEN_PATH": "/nonexistent"})
hub = HubClient(settings, sleep=lambda seconds: None)
places = [(pin, place_of(pin, Path(root), alone=True))]
fetch(places, hub=hub, store=MemoryStore(), progress=Counting(), clock=lambda: 0, threads=2)
"""


def test_ten_kills_and_twenty_cuts_at_random_offsets_cost_no_byte_twice(
    server: StandInHub, bring: Fetch, tmp_path: Path
) -> None:
    dice = random.Random(41)
    data = dice.randbytes(25 << 20)
    pin = held(server, {"model.bin": data})
    offsets = sorted(dice.sample(range(1, len(data)), 20))
    sent, asked = 0, 0
    hanging, killed = threading.Semaphore(0), threading.Semaphore(0)

    def cut(call: Call) -> Reply:
        nonlocal sent, asked
        whole = ranged(call, data)
        start = len(data) - len(whole.body)
        if asked % 3 == 2:  # cut twice, then nothing comes any more: it is killed
            asked += 1
            hanging.release()
            killed.acquire(timeout=20)
            return Reply(status=503)
        offset = offsets[asked // 3 * 2 + asked % 3]
        asked += 1
        sent += max(0, offset - start)
        return replace(whole, cut=max(0, offset - start))

    server.storage.on("GET", "/objects/.*", *[cut] * 30)
    server.storage.on("GET", "/objects/.*", lambda call: ranged(call, data))
    line = [sys.executable, "-c", FETCH, server.endpoint, str(pin.commit)]
    line += [Digest.of(data).hex, str(len(data)), str(tmp_path / "w")]
    for _ in range(10):
        with subprocess.Popen(line, env={"PYTHONPATH": str(SOURCE)}) as process:
            hangs = hanging.acquire(timeout=20)
            process.send_signal(signal.SIGKILL)
        killed.release()
        assert hangs
        assert not (tmp_path / "w/model.bin").exists()
    bring(pin)
    assert (tmp_path / "w/model.bin").read_bytes() == data
    assert parts(tmp_path) == []
    last = int(server.storage.calls[-1].headers["range"][6:-1])
    assert len(server.storage.calls) == 31
    assert sent + len(data) - last <= 1.05 * len(data)
