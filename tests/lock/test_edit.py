"""Lockfiles edited: one entry changes, and every other byte stays."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.digest import Digest, ObjectId
from builder.errors import ProjectError
from builder.lock import codec
from builder.lock.edit import file_of, put, put_result, remove
from builder.lock.model import Escrow, ModelFile, ModelPin, PullPin, Result, Waiver, WheelPin
from builder.oci import Platform
from builder.strict_yaml import Writable, read
from builder.strict_yaml.edit import edited
from tests.lock.documents import DOCUMENTS
from tests.lock.styles import Style
from tests.lock.test_round_trip import (
    genesis_pins,
    image_pins,
    model_pins,
    names,
    pull_pins,
    source_pins,
    texts,
    values,
    waivers,
    wheel_pins,
)
from tests.soon import cost

A, B = Digest("a" * 64), Digest("b" * 64)
NOW = "2026-05-11T00:00:00Z"
PULLS = f"""\
# All pulls.
version: 1
pulls:

  # The demo: keep it.
  demo:   # ours
    follows: {{repository: https://git.example/acme/vllm, pull: 7}}  # seven
    head: '{"c" * 40}'
    base: {"d" * 40}  # where it left main
    diff: "{B}"
    # as fetched
    raw: {B} # raw
    failing: [a, b]  # known
    escrow:
    - registry: localhost/x   # first place
      digest: {B}
    strip: 1
      # deep note

  # The other one.
  other: {{
    follows: {{repository: https://git.example/acme/vllm, pull: 8}},  # c1
    published: {{source: club, path: x}},
    diff: {B}, # c2
    root: .
  }}
# end"""


def pulls() -> Mapping[str, PullPin]:
    return codec.read_pulls(PULLS.encode())


def difference(before: str, after: str) -> list[str]:
    """The lines that went, with ``-``, and those that came, with ``+``, in order."""
    import difflib

    lines = difflib.ndiff(before.splitlines(), after.splitlines())
    return [line for line in lines if line[0] in "-+"]


def test_only_what_differs_is_touched_and_in_its_own_style() -> None:
    old = pulls()["demo"]
    place = Escrow(layout="kept", digest=A)
    new = replace(
        old,
        head=ObjectId("f" * 40),
        diff=A,
        raw=None,
        failing=("a", "b", "no"),
        escrow=(*old.escrow, place),
        locked=NOW,
    )
    made = put(PULLS.encode(), new).decode()
    assert difference(PULLS, made) == [
        f"-     head: '{'c' * 40}'",
        f"+     head: '{'f' * 40}'",
        f'-     diff: "{B}"',
        f'+     diff: "{A}"',
        f"-     raw: {B} # raw",
        "-     failing: [a, b]  # known",
        '+     failing: [a, b, "no"]  # known',
        f'+     locked: "{NOW}"',
        "+     - layout: kept",
        f"+       digest: {A}",
    ]


def test_an_entry_in_braces_stays_in_braces_with_its_comments() -> None:
    old = pulls()["other"]
    new = replace(
        old,
        base=ObjectId("e" * 40),
        head=ObjectId("f" * 40),
        published=None,
        root=None,
        raw=A,
        strip=2,
    )
    made = put(PULLS.encode(), new).decode()
    assert difference(PULLS, made) == [
        "-     published: {source: club, path: x},",
        f"+     base: {'e' * 40},",
        f"+     head: {'f' * 40},",
        "-     root: .",
        f"+     raw: {A},",
        "+     strip: 2",
    ]


@pytest.mark.parametrize(
    ("name", "above", "below"),
    [
        pytest.param("a", "pulls:", "# The demo: keep it.", id="before the first and its comment"),
        pytest.param("foo", "# deep note", "# The other one.", id="between, behind a deep comment"),
        pytest.param("z", "}", "# end", id="behind the last"),
    ],
)
def test_a_new_entry_goes_where_its_name_sorts(name: str, above: str, below: str) -> None:
    made = put(PULLS.encode(), replace(pulls()["other"], name=name)).decode()
    said = [line.strip() for line in made.splitlines() if line.strip()]
    place = said.index(f"{name}:")
    assert (said[place - 1], said[place + 9]) == (above, below)
    lines = made.splitlines()
    assert lines[lines.index(f"  {name}:") - 1] == "", "set apart, as the others are"
    assert all(line[0] == "+" for line in difference(PULLS, made))


def test_a_new_entry_goes_to_the_end_where_names_are_not_sorted() -> None:
    data = put(PULLS.replace("demo:", "zzz:").encode(), replace(pulls()["other"], name="a"))
    assert [*codec.read_pulls(data)] == ["zzz", "other", "a"]


EMPTY = {
    "no file": (None, b"version: 1\nwheels:\n  x:\n"),
    "braces": (b"version: 1\nwheels: {}  # none yet\n", b"wheels:  # none yet\n  x:\n    follows:"),
    "braces and no line end": (b"version: 1\nwheels: {}", b"version: 1\nwheels:\n  x:\n"),
    "all in braces": (b"{version: 1, wheels: {}}", b"{version: 1, wheels: {x: {follows: {"),
    "CRLF": (b"version: 1\r\nwheels: {}\r\n# end\r\n", b"wheels:\r\n  x:\r\n    follows:\r\n"),
    "a comment in braces": (b"version: 1\nwheels: { # no\n  }\n", b"wheels: { # no\n  x: {follow"),
}


@pytest.mark.parametrize("data, expected", EMPTY.values(), ids=EMPTY)
def test_the_first_entry_of_a_lockfile(data: bytes | None, expected: bytes) -> None:
    pin = WheelPin(
        name="x", project="x", version="1", filename="x-1-py3-none-any.whl", digest=A, size=3
    )
    made = put(data, pin)
    assert expected in made
    assert codec.read_wheels(made) == {"x": pin}
    assert codec.read_wheels(remove(made, WheelPin, "x")) == {}


def test_the_indentation_is_that_of_the_file() -> None:
    entry = f"follows:\n           repository: r\n      commit: {'c' * 40}\n      tree: {'d' * 40}"
    data = f"version: 1\ngenesis:\n   x:\n      {entry}\n".encode()
    pin = replace(codec.read_genesis(data)["x"], name="z", failing=("a",))
    made = put(data, pin).decode()
    assert made == data.decode() + (
        f"   z:\n      follows:\n         repository: r\n      commit: {'c' * 40}\n"
        f"      tree: {'d' * 40}\n      failing:\n         - a\n"
    )


def test_a_spelling_that_means_the_same_is_left() -> None:
    data = f"version: 1\nvllm:\n  x:\n    follows: {{image: vllm/vllm-openai}}\n    index: {A}\n"
    pin = codec.read_images(data.encode())["x"]
    assert str(pin.follows) == "docker.io/vllm/vllm-openai"
    assert put(data.encode(), replace(pin, index=B)).decode() == data.replace(str(A), str(B))


def test_a_folded_text_is_replaced_and_its_comment_stays() -> None:
    data = PULLS.replace(f'diff: "{B}"', f"diff: >-  # why\n      {B}\n").encode()
    made = put(data, replace(pulls()["demo"], diff=A))
    assert f"    diff: {A}  # why\n".encode() in made


def test_a_lockfile_that_is_broken_is_no_lockfile_without_pins() -> None:
    for data in (b"", b"pulls: {}\n", b"version: 1\npulls:\n", PULLS.encode()[:200], b"\xff"):
        with pytest.raises(ProjectError):
            put(data, pulls()["demo"])


def test_a_pin_that_would_not_read_back_is_not_put() -> None:
    with pytest.raises(ProjectError, match="'base' and 'head' go together"):
        put(PULLS.encode(), replace(pulls()["demo"], base=None))


def test_an_edit_that_says_something_else_is_a_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("builder.lock.edit.edited", lambda data, *_, at: data)
    with pytest.raises(ValueError, match=r"lockfiles/pulls.yaml: edited, it says"):
        put(PULLS.encode(), replace(pulls()["demo"], diff=A))


def test_what_is_not_there_is_not_removed() -> None:
    with pytest.raises(KeyError, match="gone"):
        remove(PULLS.encode(), PullPin, "gone")


def test_an_accepted_result_leaves_those_of_other_platforms_and_every_comment() -> None:
    one = Result(variant="x", platform=Platform("linux", "amd64"), digest=A, diff_ids=(A, B))
    other = replace(one, platform=Platform("linux", "arm64"), digest=B)
    data = put_result(put_result(None, other), one).replace(b"results:", b"results:  # mine")
    assert codec.read_results(data, file="lockfiles/images/x.yaml") == ("x", (one, other))
    made = put_result(data, replace(one, derivation=B, diff_ids=(A,)))
    assert difference(data.decode(), made.decode()) == [
        f"+     derivation: {B}",
        f"-       - {B}",
    ]


KINDS: Mapping[str, st.SearchStrategy[Any]] = {
    "vllm": image_pins,
    "pulls": pull_pins,
    "sources": source_pins,
    "wheels": wheel_pins,
    "genesis": genesis_pins,
    "models": model_pins,
    "waivers": waivers,
}


@pytest.mark.parametrize("key", KINDS)
def test_in_any_style_one_entry_changes_and_nothing_else(key: str) -> None:
    @settings(max_examples=30)
    @given(
        st.lists(KINDS[key], min_size=1, max_size=3, unique_by=lambda pin: pin.name),
        KINDS[key],
        st.integers(0, 2**32 - 1),
        st.data(),
    )
    def holds(pins: list[Any], other: Any, seed: int, data: st.DataObject) -> None:
        old = data.draw(st.sampled_from(pins))
        taken = data.draw(st.sets(st.sampled_from([item.name for item in fields(old)])))
        if isinstance(old, WheelPin) and taken & {"version", "filename"}:
            taken |= {"version", "filename"}
        if isinstance(old, PullPin) and taken & {"base", "head"}:
            taken |= {"base", "head"}
        changed = {name: getattr(other, name) for name in taken - {"at"}}
        check(key, pins, old, replace(old, **changed), seed)

    holds()


def check(key: str, pins: list[Any], old: Any, new: Any, seed: int) -> None:
    kind = codec.kind_of(type(old))
    assert file_of(new) == kind.file
    if new.name in {pin.name for pin in pins} - {old.name}:
        return
    records = {pin.name: kind.record(pin) for pin in pins}
    style = Style(seed)
    before = style.document({"version": 1, key: records})
    assert plain(kind, before) == records
    assert put(before, old) == before, "putting what is there changes no byte"

    after = put(before, new)
    assert plain(kind, after) == records | {new.name: kind.record(new)}
    assert put(after, new) == after
    if new.name != old.name:
        assert all_stays(before, after)
        assert comments(before) == comments(after)
        return
    outside_is_the_same(before, after, old.name)
    lost = Counter(comments(before)) - Counter(comments(after))
    assert not [item for item in lost if not went(item, key, old.name, kind, old, new)]
    assert plain(kind, put(after, old)) == records


def plain(kind: codec.Kind, data: bytes) -> Mapping[str, Any]:
    return {name: kind.record(pin) for name, pin in kind.read(data).items()}


def all_stays(before: bytes, after: bytes) -> bool:
    """Whether nothing went: what came may be a comma and a new entry, with comments between."""
    rest = iter(after)
    return all(byte in rest for byte in before)


def outside_is_the_same(before: bytes, after: bytes, name: str) -> None:
    """By PyYAML's own marks: what is before the entry's value, and from behind it on."""
    root = yaml.compose(before.decode(), Loader=yaml.SafeLoader)
    assert isinstance(root, yaml.MappingNode)
    section = root.value[1][1]
    value = next(value for key, value in section.value if key.value == name)
    text, made = before.decode(), after.decode()
    assert made.startswith(text[: value.start_mark.index])
    end = value.end_mark.index
    rest = text[end:].lstrip("\r\n") if value.flow_style else text[end:]
    assert made.endswith(rest)


def comments(data: bytes) -> list[str]:
    """The paths of all comments with their numbers, from the text alone: no value has such one."""
    return re.findall(r"#\d+:[^\r\n]*", data.decode())


def went(comment: str, key: str, name: str, kind: codec.Kind, old: Any, new: Any) -> bool:
    """Whether a comment stood at something that is there no more, or in a list that differs."""
    path = str(yaml.safe_load(comment.split(":", 1)[1]))
    one: Any = {key: {name: kind.record(old)}}
    other: Any = {key: {name: kind.record(new)}}
    rest = path.removeprefix("/")
    while rest:
        if isinstance(one, list | tuple) or isinstance(other, list | tuple):
            return bool(one != other)
        part = max((part for part in one if f"{rest}/".startswith(f"{part}/")), key=len)
        if part not in other:
            return True
        one, other, rest = one[part], other[part], rest[len(part) + 1 :]
    return type(one) is not type(other) or isinstance(one, list | tuple)


documents = st.dictionaries(texts.filter(bool), values, min_size=1, max_size=4)


@settings(max_examples=100)
@given(documents, documents, st.integers(0, 2**32 - 1), st.booleans(), st.data())
def test_any_document_is_made_to_say_any_other(
    old: dict[str, Writable],
    other: dict[str, Writable],
    seed: int,
    keeps: bool,
    data: st.DataObject,
) -> None:
    before = Style(seed).document(old)
    new = old | other if keeps else other
    gone = data.draw(st.none() | st.sampled_from([*old]))
    new = {key: value for key, value in new.items() if key != gone}
    assert yaml.safe_load(before) == old
    after = edited(before, old, new, at="test")
    assert yaml.safe_load(after) == new
    read(after, file="test")
    assert yaml.safe_load(edited(after, new, old, at="test")) == old


@settings(max_examples=50)
@given(names, pull_pins, st.integers(0, 2**32 - 1))
def test_an_entry_that_is_put_in_can_be_taken_out_again(name: str, pin: PullPin, seed: int) -> None:
    kind = codec.kind_of(PullPin)
    before = Style(seed).document({"version": 1, "pulls": {pin.name: kind.record(pin)}})
    if name != pin.name:
        made = put(before, replace(pin, name=name))
        assert plain(kind, remove(made, PullPin, name)) == plain(kind, before)
    assert plain(kind, remove(before, PullPin, pin.name)) == {}


def test_a_waiver_is_an_entry_like_the_others() -> None:
    data = DOCUMENTS["waivers"].encode()
    (waiver, *_) = codec.read_waivers(data).values()
    assert put(data, replace(waiver, reason="another")) != data
    assert isinstance(waiver, Waiver)


WHEEL = WheelPin(
    name="x", project="x", version="1", filename="x-1-py3-none-any.whl", digest=A, size=3
)
NEW = put(None, WHEEL).decode()
ODD = {
    "carriage returns": NEW.replace("\n", "\r"),
    "line ends of two kinds": NEW.replace("\n", "\r\n", 3),
    "marks of a document": f"# é\n--- # x\n{NEW}... # y\n# z\n",
    "question marks": NEW.replace("    digest: ", "    ? digest\n    : ").replace(
        "    size: ", '    ? "size"\n    # c: d\n    : '
    ),
    "blanks at line ends": NEW.replace("\n", "   \n") + "\n\n",
    "characters of four bytes": NEW.replace("\n", "  # \U0001f389 é\n"),
    "JSON": f'{{\n  "version": 1,\n  "wheels": {{\n    "x": {{\n      "follows": {{"project": "x",'
    f' "version": "1"}},\n      "filename": "x-1-py3-none-any.whl",\n      "digest": "{A}",\n'
    '      "size": 3\n    }\n  }\n}\n',
}


@pytest.mark.parametrize("text", ODD.values(), ids=ODD)
def test_odd_files_are_edited_too(text: str) -> None:
    """Change a value, drop a key, add one; add an entry, remove both, put one in again."""
    changed = replace(WHEEL, digest=B, size=None, failing=("v",))
    data = put(text.encode(), changed)
    assert codec.read_wheels(data) == {"x": changed}
    data = put(data, replace(WHEEL, name="zz"))
    assert codec.read_wheels(data) == {"x": changed, "zz": replace(WHEEL, name="zz")}
    data = remove(remove(data, WheelPin, "zz"), WheelPin, "x")
    assert codec.read_wheels(data) == {}
    assert codec.read_wheels(put(data, WHEEL)) == {"x": WHEEL}


def test_a_big_lockfile_is_edited_in_a_time_that_grows_with_it() -> None:
    def seconds(count: int) -> float:
        files = tuple(ModelFile(path=f"p{number:05}", digest=A) for number in range(count))
        pin = ModelPin(name="m", repository="a/b", commit=ObjectId("1" * 40), files=files)
        data = put(None, pin)
        return cost(lambda: put(data, replace(pin, files=files[: count // 2])))

    assert seconds(4000) < 40 * seconds(200)  # twenty times as much; its square is 400 times
