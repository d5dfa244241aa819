"""A hub of models that does as it is told: the API of huggingface.co as far as we use it.

Small files are stored in git and have the id of their blob as ETag; large ones are LFS objects,
known by sha256 in the listing and in ``X-Linked-Etag``, and come from a second host (another
origin). :meth:`StandIn.on` puts answers before that, on either of the two.
"""

import hashlib
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from urllib.parse import quote, unquote

from builder.tree import parents
from tests.standin.registry import Call, Reply, StandIn, ranged, serving


def blob_id(data: bytes) -> str:
    """The id that git gives to a file."""
    return hashlib.sha1(b"blob %d\0" % len(data) + data, usedforsecurity=False).hexdigest()


def pointer(oid: str, size: int) -> bytes:
    """What git holds for an LFS object."""
    return f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n".encode()


@dataclass
class HeldModel:
    """One repository: commits with their files, and the names that point at them."""

    commits: dict[str, dict[str, bytes]] = field(default_factory=dict)
    refs: dict[str, str] = field(default_factory=dict)
    gated: bool = False
    private: bool = False

    def commit(self, files: dict[str, bytes], *, ref: str = "main") -> str:
        """Make a commit of exactly these files, and move ``ref`` to it."""
        listing = sorted((path, blob_id(data)) for path, data in files.items())
        text = repr((len(self.commits), listing)).encode()
        commit = hashlib.sha1(text, usedforsecurity=False).hexdigest()
        self.commits[commit] = dict(files)
        self.refs[ref] = commit
        return commit

    def squash(self) -> None:
        """Drop all commits that no name points at."""
        kept = set(self.refs.values())
        self.commits = {key: files for key, files in self.commits.items() if key in kept}


class _Storage(StandIn):
    """The second host: objects by sha256, for whoever has the address."""

    def __init__(self) -> None:
        super().__init__()
        self.objects: dict[str, bytes] = {}

    def _good(self, call: Call) -> Reply:
        data = self.objects.get(call.path.removeprefix("/objects/"))
        if data is None or "authorization" in call.headers:
            return Reply(status=403, body=b"<?xml version='1.0'?><Error/>")
        return ranged(call, data, headers={"ETag": '"storage"', "Accept-Ranges": "bytes"})


