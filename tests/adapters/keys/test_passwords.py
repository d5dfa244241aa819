"""Passwords: where they come from, in which order, and what is no password."""

import os
import threading
from pathlib import Path

import pytest

from builder.adapters.keys.passwords import LIMIT, Passwords
from builder.errors import PasswordError, UsageError


class Person:
    """Somebody who answers, and remembers what they were asked."""

    def __init__(self, answer: str = "typed") -> None:
        self.answer = answer
        self.asked: list[tuple[str, bool]] = []

    def __call__(self, question: str, twice: bool) -> str:
        self.asked.append((question, twice))
        return self.answer


@pytest.mark.parametrize(
    ("data", "password"),
    [
        (b"secret", b"secret"),
        (b"secret\n", b"secret"),
        (b"secret\r\n", b"secret"),
        (b"secret\n\n", b"secret\n"),
        (b"secret\r", b"secret\r"),
        (b" two\nlines ", b" two\nlines "),
        (b"\xef\xbb\xbfnot \xff text\0", b"\xef\xbb\xbfnot \xff text\0"),
        (b"", b""),
        (b"\n", b""),
    ],
)
def test_a_file_has_the_password_without_its_last_line_end(
    data: bytes, password: bytes, tmp_path: Path
) -> None:
    file = tmp_path / "password"
    file.write_bytes(data)
    person = Person()
    found = Passwords({"BUILDER_KEY_PASSWORD_FILE": str(file), "COSIGN_PASSWORD": "x"}, ask=person)
    assert found.existing("it") == password
    assert person.asked == []


def test_a_pipe_is_a_file(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(b"piped\n",))
    writer.start()
    found = Passwords({"BUILDER_KEY_PASSWORD_FILE": str(pipe)}, ask=None).existing("it")
    writer.join()
    assert found == b"piped"


def test_a_file_that_cannot_be_the_password_is_refused(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_bytes(b"x" * (LIMIT + 1))
    for path, message in (
        (tmp_path / "none", ": cannot be read: No such file or directory"),
        (tmp_path, ": cannot be read: Is a directory"),
        (large, " has more than 4096 bytes"),
    ):
        with pytest.raises(UsageError) as caught:
            Passwords({"BUILDER_KEY_PASSWORD_FILE": str(path)}, ask=None).existing("it")
        assert str(caught.value) == f"BUILDER_KEY_PASSWORD_FILE: {str(path)!r}{message}"


def test_variables_are_taken_in_order_and_as_bytes() -> None:
    ours = {"BUILDER_KEY_PASSWORD": "\udcff\u2603", "COSIGN_PASSWORD": "theirs"}
    assert Passwords(ours, ask=None).existing("it") == b"\xff\xe2\x98\x83"
    assert Passwords({"COSIGN_PASSWORD": "theirs\n"}, ask=None).existing("it") == b"theirs\n"


def test_two_of_ours_contradict_each_other() -> None:
    both = {"BUILDER_KEY_PASSWORD": "x", "BUILDER_KEY_PASSWORD_FILE": "/x"}
    with pytest.raises(UsageError, match="are both set"):
        Passwords(both, ask=None).existing("it")


def test_a_variable_that_is_set_and_empty_is_no_question() -> None:
    """A secret that a CI does not hand to this job."""
    person = Person()
    assert Passwords({"BUILDER_KEY_PASSWORD": ""}, ask=person).existing("it") == b""
    assert person.asked == []


def test_a_person_is_asked_once_for_each_key_and_twice_for_a_new_one() -> None:
    person = Person("n\u00e4ive \udcff")
    passwords = Passwords({}, ask=person)
    assert passwords.existing("a.key") == passwords.existing("a.key") == b"n\xc3\xa4ive \xff"
    passwords.fresh("b")
    assert person.asked == [("password of a.key", False), ("new password for b", True)]


def test_without_a_person_there_is_none() -> None:
    with pytest.raises(PasswordError) as caught:
        Passwords({}, ask=None).existing("a.key")
    assert str(caught.value) == "a.key: no password, and nobody to ask"
    assert caught.value.hint == PasswordError.usual_hint


@pytest.mark.parametrize("environment", [{"COSIGN_PASSWORD": ""}, {}], ids=["variable", "person"])
def test_a_new_password_is_not_empty(environment: dict[str, str]) -> None:
    with pytest.raises(PasswordError) as caught:
        Passwords(environment, ask=Person("")).fresh("b")
    assert str(caught.value) == "b: the password is empty, which protects nothing"


def test_nothing_that_shows_passwords_has_one() -> None:
    passwords = Passwords({"BUILDER_KEY_PASSWORD": "canary"}, ask=None)
    passwords.existing("it")
    assert "canary" not in repr(passwords)


def test_what_a_person_mistyped_can_be_typed_again() -> None:
    passwords = Passwords({}, ask=Person())
    with pytest.raises(PasswordError) as caught, passwords.opening("a.key"):
        raise PasswordError(f"a.key: {passwords.existing('a.key')!r} does not open it")
    assert str(caught.value) == "a.key: b'typed' does not open it"
    assert caught.value.hint == "run it again, and type it once more"
