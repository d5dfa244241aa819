"""Strict YAML: what is refused, with which place, under both of PyYAML's parsers."""

import pytest
import yaml

from builder.errors import ProjectError
from builder.strict_yaml import (
    DEPTH_LIMIT,
    NODE_LIMIT,
    SCALAR_LIMIT,
    SIZE_LIMIT,
    MappingNode,
    ScalarNode,
    SequenceNode,
    Writable,
    read,
    reader,
    write,
)
from tests.soon import within


@pytest.fixture(params=["CBaseLoader", "BaseLoader"], ids=["libyaml", "pure Python"], autouse=True)
def parser(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(reader, "_LOADER", getattr(yaml, request.param))
    return str(request.param)


def plain(text: str, line: int, column: int) -> ScalarNode:
    return ScalarNode(text, plain=True, line=line, column=column)


def quoted(text: str, line: int, column: int) -> ScalarNode:
    return ScalarNode(text, plain=False, line=line, column=column)


def test_a_document_is_texts_with_their_places() -> None:
    assert read(b"a: 1\nb:\n  - 'x'\n", file="f") == MappingNode(
        {
            "a": (plain("a", 1, 1), plain("1", 1, 4)),
            "b": (
                plain("b", 2, 1),
                SequenceNode((quoted("x", 3, 5),), 3, 3),
            ),
        },
        1,
        1,
    )


@pytest.mark.parametrize(
    "text", ["no", "012", "1e3", "2026-05-11", "1_000", "0x1f", "1:30", "=", ".inf", "y"]
)
def test_no_scalar_is_typed(text: str) -> None:
    assert read(text.encode(), file="f") == plain(text, 1, 1)


LAUGHS = b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\n"


@pytest.mark.parametrize(
    "data, message, hint",
    [
        pytest.param(
            LAUGHS,
            "f:1:4: anchor '&a', and anchors are not read",
            "write the values out where they are needed",
            id="a billion laughs",
        ),
        pytest.param(
            b"a: *x",
            "f:1:4: alias '*x', and aliases are not read",
            "write the values out where they are needed",
            id="an alias",
        ),
        pytest.param(
            b"a: !!python/object/apply:os.system [id]",
            "f:1:4: tag 'tag:yaml.org,2002:python/object/apply:os.system', and tags are not read",
            "quote the value where a text is meant",
            id="a tag that makes Python run something",
        ),
        pytest.param(
            b"a: !!str 1",
            "f:1:4: tag 'tag:yaml.org,2002:str', and tags are not read",
            "quote the value where a text is meant",
            id="a tag of a plain type",
        ),
        pytest.param(
            b"a: ! 1",
            "f:1:4: tag '!', and tags are not read",
            "quote the value where a text is meant",
            id="the tag without a name",
        ),
        pytest.param(
            b"a: 1\nb: 2\n'a': 3",
            "f:3:1: duplicate key 'a', first on line 1",
            None,
            id="a key twice, once in quotes",
        ),
        pytest.param(
            b"x:\n  - {a: 1, a: 1}",
            "f:2:12: duplicate key 'a', first on line 2",
            None,
            id="a key twice with one value",
        ),
        pytest.param(
            b"<<: {a: 1}",
            "f:1:1: a merge key, and merge keys are not read",
            "write the values out where they are needed",
            id="a merge key",
        ),
        pytest.param(
            b"? [a, b]\n: c",
            "f:1:3: a key that is a collection, and keys are texts",
            None,
            id="a key that cannot be hashed",
        ),
        pytest.param(
            b"{{a: b}: c}",
            "f:1:2: a key that is a collection, and keys are texts",
            None,
            id="a key that is a mapping",
        ),
        pytest.param(b"~: a", "f:1:1: a key that is null: '~'", None, id="a key that is null"),
        pytest.param(
            b"a: 1\n---\nb: 1",
            "f:2:1: a second document, and a file holds one",
            None,
            id="two documents",
        ),
        pytest.param(
            b"%YAML 1.2\n---\na: 1",
            "f:1:1: a directive, and directives are not read",
            None,
            id="a directive",
        ),
        pytest.param(b"", "f:1:1: an empty document", "start with version: 1", id="no bytes"),
        pytest.param(
            b"# x\n", "f:1:1: an empty document", "start with version: 1", id="only a comment"
        ),
        pytest.param(
            b"\xef\xbb\xbfa: 1",
            "f:1:1: a byte order mark",
            "save the file as UTF-8 without one",
            id="a byte order mark",
        ),
        pytest.param(
            "a: 1".encode("utf-16"),
            "f:1:1: byte 0xff is not UTF-8",
            "save the file as UTF-8",
            id="UTF-16",
        ),
        pytest.param(
            b"a: 1\nb: \xe9",
            "f:2:4: byte 0xe9 is not UTF-8",
            "save the file as UTF-8",
            id="Latin-1",
        ),
        pytest.param(
            b"a: \x00",
            "f:1:4: character U+0000 may not stand in YAML",
            "write it as an escape in double quotes, where it is meant",
            id="NUL",
        ),
        pytest.param(
            b"a: \x1b[31m",
            "f:1:4: character U+001B may not stand in YAML",
            "write it as an escape in double quotes, where it is meant",
            id="an escape sequence of a terminal",
        ),
        pytest.param(
            "a: x\u2028b: 1".encode(),
            "f:1:5: character U+2028 may not stand in YAML",
            "write it as an escape in double quotes, where it is meant",
            id="a line break of YAML 1.1 only",
        ),
        pytest.param(
            b"[" * 500,
            f"f:1:33: nested deeper than {DEPTH_LIMIT}",
            None,
            id="nested lists in one line",
        ),
        pytest.param(
            b"- " * 50_000 + b"x",
            f"f:1:65: nested deeper than {DEPTH_LIMIT}",
            None,
            id="nested lists as a block",
        ),
        pytest.param(
            b"a: '" + b"x" * (SCALAR_LIMIT + 1) + b"'",
            f"f:1:4: a text of {SCALAR_LIMIT + 1} characters, the limit is {SCALAR_LIMIT}",
            None,
            id="a huge scalar",
        ),
        pytest.param(
            b"#" * (SIZE_LIMIT + 1),
            f"f: {SIZE_LIMIT + 1} bytes of YAML, the limit is {SIZE_LIMIT}",
            None,
            id="a huge document",
        ),
    ],
)
def test_hostile_and_doubtful_documents_are_refused(
    data: bytes, message: str, hint: str | None
) -> None:
    with within(5), pytest.raises(ProjectError) as caught:
        read(data, file="f")
    assert (caught.value.message, caught.value.hint) == (message, hint)


def test_the_limit_of_values_is_two_hundred_thousand() -> None:
    assert NODE_LIMIT == 200_000


def test_too_many_values_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reader, "NODE_LIMIT", 100)
    assert isinstance(read(b"[" + b"a," * 99 + b"]", file="f"), SequenceNode)
    with pytest.raises(ProjectError) as caught:
        read(b"[" + b"a," * 100 + b"]", file="f")
    assert caught.value.message == "f:1:200: more than 100 values"


