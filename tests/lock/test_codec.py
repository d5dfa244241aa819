"""Lockfiles: what is read, what is refused, and that writing and reading are inverse."""

import pytest

from builder.digest import ObjectId
from builder.errors import ProjectError
from builder.lock import codec
from builder.lock.model import (
    Escrow,
    GenesisPin,
    ImagePin,
    LayerPin,
    Lock,
    ModelPin,
    PlatformPin,
    PullPin,
    SourceFile,
    SourcePin,
    VllmBuild,
    Waiver,
    WheelPin,
)
from builder.oci import Platform
from builder.reference import Reference
from tests.lock.bad_documents import BAD_LOCKS, Bad
from tests.lock.bad_waivers import BAD_WAIVERS
from tests.lock.documents import COMMIT, DIGITS, DOCUMENTS, FILES, READERS, A, B, C, changed

LOCKFILES = {FILES[kind]: DOCUMENTS[kind].encode() for kind in DOCUMENTS if "lock" in FILES[kind]}


def test_a_base_image_is_read_with_everything_that_is_known_of_it() -> None:
    pins = codec.read_images(DOCUMENTS["vllm"].encode())
    assert pins == {
        "known-good": ImagePin(
            name="known-good",
            follows=Reference(
                registry="docker.io", repository="vllm/vllm-openai", tag=f"nightly-{COMMIT}"
            ),
            index=A,
            platforms=(
                (
                    Platform("linux", "amd64"),
                    PlatformPin(
                        manifest=B,
                        config=C,
                        layers=(
                            LayerPin(digest=A, size=12, diff_id=B, files=C),
                            LayerPin(digest=C, size=0),
                        ),
                    ),
                ),
                (Platform("linux", "arm64", "v8"), PlatformPin(manifest=C)),
            ),
            vllm=VllmBuild(
                version="0.20.2rc1.dev9+g01d4d1ad3",
                commit=ObjectId(COMMIT),
                package="usr/local/lib/python3.12/dist-packages/vllm",
            ),
            escrow=(
                Escrow(
                    registry=Reference(registry="ghcr.io", repository="acme/escrow", tag="keep"),
                    digest=A,
                ),
                Escrow(layout="escrow/known-good", digest=B),
            ),
            locked="2026-05-11T00:00:00Z",
        )
    }
    assert pins["known-good"].at == "lockfiles/vllm.yaml:3: vllm.known-good"


def test_a_pin_that_is_hardly_known_leaves_the_rest_out() -> None:
    data = f"version: 1\nvllm:\n  x:\n    follows: {{image: vllm/vllm-openai}}\n    index: {A}\n"
    pin = codec.read_images(data.encode())["x"]
    assert pin == ImagePin(
        name="x", follows=Reference(registry="docker.io", repository="vllm/vllm-openai"), index=A
    )
    assert codec.write_pins(ImagePin, {"x": pin}).decode() == (
        "version: 1\nvllm:\n  x:\n    follows:\n      image: docker.io/vllm/vllm-openai\n"
        f"    index: {A}\n"
    )


@pytest.mark.parametrize("quote", ["", '"', "'"], ids=["plain", "double quotes", "single quotes"])
def test_a_commit_of_digits_only_stays_what_was_written(quote: str) -> None:
    data = changed("sources", f'commit: "{DIGITS}"', f"commit: {quote}{DIGITS}{quote}")
    assert codec.read_sources(data)["club"].commit == ObjectId(DIGITS)


@pytest.mark.parametrize(
    "tag", ["no", "1.10", "012", "1e3", "2026-05-11", "0x1f", "1_000", "true", "null_"]
)
def test_a_tag_that_looks_like_another_type_is_the_text_that_was_written(tag: str) -> None:
    data = changed("vllm", f"tag: nightly-{COMMIT}", f"tag: {tag}")
    assert codec.read_images(data)["known-good"].follows.tag == tag


@pytest.mark.parametrize("bad", [pytest.param(bad, id=bad.id) for bad in BAD_LOCKS + BAD_WAIVERS])
def test_a_wrong_lockfile_is_refused_with_its_place(bad: Bad) -> None:
    with pytest.raises(ProjectError) as caught:
        READERS[bad.kind](bad.data)
    assert (caught.value.message, caught.value.hint) == (bad.message, bad.hint)


