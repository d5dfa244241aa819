"""What ``check --upstream`` finds about models, on a hub that counts what it is asked."""

from dataclasses import replace

import pytest

from builder.adapters.hub import HubClient
from builder.adapters.hub_settings import HubSettings
from builder.check import Finding
from builder.check.hub import hub_models
from builder.digest import ObjectId
from builder.lock.model import ModelPin
from tests.hub.conftest import MakeClient
from tests.models.worlds import SHARDS, pin_of, tiny
from tests.standin.hub import StandInHub
from tests.standin.registry import Call, Reply

NAME = "Team/Tiny"
AT = "lockfiles/models.yaml:3: models.tiny"
STILL = "files that are here still verify: builder models verify"


@pytest.fixture
def pin(hub: StandInHub) -> ModelPin:
    """A pin of what the hub has, as ``add model`` writes it."""
    commit = hub.model(NAME, tiny()).refs["main"]
    return pin_of(tiny(), commit=ObjectId(commit), follows="main", at=AT)


def found(client: HubClient, *pins: ModelPin) -> list[Finding]:
    return list(hub_models(pins, lambda: client))


def shown(findings: list[Finding]) -> list[tuple[str, int, str]]:
    assert all(item.where == "lockfiles/models.yaml:3" for item in findings)
    return [(str(item.severity), item.exit_status, item.message) for item in findings]


def test_a_model_that_is_as_it_was_is_nothing_to_report_and_three_questions(
    hub: StandInHub, client: HubClient, pin: ModelPin
) -> None:
    assert found(client, pin) == []
    prefix = f"/api/models/{NAME}/revision"
    assert [call.path for call in hub.calls] == [
        f"{prefix}/{pin.commit}",
        f"{prefix}/main",
        f"/{NAME}/resolve/{pin.commit}/config.json",
    ]
    hub.calls.clear()
    assert found(client, replace(pin, follows=None)) == []
    assert len(hub.calls) == 2


def test_a_branch_that_moved_is_a_warning_with_the_next_step(
    hub: StandInHub, client: HubClient, pin: ModelPin
) -> None:
    new = hub.models[NAME].commit(tiny() | {"config.json": b"[]\n"})
    (finding,) = found(client, pin)
    assert shown([finding]) == [
        (
            "warning",
            0,
            f"models.tiny: 'main' moved: it is at {new[:12]} now, the lock pins {pin.commit.short}",
        )
    ]
    assert finding.hint == "fetches go by the lock; to follow it: builder bump model tiny"


def test_a_branch_that_was_removed_is_a_warning_as_long_as_the_commit_is_there(
    hub: StandInHub, client: HubClient, pin: ModelPin
) -> None:
    del hub.models[NAME].refs["main"]
    assert shown(found(client, pin)) == [
        (
            "warning",
            0,
            "models.tiny: the hub has no revision 'main' any more; the commit is still there",
        )
    ]


def test_a_model_that_was_renamed_is_told_by_its_new_name(
    hub: StandInHub, client: HubClient, pin: ModelPin
) -> None:
    hub.renamed["Team/Old"] = NAME
    (finding,) = found(client, replace(pin, repository="Team/Old"))
    message = (
        f"models.tiny: the hub calls Team/Old {NAME} now; the old name leads there until somebody"
        " else takes it"
    )
    assert shown([finding]) == [("warning", 0, message)]
    assert f"builder add model {NAME} --name tiny" in str(finding.hint)


def test_a_squashed_commit_is_an_error_where_bytes_are_lost_and_files_at_hand_still_verify(
    hub: StandInHub, client: HubClient, pin: ModelPin
) -> None:
    new = hub.models[NAME].commit(tiny() | {"config.json": b"[]\n"})
    hub.models[NAME].squash()
    (finding,) = found(client, pin)
    message = (
        f"models.tiny: commit {pin.commit.short} is gone from the hub; main is at {new[:12]},"
        " where 1 of 4 files differ: config.json"
    )
    assert shown([finding]) == [("error", 7, message)]
    assert finding.hint == f"{STILL}; to take what is there now: builder bump model tiny"


def test_a_squash_that_changed_no_file_is_a_warning(
    hub: StandInHub, client: HubClient, pin: ModelPin
) -> None:
    hub.models[NAME].commit(tiny() | {"README.md": b"squashed"})
    hub.models[NAME].squash()
    (finding,) = found(client, pin)
    assert (str(finding.severity), finding.exit_status) == ("warning", 0)
    assert finding.message.endswith("where all 4 files are the same")


