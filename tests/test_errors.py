"""Errors: an exit status for each kind, and a next step."""

import pytest

from builder import errors
from builder.errors import BuilderError, IntegrityError, PatchError

STATUSES = {
    "UsageError": 2,
    "ProjectError": 3,
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
    "AuthError": 8,
    "RateLimitError": 8,
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
    foreign = {name: kind for name, kind in KINDS.items() if kind.exit_status in (4, 7, 8)}
    hints = {name: kind("it").hint for name, kind in foreign.items()}
    assert all(hints.values())
    assert len(set(hints.values())) == len(hints)
    assert not [hint for hint in hints.values() if hint is not None and hint.endswith(".")]


@pytest.mark.parametrize(("given", "told"), [("do this", "do this"), (None, None)])
def test_a_next_step_that_is_given_is_the_one_told(given: str | None, told: str | None) -> None:
    assert IntegrityError("it", hint=given).hint == (told or IntegrityError.usual_hint)
    assert PatchError("it", verdict="refused", hint=given).hint == told
