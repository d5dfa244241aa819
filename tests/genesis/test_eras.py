"""The table of eras."""

import pytest

from builder.genesis import ERAS, Era, era_of

EACH = pytest.mark.parametrize("era", ERAS, ids=lambda era: era.name)


@EACH
def test_an_era_is_known_by_its_payload(era: Era) -> None:
    assert era_of(era.payload) is era
    assert era_of(f"{era.payload}/") is era


def test_another_directory_is_of_no_era() -> None:
    assert era_of("vllm/_genesis/patches") is None
    assert era_of("") is None


@EACH
def test_what_is_applied_and_hooked_is_in_the_payload_or_in_a_plugin(era: Era) -> None:
    module = era.package.replace("/", ".")
    assert era.apply.startswith(f"{module}.")
    assert era.plugins or era.hook.startswith(f"{module}.")
