"""What containerd asks, and what it is told: 0 only where somebody verified."""

import pytest

from builder.digest import Digest
from builder.errors import GoneError, UntrustedError
from builder.trust.image_verifier import REASON_LIMIT, Asked, answer

DIGEST = Digest.of(b"image")
NAME = "registry.example/acme/vllm:tag"


def yes(asked: Asked) -> str:
    return f"{asked.reference.name} is signed"


def never(asked: Asked) -> str:
    raise AssertionError("asked although the question is none")


def test_what_is_verified_may_be_pulled() -> None:
    found = answer(NAME, str(DIGEST), yes)
    assert (found.status, found.reason) == (0, "registry.example/acme/vllm is signed")
    assert answer(f"{NAME}@{DIGEST}", str(DIGEST), yes).status == 0


def test_what_is_refused_may_not_and_says_why_on_one_line() -> None:
    def no(asked: Asked) -> str:
        raise UntrustedError("nobody\nsigned", hint="sign it")

    found = answer(NAME, str(DIGEST), no)
    assert (found.status, found.reason) == (11, "nobody signed")


def test_what_cannot_be_found_out_may_not_either() -> None:
    def gone(asked: Asked) -> str:
        raise GoneError(f"{'x' * 900}\n" * 10)

    found = answer(NAME, str(DIGEST), gone)
    assert found.status == 7
    assert len(found.reason) == REASON_LIMIT


@pytest.mark.parametrize(
    ("name", "digest"),
    [
        ("", str(DIGEST)),
        ("no reference", str(DIGEST)),
        (NAME, ""),
        (NAME, "sha256:beef"),
        (NAME, "md5:" + "0" * 32),
        (f"{NAME}@{Digest.of(b'another')}", str(DIGEST)),
    ],
)
def test_a_question_that_is_none_is_refused_unasked(name: str, digest: str) -> None:
    assert answer(name, digest, never).status == 2


def test_a_bug_is_no_yes() -> None:
    with pytest.raises(AssertionError):
        answer(NAME, str(DIGEST), never)