@pytest.mark.parametrize("opening", [b"[", b"{", b"{a: ", b"- ", b"? "])
def test_a_tower_of_collections_is_refused_at_once(opening: bytes) -> None:
    with within(2), pytest.raises(ProjectError) as caught:
        read(opening * 100_000, file="f")
    assert caught.value.message.startswith("f:1:")


def test_the_deepest_document_that_is_allowed_is_read() -> None:
    node = read(b"[" * DEPTH_LIMIT + b"]" * DEPTH_LIMIT, file="f")
    for _ in range(DEPTH_LIMIT - 1):
        assert isinstance(node, SequenceNode)
        (node,) = node.items
    assert node == SequenceNode((), 1, DEPTH_LIMIT)


@pytest.mark.parametrize(
    "data, place",
    [
        pytest.param(b"a:\tb", "f:1:3: ", id="between key and value"),
        pytest.param(b"a:\n\tb: 1", "f:2:1: ", id="as indentation"),
        pytest.param(b"a: [1,\t2]", "f:1:7: ", id="in a list"),
        pytest.param(b"a: b\tc", "f:1:5: ", id="in a plain text"),
        pytest.param(b"a: b#c\td", "f:1:7: ", id="after a number sign in a plain text"),
        pytest.param(b'a: "#"\nb:\t1', "f:2:3: ", id="after a number sign that is text"),
    ],
)
def test_a_tab_as_white_space_is_refused(data: bytes, place: str) -> None:
    with pytest.raises(ProjectError) as caught:
        read(data, file="f")
    assert caught.value.message.startswith(place)


