"""The index of a safetensors model: which file has which tensor.

``NAME.safetensors.index.json`` is an object whose ``weight_map`` gives the file of each tensor,
relative to the index (transformers, ``save_pretrained``). Names of files are taken as they are: not
everybody calls them ``model-00001-of-00002.safetensors``.
"""

import posixpath
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet

from builder import canonical
from builder.errors import IntegrityError
from builder.lock.model import ModelPin
from builder.tree import normal
from builder.value import value

SUFFIX = ".safetensors.index.json"
LIMIT = 64 << 20
"""The largest index that is read: some have a line for each expert of each layer."""


@value
class ShardIndex:
    """One index: its own path, and the file of each tensor by path from the model's directory."""

    path: str
    weights: Mapping[str, str]

    @property
    def shards(self) -> tuple[str, ...]:
        """The files that it names, sorted."""
        return tuple(sorted(set(self.weights.values())))


def read_index(data: bytes, *, path: str, at: str) -> ShardIndex:
    """Read an index.

    Args:
        data: Its bytes.
        path: Where it is in the model's directory.
        at: The model, for messages.

    Raises:
        IntegrityError: It is no index, or names a file outside the directory.
    """
    at = f"{at}: {path}"
    document = canonical.decode(data, at=at, limit=LIMIT)
    weights = document.get("weight_map") if isinstance(document, dict) else None
    if not isinstance(weights, dict) or not weights:
        raise IntegrityError(f"{at}: expected an object with weight_map, got {document!r:.100}")
    directory = posixpath.dirname(path)
    files = {}
    for name in set(map(str, weights.values())):
        whole = posixpath.join(directory, name)
        if normal(whole, at=at) != whole:
            raise IntegrityError(f"{at}: not a path below the index: {name!r:.200}")
        files[name] = whole
    return ShardIndex(
        path=path, weights={tensor: files[str(name)] for tensor, name in weights.items()}
    )


def check_complete(index: ShardIndex, present: AbstractSet[str], *, at: str) -> None:
    """Hold an index to the files that there are.

    Raises:
        IntegrityError: A shard that it names is not among them.
    """
    lacking = [name for name in index.shards if name not in present]
    if lacking:
        raise IntegrityError(
            f"{at}: {index.path} names {len(index.shards)} files, {len(lacking)} of them are"
            f" missing: {listed(lacking)}",
            hint="pin a revision that is whole; include can leave out an index that is out of date",
        )


def check_tensors(names: AbstractSet[str], pin: ModelPin, *, at: str) -> None:
    """Hold the names of a model's tensors to what its pin says of them.

    Raises:
        IntegrityError: One that is required is missing, one is there that is forbidden, or they
            are not as many.
    """
    lacking = [name for name in pin.require if name not in names]
    banned = [name for name in pin.forbid if name in names]
    said = [f"it lacks {listed(lacking)}, which the pin requires"] if lacking else []
    said += [f"it has {listed(banned)}, which the pin forbids"] if banned else []
    said += [f"the pin wants {pin.tensors}"] if pin.tensors not in (None, len(names)) else []
    if said:
        raise IntegrityError(
            f"{at}: of {len(names)} tensors {' and '.join(said)}",
            hint="it is another quantisation or export than the pin is for",
        )


def listed(names: Sequence[str], *, most: int = 5) -> str:
    """Some names for a message.

    >>> listed(["a", "b", "c"], most=2)
    'a, b and 1 more'
    """
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more
