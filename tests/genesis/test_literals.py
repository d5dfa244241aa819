"""Values out of the syntax tree: what is literal, what is not, and what a source may cost."""

import re
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.genesis.literals import SOURCE_LIMIT, SUM_LIMIT, VALUE_LIMIT, NotLiteral, literals
from tests.soon import within

WIDE = "A0 = (1, 1, 1, 1, 1, 1, 1, 1, 1, 1)\n" + "".join(
    f"A{n} = ({', '.join([f'A{n - 1}'] * 10)})\n" for n in range(1, 8)
)
LONG = f"A = {'a' * 1000!r}\n" + "".join(
    f"{new} = {' + '.join([old] * 10)}\n" for old, new in ("AB", "BC", "CD", "DE")
)


def _value(source: str) -> Any:
    return literals(source.encode(), ("X",), file="pkg/x.py")["X"]


@pytest.mark.parametrize(
    "source, wanted",
    [
        pytest.param("X = ('a', 'b')", ("a", "b"), id="plain"),
        pytest.param("X: tuple[str, ...] = ('a',)", ("a",), id="annotated"),
        pytest.param("X = Y = 'a'", "a", id="two names at once"),
        pytest.param("X: tuple\nX = ()", (), id="annotated before"),
        pytest.param("X = ('a' 'b')", "ab", id="adjacent texts"),
        pytest.param("X = 'a' + 'b'", "ab", id="a sum of texts"),
        pytest.param("A = ('a',)\nX = A + ('b',) + (A,)", ("a", "b", ("a",)), id="names"),
        pytest.param("X = [1, -2, 2.5, True, None, b'']", [1, -2, 2.5, True, None, b""], id="list"),
        pytest.param("X = {'a', 'b'}", frozenset({"a", "b"}), id="a set"),
        pytest.param("X = {'a': {'b': [1]}}", {"a": {"b": [1]}}, id="dicts"),
        pytest.param("raise SystemExit\nX = 1", 1, id="after a line that would end it"),
        pytest.param("X = 1\ndef f(X):\n  X = 2\n  X += 3", 1, id="another scope"),
        pytest.param("X = {}\nprint(X['a'], X.get('b'))", {}, id="used, and not changed"),
        pytest.param("# coding: latin-1\nX = '\\xe9'", "\u00e9", id="another encoding"),
    ],
)  # fmt: skip
def test_a_literal_is_read_without_running_it(source: str, wanted: object) -> None:
    assert _value(source) == wanted


def test_a_name_that_is_not_assigned_is_absent() -> None:
    source = b"from other import X\nY = 1\nif Y:\n    Z = 2\n"
    assert literals(source, ("Y", "W"), file="x.py") == {"Y": 1}


@pytest.mark.parametrize(
    "source, message",
    [
        ("X = tuple(f())", "pkg/x.py:1: X: a call on line 1 is no literal"),
        ("X = (\n  'a',\n  A,\n)", "pkg/x.py:1: X: the name 'A' on line 3 is no literal"),
        ("X = (*A,)", "pkg/x.py:1: X: an expression (Starred) on line 1 is no literal"),
        ("X = {**A}", "pkg/x.py:1: X: ** on line 1 is no literal"),
        ("X = f'{1}'", "pkg/x.py:1: X: an expression (JoinedStr) on line 1 is no literal"),
        ("X = 'a' * 9", "pkg/x.py:1: X: an expression (BinOp) on line 1 is no literal"),
        ("X = 'a' + ('b',)", "pkg/x.py:1: X: the sum of str and tuple on line 1 is no literal"),
        ("X = 1 + 1", "pkg/x.py:1: X: the sum of int and int on line 1 is no literal"),
        ("X = {[]: 1}", "pkg/x.py:1: X: unhashable type: 'list'"),
        (f"X = {2**64}", "pkg/x.py:1: X: a number of this size or kind on line 1 is no literal"),
        ("X = 1j", "pkg/x.py:1: X: a number of this size or kind on line 1 is no literal"),
        ("X = (", "pkg/x.py:1: no Python that can be read: '(' was never closed"),
    ],
)  # fmt: skip
def test_what_is_no_literal_is_refused_with_its_line(source: str, message: str) -> None:
    with pytest.raises(NotLiteral, match=f"^{re.escape(message)}$"):
        _value(source)


