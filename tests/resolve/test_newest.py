"""The newest of some tags: by commits, by time, and never by a guess (cases 14, 36)."""

import json
from dataclasses import replace
from typing import NoReturn

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.digest import Digest
from builder.errors import GoneError, NetworkError, ProjectError, RateLimitError
from builder.lock.model import ImagePin
from builder.oci import Manifest, Platform
from builder.resolve.newest import creation
from tests.fakes import FakeHistory
from tests.flow.images import MadeImage, image, index_of
from tests.resolve.image_world import ARM64, SYSTEM, Commits, World
from tests.standin.registry import Reply

REPOSITORY = "https://git.test/vllm"
IDS = [f"{number:x}" * 40 for number in (10, 3, 15, 1)]
"""In the order of their commits, which is none of names."""
HISTORY = {name: (1000 + number, None) for number, name in enumerate(IDS)}


def created(time: str | None, mark: str = "", architecture: str = "amd64") -> MadeImage:
    """An image that says when it was made."""
    made = image({**SYSTEM, "etc/mark": mark.encode()}, architecture=architecture)
    if time is None:
        return made
    config = json.dumps(json.loads(made.config) | {"created": time}).encode()
    document = json.loads(made.manifest.raw)
    document["config"] |= {"digest": str(Digest.of(config)), "size": len(config)}
    return replace(made, config=config, manifest=Manifest.parse(json.dumps(document).encode()))


def by_time(world: World) -> ImagePin:
    return world.pin("nightly-now", tags="nightly-*")


def by_commit(world: World) -> ImagePin:
    return world.pin("nightly-now", tags="nightly-*", commits=REPOSITORY)


def nightlies(world: World) -> None:
    made = created("2026-05-01T00:00:00Z")
    for name in IDS:
        world.tag(f"nightly-{name}", made)
    world.tag("latest", made)


# --- by commits ------------------------------------------------------------------------------


def test_the_newest_commit_is_that_of_the_newest_tag(world: World) -> None:
    nightlies(world)
    world.registry.page_size = 2
    history = Commits(HISTORY)
    assert world.newest(by_commit(world), history) == f"nightly-{IDS[3]}"
    assert history.asked == ["refs", IDS[3], *sorted(IDS)]  # first the whole branch, at once
    made = str(created("2026-05-01T00:00:00Z").digest)
    assert world.asked()[:5] == [
        *["GET /v2/base/tags/list"] * 3,
        f"HEAD /v2/base/manifests/nightly-{IDS[3]}",
        f"GET /v2/base/manifests/{made}",
    ]
    assert world.again().ordered(by_commit(world), history) == tuple(
        f"nightly-{name}" for name in reversed(IDS)
    )
    assert world.fetched() == 0


