"""The hub's own library as the judge of our stand-in for the hub, and of the directories we make.

huggingface_hub is no dependency of this project (docs/decisions/0014-the-hub-by-requests.md). Here
it asks the stand-in what we ask it, and must understand the same; each of us finds complete what
the other has fetched; and both fetch the same model from the same place, in turn.
"""

import os
import random
import time
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory

from builder.adapters.hub import HubClient
from builder.cli import show
from builder.digest import Digest
from builder.errors import AuthError, BuilderError, GoneError
from builder.models.place import cache_name
from builder.models.selection import DEFAULT, selected
from builder.upstream import HubRevision
from tests.bench.measure import alternate
from tests.claims import Claims
from tests.commands import CommandError
from tests.models.worlds import lay, safetensors
from tests.real.hub_meeting import NAME, VARIANT, WEIGHTS, Meeting
from tests.real.pypi_environment import environment_with
from tests.standin.hub import stand_in_hub
from tests.standin.registry import Call, Reply, ranged

_PACKAGES = Path(__file__).with_suffix(".txt")
_SHARDS, _SHARD_SIZE, _ROUNDS = 20, 10_000_000, 5
_MOST = 1.2
"""How many times as long as the library we may take to fetch a model."""


def prove(claims: Claims) -> None:
    """Have both ask the same hub, read each other's directories, and fetch in turn."""
    claim = "the hub's own library against the stand-in and our layouts"
    try:
        python = environment_with(_PACKAGES)
    except CommandError as error:
        claims.not_run(claim, f"not here: {error}")
        return
    with (
        claims.group(claim),
        TemporaryDirectory(prefix="builder-hub-") as name,
        stand_in_hub() as hub,
    ):
        both = Meeting(Path(name), hub, python)
        _answers(both, claims)
        _refusals(both, claims)
        _directories(both, claims)
        _caches(both, claims)
        _in_turn(both, claims)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Refused:
    """A file that nobody gets, and what each of both says then."""

    what: str
    model: str
    theirs: str
    ours: type[BuilderError] = GoneError
    revision: str | None = None
    path: str = "config.json"
    token: str | None = None


_NO_MODEL, _NO_FILE = "RepositoryNotFoundError", "RemoteEntryNotFoundError"
_NO_REVISION, _GATED = "RevisionNotFoundError", "GatedRepoError"
_REFUSED = (
    _Refused(what="a gated model", model="Team/Gated", theirs=_GATED, ours=AuthError),
    _Refused(
        what="a gated model, to a stranger",
        model="Team/Gated",
        token="hf_stranger",
        theirs=_GATED,
        ours=AuthError,
    ),
    _Refused(what="a private model", model="Team/Private", theirs=_NO_MODEL),
    _Refused(what="no model", model="Team/None", theirs=_NO_MODEL),
    _Refused(what="no model, to a user", model="Team/None", token="hf_friend", theirs=_NO_MODEL),
    _Refused(what="no revision", model=NAME, revision="nope", theirs=_NO_REVISION),
    _Refused(what="no commit", model=NAME, revision="0" * 40, theirs=_NO_REVISION),
    _Refused(what="no file", model=NAME, path="none.json", theirs=_NO_FILE),
    _Refused(what="no file of an odd name", model=NAME, path="a b/ü?#%.json", theirs=_NO_FILE),
    _Refused(
        what="a token that nobody knows, at a gated model",
        model="Team/Gated",
        token="hf_bad",
        theirs="HfHubHTTPError",
        ours=AuthError,
    ),
)


def _answers(both: Meeting, claims: Claims) -> None:
    """Revisions, the listing, parts of files: the same to both."""
    revisions = ("main", "v1.0", "refs/pr/1", both.commit)
    said = both.library(
        *(("revision", {"repository": NAME, "revision": it}) for it in revisions),
        ("revision", {"repository": "Old/Odd", "revision": "main"}),
        ("tree", {"repository": NAME, "revision": both.commit}),
    )
    asked = [*((NAME, it) for it in revisions), ("Old/Odd", "main")]
    ours = [both.ours(partial(_revision, *it)) for it in asked]
    claims.equal(
        "revisions of the stand-in, by branch, tag, pull request, commit and an old name",
        [tuple(it) for it in said[:-1]],
        [(it.repository, it.commit) for it in ours],
    )
    listed = [
        [file.path, file.size, None if file.digest else file.blob.hex, file.digest]
        for file in both.ours(lambda hub: hub.files(NAME, both.commit))
    ]
    theirs = [[path, size, None if lfs else blob, lfs] for path, size, blob, lfs in said[-1]]
    same = theirs == [[*rest, digest and digest.hex] for *rest, digest in listed]
    claims.holds("its listing, page by page, is the same to both", same, f"{len(listed)} files")
    parts = [(0, 10), (99_000, 500), (len(both.files[WEIGHTS]) - 7, 7)]
    said = both.library(
        *(
            ("part", {"repository": NAME, "path": WEIGHTS, "start": start, "length": length})
            for start, length in parts
        )
    )
    wanted = [both.files[WEIGHTS][start : start + length].hex() for start, length in parts]
    claims.holds("its ranges, through a redirect, are those of the file", said == wanted, len(said))
    _broken(both, claims)