def test_a_squashed_commit_that_follows_nothing_is_gone(
    hub: StandInHub, client: HubClient, pin: ModelPin
) -> None:
    hub.models[NAME].commit(tiny() | {"README.md": b""})
    hub.models[NAME].squash()
    (finding,) = found(client, replace(pin, follows=None))
    assert (finding.exit_status, finding.severity) == (7, "error")
    assert f"the hub has no revision '{pin.commit}'" in finding.message
    assert "can still be verified" in str(finding.hint)


def test_a_model_that_is_gone_says_nothing_of_the_next_one(
    client: HubClient, pin: ModelPin
) -> None:
    (finding,) = found(client, replace(pin, repository="Team/Gone"), pin)
    assert finding.exit_status == 7
    assert "no such model" in finding.message


def test_a_gated_model_is_found_before_a_fetch_and_says_nothing_of_the_next_one(
    hub: StandInHub, client: HubClient, pin: ModelPin
) -> None:
    other = hub.model("Team/Other", tiny()).refs["main"]
    hub.models[NAME].gated = True
    (finding,) = found(client, pin, replace(pin, repository="Team/Other", commit=ObjectId(other)))
    assert (finding.exit_status, finding.where) == (14, "lockfiles/models.yaml:3")
    assert "it is gated" in finding.message
    assert "HF_TOKEN" in str(finding.hint)


@pytest.mark.parametrize(
    ("refusal", "words"),
    [
        pytest.param(Reply(status=403, body=b"{}"), "403", id="403 is not gone"),
        pytest.param(Reply(status=401, body=b"{}"), "401", id="401 is not gone"),
    ],
)
def test_a_refusal_is_no_verdict_on_the_model(
    hub: StandInHub, client: HubClient, pin: ModelPin, refusal: Reply, words: str
) -> None:
    hub.on("GET", "/api/.*", refusal)
    (finding,) = found(client, pin)
    assert (finding.exit_status, finding.severity) == (14, "error")
    assert words in finding.message


def test_a_rate_limit_and_a_server_that_is_down_are_not_asked_again(
    hub: StandInHub, make_client: MakeClient, pin: ModelPin
) -> None:
    later = Reply(status=429, headers={"Retry-After": "3600"})
    hub.on("GET", "/api/.*", later)
    findings = found(make_client(), pin, replace(pin, repository="Team/Other"))
    assert [item.exit_status for item in findings] == [15, 15]
    assert len(hub.calls) == 1
    nowhere = make_client(HF_ENDPOINT="http://127.0.0.1:9")
    findings = found(nowhere, pin, pin, pin)
    assert [item.exit_status for item in findings] == [8, 8, 8]
    assert len({item.message for item in findings}) == 1


def test_other_bytes_under_the_locked_commit_are_an_error(
    hub: StandInHub, client: HubClient, pin: ModelPin
) -> None:
    hub.on("GET", ".*/config.json", Reply(body=b"[]\n"))
    (finding,) = found(client, pin)
    assert finding.exit_status == 4
    assert "config.json: expected sha256:" in finding.message


def test_a_model_of_large_files_alone_is_not_downloaded(
    hub: StandInHub, client: HubClient, pin: ModelPin
) -> None:
    large = tuple(replace(file, size=2 << 20) for file in pin.files if file.path in SHARDS)
    assert found(client, replace(pin, files=large)) == []
    assert not [call for call in hub.calls if "/resolve/" in call.path]


def test_a_pin_without_files_whose_commit_is_gone_is_an_error(
    hub: StandInHub, client: HubClient, pin: ModelPin
) -> None:
    hub.models[NAME].commit(tiny() | {"README.md": b""})
    hub.models[NAME].squash()
    (finding,) = found(client, replace(pin, files=()))
    assert finding.exit_status == 7


def test_a_hub_that_takes_too_long_is_not_asked_about_the_next_models(
    hub: StandInHub, pin: ModelPin
) -> None:
    now = [0.0]

    def slowly(call: Call) -> None:
        now[0] += 100

    hub.on("GET", ".*", slowly, forever=True)
    settings = HubSettings.of({"HF_ENDPOINT": hub.endpoint, "HF_TOKEN_PATH": "/nonexistent/token"})
    client = HubClient(settings, clock=lambda: now[0], host_limit=150.0)
    try:
        findings = found(client, pin, pin, pin)
    finally:
        client.close()
    said = f"{hub.host} has taken over 150 s for its answers in all"
    assert [(status, said in message) for _, status, message in shown(findings)] == [(8, True)] * 3
    assert len(hub.calls) == 2