def test_what_names_no_commit_in_full_is_left_out_aloud(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    made = created("2026-05-01T00:00:00Z")
    unknown = "e" * 40
    for part in (IDS[0], IDS[1], unknown, "x86_64", IDS[3][:12], IDS[2].upper(), f"{IDS[3]}-arm"):
        world.tag(f"nightly-{part}", made)
    history = Commits(HISTORY)
    assert world.newest(by_commit(world), history) == f"nightly-{IDS[1]}"
    assert set(history.asked) == {"refs", IDS[3], IDS[0], IDS[1], unknown}
    at = "lockfiles/vllm.yaml:3: vllm.it: left out,"
    strange = f"nightly-{IDS[3][:12]}, nightly-{IDS[3]}-arm, nightly-{IDS[2].upper()} and 1 more"
    assert sorted(record.getMessage() for record in caplog.records) == [
        f"{at} not named by a commit in full: {strange}",
        f"{at} of a commit that {REPOSITORY} does not have: nightly-{unknown}",
    ]


def test_tags_that_name_no_commits_have_no_order(world: World) -> None:
    world.tag("nightly-one", created("2026-05-01T00:00:00Z"))
    with pytest.raises(ProjectError) as caught:
        world.newest(by_commit(world))
    assert caught.value.message == (
        "lockfiles/vllm.yaml:3: vllm.it: none of the 1 tags 'nightly-*' is named by a commit of"
        f" {REPOSITORY}, in full"
    )


def test_a_repository_that_cannot_be_asked_is_no_repository_without_commits(world: World) -> None:
    nightlies(world)

    class Down(Commits):
        def commit(self, repository: str, commit: str) -> NoReturn:
            raise NetworkError(f"{repository}: no answer in time")

    with pytest.raises(NetworkError, match="no answer in time"):
        world.newest(by_commit(world), Down())


def test_commits_of_one_time_are_ordered_by_their_history_and_otherwise_not(world: World) -> None:
    nightlies(world)
    pair = {IDS[0]: (1000, IDS[1]), IDS[1]: (1000, IDS[2]), IDS[2]: (1000, None)}
    world.untag(f"nightly-{IDS[3]}")
    assert world.newest(by_commit(world), Commits(pair)) == f"nightly-{IDS[0]}"
    apart = dict.fromkeys(IDS, (1000, None))
    with pytest.raises(ProjectError) as caught:
        world.newest(by_commit(world), Commits(apart))
    names = sorted(f"nightly-{name}" for name in IDS[:3])
    assert caught.value.message == (
        "lockfiles/vllm.yaml:3: vllm.it: nothing says which of the tags 'nightly-*' is the newest;"
        f" of one time: {', '.join(names)}"
    )
    assert world.ordered(by_commit(world), Commits(apart)) == tuple(names)


def test_the_newest_is_passed_over_while_it_lacks_the_platform_or_is_not_whole(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    amd, arm = created("2026-05-01T00:00:00Z"), created("2026-05-02T00:00:00Z", "", "arm64")
    world.tag(f"nightly-{IDS[0]}", amd)
    world.tag(f"nightly-{IDS[1]}", index_of(arm64=arm, amd64=amd), amd, arm)
    world.tag(f"nightly-{IDS[2]}", index_of(arm64=arm), arm)
    world.tag(f"nightly-{IDS[3]}", index_of(amd64=created("2026-05-09T00:00:00Z", "lost")))
    history = Commits(HISTORY)
    assert world.newest(by_commit(world), history) == f"nightly-{IDS[1]}"
    host = world.registry.host
    first, second = (record.getMessage() for record in caplog.records)
    assert first.startswith(f"{host}/base:nightly-{IDS[3]} is left out: {host}/base@sha256:")
    assert second == f"{host}/base:nightly-{IDS[2]} is left out: it has no image for linux/amd64"
    assert world.newest(by_commit(world), history, ARM64) == f"nightly-{IDS[2]}"
    with pytest.raises(ProjectError, match="none of the tags 'nightly-\\*' has an image for linux"):
        world.newest(by_commit(world), history, Platform("linux", "s390x"))


# --- by time ---------------------------------------------------------------------------------


def test_the_image_that_was_made_last_is_the_newest_and_no_document_is_fetched_twice(
    world: World,
) -> None:
    """Thirty tags on three pages, as in case 36; each later look is one HEAD a tag."""
    for number in range(30):
        day = (number * 7) % 30
        made = created(f"2026-05-{day + 1:02}T00:00:00.123456789Z", str(number))
        world.tag(f"nightly-{number:02}", index_of(amd64=made), made)
    world.registry.page_size = 12
    assert world.newest(by_time(world)) == "nightly-17"  # 17 * 7 % 30 is 29
    asked = world.asked()
    gets = [item for item in asked if item.startswith("GET /v2/base/manifests/")]
    assert (len(gets), len(set(gets))) == (60, 60)
    assert sum(item.startswith("HEAD ") for item in asked) == 30
    assert len(asked) == 3 + 30 + 60 + 30
    again = world.again()
    assert again.newest(by_time(world)) == "nightly-17"
    assert again.ordered(by_time(world))[:2] == ("nightly-17", "nightly-04")
    asked = again.asked()
    assert {item.partition(" ")[0] for item in asked if "manifests" in item} == {"HEAD"}
    assert len(asked) == 2 * (3 + 30)
    pin = again.resolve(replace(by_time(world), follows=world.reference("nightly-17"))).pin
    assert pin.index is not None
    assert again.fetched() == 0


@pytest.mark.parametrize(
    "time",
    [
        None,
        "1980-01-01T00:00:00Z",
        "1970-01-01T00:00:00Z",
        "0001-01-01T00:00:00Z",
        "yesterday",
        "2026-05-02T00:00:00",
        "20260502",
        "",
        "2026-05-32T00:00:00Z",
    ],
)
def test_an_image_that_does_not_say_when_it_was_made_makes_every_order_a_guess(
    world: World, time: str | None
) -> None:
    world.tag("nightly-1", created("2026-05-01T00:00:00Z"))
    world.tag("nightly-2", created(time))
    for ask in (world.newest, world.ordered):
        with pytest.raises(ProjectError) as caught:
            ask(by_time(world))
        assert caught.value.message == (
            "lockfiles/vllm.yaml:3: vllm.it: nothing says which of the tags 'nightly-*' is the"
            " newest; no time at which it was made: nightly-2"
        )


def test_two_images_of_one_time_are_a_guess_and_two_names_of_one_image_are_not(
    world: World,
) -> None:
    time = "2026-05-01T02:00:00+02:00"
    world.tag("nightly-a", created(time))
    world.tag("nightly-b", created(time))
    world.tag("nightly-0", created("2026-04-30T23:59:59Z", "older"))
    assert world.newest(by_time(world)) == "nightly-a"
    world.tag("nightly-c", created("2026-05-01T00:00:00Z", "another"))
    with pytest.raises(ProjectError, match="of one time: nightly-a, nightly-b, nightly-c"):
        world.newest(by_time(world))
    assert world.ordered(by_time(world))[-1] == "nightly-0"


def test_what_is_gone_or_for_another_platform_is_left_out_aloud(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    world.tag("nightly-1", created("2026-05-01T00:00:00Z"))
    world.tag("nightly-2", created(None, "", "arm64"))
    world.tag("nightly-3", index_of(arm64=created(None, "", "arm64")))
    world.tag("nightly-4", created("2026-05-04T00:00:00Z"))
    for method in ("HEAD", "GET"):  # between the list and the question
        world.registry.on(method, "/v2/base/manifests/nightly-4", Reply(status=404))
    assert world.newest(by_time(world)) == "nightly-1"
    at = "lockfiles/vllm.yaml:3: vllm.it: left out,"
    assert [record.getMessage() for record in caplog.records] == [
        f"{at} gone, or not whole: nightly-4",
        f"{at} no image for linux/amd64: nightly-2, nightly-3",
    ]


def test_a_registry_that_has_had_enough_is_not_one_without_images(world: World) -> None:
    world.tag("nightly-1", created("2026-05-01T00:00:00Z"))
    world.registry.on("HEAD", ".*", Reply(status=429, headers={"Retry-After": "3600"}))
    with pytest.raises(RateLimitError):
        world.newest(by_time(world))


# --- the glob --------------------------------------------------------------------------------


def test_a_glob_matches_from_end_to_end_and_its_star_stands_for_something(world: World) -> None:
    for tag in ("cu-1-x", "cu--x", "cu-x", "cu-2-y", "a-cu-3-x", "cu-1.5-x"):
        world.tag(tag, created("2026-05-01T00:00:00Z"))
    pin = replace(by_time(world), tags="cu-*-x")
    assert world.ordered(pin) == ("cu-1-x", "cu-1.5-x")


def test_a_pin_that_follows_one_tag_has_no_newest(world: World) -> None:
    nightlies(world)
    with pytest.raises(ProjectError) as caught:
        world.newest(world.pin("latest"))
    assert caught.value.message == (
        "lockfiles/vllm.yaml:3: vllm.it: follows the one tag 'latest', so that there is no newest"
    )
    with pytest.raises(ProjectError, match="/base has no tag 'weekly-\\*'"):
        world.newest(replace(by_time(world), tags="weekly-*"))
    with pytest.raises(GoneError):
        world.newest(replace(by_time(world), follows=replace(world.reference(), repository="no")))


@given(st.text(max_size=30) | st.sampled_from(["9999-12-31T23:59:59-23:59", "2026-W01"]))
def test_any_time_is_a_time_or_none(text: str) -> None:
    config = json.dumps({"created": text, "rootfs": {"diff_ids": []}}).encode()
    found = creation(config, at="x")
    assert found is None or found.timestamp() > 0


def test_commits_that_are_at_hand_are_looked_at_all_at_once(world: World) -> None:
    nightlies(world)

    class Here(Commits):
        at_hand = FakeHistory.at_hand

    history = Here(HISTORY)
    assert len(world.ordered(by_commit(world), history)) == len(IDS)
    assert set(history.asked) == {"refs", IDS[3]}, "each by itself is a process, or a question"


def test_after_many_commits_that_nobody_has_no_more_are_asked_for(
    world: World, caplog: pytest.LogCaptureFixture
) -> None:
    made = created("2026-05-01T00:00:00Z")
    for number in range(100):
        world.tag(f"nightly-{number:040x}", made)
    world.tag(f"nightly-{'0' * 39}f", made)
    history = Commits({"0" * 39 + "f": (7, None)})
    assert world.ordered(by_commit(world), history) == (f"nightly-{'0' * 39}f",)
    assert len(history.asked) < 20
    said = [record.getMessage() for record in caplog.records]
    assert any("was not asked for, after 16: nightly-" in line for line in said)


def test_images_without_end_are_not_asked_for_one_by_one(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("builder.resolve.newest._BY_TIME", 2)
    for name in ("nightly-1", "nightly-2", "nightly-3"):
        world.tag(name, created("2026-05-01T00:00:00Z"))
    world.asked()
    with pytest.raises(ProjectError) as caught:
        world.newest(by_time(world))
    assert "3 tags 'nightly-*', each of which would have to be asked for" in caught.value.message
    assert not [item for item in world.asked() if "manifests" in item]
