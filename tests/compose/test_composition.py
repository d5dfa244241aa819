"""``builder.compose.composition`` and ``include``: files that are one project. What is expected
here is what Docker Compose says; ``make real`` compares hundreds of such files with it."""

from collections.abc import Mapping, Sequence
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.compose.composition import EXTENDS_LIMIT, Composition, Source
from builder.compose.container import Container, contained
from builder.compose.document import read
from builder.compose.include import FILE_LIMIT, compose
from builder.errors import ProjectError

BASE = """\
services:
  a:
    image: x
    entrypoint: [e]
    command: [c1, c2]
    environment: {A: "1", B: "2"}
    env_file: one.env
    volumes: ["./m1:/m1", "named:/n"]
"""
FILES = {
    "/p/one.env": "A=file\nF=one\n",
    "/p/two.env": "F=two\n",
    "/p/sub/one.env": "F=sub\n",
    "/p/sub/.env": "Y=sub\nX=sub\n",
}
VARIABLES = {"X": "given"}


def project(files: Mapping[str, str], given: Sequence[str], **more: str) -> Composition:
    """Files of ``/p``, of which those in ``given`` are named on the command line."""
    held = {**FILES, **{f"/p/{name}": text for name, text in files.items()}}
    sources = [
        Source(
            document=read(files[name].encode(), file=name),
            directory="/p",
            variables={**VARIABLES, **more},
        )
        for name in given
    ]
    return compose(sources, read=lambda path: reading(held, path))


def reading(held: Mapping[str, str], path: str) -> bytes | None:
    return held[path].encode() if path in held else None


def merged(*texts: str, name: str = "a") -> Container:
    """A service over files, the first one first."""
    files = {f"{number}.yml": text for number, text in enumerate(texts)}
    found = project(files, list(files)).services[name]
    return contained(found, read=lambda path: reading(FILES, path))


def over(line: str) -> Container:
    """The service of ``BASE`` with one line in a second file."""
    return merged(BASE, f"services:\n  a:\n    {line}\n")


def mounts(found: Container) -> list[tuple[str, str]]:
    return sorted((mount.target, mount.source) for mount in found.mounts)


@pytest.mark.parametrize(
    ("line", "words", "has_command"),
    [
        pytest.param("command: [z]", ("e", "z"), True, id="another"),
        pytest.param('command: ""', ("e",), True, id="an empty one"),
        pytest.param("command: []", ("e",), True, id="an empty list"),
        pytest.param("command: null", ("e",), False, id="null"),
        pytest.param("command:", ("e",), False, id="nothing"),
        pytest.param("command: !reset null", ("e",), False, id="reset"),
        pytest.param("command: !reset [q]", ("e",), False, id="reset, whatever it has"),
        pytest.param("command: !override [o]", ("e", "o"), True, id="override"),
        pytest.param("entrypoint: []", ("c1", "c2"), True, id="no entrypoint"),
        pytest.param("entrypoint: !reset null", ("c1", "c2"), True, id="entrypoint reset"),
        pytest.param("image: y", ("e", "c1", "c2"), True, id="another key"),
    ],
)
def test_a_command_is_that_of_the_last_file(
    line: str, words: tuple[str, ...], has_command: bool
) -> None:
    found = over(line)
    assert (found.words, found.has_command) == (words, has_command)


@pytest.mark.parametrize(
    ("line", "changes"),
    [
        pytest.param("environment: [B=9, X]", {"B": "9", "X": "given"}, id="a list over a map"),
        pytest.param("environment: {B: null, A: ''}", {"B": None, "A": ""}, id="null takes away"),
        pytest.param("environment: [A]", {"A": None}, id="so does a name alone"),
        pytest.param("environment: null", {}, id="null for all is nothing"),
        pytest.param("environment: !reset null", {"A": "file", "B": None}, id="reset"),
        pytest.param("environment: !reset {B: 8}", {"A": "file", "B": None}, id="reset, not set"),
        pytest.param("environment: !override [B=8]", {"A": "file", "B": "8"}, id="override"),
        pytest.param("env_file: two.env", {"F": "two"}, id="another file comes after"),
        pytest.param("env_file: [two.env, one.env]", {"F": "two"}, id="again keeps its place"),
        pytest.param("env_file: !override two.env", {"F": "two"}, id="a file instead"),
        pytest.param("env_file: !reset null", {"F": None}, id="no file"),
    ],
)
def test_environments_are_put_together_by_name(line: str, changes: dict[str, str | None]) -> None:
    wanted = {"A": "1", "B": "2", "F": "one", **changes}
    assert over(line).environment == {name: v for name, v in wanted.items() if v is not None}


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("volumes: ['./m9:/m1:ro', '/x:/x']", [("/m1", "/p/m9"), ("/n", "named"), ("/x", "/x")]),
        ("volumes: [{type: bind, source: q, target: /m1}]", [("/m1", "/p/q"), ("/n", "named")]),
        ("volumes: ['/a:/m1', '/b:/m1']", [("/m1", "/b"), ("/n", "named")]),
        ("volumes: []", [("/m1", "/p/m1"), ("/n", "named")]),
        ("volumes: null", [("/m1", "/p/m1"), ("/n", "named")]),
        ("volumes: !reset []", []),
        ("volumes: !override ['/o:/o']", [("/o", "/o")]),
    ],
)
def test_mounts_are_put_together_by_target(line: str, wanted: list[tuple[str, str]]) -> None:
    assert mounts(over(line)) == wanted


