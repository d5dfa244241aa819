"""A pin, once locked, cannot be taken away: what upstream has deleted comes from a copy of ours, by
digest and told; where upstream does not answer, nothing stands in for it."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn, cast

import pytest

from builder.artifact import EMPTY, Kind, artifact, config, file, files_of
from builder.cli.progress import NoProgress
from builder.copies import LIMIT, PinCopies
from builder.digest import Digest
from builder.errors import (
    AuthError,
    BuilderError,
    GoneError,
    IntegrityError,
    NetworkError,
    RateLimitError,
)
from builder.load import load
from builder.lock import codec
from builder.lock.model import Escrow, PullPin, SourcePin
from builder.oci import Descriptor
from builder.pipeline import materials
from builder.ports import Wheels
from builder.project import Project
from builder.reference import Reference
from tests.adapters.git_world import git
from tests.flow.conftest import Log
from tests.flow.escrow_world import KEPT, TO, WHEEL, Based, Outside, based, outside
from tests.flow.images import serve, write_layout
from tests.flow.worlds import REGISTRY, Tiny, base_image
from tests.standin.registry import Reply, StandIn, stand_in
from tests.wheel.wheels import FILENAME

pytestmark = pytest.mark.requires("git")


@pytest.fixture
def kept() -> Iterator[StandIn]:
    """The registry that keeps copies."""
    with stand_in() as server:
        yield server


@pytest.fixture
def world(tmp_path: Path, registry: StandIn, kept: StandIn) -> Based:
    """A base from outside."""
    return based(tmp_path, registry, kept, base_image())


@pytest.fixture
def full(tmp_path: Path, registry: StandIn, kept: StandIn) -> Outside:
    """One thing of each kind from outside."""
    return outside(tmp_path, registry, kept, base_image())


def fallbacks(log: Log) -> list[str]:
    """What was told of copies: the pin, and which."""
    found = [line for line in log.lines if "; using the copy at " in line]
    return [f"{line.split(': ')[1]} <- {line.rpartition(' ')[2]}" for line in found]


# --- gone ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("to", [TO, "oci:kept"])
def test_everything_is_gone_and_the_image_is_the_same(full: Outside, log: Log, to: str) -> None:
    before = full.bake()
    full.escrow(to=to)
    full.forget()
    full.lose()
    after = full.bake()
    assert after.image == before.image
    assert fallbacks(log) == [
        f"vllm.base <- {to}",
        f"pulls.seven <- {to}",
        f"sources.code <- {to}",
    ]


@dataclass
class Index:
    """A :class:`builder.ports.Wheels` that says no in one way, and remembers what it was given."""

    refusal: BuilderError
    given: bytes = b""

    def fetch(self, **asked: Any) -> NoReturn:
        raise self.refusal

    def keep(self, chunks: Iterator[bytes], *, filename: str, digest: Digest) -> Path:
        self.given = b"".join(chunks)
        return Path(filename)


def wheel_of(world: Outside, index: Index) -> Any:
    project, now = world.tiny.world()
    now = replace(now, make_wheels=lambda: cast("Wheels", index))
    return materials(project, project.variant("all"), now).wheel(project.wheels["demo"])


def keep_wheel(world: Outside) -> None:
    """Keep the wheel, as ``builder escrow`` does."""
    blob = world.kept.add_blob("acme/escrow", WHEEL)
    item = file(Kind.WHEEL, FILENAME, digest=blob.digest, size=blob.size)
    made = artifact(Kind.WHEEL, [item], annotations={})
    world.kept.add_manifest("acme/escrow", made.raw, media_type=made.media_type, tag="w")
    pin = json.loads(world.lock_text("wheels"))["wheels"]["demo"]
    world.tiny.lock(
        "wheels", "demo", pin | {"escrow": [{"registry": TO, "digest": str(made.digest)}]}
    )


def test_a_wheel_that_the_index_has_no_more_comes_from_its_copy(full: Outside, log: Log) -> None:
    keep_wheel(full)
    index = Index(GoneError("wheel demo: no matching distribution"))
    assert wheel_of(full, index) == Path(FILENAME)
    assert index.given == WHEEL
    assert fallbacks(log) == [f"wheels.demo <- {TO}"]


def test_an_index_that_does_not_answer_is_not_a_wheel_that_is_gone(full: Outside) -> None:
    keep_wheel(full)
    index = Index(NetworkError("wheel demo: no route", hint="see to it"))
    with pytest.raises(NetworkError) as caught:
        wheel_of(full, index)
    assert caught.value.message == "wheel demo: no route"
    assert caught.value.hint == (
        f"see to it; there is a copy at {TO}, which is asked where upstream says 'gone'"
    )
    assert full.kept.calls == []


def test_a_diff_that_a_source_published_comes_from_the_copy_of_either(
    full: Outside, log: Log
) -> None:
    project = Project(full.tiny.root)
    data = materials(project, project.variant("it"), full.tiny.world()[1]).pull(
        project.pulls["seven"]
    )
    commit = full.upstream.commit("refs/heads/diffs", {"seven.diff": data})
    full.tiny.lock(
        "sources",
        "diffs",
        {
            "follows": {"repository": project.sources["code"].repository, "ref": "diffs"},
            "commit": commit,
            "tree": git(full.upstream.path, "rev-parse", f"{commit}^{{tree}}"),
            "files": {"seven.diff": {"digest": str(Digest.of(data)), "size": len(data)}},
        },
    )
    pin = {
        "follows": {"repository": project.pulls["seven"].repository, "pull": 7},
        "published": {"source": "diffs", "path": "seven.diff"},
        "diff": str(project.pulls["seven"].diff),
    }
    full.tiny.lock("pulls", "seven", pin)
    full.tiny.variant("it", {"pull": "seven"})
    found = full.escrow()
    assert list(found) == ["base", "seven", "diffs"]
    (full.tiny.root / codec.SOURCES).write_bytes(
        codec.write_pins(
            SourcePin,
            {
                name: replace(pin, escrow=())
                for name, pin in Project(full.tiny.root).sources.items()
            },
        )
    )
    full.forget()
    full.lose()
    log.lines.clear()
    full.bake()
    assert fallbacks(log) == [f"vllm.base <- {TO}", f"pulls.seven <- {TO}"]


def test_layers_that_are_collected_while_the_manifest_stays_come_from_the_copy(
    world: Based, registry: StandIn, log: Log
) -> None:
    before = world.bake()
    world.escrow()
    world.forget()
    registry.blobs.clear()
    assert world.bake().image == before.image
    assert fallbacks(log) == [f"vllm.base <- {TO}"]


def test_copies_are_asked_in_the_order_of_the_lock(world: Based, kept: StandIn, log: Log) -> None:
    world.escrow(to=f"{KEPT}/first/place")
    world.escrow(to="oci:kept")
    world.forget()
    world.lose()
    kept.manifests.clear()
    kept.blobs.clear()
    world.bake()
    assert {line.rpartition(" ")[2] for line in fallbacks(log)} == {"oci:kept"}
    assert [str(call) for call in kept.calls if "first/place/manifests" in call.path]


def test_a_layout_that_this_machine_does_not_have_is_passed_over(world: Based, log: Log) -> None:
    world.escrow(to="oci:kept")
    world.escrow(to=TO)
    world.forget()
    world.lose()
    (world.tiny.root / "kept").rename(world.tiny.root / "elsewhere")
    world.bake()
    assert {line.rpartition(" ")[2] for line in fallbacks(log)} == {TO}


def test_a_push_mounts_from_the_copy_where_that_is_in_the_same_registry(
    world: Based, kept: StandIn
) -> None:
    world.escrow()
    world.forget()
    world.lose()
    done = world.run("push", "it", f"{KEPT}/out:it", "--json")
    assert done.json["blobs"] == {"present": 0, "mounted": 2, "uploaded": 2}


def test_a_push_elsewhere_and_a_layout_get_their_layers_from_the_copy(
    world: Based, registry: StandIn
) -> None:
    world.escrow()
    before = world.bake()
    world.lose()
    done = world.run("push", "it", f"{REGISTRY}/out:it", "--json")
    assert done.json["digest"] == str(before.image.digest)
    assert {name for name, _ in registry.blobs} == {"out"}
    assert world.run("build", "it", "--out", "out").status == 0
    blobs = world.tiny.root / "out/blobs/sha256"
    assert all((blobs / Digest.of(layer).hex).is_file() for layer in world.made.layers)


def test_an_exact_copy_is_found_whatever_its_entry_says(world: Based, log: Log) -> None:
    before = world.bake()
    write_layout(world.tiny.root / "kept", world.made)
    other = str(Digest.of(b"something else"))
    world.tiny.pin(world.made, escrow=[{"layout": "kept", "digest": other}])
    world.forget()
    world.origin.manifests.clear()
    assert world.bake().image == before.image
    assert not [line for line in log.lines if "twin" in line]


@dataclass
class FakeEngine:
    """A :class:`builder.ports.Engine` that pulls from the registries that it can reach."""

    refusals: Mapping[str, BuilderError]
    base: Digest
    images: set[Digest] = field(default_factory=set)
    asked: list[str] = field(default_factory=list)

    def has_image(self, image_id: Digest) -> bool:
        return image_id in self.images

    def keeps_layers(self) -> bool:
        return True

    def pull(self, reference: Reference) -> None:
        self.asked.append(reference.name)
        if reference.registry in self.refusals:
            raise self.refusals[reference.registry]
        self.images.add(self.base)

    def load(self, archive: Iterator[bytes], *, expected: Digest | None = None) -> None:
        list(archive)
        assert expected is not None
        self.images.add(expected)

    def tag(self, image_id: Digest, name: str) -> None:
        assert image_id in self.images


@pytest.mark.parametrize(
    ("refusal", "asked", "moved"),
    [
        pytest.param(GoneError("gone"), [f"{REGISTRY}/base", TO], 1, id="gone"),
        pytest.param(NetworkError("no route"), [f"{REGISTRY}/base"], 3, id="no answer"),
    ],
)
def test_an_engine_pulls_the_base_from_the_copy_where_upstream_says_gone(
    world: Based, refusal: BuilderError, asked: list[str], moved: int
) -> None:
    world.escrow()
    made = world.bake()
    assert made.base is not None
    engine = FakeEngine({REGISTRY: refusal}, made.base.manifest.config.digest)
    loaded = load(
        made.image, made.base, "it", store=world.tiny.store, engine=engine, progress=NoProgress()
    )
    assert (engine.asked, loaded.moved) == (asked, moved)


# --- a mirror that another machine has ---------------------------------------------------------


def test_offline_a_mirror_that_is_not_on_this_machine_is_a_reason_to_go_to_the_copy(
    full: Outside,
) -> None:
    before = full.bake()
    full.escrow(to="oci:kept")
    full.forget()
    (full.tiny.root.parent / "git").rename(full.tiny.root.parent / "elsewhere")
    done = full.run("build", "it", "--offline", "--json")
    assert done.status == 0, done.out + done.err
    assert done.json["images"][0]["digest"] == str(before.image.digest)
    for pin in ("pulls.seven", "sources.code"):
        (line,) = [line for line in done.err.splitlines() if f"{pin}: offline: mirrors: " in line]
        assert line.endswith("no such path; using the copy at oci:kept")


@pytest.mark.parametrize(
    ("to", "kept_at"),
    [
        pytest.param(TO, f"there is a copy at {TO}", id="registry"),
        pytest.param("oci:kept", "there is a copy at oci:kept, which --offline takes", id="layout"),
    ],
)
def test_online_such_a_mirror_is_a_mistake_and_the_copy_is_named(
    full: Outside, to: str, kept_at: str
) -> None:
    full.escrow(to=to)
    full.forget()
    (full.tiny.root.parent / "git").rename(full.tiny.root.parent / "elsewhere")
    done = full.run("build", "it", "--json")
    assert done.status == 3
    error = done.json["error"]
    assert error["message"].startswith("mirrors: 'https://git.test/team/code' is replaced by ")
    assert error["message"].endswith(": no such path")
    assert error["hint"].endswith(f"may not have that path, either; {kept_at}")


def test_without_a_copy_such_a_mirror_is_a_mistake_offline_too(full: Outside) -> None:
    full.bake()
    full.escrow(to="oci:kept")
    full.forget()
    pins = {name: replace(pin, escrow=()) for name, pin in Project(full.tiny.root).pulls.items()}
    (full.tiny.root / codec.PULLS).write_bytes(codec.write_pins(PullPin, pins))
    (full.tiny.root.parent / "git").rename(full.tiny.root.parent / "elsewhere")
    done = full.run("build", "it", "--offline", "--json")
    assert done.status == 3
    assert done.json["error"]["message"].endswith(": no such path")
    assert "copy" not in done.json["error"]["hint"]


# --- what is not gone ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        pytest.param(Reply(status=404), GoneError, id="gone"),
        pytest.param(Reply(status=400), NetworkError, id="no answer to that"),
        pytest.param(Reply(status=403), AuthError, id="forbidden"),
        pytest.param(
            Reply(status=429, headers={"Retry-After": "3600"}), RateLimitError, id="too many"
        ),
    ],
)
def test_only_what_is_gone_comes_from_a_copy(
    world: Based,
    registry: StandIn,
    kept: StandIn,
    reply: Reply,
    kind: type[BuilderError],
) -> None:
    world.escrow()
    world.forget()
    kept.calls.clear()
    registry.on("GET", "/v2/base/manifests/.*", reply, forever=True)
    if kind is GoneError:
        world.bake()
        return
    with pytest.raises(kind) as caught:
        world.bake()
    assert caught.value.exit_status == kind.exit_status
    assert caught.value.hint is not None
    assert caught.value.hint.endswith(
        f"there is a copy at {TO}, which is asked where upstream says 'gone'"
    )
    assert kept.calls == []


def test_offline_the_copies_in_layouts_are_enough(full: Outside) -> None:
    before = full.bake()
    full.escrow(to="oci:kept")
    full.forget()
    full.lose()  # its git repositories are on this disk, and at hand
    full.origin.calls.clear()
    done = full.run("--offline", "build", "it")
    assert done.status == 0, done.err
    assert f"image {before.image.digest}" in done.out
    told = [line for line in done.err.splitlines() if "; using the copy at oci:kept" in line]
    assert [line.split(": ")[2:4] for line in told] == [
        ["vllm.base", "offline"],
        ["pulls.seven", "gone"],
        ["sources.code", "gone"],
    ]
    assert full.origin.calls == []


def test_offline_a_copy_in_a_registry_is_not_asked(world: Based, kept: StandIn) -> None:
    world.escrow()
    world.forget()
    kept.calls.clear()
    done = world.run("--offline", "build", "it")
    assert done.status == 8
    assert f"and the copy at {TO}: " in done.err
    assert "hint: run once without --offline; builder escrow V --to oci:DIR keeps" in done.err
    assert kept.calls == []


def test_gone_at_the_copy_too_is_gone_and_says_who_was_asked(world: Based, kept: StandIn) -> None:
    world.escrow()
    world.forget()
    world.lose()
    kept.manifests.clear()
    with pytest.raises(GoneError) as caught:
        world.bake()
    assert caught.value.exit_status == 7
    assert caught.value.message.startswith("lockfiles/vllm.yaml:4: vllm.base: registry.test/base@")
    assert caught.value.hint is not None
    assert caught.value.hint.startswith(f"the copy at {TO}: {TO}@{world.made.digest}: ")


def test_a_copy_that_does_not_answer_is_not_a_copy_that_is_gone(
    world: Based, kept: StandIn
) -> None:
    world.escrow()
    world.forget()
    world.lose()
    kept.on("GET", "/v2/acme/escrow/manifests/.*", Reply(status=403), forever=True)
    with pytest.raises(AuthError) as caught:
        world.bake()
    assert caught.value.exit_status == 14
    assert f", and the copy at {TO}: " in caught.value.message


def test_a_copy_with_other_bytes_stops_everything(world: Based) -> None:
    world.escrow(to="oci:kept")
    world.escrow(to=TO)
    world.forget()
    world.lose()
    layer = world.made.manifest.layers[1]
    (world.tiny.root / "kept/blobs/sha256" / layer.digest.hex).write_bytes(b"x" * layer.size)
    with pytest.raises(IntegrityError, match=str(layer.digest)):
        world.bake()
    assert world.tiny.references() == {}


def test_what_goes_away_while_it_is_read_is_not_stitched_together(
    world: Based, registry: StandIn
) -> None:
    world.escrow()
    layer = world.made.manifest.layers[1]
    part = Reply(body=world.made.layers[1], cut=100)
    registry.on("GET", f"/v2/base/blobs/{layer.digest}", part, Reply(status=404))
    with pytest.raises(GoneError) as caught:
        world.bake()
    assert caught.value.hint == "it went away while it was read; run it again"
    registry.blobs.clear()
    assert world.bake().base is not None


@pytest.mark.parametrize(
    "spoil",
    [
        pytest.param(lambda manifest: manifest | {"artifactType": "application/x"}, id="a type"),
        pytest.param(lambda manifest: manifest | {"layers": "none"}, id="layers of another kind"),
    ],
)
def test_an_entry_that_names_something_else_is_refused(
    full: Outside, kept: StandIn, spoil: Any
) -> None:
    entry = full.escrow()["code"].entry
    assert entry is not None
    document = json.loads(kept.manifests["acme/escrow", str(entry.digest)][1])
    raw = json.dumps(spoil(document)).encode()
    other = kept.add_manifest("acme/escrow", raw, media_type=document["mediaType"], tag="x")
    text = full.lock_text("sources").replace(str(entry.digest), str(other))
    (full.tiny.root / "lockfiles/sources.yaml").write_text(text)
    full.forget()
    full.lose()
    with pytest.raises(IntegrityError):
        full.bake()


def test_a_copy_of_an_older_pin_lacks_the_file_and_says_so(full: Outside, kept: StandIn) -> None:
    entry = full.escrow()["code"].entry
    assert entry is not None
    manifest = artifact(Kind.SOURCE, [], annotations={})
    kept.add_blob("acme/escrow", EMPTY)
    other = kept.add_manifest(
        "acme/escrow", manifest.raw, media_type=manifest.media_type, tag="older"
    )
    text = full.lock_text("sources").replace(str(entry.digest), str(other))
    (full.tiny.root / "lockfiles/sources.yaml").write_text(text)
    full.forget()
    full.lose()
    with pytest.raises(GoneError) as caught:
        full.bake()
    wanted = Digest.of(b"{{ chat }}\n")
    assert caught.value.hint == f"the copy at {TO}: {TO}: artifact {other}: keeps no {wanted}"


def test_an_artifact_is_the_same_bytes_whatever_the_order_of_its_files() -> None:
    one = file(Kind.SOURCE, "a", digest=Digest.of(b"a"), size=1)
    two = file(Kind.SOURCE, "b", digest=Digest.of(b"b"), size=1)
    made = artifact(Kind.SOURCE, [two, one], annotations={"k": "v"})
    assert made == artifact(Kind.SOURCE, [one, two], annotations={"k": "v"})
    assert files_of(made.raw, Kind.SOURCE, at="it") == (one, two)
    assert made.config == config()
    # Changes the digest of every copy: raise the version of the artifact types.
    assert str(made.digest) == GOLDEN
    with pytest.raises(IntegrityError, match="expected an artifact of"):
        files_of(made.raw, Kind.WHEEL, at="it")


GOLDEN = "sha256:a063fad3a8716b6bf13eeaf38f8441c6a6ad4ac5e7f1e5a6e9c9881f418cd17a"


# --- nobody keeps it -----------------------------------------------------------------------------


def test_check_is_quiet_about_a_base_that_is_kept(tiny: Tiny, registry: StandIn) -> None:
    made = base_image()
    serve(registry, made)
    tiny.pin(made)
    tiny.variant("it")
    assert "nobody keeps the bytes" in tiny.run("check").out
    assert tiny.run("escrow", "it", "--to", "oci:kept").status == 0
    assert tiny.run("check").out == "nothing to report\n"


def test_a_repository_that_is_gone_is_asked_once_and_told_once(full: Outside, log: Log) -> None:
    full.escrow()
    full.forget()
    full.lose()
    log.lines.clear()
    full.escrow(to="oci:second")  # three files of one source
    assert fallbacks(log) == [
        f"vllm.base <- {TO}",
        f"pulls.seven <- {TO}",
        f"sources.code <- {TO}",
    ]
    fetches = [line for line in log.lines if line.startswith("fetching ")]
    assert len(fetches) == 2  # for the pull request, and for the source


def test_a_copy_that_is_said_to_be_huge_is_not_taken_into_memory() -> None:
    """The size is that of the artifact: nothing is fetched to find it out."""
    item = file(Kind.PULL, "7.diff", digest=Digest.of(b"x"), size=LIMIT + 1)
    made = artifact(Kind.PULL, [item], annotations={})

    class Place:
        def document(self, digest: Digest) -> bytes:
            return made.raw

        def blob(self, descriptor: Descriptor) -> Iterator[bytes]:
            raise AssertionError(descriptor)

    pin = PullPin(
        name="seven",
        repository="https://x.test/y",
        pull=7,
        diff=Digest.of(b"d"),
        escrow=(Escrow(layout="kept", digest=made.digest),),
    )
    copies = PinCopies(pin, GoneError("gone"), open_copy=lambda _: Place())
    with pytest.raises(IntegrityError) as caught:
        copies.only()
    assert caught.value.message == (
        f"oci:kept: {Digest.of(b'x')}: {LIMIT + 1} bytes, the limit is {LIMIT}"
    )