@pytest.mark.parametrize(
    "more",
    [
        "X = ('b',)",
        "X += ('b',)",
        "X['a'] = 1",
        "X['a']['b'] = 1",
        "del X['a']",
        "del X",
        "X.update(a=1)",
        "kept = X.setdefault('a', 1)",
        "for X in (): pass",
        "if True:\n  X = ('b',)",
        "X, Y = 1, 2",
        "from other import X",
        "import X.y",
        "def X(): pass",
        "class X: pass",
        "with f() as X: pass",
        "try:\n  X.clear()\nexcept OSError: pass",
        "if (X := f()): pass",
    ],
)
def test_a_value_that_is_changed_afterwards_is_not_literal(more: str) -> None:
    with pytest.raises(NotLiteral, match=r"^pkg/x\.py:[23]: X is changed after it was assigned, "):
        _value(f"X = {{}}\n{more}")


def test_a_value_made_of_a_name_that_is_changed_is_not_literal() -> None:
    with pytest.raises(NotLiteral, match=r"^pkg/x\.py:2: A is changed after"):
        _value("A = ['a']\nA.append(f())\nX = A")


@pytest.mark.parametrize(
    "source, why",
    [
        pytest.param("#" * (SOURCE_LIMIT + 1), "the limit is", id="a huge source"),
        pytest.param("X = " + "(" * 9999 + ")" * 9999, "no Python", id="parentheses"),
        pytest.param("X = " + "-" * 99999 + "1", "no Python", id="signs"),
        pytest.param("X = " + "1+" * 99999 + "1", "no Python", id="a long sum"),
        pytest.param("X = a" + ".b" * 99999, "no Python", id="attributes of attributes"),
        pytest.param("X = " + "9" * 9999, "no Python", id="digits"),
        pytest.param("X = 0x" + "f" * 99999, "a number of this size", id="hexadecimal digits"),
        pytest.param("X = 1\0", "no Python", id="a null byte"),
        pytest.param("# coding: nothing\nX = 1", "no Python", id="an unknown encoding"),
        pytest.param("X = " + "[" * 99 + "]" * 99, "deep is the limit", id="lists in lists"),
        pytest.param("X = X + ('a',)", "deep is the limit", id="a name of itself"),
        pytest.param(f"{WIDE}X = A7", f"more than {VALUE_LIMIT} values", id="names used often"),
        pytest.param(f"{LONG}X = E", f"a sum of more than {SUM_LIMIT}", id="texts that double"),
    ],
)
def test_a_source_that_would_exhaust_its_reader_is_refused_at_once(source: str, why: str) -> None:
    with within(5), pytest.raises(NotLiteral, match=why) as refusal:
        _value(source)
    assert len(str(refusal.value)) < 300


LITERALS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text() | st.binary(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=4).map(tuple)
        | st.dictionaries(st.text() | st.integers(0, 9), inner, max_size=4)
    ),
    max_leaves=20,
)


@given(LITERALS)
def test_what_python_writes_is_read_back(wanted: object) -> None:
    assert _value(f"X = {wanted!r}") == wanted


@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(source: bytes) -> None:
    with suppress(NotLiteral):
        literals(source, ("X",), file="x.py")


@given(
    st.lists(
        st.sampled_from(
            [
                "X",
                "=",
                "(",
                ")",
                "[",
                "]",
                "{",
                "}",
                ",",
                "'a'",
                "1",
                ":",
                "+",
                "A",
                "\n",
                "if",
                "f()",
                ".",
                "-",
            ]
        )
    )
)
def test_any_tokens_are_read_or_refused(tokens: list[str]) -> None:
    with suppress(NotLiteral):
        literals(" ".join(tokens).encode(), ("X",), file="x.py")
