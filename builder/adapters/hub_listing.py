"""What the hub answers, read into values: nothing is believed that is not of the form it has."""

import re
from typing import Any

from builder.digest import Digest, ObjectId
from builder.errors import IntegrityError
from builder.tree import normal
from builder.upstream import HubFile


def odd(what: str, value: object) -> IntegrityError:
    """The error for an answer of another form."""
    return IntegrityError(f"{what}: the hub answers with something else: {value!r:.100}")


def is_commit(revision: str) -> bool:
    """Whether a revision is a commit's full id."""
    return re.fullmatch(r"[0-9a-f]{40}", revision) is not None


def object_id(value: object, *, at: str) -> ObjectId:
    """An object id in an answer.

    Raises:
        IntegrityError: It is none.
    """
    if not isinstance(value, str) or not is_commit(value):
        raise IntegrityError(f"{at}: the hub gives no object id, but {value!r:.100}")
    return ObjectId(value)


def listed_file(entry: dict[str, Any], *, at: str) -> HubFile:
    """One file of a listing.

    Raises:
        IntegrityError: It is of another form, or contradicts itself.
    """
    path, size, lfs = entry.get("path"), entry.get("size"), entry.get("lfs")
    if entry["type"] != "file" or not isinstance(path, str):
        raise odd(at, entry)
    at = f"{at}: {path!r}"
    if normal(path, at=at) != path or "\\" in path or not path.isprintable():
        raise IntegrityError(f"{at}: not a plain relative path")
    if type(size) is not int or size < 0:
        raise IntegrityError(f"{at}: the hub gives no size, but {size!r:.100}")
    blob = object_id(entry.get("oid"), at=at)
    if lfs is None:
        return HubFile(path=path, size=size, blob=blob)
    if not isinstance(lfs, dict) or lfs.get("size") != size:
        raise IntegrityError(f"{at}: the hub gives two sizes, {size} and that of {lfs!r:.200}")
    digest = Digest.parse(f"sha256:{lfs.get('oid')}", at=at, refusal=IntegrityError)
    return HubFile(path=path, size=size, blob=blob, digest=digest)
