"""What the scripts say, and with which status they end."""

import pytest

from tests.claims import Claims
from tests.commands import CommandError, run


def test_claims_that_hold_are_said_with_their_evidence(capsys: pytest.CaptureFixture[str]) -> None:
    claims = Claims("title")
    claims.equal("the digest", "abc", "abc")
    claims.holds("it runs", True)
    claims.not_run("podman", "is not installed")
    assert claims.finish() == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[:-1] == [
        "title",
        "  ok    the digest: abc",
        "  ok    it runs",
        "  --    not run: podman: is not installed",
    ]
    assert lines[-1].startswith("2 hold, 0 fail, 1 not run (")


def test_one_claim_that_fails_is_the_status_of_all(capsys: pytest.CaptureFixture[str]) -> None:
    claims = Claims("title")
    claims.equal("the digest", "abc", "def")
    claims.holds("it runs", True)
    assert claims.finish() == 1
    said = capsys.readouterr()
    assert "  FAIL  the digest: got abc, wanted def\n" in said.out
    assert said.err == "failed: the digest\n"


def test_a_command_that_fails_is_a_claim_that_fails(capsys: pytest.CaptureFixture[str]) -> None:
    claims = Claims("title")
    with claims.group("the peer accepts it"):
        run(("sh", "-c", "echo no >&2; exit 3"))
    assert claims.finish() == 1
    assert "  FAIL  the peer accepts it: sh -c echo no >&2; exit 3: status 3: no\n" in (
        capsys.readouterr().out
    )


def test_a_command_that_does_not_start_has_no_status() -> None:
    with pytest.raises(CommandError, match="no-such-program") as caught:
        run(("no-such-program",))
    assert caught.value.status is None
