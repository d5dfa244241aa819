"""Builds that are killed, and builds that meet others on one store."""

import json
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

from builder.adapters.store import FileStore
from builder.adapters.store.verify import verify
from tests.flow.images import image, write_layout
from tests.flow.worlds import (
    BASE,
    Tiny,
    at_packages,
    clean_environment,
    command,
    content,
)
from tests.store.processes import killed_at

STEPS = ("one", "two")


@pytest.fixture
def tiny(tmp_path: Path) -> Tiny:
    """Two steps on a layout: no server, so that a child can be forked and killed."""
    made = image({"usr/lib/big": bytes(200_000)}, BASE)
    project = Tiny.make(tmp_path)
    write_layout(project.root / "base", made)
    project.edit("one", "vllm/config.py", "128", "256")
    project.edit("two", "vllm/sub/module.py", "41", "42")
    project.variant("it", *STEPS, base={"layout": "base", "digest": str(made.digest)})
    return project


def started(tiny: Tiny, *arguments: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        command(*arguments),
        cwd=tiny.root,
        env=clean_environment(tiny.root.parent, tiny.store_path),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def test_a_build_that_is_killed_at_any_write_leaves_a_store_that_the_next_one_uses(
    tiny: Tiny, tmp_path: Path
) -> None:
    right = tiny.bake(store=tmp_path / "right").image
    number, killed, referenced = 0, 0, set()
    while killed_at(number, tiny.bake):
        killed += 1
        store = FileStore(tiny.store_path)
        report = verify(store)
        assert (report.errors, report.stale) == ((), ()), f"killed at call {number}"
        named = {str(item.digest) for item in store.references().values()}
        assert named <= {str(right.digest)}, f"killed at call {number}"
        referenced |= named
        # Half of the time what is left is built upon, half of the time it is killed again.
        if number % 2:
            assert tiny.bake().image == right, f"killed at call {number}"
            shutil.rmtree(tiny.store_path)
        number += 7
    assert killed > 15
    assert tiny.bake().image == right
    assert verify(tiny.store).ok


@pytest.mark.parametrize("delay", [0.08, 0.16, 0.24, 0.4])
def test_a_command_that_is_killed_after_a_while_can_be_given_again(
    tiny: Tiny, tmp_path: Path, delay: float
) -> None:
    process = started(tiny, "build", "it")
    time.sleep(delay)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    assert process.returncode in {0, -signal.SIGKILL}
    assert verify(tiny.store).ok
    again = tiny.run("build", "it", "--json")
    assert again.status == 0, again.err
    right = tiny.bake(store=tmp_path / "right").image.digest
    assert again.json["images"][0]["digest"] == str(right)
    assert tiny.references() == {"it": str(right)}
    assert tiny.run("store", "gc").status == 0
    report = verify(tiny.store)
    assert (report.ok, report.leftovers) == (True, ())


def test_two_builds_of_one_variant_share_the_work_and_agree(tiny: Tiny) -> None:
    processes = [started(tiny, "-v", "build", "it", "--json") for _ in range(3)]
    said = [process.communicate(timeout=60) for process in processes]
    assert [process.returncode for process in processes] == [0, 0, 0], said
    assert len({_digest(out) for out, _ in said}) == 1
    lines = [line for _, err in said for line in err.splitlines()]
    assert sorted(line for line in lines if "running step" in line) == [
        f"builder: running step {name}" for name in STEPS
    ]
    assert len([line for line in lines if "reading base layer" in line]) == 2
    assert tiny.run("store", "verify").status == 0


def _digest(out: str) -> str:
    return str(json.loads(out)["images"][0]["digest"])


def test_a_gc_beside_builds_takes_nothing_that_they_need(tiny: Tiny) -> None:
    for size in range(300, 304):
        tiny.edit("one", "vllm/config.py", "128", str(size))
        build, collecting = started(tiny, "build", "it"), started(tiny, "store", "gc")
        outputs = [process.communicate(timeout=60) for process in (build, collecting)]
        assert (build.returncode, collecting.returncode) == (0, 0), outputs
        assert verify(tiny.store).ok
        made = tiny.bake()
        assert all(item.cached for item in made.steps)
        assert content(made, at_packages("vllm/config.py"), tiny.store) == b"SIZE = %d\n" % size


def test_what_gc_leaves_is_all_that_the_next_build_asks_for(tiny: Tiny) -> None:
    first = tiny.bake()
    tiny.edit("one", "vllm/config.py", "128", "512")
    second = tiny.bake()
    assert tiny.run("store", "gc").status == 0
    assert all(item.cached for item in tiny.bake().steps)
    lost = first.steps[0].output.layer
    kept = second.steps[0].output.layer
    assert lost is not None
    assert kept is not None
    assert not tiny.store.has(lost.digest)
    assert tiny.store.has(kept.digest)
    # The base's documents and what is known of its layers stay, too: nothing is read again.
    shutil.rmtree(tiny.root / "base" / "blobs")
    tiny.edit("two", "vllm/sub/module.py", "41", "43")
    assert [item.cached for item in tiny.bake().steps] == [True, False]
