"""``builder check --upstream`` on a real registry that moves, deletes and stops."""

import json
import urllib.request
from collections import Counter
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from builder.digest import Digest
from builder.oci import Manifest
from tests.access_log import AccessLog
from tests.flow.images import MadeImage, image, push
from tests.flow.worlds import BASE, REGISTRY, Done, Tiny, base_image
from tests.services import RunningRegistry

KEPT = [{"layout": "kept", "digest": "sha256:" + "0" * 64}]


def dated(made: MadeImage, days: int) -> MadeImage:
    """The image as if it had been made so many days ago."""
    created = f"{datetime.now(UTC) - timedelta(days=days):%Y-%m-%dT%H:%M:%S.000000000Z}"
    config = json.dumps(json.loads(made.config) | {"created": created}).encode()
    document = json.loads(made.manifest.raw)
    document["config"] |= {"digest": str(Digest.of(config)), "size": len(config)}
    manifest = Manifest.parse(json.dumps(document).encode(), at="a test's image")
    return MadeImage(manifest=manifest, config=config, layers=made.layers, diff_ids=made.diff_ids)


@pytest.fixture
def repository(real_registry: RunningRegistry, request: pytest.FixtureRequest) -> str:
    name = request.node.name.partition("[")[0].replace("_", "-")
    return f"{real_registry.host}/{name}"


@pytest.fixture
def real(tmp_path: Path, real_registry: RunningRegistry) -> Tiny:
    made = Tiny.make(tmp_path, registries={REGISTRY: {"location": real_registry.host}})
    made.overlay("empty", files={"etc/new": (None, b"new\n")})
    return made


def delete(repository: str, digest: Digest) -> None:
    host, _, name = repository.partition("/")
    url = f"http://{host}/v2/{name}/manifests/{digest}"
    with urllib.request.urlopen(urllib.request.Request(url, method="DELETE")) as answer:
        assert answer.status == 202


def pinned(real: Tiny, repository: str, made: MadeImage, **fields: Any) -> None:
    name = repository.partition("/")[2]
    real.pin(made, repository=f"{REGISTRY}/{name}", index=str(made.digest), **fields)
    real.variant("it", "empty")


def check(real: Tiny, *arguments: str, mirrors: str = "") -> tuple[Done, list[tuple[str, int]]]:
    """The command, and the severities and statuses of what it found."""
    done = real.run("check", "--json", *arguments, BUILDER_MIRRORS=mirrors)
    found = done.json["findings"]
    return done, [(item["severity"], item["exit_status"]) for item in found]


def requests(log: AccessLog) -> list[str]:
    return [f"{item.method} {item.path.partition('/manifests/')[2]}" for item in log.requests()]


def test_what_upstream_has_is_asked_for_once_and_not_fetched(
    real: Tiny, repository: str, real_registry: RunningRegistry
) -> None:
    made = base_image()
    push(made, f"{repository}:t")
    pinned(real, repository, made, escrow=KEPT)
    log = AccessLog(real_registry.access_log)
    log.requests()
    done, found = check(real)
    assert (done.status, found, requests(log)) == (0, [], []), "not asked unless wanted"
    done, found = check(real, "--upstream")
    assert (done.status, found) == (0, [])
    assert requests(log) == ["HEAD t"]

    push(image(BASE), f"{repository}:t")
    log.requests()
    done, found = check(real, "--upstream")
    assert (done.status, found) == (0, [("warning", 0)])
    assert "the tag 't' moved" in done.out
    assert requests(log) == ["HEAD t", f"HEAD {made.digest}"]


def test_what_upstream_deleted_is_7_and_a_warning_where_a_copy_is_kept(
    real: Tiny, repository: str
) -> None:
    made = base_image()
    push(made, f"{repository}:t")
    pinned(real, repository, made)
    delete(repository, made.digest)
    done, found = check(real, "--upstream")
    assert (done.status, found) == (7, [("error", 7), ("warning", 0)])
    pinned(real, repository, made, escrow=KEPT)
    done, found = check(real, "--upstream")
    assert (done.status, found) == (0, [("warning", 0)])
    assert "upstream has deleted it; a copy is kept at oci:kept" in done.out


def test_a_registry_that_does_not_answer_is_8_and_the_rest_is_said(
    real: Tiny, repository: str
) -> None:
    pinned(real, repository, base_image())
    real.document("lockfiles/wheel.yaml", {"version": 1})
    done, found = check(real, "--upstream", mirrors=f"{REGISTRY}=127.0.0.1:1")
    assert done.status == 8
    assert found == [("error", 8), ("warning", 0), ("warning", 0)]
    assert real.run("check", "--upstream", "--offline").status == 2


def test_nights_that_upstream_will_soon_drop(
    real: Tiny, repository: str, real_registry: RunningRegistry
) -> None:
    nights = [dated(base_image(), days) for days in range(6)]
    for number, made in enumerate(nights):
        push(made, f"{repository}:night-{number}")
    name = repository.partition("/")[2]
    follows = {"image": f"{REGISTRY}/{name}", "tags": "night-*"}
    log = AccessLog(real_registry.access_log)
    for number, expected in ((0, []), (2, [("warning", 0)]), (5, [("error", 5)])):
        real.document(
            "builder.yaml",
            {
                "version": 1,
                "registries": {REGISTRY: {"location": real_registry.host}},
                "policy": {"expiry": {"newest": 4}},
            },
        )
        tag = {"follows": follows | {"tag": f"night-{number}"}}
        pinned(real, repository, nights[number], **tag)
        log.requests()
        done, found = check(real, "--upstream")
        assert found == [*expected, ("warning", 0)], "the last: nobody keeps its bytes"
        counts = Counter(item for item in requests(log) if item.strip() not in {"GET", "HEAD"})
        assert set(counts.values()) == {1}, "no tag and no manifest twice"
        assert done.status == (5 if number == 5 else 0)


def test_an_image_that_is_older_than_upstream_keeps_them(
    real: Tiny, repository: str, real_registry: RunningRegistry
) -> None:
    made = dated(base_image(), 100)
    push(made, f"{repository}:night-1")
    name = repository.partition("/")[2]
    policy = {"expiry": {"newest": 4, "days": 90}}
    location = {REGISTRY: {"location": real_registry.host}}
    real.document("builder.yaml", {"version": 1, "registries": location, "policy": policy})
    follows = {"image": f"{REGISTRY}/{name}", "tags": "night-*", "tag": "night-1"}
    pinned(real, repository, made, follows=follows)
    done, found = check(real, "--upstream")
    assert found == [("error", 5), ("warning", 0)]
    assert "night-1 was made 100 days ago, and upstream keeps images for 90 days" in done.out