def _revision(repository: str, revision: str, hub: HubClient) -> HubRevision:
    return hub.revision(repository, revision)


def _broken(both: Meeting, claims: Claims) -> None:
    """A download that breaks off: the library keeps whole pieces of 10 MiB, and asks for the rest
    by its range."""
    data = safetensors({"t": random.Random(8).randbytes(12 << 20)})
    both.hub.model("Team/Long", {"one.safetensors": data})

    def cut(call: Call) -> Reply:
        return replace(ranged(call, data), cut=11 << 20)

    both.hub.storage.on("GET", f"/objects/{Digest.of(data).hex}", cut)
    at = {"repository": "Team/Long", "path": "one.safetensors"}
    (said,) = both.library(("file", at | {"local_dir": str(both.place / "long")}))
    asked = [call.headers.get("range") for call in both.hub.storage.calls[-2:]]
    claims.equal("what breaks off, it goes on with by range", asked, [None, f"bytes={10 << 20}-"])
    claims.equal("and has all of it then", Path(said).read_bytes() == data, True)


def _refusals(both: Meeting, claims: Claims) -> None:
    """What the stand-in refuses is what the hub refuses: the library has its own errors for it."""
    place = str(both.place / "refused")
    jobs = [
        {
            "repository": it.model,
            "path": it.path,
            "revision": it.revision,
            "token": it.token or False,
        }
        for it in _REFUSED
    ]
    said = both.library(*(("file", job | {"cache_dir": place}) for job in jobs))
    for it, theirs in zip(_REFUSED, said, strict=True):
        held = both.hub.models.get(it.model)
        commit = it.revision or (held.refs["main"] if held else both.commit)

        def read(hub: HubClient, it: _Refused = it, commit: str = commit) -> bytes:
            return hub.read(it.model, commit, it.path, limit=1 << 20)

        ours = both.ours(read, token=it.token)
        claims.equal(
            f"{it.what}: the library's error, and ours",
            (theirs, ours),
            (it.theirs, it.ours.__name__),
        )


def _directories(both: Meeting, claims: Claims) -> None:
    """A plain directory, by each of both."""
    ours, theirs = both.place / "ours", both.place / "theirs"
    both.fetch(ours)
    said = both.library(("snapshot", {"repository": NAME, "local_dir": str(theirs)}))
    claims.equal("it fetches from the stand-in", said, [str(theirs)])
    same = _contents(ours) == _contents(theirs) == both.files
    claims.holds("the same revision, fetched by both, is the same bytes", same, len(both.files))
    claims.equal("its directory, verified by us", both.verify(theirs), {"ok": len(both.files)})
    claims.equal("models fetch asks for no file of it", both.fetch(theirs), 0)
    (said,) = both.library(
        (
            "snapshot",
            {
                "repository": NAME,
                "local_dir": str(both.place / "some"),
                "allow_patterns": list(DEFAULT),
            },
        )
    )
    claims.equal(
        "our default globs select what they select as its allow_patterns",
        sorted(_contents(Path(said))),
        sorted(selected(both.files, DEFAULT)),
    )


