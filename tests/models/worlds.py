"""Small models: files that are what they say, a pin of them, a place for them."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from builder.digest import Digest, ObjectId
from builder.lock.model import ModelFile, ModelPin
from builder.models.place import place_of
from builder.models.verify import Verified, verify
from builder.ports import Store, Task

COMMIT = "0123456789abcdef0123456789abcdef01234567"
SHARDS = ("model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors")


def safetensors(tensors: Mapping[str, bytes], **metadata: str) -> bytes:
    """A safetensors file of one-dimensional U8 tensors."""
    header: dict[str, Any] = {"__metadata__": metadata} if metadata else {}
    place = 0
    for name, data in tensors.items():
        offsets = [place, place + len(data)]
        header[name] = {"dtype": "U8", "shape": [len(data)], "data_offsets": offsets}
        place += len(data)
    text = json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + b"".join(tensors.values())


def tiny() -> dict[str, bytes]:
    """A model of two shards."""
    tensors = {"embed": b"e" * 100, "mtp.fc.weight": b"m" * 50}
    return {
        "config.json": b"{}\n",
        "model.safetensors.index.json": json.dumps(
            {"weight_map": dict(zip(tensors, SHARDS, strict=True))}
        ).encode(),
        **{
            shard: safetensors({name: data})
            for shard, (name, data) in zip(SHARDS, tensors.items(), strict=True)
        },
    }


def pin_of(files: Mapping[str, bytes], **fields: Any) -> ModelPin:
    """The pin of exactly these files."""
    locked = tuple(
        ModelFile(path=path, digest=Digest.of(data), size=len(data))
        for path, data in sorted(files.items())
    )
    given = {"name": "tiny", "repository": "Team/Tiny", "commit": ObjectId(COMMIT)}
    return ModelPin(**given | {"files": locked} | fields)  # type: ignore[arg-type]  # the test's


def lay(directory: Path, files: Mapping[str, bytes], *, age: float = 60.0) -> Path:
    """Put files into a directory. Their mtime is of a while ago; of the ctime nobody can say so,
    which is what ``LATER`` is for."""
    for path, data in files.items():
        file = directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(data)
    return directory


class Counting:
    """Progress that can be looked at afterwards."""

    def __init__(self) -> None:
        self.total: int | None = None
        self.done = 0

    @contextmanager
    def task(self, title: str, *, total: int | None = None) -> Iterator[Task]:
        self.total = total
        yield self

    def advance(self, count: int) -> None:
        self.done += count


def checked(pin: ModelPin, root: Path, store: Store, **given: Any) -> Verified:
    """Verify one model in its directory, an hour after it was written."""
    later = os.stat(root).st_ctime_ns + 3600 * 10**9
    arguments: dict[str, Any] = {
        "progress": Counting(),
        "clock": lambda: later,
        "threads": 2,
    }
    (found,) = verify([(pin, place_of(pin, root, alone=True))], store=store, **arguments | given)
    return found


def told(found: Verified) -> dict[str, str]:
    """What is not in order: the state of each file."""
    return {file.path: str(file.state) for file in found.files if file.state != "ok"}