def test_a_service_is_reset_overridden_or_left() -> None:
    texts = {"b.yml": BASE}
    for text, names, words in (
        ("services:\n  a: !reset null\n  z: {image: y}\n", ["z"], None),
        ("services:\n  a: !override {command: k}\n", ["a"], ("k",)),
        ("services: !override\n  z: {image: y}\n", ["z"], None),
        ("services:\n  a: null\n", ["a"], ("e", "c1", "c2")),
        ("services: !reset null\n", [], None),
    ):
        found = project({**texts, "o.yml": text}, ["b.yml", "o.yml"])
        assert sorted(found.services) == names
        if words is not None:
            container = contained(found.services["a"], read=lambda path: reading(FILES, path))
            assert container.words == words


def test_what_is_extended_is_that_of_the_same_document() -> None:
    first = "services:\n  a: {extends: b, command: a1}\n  b: {command: b1, environment: {B: 1}}\n"
    later = "services:\n  b: {command: b2, environment: {B: 2}}\n"
    found = merged(first, later)
    assert (found.words, found.environment) == (("a1",), {"B": "1"})
    other = "services:\n  a: {extends: c}\n  c: {command: c2, environment: {C: 2}}\n"
    found = merged(first, other)
    assert (found.words, found.environment) == (("c2",), {"B": "1", "C": "2"})
    with pytest.raises(ProjectError, match=r"'a' extends 'b', which does not stand in the same"):
        merged(first, "services:\n  a: {extends: b}\n")
    with pytest.raises(ProjectError, match="which leads back to it"):
        merged("services:\n  a: {extends: b}\n  b: {extends: a}\n")


def test_a_chain_of_what_is_extended_has_a_limit() -> None:
    def chain(length: int) -> str:
        links = "".join(f"  s{n}: {{extends: s{n + 1}}}\n" for n in range(length))
        return f"services:\n{links}  s{length}: {{command: c}}\n"

    assert merged(chain(EXTENDS_LIMIT), name="s0").words == ("c",)
    with pytest.raises(ProjectError, match=f"behind {EXTENDS_LIMIT} others, which is the limit"):
        merged(chain(4000), name="s0")


def test_a_tag_of_what_is_extended_hides_only_what_that_extends() -> None:
    chain = (
        "services:\n  a: {extends: b, environment: {Q: 1}}\n"
        "  b: {extends: c, environment: !override {B: 1}, command: !reset k}\n"
        "  c: {environment: {C: 1}, command: kc}\n"
    )
    found = merged("services:\n  a: {environment: {Z: 1}, command: z}\n", chain)
    assert (found.words, found.environment) == (("z",), {"Z": "1", "B": "1", "Q": "1"})
    own = chain.replace("environment: {Q: 1}", "environment: !override {Q: 1}")
    assert merged("services:\n  a: {environment: {Z: 1}}\n", own).environment == {"Q": "1"}


@pytest.mark.parametrize(
    ("line", "said"),
    [
        pytest.param(
            "environment: {A: !reset null}", "a tag !reset or !override in it", id="in it"
        ),
        pytest.param("volumes: [!override '/a:/m1']", "a tag !reset or !override in", id="a list"),
        pytest.param("command: &c !reset null", "behind an anchor", id="anchored"),
        pytest.param("<<: {command: !reset null}", "behind an anchor", id="merged in"),
        pytest.param("volumes: ['/a:/m1/']", "'/m1' is written in two ways", id="a slash"),
    ],
)
def test_what_only_compose_knows_is_not_guessed(line: str, said: str) -> None:
    with pytest.raises(ProjectError, match=said):
        over(line)


def test_tags_in_what_overrides_are_not_guessed() -> None:
    for text in (
        "services:\n  a: !override {command: !reset null}\n",
        "services: !override\n  a: {command: !reset null}\n",
    ):
        with pytest.raises(ProjectError, match="or in what has one, is not followed"):
            merged(BASE, text)


INC = """\
services:
  i:
    command: ["${X}-${Y-unset}"]
    volumes: ["./r:/r"]
    env_file: [{path: one.env, required: false}]
"""