def _caches(both: Meeting, claims: Claims) -> None:
    """The hub's cache, by each of both."""
    ours, theirs = both.place / "our-cache", both.place / "their-cache"
    both.fetch(ours, "--cache")
    at = {"repository": NAME, "revision": both.commit}
    both.library(("snapshot", at | {"cache_dir": str(theirs)}))
    held, other = (_links(root / cache_name(NAME)) for root in (ours, theirs))
    claims.holds("our cache has the files and links of its own", held == other, len(held))
    before = len(both.hub.calls)
    found, offline, one, scanned = both.library(
        ("snapshot", at | {"cache_dir": str(ours), "local_files_only": True}),
        ("snapshot", at | {"cache_dir": str(ours)}),
        ("file", at | {"path": WEIGHTS, "cache_dir": str(ours)}),
        ("cache", {"directory": str(ours)}),
        HF_HUB_OFFLINE="1",
    )
    snapshot = ours / cache_name(NAME) / "snapshots" / both.commit
    claims.equal("it finds our cache, local_files_only", found, str(snapshot))
    claims.equal("it finds our cache, HF_HUB_OFFLINE=1", offline, str(snapshot))
    claims.equal("and a file in it", one, str(snapshot / WEIGHTS))
    wanted = [{NAME: {both.commit: sorted(both.files)}}, []]
    claims.equal("scan_cache_dir: the commit, all files, no warning", scanned, wanted)
    claims.equal("none of it asks the hub", len(both.hub.calls), before)
    both.library(("snapshot", at | {"cache_dir": str(ours)}))
    files = [
        call
        for call in both.hub.calls[before:]
        if call.method == "GET" and "/resolve/" in call.path
    ]
    claims.equal("online it downloads nothing into our cache", len(files), 0)
    claims.equal("its cache, verified by us", both.verify(theirs), {"ok": len(both.files)})
    claims.equal("models fetch asks for no file of its cache", both.fetch(theirs), 0)
    _checked(both, ours, claims)


def _checked(both: Meeting, ours: Path, claims: Claims) -> None:
    """What is behind ``hf cache verify``, on our cache and our directory, and a byte flipped."""
    at = {"repository": NAME, "revision": both.commit}
    in_cache = ("digests", at | {"cache_dir": str(ours)})
    in_directory = ("digests", at | {"local_dir": str(both.place / "ours")})
    good = [len(both.files), [], [], []]
    said = both.library(in_cache, in_directory)
    claims.equal("its own check of digests, of our cache and directory", said, [good, good])
    blob = ours / cache_name(NAME) / "snapshots" / both.commit / WEIGHTS
    for file in (blob, both.place / "ours" / WEIGHTS):
        data = bytearray(file.read_bytes())
        data[-1] ^= 1
        file.resolve().write_bytes(data)
    bad = [len(both.files), [WEIGHTS], [], []]
    claims.equal(
        "it finds the byte that was flipped", both.library(in_cache, in_directory), [bad, bad]
    )
    both.fetch(ours, "--cache")
    claims.equal("and that models fetch has mended", both.library(in_cache), [good])


def _in_turn(both: Meeting, claims: Claims) -> None:
    """The same model, from the same hub, in turn: whole processes, what each of them does by
    default. We hash what comes, twice, and let the disk have it; the library does not."""
    block = random.Random(7).randbytes(_SHARD_SIZE)
    shards = {
        f"model-{n + 1:05}-of-{_SHARDS:05}.safetensors": safetensors({f"t{n}": block})
        for n in range(_SHARDS)
    }
    both.hub.model("Team/Large", shards)
    lay(both.builder.project, {"variants/large.yaml": VARIANT.replace(b"odd", b"large")})
    both.builder.run("add", "model", "Team/Large", "--name", "large")

    def ours(number: int) -> float:
        directory = both.place / "large"
        seconds = both.builder.run("models", "fetch", "large", "--dir", directory).seconds
        rmtree(directory)
        return seconds

    def theirs(number: int) -> float:
        directory = both.place / "large"
        at = {"repository": "Team/Large", "local_dir": str(directory)}
        start = time.perf_counter()
        both.library(("snapshot", at))
        seconds = time.perf_counter() - start
        rmtree(directory)
        return seconds

    took = alternate({"ours": ours, "theirs": theirs}, _ROUNDS)
    ratio = took["ours"] / took["theirs"]
    said = f"{ratio:.2f} x: {took['ours']:.2f} s, {took['theirs']:.2f} s"
    size = show.size(_SHARDS * _SHARD_SIZE)
    claims.holds(
        f"{size} in {_SHARDS} files, under {_MOST} x the library's time", ratio < _MOST, said
    )


def _contents(directory: Path) -> dict[str, bytes]:
    """The files of a model by path."""
    paths = (str(path.relative_to(directory)) for path in directory.rglob("*") if path.is_file())
    return {
        path: (directory / path).read_bytes()
        for path in paths
        if not path.startswith(".cache/huggingface/")
    }


def _links(held: Path) -> dict[str, str | bytes]:
    """The blobs of a repository in a cache, and the links to them."""
    return {
        str(path.relative_to(held)): os.readlink(path) if path.is_symlink() else path.read_bytes()
        for below in ("blobs", "snapshots")
        for path in (held / below).rglob("*")
        if path.is_symlink() or path.is_file()
    }
