"""Variables as Docker Compose reads them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.compose.env_file import LIMIT, read_variables
from builder.compose.interpolation import interpolated, unset, without_unset
from builder.errors import ProjectError

KNOWN = {"A": "a", "EMPTY": "", "PATH_": "/m"}


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("x", "x"),
        ("$A-${A}", "a-a"),
        ("$$A $$$A", "$A $a"),
        ("${EMPTY:-d}|${EMPTY-d}|${NO:-d}|${NO-d}", "d||d|d"),
        ("${A:+y}|${EMPTY:+y}|${EMPTY+y}|${NO+y}", "y||y|"),
        ("${NO:-${NO2:-$A}/x}", "a/x"),
        ('${NO:-{"a":1}}', '{"a":1}'),
        ("${A:?must be}", "a"),
        ('exec vllm serve "$@" $1', 'exec vllm serve "$@" $1'),
        ("100%", "100%"),
    ],
)
def test_variables_are_put_in_as_compose_does(text: str, wanted: str) -> None:
    assert interpolated(text, KNOWN, at="f:1") == wanted


@pytest.mark.parametrize("text", ["/$NO/x", "/${NO}/x", "/${NO:?why}/x", "/${EMPTY:?why}/x"])
def test_what_is_not_set_stays_known(text: str) -> None:
    found = interpolated(text, KNOWN, at="f:1")
    assert unset(found) == (text.strip("/${}x").partition(":")[0],)
    assert without_unset(found) == "//x"


@pytest.mark.parametrize("text", ["${A", "${}", "${A!}", "${1}", "${NO:-${A}"])
def test_what_compose_refuses_is_refused_with_its_place(text: str) -> None:
    with pytest.raises(ProjectError, match=r"^f:1: "):
        interpolated(text, KNOWN, at="f:1")


def test_nesting_has_a_limit() -> None:
    with pytest.raises(ProjectError, match="nested deeper than 32"):
        interpolated("${NO:-" * 5000 + "}" * 5000, {}, at="f:1")


@given(st.text(alphabet="ab${}:-A ", max_size=40))
def test_any_text_is_put_together_or_refused(text: str) -> None:
    try:
        interpolated(text, KNOWN, at="f:1")
    except ProjectError:
        return
    assert interpolated(text.replace("$", "$$"), KNOWN, at="f:1") == text


def test_a_file_of_variables_is_read_in_all_its_dress() -> None:
    text = (
        '\ufeffONE=1\r\n# a comment\n\n export TWO=\'$ONE x\' # why\nTHREE="q\\n$ONE\\""\n'
        "FOUR=a b # c\nFIVE=\nSIX=#x\nSEVEN=${ONE}/${OUT}\nHERE\nNOT_HERE\nEIGHT: y\n"
        "NINE='two\nlines'\nTEN=x#y"
    )
    assert read_variables(text.encode(), {"OUT": "out", "HERE": "h"}, file="e") == {
        "ONE": "1",
        "TWO": "$ONE x",
        "THREE": 'q\n1"',
        "FOUR": "a b",
        "FIVE": "",
        "SIX": "",
        "SEVEN": "1/out",
        "HERE": "h",
        "EIGHT": "y",
        "NINE": "two\nlines",
        "TEN": "x#y",
    }


def test_the_environment_goes_before_what_a_file_has_said() -> None:
    assert read_variables(b"A=1\nB=$A\n", {"A": "2"}, file="e")["B"] == "2"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"A=1\nB='x\n", "e:2: not a variable"),
        (b"=1", "e:1: not a variable"),
        (b"\n\nA B\n", "e:3: not a variable"),
        (b"\xff", "not UTF-8"),
        (b"A=${B", "e:1: no end"),
        (b"#" * (LIMIT + 1), "the limit is"),
        (b"A" + b" " * (LIMIT - 2) + b"x", "e:1: not a variable"),
        (b"export" + b" " * (LIMIT - 7) + b"!", "e:1: not a variable"),
    ],
)
def test_an_odd_file_is_refused_with_its_line(data: bytes, words: str) -> None:
    with pytest.raises(ProjectError, match=words):
        read_variables(data, {}, file="e")


def test_a_large_file_takes_no_longer_for_each_line() -> None:
    data = b"".join(b"A%d=$A0\n" % number for number in range(60_000))
    assert len(read_variables(data, {"A0": "x"}, file="e")) == 60_000
