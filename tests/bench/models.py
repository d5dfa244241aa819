"""Verifying weights, beside programs that hash and do nothing else.

The limit is 1.11 times the time of ``sha256sum`` (0.9 of its rate), which is what was asked for.
``openssl`` has the very code for sha256 that we use, several times faster, and starts at once; we
are a Python program that reads a project and opens a store before the first byte is hashed, on one
core: 0.12 s, more than a tenth of the half second that openssl takes for 1 GB on two cores. Of the
processor's time we take 1.01 times as much for 1 GB, start included, and 0.97 times for 4 GB. So
openssl is shown beside, and what is held to it is our time less that of a run with nothing to hash.
"""

import json
import os
import random
import shutil
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from builder.cli import show
from builder.cli.start import start_project
from builder.digest import Digest, Hasher, ObjectId
from builder.lock.codec import write_pins
from builder.lock.model import ModelFile, ModelPin
from tests.bench.measure import Row, Run, alternate
from tests.claims import Claims
from tests.commands import Finished, clean_environment, run

_BLOCK = 4 << 20
_MEMORY_LIMIT = 100_000_000
_JUDGED = frozenset({"sha256sum"})
_PEAK = """\
import resource, subprocess, sys
subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True)
print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""
"""Runs a program, and prints the most kB of memory that it took."""
_START = "a run with nothing to hash"


@dataclass(frozen=True, kw_only=True)
class Weights:
    """A model of shards on a disk, and a project whose variant ``hello`` has it."""

    directory: Path
    project: Path
    store: Path

    @classmethod
    def make(cls, root: Path, *, shards: int, size: int) -> "Weights":
        """Write ``shards`` files of ``size`` bytes each, and pin them."""
        made = cls(directory=root / "weights", project=root / "project", store=root / "store")
        made.directory.mkdir(parents=True)
        block = random.Random(6).randbytes(_BLOCK)
        names = [f"model-{n + 1:05}-of-{shards:05}.safetensors" for n in range(shards)]
        files = [
            _shard(made.directory / name, f"t{number}", size, block)
            for number, name in enumerate(names)
        ]
        index = {"weight_map": {f"t{number}": name for number, name in enumerate(names)}}
        data = json.dumps(index).encode()
        path = "model.safetensors.index.json"
        (made.directory / path).write_bytes(data)
        files.append(ModelFile(path=path, digest=Digest.of(data), size=len(data)))
        pin = ModelPin(
            name="weights",
            repository="bench/weights",
            commit=ObjectId("0" * 40),
            files=tuple(files),
        )
        start_project(made.project)
        (made.project / "lockfiles/models.yaml").write_bytes(write_pins(ModelPin, {"weights": pin}))
        with (made.project / "variants/hello.yaml").open("a") as variant:
            variant.write("models: [weights]\n")
        return made

    def verify(self, *options: str) -> float:
        """Run ``builder models verify``; the seconds it took."""
        return self._run(*options).seconds

    def peak(self) -> int:
        """The most bytes of memory that hashing all of it takes."""
        # Linux carries a maximum over from the process that starts another: that is a small one.
        return int(self._run("--full", through=("-c", _PEAK, sys.executable)).text) * 1024

    def _run(self, *options: str, through: Sequence[str] = ()) -> Finished:
        line: tuple[str | Path, ...]
        line = (*through, "-m", "builder", "-C", self.project, "models", "verify", "hello")
        return run(
            (sys.executable, *line, "--dir", self.directory, *options),
            environment=clean_environment(BUILDER_STORE=str(self.store)),
        )

    def hashed_by(self, *program: str) -> float:
        """Run a program on each file, as many at once as there are cores; the seconds it took."""
        names = b"\0".join(os.fsencode(path) for path in sorted(self.directory.iterdir()))
        cores = str(len(os.sched_getaffinity(0)))
        return run(("xargs", "-0", "-P", cores, "-n", "1", *program), given=names).seconds

    def forget(self) -> None:
        """Let go of what the kernel has cached of the files."""
        for path in self.directory.iterdir():
            with path.open("rb") as file:
                os.fdatasync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def _shard(path: Path, tensor: str, size: int, block: bytes) -> ModelFile:
    entry = {"dtype": "U8", "shape": [size], "data_offsets": [0, size]}
    text = json.dumps({tensor: entry}).encode()
    hasher = Hasher()
    with path.open("wb") as file:
        for piece in (len(text).to_bytes(8, "little"), text):
            file.write(piece)
            hasher.update(piece)
        while (left := size + 8 + len(text) - hasher.size) > 0:
            piece = block[:left]
            file.write(piece)
            hasher.update(piece)
    return ModelFile(path=path.name, digest=hasher.digest(), size=hasher.size)


def verified(claims: Claims, times: int, *, size: int) -> list[Row]:
    """A model of 20 shards, read from the page cache and from the disk; and 200 files that are as
    they were."""
    with TemporaryDirectory(prefix="builder-bench-") as temporary:
        weights = Weights.make(Path(temporary) / "large", shards=20, size=size // 20)
        peers = {"sha256sum": ("sha256sum",), "openssl": ("openssl", "dgst", "-sha256")}
        runs: dict[str, Run] = {"ours": lambda _: weights.verify("--full")}
        start: dict[str, Run] = {_START: lambda _: weights.verify()}
        for name, line in peers.items():
            if shutil.which(name) is not None:
                runs[name] = partial(_hashed, weights, line)
        said, peak = f"verifying takes under {show.size(_MEMORY_LIMIT)} of memory", weights.peak()
        claims.holds(said, peak < _MEMORY_LIMIT, show.size(peak))
        time.sleep(2.1)  # files of just now are not remembered
        weights.verify()
        warm = alternate(runs | start, times)
        cold = alternate({name: _cold(weights, each) for name, each in runs.items()}, times)
        many = Weights.make(Path(temporary) / "many", shards=200, size=10_000)
        time.sleep(2.1)
        many.verify()
        again = alternate({"ours": lambda _: many.verify()}, times)
    what, started = f"verify {show.size(size)}", warm.pop(_START)
    rows = []
    for medians, where in ((warm, "cached pages"), (cold, "from the disk")):
        ours = medians.pop("ours")
        rows.append(
            Row(what=f"{what}, {where}", ours=ours, peers=medians, times_peer=1.11, judged=_JUDGED)
        )
    if "openssl" in warm:
        less = rows[0].ours - started
        peer = {"openssl": warm["openssl"]}
        rows.append(Row(what=f"{what}, less {_START}", ours=less, peers=peer, times_peer=1.11))
    return [*rows, Row(what="verify 200 files again", ours=again["ours"], peers={}, limit=0.3)]


def _hashed(weights: Weights, line: Sequence[str], _: int) -> float:
    return weights.hashed_by(*line)


def _cold(weights: Weights, each: Run) -> Callable[[int], float]:
    def measured(number: int) -> float:
        weights.forget()
        return each(number)

    return measured