class StandInHub(StandIn):
    """The hub. ``tokens`` are those it knows, each with the gated models that it may read."""

    def __init__(self, storage: _Storage) -> None:
        super().__init__()
        self.storage = storage
        self.models: dict[str, HeldModel] = {}
        self.renamed: dict[str, str] = {}
        self.tokens: dict[str, set[str]] = {}
        self.page = 1000
        self.large: tuple[str, ...] = (".safetensors", ".bin", ".gguf", ".pt", "tokenizer.json")
        """What is kept as LFS objects, by the ends of the names."""
        self._oid = lru_cache(lambda data: hashlib.sha256(data).hexdigest())

    @property
    def endpoint(self) -> str:
        return f"http://{self.host}"

    def model(self, name: str, files: dict[str, bytes]) -> HeldModel:
        """Hold a model with one commit on ``main``."""
        self.models[name] = HeldModel()
        self.models[name].commit(files)
        return self.models[name]

    def _good(self, call: Call) -> Reply:
        api = re.fullmatch(
            r"/api/models/([^/]+/[^/]+)(?:/(revision|tree)/([^/]+)(?:/(.+))?)?", call.path
        )
        file = re.fullmatch(r"/([^/]+/[^/]+)/resolve/([^/]+)/(.+)", call.path)
        if not (found := api or file):
            return _refused(404, None, "Sorry, we can't find the page you are looking for.")
        if call.headers.get("authorization", "Bearer ?")[7:] not in {"?", *self.tokens}:
            return _refused(401, None, "Invalid credentials in Authorization header")
        name = found[1]
        if name in self.renamed:
            target = call.path.replace(name, self.renamed[name], 1)
            query = "&".join(f"{key}={quote(values[0])}" for key, values in call.query.items())
            return Reply(status=307, headers={"Location": f"{target}?{query}"})
        model = self.models.get(name)
        if model is None or (model.private and "authorization" not in call.headers):
            status = 404 if "authorization" in call.headers else 401
            return _refused(status, "RepoNotFound", "Repository not found")
        revision = unquote((found[3] if api else found[2]) or "main")
        commit = revision if revision in model.commits else model.refs.get(revision)
        if commit is None:
            return _refused(404, "RevisionNotFound", f"Invalid rev id: {revision}")
        if file:
            return self._file(call, name, commit, unquote(file[3]))
        if found[2] == "tree":
            return self._tree(call, model.commits[commit], below=unquote(found[4] or ""))
        return _info(name, model, commit)

    def _tree(self, call: Call, files: dict[str, bytes], *, below: str) -> Reply:
        recursive = call.query.get("recursive", ["false"])[0].lower() == "true"
        start = f"{below}/" if below else ""
        directories = sorted({each for path in files for each in parents(path)})
        entries: list[dict[str, object]] = [
            {"type": "directory", "oid": "0" * 40, "size": 0, "path": path} for path in directories
        ] + [self._entry(path, data) for path, data in files.items()]
        inside = [entry for entry in entries if str(entry["path"]).startswith(start)]
        listed = [
            entry
            for entry in inside
            if recursive or "/" not in str(entry["path"]).removeprefix(start)
        ]
        if below and not listed:
            return _refused(404, "EntryNotFound", f"{below} does not exist")
        first = int(call.query.get("cursor", ["0"])[0])
        headers = {"Content-Type": "application/json; charset=utf-8"}
        if first + self.page < len(listed):
            query = f"recursive={recursive}&cursor={first + self.page}"
            headers["Link"] = f'<{self.endpoint}{call.path}?{query}>; rel="next"'
        return Reply(headers=headers, body=json.dumps(listed[first : first + self.page]).encode())

    def _file(self, call: Call, name: str, commit: str, path: str) -> Reply:
        token = call.headers.get("authorization", "Bearer ")[7:]
        if self.models[name].gated and name not in self.tokens.get(token, ()):
            text = f"Access to model {name} is restricted."
            return _refused(403 if token else 401, "GatedRepo", text)
        data = self.models[name].commits[commit].get(path)
        if data is None:
            return _refused(404, "EntryNotFound", "Entry not found")
        headers = {"X-Repo-Commit": commit, "Accept-Ranges": "bytes"}
        if not path.endswith(self.large):
            return ranged(call, data, headers=headers | {"ETag": f'"{blob_id(data)}"'})
        oid = self._oid(data)
        self.storage.objects[oid] = data
        headers |= {
            "Location": f"http://{self.storage.host}/objects/{oid}?signature=secret",
            "X-Linked-Size": str(len(data)),
            "X-Linked-Etag": f'"{oid}"',
        }
        return Reply(status=302, headers=headers, body=b"Found.")

    def _entry(self, path: str, data: bytes) -> dict[str, object]:
        entry: dict[str, object] = {"type": "file", "path": path, "size": len(data)}
        if not path.endswith(self.large):
            return entry | {"oid": blob_id(data)}
        small = pointer(self._oid(data), len(data))
        lfs = {"oid": self._oid(data), "size": len(data), "pointerSize": len(small)}
        return entry | {"oid": blob_id(small), "lfs": lfs}


def _info(name: str, model: HeldModel, commit: str) -> Reply:
    value = {
        "_id": "0" * 24,
        "id": name,
        "modelId": name,
        "sha": commit,
        "private": model.private,
        "gated": "manual" if model.gated else False,
        "siblings": [{"rfilename": path} for path in model.commits[commit]],
    }
    body = json.dumps(value).encode()
    return Reply(headers={"Content-Type": "application/json; charset=utf-8"}, body=body)


def _refused(status: int, code: str | None, message: str) -> Reply:
    headers = {"Content-Type": "application/json; charset=utf-8", "X-Error-Message": message}
    if code is not None:
        headers["X-Error-Code"] = code
    return Reply(status=status, headers=headers, body=json.dumps({"error": message}).encode())


@contextmanager
def stand_in_hub() -> Iterator[StandInHub]:
    """Serve one, and its storage, each on a free loopback port."""
    with serving(_Storage()) as storage, serving(StandInHub(storage)) as hub:
        yield hub
