"""What the scripts say, and with which status they end."""

import re
import shlex
from typing import Any

import pytest

from tests.claims import Claims
from tests.commands import ROOT, CommandError, run
from tests.real import containers, genesis_facts, kyverno
from tests.real.unavailable import NAMES, stated


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


def unchecked(**stated: Any) -> Claims:
    claims = Claims("title", **stated)
    claims.holds("it runs", True)
    claims.not_run("crane", "no such package", wants="sid")
    claims.not_run("a lint of deployments", "no copy", wants="deployments")
    claims.not_run("a pull", "no engine")
    return claims


def test_for_people_nothing_that_is_not_checked_is_a_failure() -> None:
    assert unchecked().finish() == 0


@pytest.mark.parametrize(
    ("limit", "without", "status"),
    [
        pytest.param(3, (), 0, id="as many as may be"),
        pytest.param(2, (), 1, id="one more"),
        pytest.param(0, ("sid", "deployments"), 1, id="one besides what is stated"),
        pytest.param(1, ("sid", "deployments"), 0, id="what is stated does not count"),
        pytest.param(1, ("sid", "something else"), 1, id="something else is no excuse"),
        pytest.param(2, ("",), 1, id="no name is no name"),
        pytest.param(None, ("sid",), 0, id="no limit"),
    ],
)
def test_more_unchecked_claims_than_stated_are_a_failure(
    limit: int | None, without: tuple[str, ...], status: int
) -> None:
    assert unchecked(unavailable=limit, without=without).finish() == status


def test_those_that_are_too_many_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert unchecked(unavailable=1, without=("deployments", "npm")).finish() == 1
    said = capsys.readouterr()
    last = said.out.splitlines()[-1]
    assert last.startswith("1 hold, 0 fail, 3 not run, 1 of them without deployments (")
    assert said.err.splitlines() == [
        "not run: crane",
        "not run: a pull",
        (
            "2 claims were not run that this machine should have run, and 1 may be:"
            " provide what they want, or state it (--unavailable, --without)"
        ),
    ]


def test_a_claim_that_fails_fails_beside_what_may_be_unchecked(
    capsys: pytest.CaptureFixture[str],
) -> None:
    claims = unchecked(unavailable=9)
    claims.holds("and this", False)
    assert claims.finish() == 1
    assert capsys.readouterr().err == "failed: and this\n"


def test_what_a_machine_goes_without_has_a_name_that_is_known(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert stated([]).unavailable is None
    options = stated(["--unavailable", "2", "--without", "npm", "--without", "sid"])
    assert (options.unavailable, options.without) == (2, ["npm", "sid"])
    for wrong in (["--without", "trixie"], ["--unavailable", "-1"], ["--unavailable", "\u0663"]):
        with pytest.raises(SystemExit) as caught:
            stated(wrong)
        assert caught.value.code == 2
    assert "invalid choice: 'trixie'" in capsys.readouterr().err


def test_ci_states_what_it_goes_without() -> None:
    script = (ROOT / ".ci/run").read_text()
    (arguments,) = re.findall(r"^ *without=\((.*?)^ *\)$", script, re.MULTILINE | re.DOTALL)
    options = stated(shlex.split(arguments, comments=True))
    assert options.unavailable == 0
    assert set(options.without) <= set(NAMES)


@pytest.mark.parametrize(
    "module", [containers, genesis_facts, kyverno], ids=["containers", "genesis", "kyverno"]
)
def test_what_reads_a_copy_of_a_repository_says_so_where_there_is_none(
    module: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("BUILDER_MIRRORS", raising=False)
    for without, status in ((NAMES, 0), ((), 1)):
        claims = Claims("title", unavailable=0, without=without)
        module.prove(claims)
        assert claims.finish() == status