@pytest.mark.parametrize(
    "data, text",
    [
        pytest.param(b"|\n  all:\n  \tmake\n", "all:\n\tmake\n", id="in a block"),
        pytest.param(b'"a\tb"', "a\tb", id="in quotes"),
        pytest.param(b"a #\tb\n", "a", id="in a comment"),
    ],
)
def test_a_tab_that_is_text_stays(data: bytes, text: str) -> None:
    node = read(data, file="f")
    assert isinstance(node, ScalarNode)
    assert node.text == text


def test_an_error_of_the_parser_has_its_place(parser: str) -> None:
    with pytest.raises(ProjectError) as caught:
        read(b"a: 1\nb: c: d", file="variants/x.yaml")
    where = "context" if parser == "CBaseLoader" else "here"
    word = f"in this {where}" if where == "context" else where
    assert caught.value.message == (
        f"variants/x.yaml:2:5: not YAML: mapping values are not allowed {word}"
    )


def test_half_a_surrogate_pair_is_refused() -> None:
    with pytest.raises(ProjectError) as caught:
        read(b'a: "\\ud800"', file="f")
    assert caught.value.message.startswith("f:1:")


def test_windows_line_ends_give_the_same_texts() -> None:
    node = read(b"a: |\r\n  x\r\n  y\r\n", file="f")
    assert isinstance(node, MappingNode)
    assert node.entries["a"][1] == quoted("x\ny\n", 1, 4)


def test_values_are_written_in_one_way() -> None:
    value: dict[str, Writable] = {
        "text": "docker.io/vllm/vllm-openai",
        "digest": "sha256:00ff",
        "url": "https://git.example/a+b@c",
        "number": 12,
        "truth": True,
        "no": "no",
        "traps": [
            "1e3",
            "012",
            "2026-05-11",
            "",
            "~",
            "a b",
            "a: b",
            'a"\\\n\t\x00\x7f',
            "-x",
            "é",
        ],
        "empty": {"list": [], "mapping": {}},
        "nested": [{"a": "b", "c": ["d"]}, ["e"]],
    }
    assert write(value, at="f").decode() == (
        "text: docker.io/vllm/vllm-openai\n"
        "digest: sha256:00ff\n"
        "url: https://git.example/a+b@c\n"
        "number: 12\n"
        "truth: true\n"
        '"no": "no"\n'
        "traps:\n"
        '  - "1e3"\n'
        '  - "012"\n'
        '  - "2026-05-11"\n'
        '  - ""\n'
        '  - "~"\n'
        '  - "a b"\n'
        '  - "a: b"\n'
        '  - "a\\"\\\\\\n\\t\\0\\x7f"\n'
        '  - "-x"\n'
        '  - "é"\n'
        "empty:\n"
        "  list: []\n"
        "  mapping: {}\n"
        "nested:\n"
        "  - a: b\n"
        "    c:\n"
        "      - d\n"
        "  - - e\n"
    )