def test_every_lockfile_is_written_as_it_was_read() -> None:
    lock = codec.read_lock(LOCKFILES)
    written = {
        codec.IMAGES: codec.write_pins(ImagePin, lock.images),
        codec.PULLS: codec.write_pins(PullPin, lock.pulls),
        codec.SOURCES: codec.write_pins(SourcePin, lock.sources),
        codec.WHEELS: codec.write_pins(WheelPin, lock.wheels),
        codec.GENESIS: codec.write_pins(GenesisPin, lock.genesis),
        codec.MODELS: codec.write_pins(ModelPin, lock.models),
        codec.WAIVERS: codec.write_pins(Waiver, lock.waivers),
        "lockfiles/images/demo.yaml": codec.write_results("demo", lock.results["demo"]),
    }
    assert written == LOCKFILES


def test_no_lockfile_at_all_is_a_lock_without_pins() -> None:
    assert codec.read_lock({}) == Lock()


def test_an_empty_lockfile_is_an_error_and_never_a_lock_without_pins() -> None:
    with pytest.raises(ProjectError) as caught:
        codec.read_lock({codec.IMAGES: b""})
    assert caught.value.message == "lockfiles/vllm.yaml:1:1: an empty document"


def test_a_lockfile_with_a_name_of_its_own_is_refused() -> None:
    with pytest.raises(ProjectError) as caught:
        codec.read_lock({"lockfiles/pull.yaml": b""})
    assert caught.value.message == "lockfiles/pull.yaml: not a lockfile"
    assert caught.value.hint == "did you mean 'lockfiles/pulls.yaml'?"


@pytest.mark.parametrize(
    "old, new, message, hint",
    [
        pytest.param(
            "source: club",
            "source: clab",
            "lockfiles/pulls.yaml:3: pulls.vllm-40361.published.source: no source 'clab' in"
            " lockfiles/sources.yaml",
            "did you mean 'club'?",
            id="no such source",
        ),
        pytest.param(
            "path: patches/marlin.diff",
            "path: patches/marlin.patch",
            "lockfiles/pulls.yaml:3: pulls.vllm-40361.published.path: source 'club' pins no file"
            " 'patches/marlin.patch'",
            "did you mean 'patches/marlin.diff'?",
            id="no such file of the source",
        ),
    ],
)
def test_a_published_diff_must_be_a_pinned_file(
    old: str, new: str, message: str, hint: str
) -> None:
    files = LOCKFILES | {codec.PULLS: changed("pulls", old, new)}
    with pytest.raises(ProjectError) as caught:
        codec.read_lock(files)
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_a_pin_that_would_not_read_back_is_not_written() -> None:
    pin = ImagePin(name="x", follows=Reference.parse("vllm/vllm-openai:nightly"))
    with pytest.raises(ProjectError) as caught:
        codec.write_pins(ImagePin, {"x": pin})
    assert caught.value.message == (
        "lockfiles/vllm.yaml:3: vllm.x: neither 'index' nor 'platforms', so that nothing is pinned"
    )


def test_a_pin_under_another_name_than_its_own_is_not_written() -> None:
    pin = ImagePin(name="x", follows=Reference.parse("vllm/vllm-openai"), index=A)
    with pytest.raises(ValueError, match="reads back as"):
        codec.write_pins(ImagePin, {"y": pin})


def test_two_files_of_one_path_are_not_written_as_one() -> None:
    file = SourceFile(path="a", digest=A, size=1)
    pin = SourcePin(
        name="x",
        repository="https://git.example/x",
        commit=ObjectId(COMMIT),
        tree=ObjectId(DIGITS),
        files=(file, SourceFile(path="a", digest=B, size=1)),
    )
    with pytest.raises(ValueError, match="'a' stands twice"):
        codec.write_pins(SourcePin, {"x": pin})


def test_a_path_that_is_not_utf_8_is_not_written() -> None:
    pin = SourcePin(
        name="x",
        repository="https://git.example/x",
        commit=ObjectId(COMMIT),
        tree=ObjectId(DIGITS),
        files=(SourceFile(path="caf\udce9", digest=A, size=1),),
    )
    with pytest.raises(ProjectError) as caught:
        codec.write_pins(SourcePin, {"x": pin})
    assert "lockfiles/sources.yaml: a text that is not UTF-8 cannot be written" in str(caught.value)
