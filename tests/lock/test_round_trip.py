"""Properties: any pin that can be read is written so that it reads back, here and elsewhere."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.digest import Digest, ObjectId
from builder.lock import codec
from builder.lock.model import (
    Escrow,
    GenesisPin,
    ImagePin,
    LayerPin,
    ModelFile,
    ModelPin,
    PlatformPin,
    PullPin,
    Result,
    ResultFile,
    ResultPatch,
    SourceDiff,
    SourceFile,
    SourcePin,
    Subtree,
    VllmBuild,
    Waiver,
    WheelPin,
)
from builder.oci import Platform
from builder.reference import Reference
from builder.strict_yaml import Writable, read, write

T = TypeVar("T")

TRAPS = (
    "no",
    "y",
    "null",
    "~",
    "012",
    "1e3",
    "0x1",
    "2026-05-11",
    "<<",
    "=",
    "a: b",
    "#",
    "-",
    "é",
)
HEX = "0123456789abcdef"
digests = st.text(HEX, min_size=64, max_size=64).map(Digest)
commits = st.text(HEX, min_size=40, max_size=40).map(ObjectId) | st.text(
    "0123456789", min_size=40, max_size=40
).map(ObjectId)
sizes = st.integers(0, 2**53 - 1)
names = st.from_regex(
    r"[a-z0-9]{1,5}(?:(?:[._-]|--)[a-z0-9]{1,4}){0,4}", fullmatch=True
) | st.sampled_from(["no", "y", "on", "null", "1e3", "012", "0.1", "true"])
lines = st.text(
    st.characters(exclude_categories=("Cs", "Cc")), min_size=1, max_size=20
) | st.sampled_from(TRAPS)
parts = lines.filter(lambda part: not set(part) & set("/\\") and part not in {".", ".."})
paths = st.lists(parts, min_size=1, max_size=3).map("/".join)
repositories = lines.filter(lambda text: not re.search(r"\s", text) and text[0] != "-")
refs = repositories.filter(lambda text: ".." not in text and not set(text) & set("~^:?*[\\"))
locked = st.none() | st.datetimes().map(
    lambda moment: f"{moment.replace(microsecond=0).isoformat()}Z"
)
tags = st.from_regex(r"[A-Za-z0-9_]([A-Za-z0-9_.-]{0,19}[A-Za-z0-9_])?", fullmatch=True)
images = st.sampled_from(["docker.io/vllm/vllm-openai", "localhost:5000/x", "ghcr.io/a/b.c_d"])
platforms = st.sampled_from(["linux/amd64", "linux/arm64/v8", "no/1e3"]).map(Platform.parse)


def maybe(strategy: st.SearchStrategy[T]) -> st.SearchStrategy[T | None]:
    return st.none() | strategy


def few(strategy: st.SearchStrategy[T], least: int = 0) -> st.SearchStrategy[tuple[T, ...]]:
    return st.lists(strategy, min_size=least, max_size=2).map(tuple)


def files(strategy: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[tuple[Any, ...]]:
    unique = st.lists(strategy, min_size=least, max_size=3, unique_by=lambda file: file.path)
    return unique.map(tuple)


references = st.builds(
    lambda image, tag: Reference.parse(f"{image}:{tag}" if tag else image), images, maybe(tags)
)
escrows = few(
    st.builds(Escrow, registry=references, digest=digests)
    | st.builds(Escrow, layout=paths, digest=digests)
)
image_pins = st.builds(
    ImagePin,
    name=names,
    follows=references,
    index=digests,
    platforms=st.lists(
        st.tuples(
            platforms,
            st.builds(
                PlatformPin,
                manifest=digests,
                config=maybe(digests),
                layers=few(
                    st.builds(
                        LayerPin,
                        digest=digests,
                        size=sizes,
                        diff_id=maybe(digests),
                        files=maybe(digests),
                    )
                ),
            ),
        ),
        max_size=2,
        unique_by=lambda pair: pair[0],
    ).map(tuple),
    vllm=maybe(st.builds(VllmBuild, version=lines, commit=maybe(commits), package=maybe(paths))),
    escrow=escrows,
    locked=locked,
)
pull_pins = st.builds(
    PullPin,
    name=names,
    repository=repositories,
    pull=st.integers(1, 2**53 - 1),
    base=commits,
    head=commits,
    published=maybe(st.builds(SourceDiff, source=names, path=paths)),
    diff=digests,
    raw=maybe(digests),
    root=maybe(st.sampled_from(["/", "."]) | paths),
    strip=maybe(st.integers(0, 9)),
    escrow=escrows,
    locked=locked,
)
source_pins = st.builds(
    SourcePin,
    name=names,
    repository=repositories,
    follows=maybe(refs),
    commit=commits,
    tree=commits,
    files=files(st.builds(SourceFile, path=paths, digest=digests, size=sizes), 1),
    escrow=escrows,
    locked=locked,
)
wheel_pins = st.builds(
    lambda version, **fields: WheelPin(
        project="Foo.Bar", version=version, filename=f"foo_bar-{version}-py3-none-any.whl", **fields
    ),
    version=st.sampled_from(["1.0", "1e3", "2026.5.11", "1!2.0+cu12"]),
    name=names,
    digest=digests,
    size=maybe(sizes),
    path=maybe(paths),
    escrow=escrows,
    locked=locked,
)
subtrees = maybe(st.builds(Subtree, path=paths, tree=commits))
genesis_pins = st.builds(
    GenesisPin,
    name=names,
    repository=repositories,
    follows=maybe(refs),
    commit=commits,
    tree=commits,
    payload=subtrees,
    plugin=subtrees,
    reachable=few(refs),
    escrow=escrows,
    locked=locked,
)
model_pins = st.builds(
    ModelPin,
    name=names,
    repository=repositories,
    follows=maybe(refs),
    commit=commits,
    files=files(st.builds(ModelFile, path=paths, digest=maybe(digests), size=maybe(sizes))),
    include=few(lines),
    require=few(lines),
    forbid=few(lines),
    locked=locked,
)
waivers = st.builds(
    Waiver,
    name=names,
    rule=st.just("genesis-allowlist"),
    genesis=commits,
    vllm=commits.map(str)
    | st.sampled_from(["0.20.2", "1.0", "0.20.2rc1.dev9+g01d4d1ad3", "1!2.0+cu12"]),
    reason=lines.filter(str.strip),
    author=lines.filter(str.strip),
    until=st.dates().map(str),
)
KINDS: Mapping[str, tuple[st.SearchStrategy[Any], Callable[..., bytes], Callable[..., Any]]] = {
    "vllm": (image_pins, partial(codec.write_pins, ImagePin), codec.read_images),
    "pulls": (pull_pins, partial(codec.write_pins, PullPin), codec.read_pulls),
    "sources": (source_pins, partial(codec.write_pins, SourcePin), codec.read_sources),
    "wheels": (wheel_pins, partial(codec.write_pins, WheelPin), codec.read_wheels),
    "genesis": (genesis_pins, partial(codec.write_pins, GenesisPin), codec.read_genesis),
    "models": (model_pins, partial(codec.write_pins, ModelPin), codec.read_models),
    "waivers": (waivers, partial(codec.write_pins, Waiver), codec.read_waivers),
}


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_reads_back_as_the_same_pins(kind: str) -> None:
    strategy, writer, reader = KINDS[kind]

    @settings(max_examples=25)
    @given(st.lists(strategy, max_size=2))
    def holds(pins: list[Any]) -> None:
        by_name = {pin.name: pin for pin in pins}
        data = writer(by_name)
        assert reader(data) == by_name
        assert writer(reader(data)) == data
        assert only_texts_and_sizes(yaml_1_1(data))
        assert yaml_1_1(data) == yaml_1_2(data)

    holds()


@settings(max_examples=25)
@given(
    names,
    st.lists(
        st.builds(
            Result,
            variant=st.just("x"),
            platform=platforms,
            digest=digests,
            diff_ids=few(digests),
            files=files(
                st.builds(ResultFile, path=paths, pre=digests, post=maybe(digests))
                | st.builds(ResultFile, path=paths, pre=st.none(), post=digests)
            ),
            patches=st.lists(
                st.builds(
                    ResultPatch, name=lines, outcome=st.sampled_from(["applied", "runtime-only"])
                )
                | st.builds(
                    ResultPatch,
                    name=lines,
                    outcome=st.sampled_from(["skipped", "failed"]),
                    reason=maybe(lines),
                ),
                max_size=3,
                unique_by=lambda patch: patch.name,
            ).map(tuple),
        ),
        max_size=2,
        unique_by=lambda result: result.platform,
    ),
)
def test_what_is_written_reads_back_as_the_same_results(name: str, results: list[Result]) -> None:
    named = tuple(
        Result(
            variant=name,
            platform=result.platform,
            digest=result.digest,
            diff_ids=result.diff_ids,
            files=result.files,
            patches=result.patches,
        )
        for result in results
    )
    data = codec.write_results(name, named)
    assert codec.read_results(data, file=f"lockfiles/images/{name}.yaml") == (name, named)


texts = st.text(max_size=30) | st.sampled_from(TRAPS)
values = st.recursive(
    texts | st.integers(0, 2**53),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(texts.filter(bool), inner, max_size=3)
    ),
    max_leaves=12,
)


@settings(max_examples=100)
@given(st.dictionaries(texts.filter(bool), values, max_size=4))
def test_every_yaml_reader_takes_what_we_wrote_for_what_we_meant(value: dict[str, Any]) -> None:
    data = write(value, at="test")
    assert yaml_1_1(data) == value
    assert yaml_1_2(data) == value
    read(data, file="test")


def test_a_key_too_long_for_one_line_reads_back() -> None:
    value: dict[str, Writable] = {"k" * 2000: {"é" * 2000: "x"}, "z": ["y" * 2000]}
    data = write(value, at="test")
    assert yaml_1_1(data) == value


def only_texts_and_sizes(value: Any) -> bool:
    """No date, no truth value, no null, no float: nothing that a reader made of a text."""
    if isinstance(value, dict):
        return all(isinstance(key, str) and only_texts_and_sizes(value[key]) for key in value)
    if isinstance(value, list):
        return all(only_texts_and_sizes(item) for item in value)
    return type(value) in {str, int}


def yaml_1_1(data: bytes) -> Any:
    return yaml.safe_load(data)


class Yaml12Loader(yaml.SafeLoader):
    """The core schema of YAML 1.2.2, section 10.3.2, and nothing of YAML 1.1."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012  (as PyYAML has it)


for tag, pattern in (
    ("null", r"null|Null|NULL|~|"),
    ("bool", r"true|True|TRUE|false|False|FALSE"),
    ("int", r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+"),
    ("float", r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?|\.nan|[-+]?\.inf"),
):
    Yaml12Loader.add_implicit_resolver(
        f"tag:yaml.org,2002:{tag}", re.compile(f"(?:{pattern})\\Z"), None
    )


def yaml_1_2(data: bytes) -> Any:
    return yaml.load(data, Loader=Yaml12Loader)