@pytest.mark.parametrize(
    ("include", "words", "source", "environment"),
    [
        ("[sub/i.yml]", ("given-sub",), "/p/sub/r", {"F": "sub"}),
        ("['${NO:-sub}/i.yml']", ("given-sub",), "/p/sub/r", {"F": "sub"}),
        ("[{path: sub/i.yml, project_directory: .}]", ("given-unset",), "/p/r", {"A": "file"}),
        ("[{path: sub/i.yml, env_file: two.env}]", ("given-unset",), "/p/sub/r", {"F": "sub"}),
        ("[{path: [sub/i.yml, sub/j.yml]}]", ("j",), "/p/sub/s", {"F": "sub"}),
    ],
)
def test_an_included_file_has_a_directory_and_variables_of_its_own(
    include: str, words: tuple[str, ...], source: str, environment: dict[str, str]
) -> None:
    files = {
        "c.yml": f"include: {include}\nservices:\n  a: {{image: x}}\n",
        "sub/i.yml": INC,
        "sub/j.yml": "services:\n  i: {command: [j], volumes: ['./s:/r']}\n",
    }
    composition = project(files, ["c.yml"])
    assert sorted(composition.services) == ["a", "i"]
    found = contained(composition.services["i"], read=lambda path: reading(FILES, path))
    assert (found.words, mounts(found)) == (words, [("/r", source)])
    assert environment.items() <= found.environment.items()


def test_a_later_file_overrides_what_is_included_and_the_same_one_does_not() -> None:
    files = {
        "c.yml": "include: [sub/i.yml]\n",
        "sub/i.yml": INC,
        "o.yml": "services:\n  i: {command: [o, '${Y-top}'], volumes: ['./o:/o']}\n",
        "same.yml": "include: [sub/i.yml]\nservices:\n  i: {command: o}\n",
        "twice.yml": "include: [sub/i.yml, k.yml]\n",
        "k.yml": INC,
    }
    found = project(files, ["c.yml", "o.yml"]).services["i"]
    container = contained(found, read=lambda path: reading(FILES, path))
    assert container.words == ("o", "top")
    assert mounts(container) == [("/o", "/p/o"), ("/r", "/p/sub/r")]
    assert container.environment == {"F": "sub"}
    for name in ("same.yml", "twice.yml"):
        with pytest.raises(ProjectError, match="service 'i' is included, and stands in"):
            project(files, [name])


def test_what_is_included_may_include() -> None:
    files = {
        "c.yml": "include: [sub/n.yml]\n",
        "sub/n.yml": "include: [i.yml]\n",
        "sub/i.yml": INC,
    }
    assert mounts(
        contained(project(files, ["c.yml"]).services["i"], read=lambda path: reading(FILES, path))
    ) == [("/r", "/p/sub/r")]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("include: x.yml\n", r"c.yml:1: include: expected a list"),
        ("include: {path: x.yml}\n", "include: expected a list"),
        ("include: [none.yml]\n", "include: '/p/none.yml' is not there"),
        ("include: [{project_directory: .}]\n", "include: no path"),
        ("include: [{path: loop.yml}]\n", "'/p/loop.yml' includes itself"),
        ("include: ['https://host/x.git']\n", "is no path of this machine: nothing is fetched"),
        ("include: ['oci://host/x']\n", "nothing is fetched"),
        ("include: ['${NO}']\n", "'' is no path"),
        ("include: [[x.yml]]\n", "'/p/x.yml' is not there"),
        ("include: [{path: {a: b}}]\n", "expected text, got a collection"),
        ("include: [{path: loop.yml, env_file: none.env}]\n", "'/p/none.env' is not there"),
        ("include: [wide.yml]\n", f"over {FILE_LIMIT} files"),
        ("include: [bad.yml]\n", "/p/bad.yml:2:1: not YAML"),
    ],
)
def test_what_cannot_be_included_is_refused(text: str, said: str) -> None:
    files = {
        "c.yml": text,
        "loop.yml": "include: [loop.yml]\n",
        "leaf.yml": "services: {}\n",
        "wide.yml": f"include: [{', '.join(['leaf.yml'] * 200)}]\n",
        "bad.yml": "a: [\n",
    }
    with pytest.raises(ProjectError, match=said):
        project(files, ["c.yml"])


def test_a_thicket_of_includes_ends_at_the_limit() -> None:
    files = {f"{n}.yml": f"include: [{n + 1}.yml, {n + 1}.yml]\n" for n in range(40)}
    files["40.yml"] = "services: {}\n"
    with pytest.raises(ProjectError, match=f"over {FILE_LIMIT} files"):
        project(files, ["0.yml"])


_LINES = (
    "services:\n", "services: !override\n", "  a:\n", "  b:\n", "  a: !reset null\n",
    "  b: !override\n", "    extends: b\n", "    extends: a\n", "    <<: *x\n", "---\n", "- ",
    "x: &x {command: c}\n", "\u2028",
    "    command: !reset null\n", "    environment: [A, B=1]\n", "    environment: !override *x\n",
    "    volumes: ['/a:/b', {target: /c}]\n", "include: [c.yml]\n", "include: [d.yml]\n",
    "    env_file: one.env\n",
)  # fmt: skip


@given(st.lists(st.lists(st.sampled_from(_LINES), max_size=8), min_size=1, max_size=3))
def test_whatever_files_say_they_are_read_or_refused(parts: list[list[str]]) -> None:
    files = {f"{name}.yml": "".join(part) for name, part in zip("cde", parts, strict=False)}
    with suppress(ProjectError):
        for service in project(files, list(files)).services.values():
            contained(service, read=lambda path: reading(FILES, path))
