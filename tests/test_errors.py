"""Errors: an exit status for each kind, and a next step."""

import pytest

from builder import errors
from builder.errors import WORST, BuilderError, IntegrityError, PatchError, worst

STATUSES = {
    "UsageError": 2,
    "ProjectError": 3,
    "AbsentMirrorError": 3,
    "IntegrityError": 4,
    "PolicyError": 5,
    "SignatureError": 10,
    "UntrustedError": 11,
    "ExpiredError": 12,
    "UnsignedError": 13,
    "PatchError": 6,
    "SandboxError": 6,
    "GoneError": 7,
    "NetworkError": 8,
    "AuthError": 14,
    "RateLimitError": 15,
    "OfflineError": 8,
    "EnvironmentFault": 9,
    "PasswordError": 9,
}
KINDS = {
    name: kind
    for name, kind in vars(errors).items()
    if isinstance(kind, type) and issubclass(kind, BuilderError) and kind is not BuilderError
}


def test_each_kind_has_its_status() -> None:
    """They are told to scripts: a change of one is a change of the interface."""
    assert {name: kind.exit_status for name, kind in KINDS.items()} == STATUSES


def test_a_kind_whose_errors_come_from_elsewhere_knows_a_next_step() -> None:
    foreign = {name: kind for name, kind in KINDS.items() if kind.exit_status in (4, 7, 8, 14, 15)}
    hints = {name: kind("it").hint for name, kind in foreign.items()}
    assert all(hints.values())
    assert len(set(hints.values())) == len(hints)
    assert not [hint for hint in hints.values() if hint is not None and hint.endswith(".")]


@pytest.mark.parametrize(("given", "told"), [("do this", "do this"), (None, None)])
def test_a_next_step_that_is_given_is_the_one_told(given: str | None, told: str | None) -> None:
    assert IntegrityError("it", hint=given).hint == (told or IntegrityError.usual_hint)
    assert PatchError("it", verdict="refused", hint=given).hint == told


@pytest.mark.parametrize(
    ("statuses", "wanted"),
    [
        pytest.param([], 0, id="nothing wrong"),
        pytest.param([0, 8], 8, id="what may pass by itself"),
        pytest.param([8, 7], 7, id="what is gone before what could not be asked"),
        pytest.param([8, 6, 7], 6, id="a dead patch before what is gone"),
        pytest.param([6, 3], 3, id="a file that cannot be read before what it would say"),
        pytest.param([8, 15], 15, id="whoever answers before who does not"),
        pytest.param([3, 14], 14, id="credentials before what they would give"),
        pytest.param([3, 4, 8], 4, id="wrong bytes before everything"),
    ],
)
def test_the_worst_status_is_the_one_told(statuses: list[int], wanted: int) -> None:
    assert worst(statuses) == worst(reversed(statuses)) == wanted


def test_every_status_has_its_rank() -> None:
    assert sorted(WORST) == sorted({*STATUSES.values()})


def test_the_record_of_a_step_that_does_not_apply_has_its_findings() -> None:
    assert IntegrityError("it", hint="h").record() == {
        "message": "it",
        "hint": "h",
        "exit_status": 4,
    }
    error = PatchError("it", verdict="drift-anchor", path="a", findings=("a: x",), difference="-")
    assert error.record() == {
        "message": "it",
        "hint": None,
        "exit_status": 6,
        "verdict": "drift-anchor",
        "path": "a",
        "findings": ["a: x"],
        "difference": "-",
    }
