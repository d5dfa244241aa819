"""What ``check --upstream`` finds, on a registry that counts what it is asked."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from builder.check import Finding, Upstream
from builder.check.upstream import upstream
from builder.digest import Digest
from builder.errors import (
    AuthError,
    BuilderError,
    GoneError,
    NetworkError,
    OfflineError,
    ProjectError,
    RateLimitError,
)
from builder.lock.model import Escrow, ImagePin, PlatformPin
from builder.oci import Descriptor, Index, Platform, parse_document
from builder.ports import Registry
from builder.reference import Reference
from builder.settings.model import ExpiryPolicy

A, B, C = (Digest(letter * 64) for letter in "abc")
AMD64 = Platform("linux", "amd64")
NOW = datetime(2026, 11, 30, tzinfo=UTC)
INDEX = "application/vnd.oci.image.index.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
REPOSITORY = "registry.example/vllm"


def index_of(*manifests: Digest) -> Index:
    items = ",".join(
        f'{{"mediaType":"{MANIFEST}","digest":"{item}","size":1,'
        '"platform":{"os":"linux","architecture":"amd64"}}'
        for item in manifests
    )
    raw = f'{{"schemaVersion":2,"mediaType":"{INDEX}","manifests":[{items}]}}'.encode()
    found = parse_document(raw, media_type=INDEX, at="test")
    assert isinstance(found, Index)
    return found


@dataclass
class FakeRegistry:
    """Tags and digests of one repository. ``broken`` answers with errors in their place."""

    tags_: dict[str, Digest] = field(default_factory=dict)
    there: set[Digest] = field(default_factory=set)
    documents: dict[Digest, Index] = field(default_factory=dict)
    broken: BuilderError | None = None
    asked: list[str] = field(default_factory=list)

    def resolve(self, reference: Reference) -> Descriptor:
        self.asked.append(f"HEAD {reference}")
        if self.broken is not None:
            raise self.broken
        digest = reference.digest or self.tags_.get(reference.tag or "")
        if digest is None or digest not in self.there:
            raise GoneError(f"{reference}: not found")
        return Descriptor(media_type=INDEX, digest=digest, size=1)

    def manifest(self, reference: Reference) -> Index:
        self.asked.append(f"GET {reference}")
        assert reference.digest is not None
        return self.documents[reference.digest]

    def tags(self, reference: Reference) -> tuple[str, ...]:
        self.asked.append(f"LIST {reference.name}")
        return tuple(sorted(self.tags_))


def pin(name: str = "night", tag: str | None = "nightly-a", **changes: Any) -> ImagePin:
    reference = Reference.parse(f"{REPOSITORY}:{tag}" if tag else REPOSITORY)
    made = ImagePin(name=name, follows=reference, index=A, at=f"lockfiles/vllm.yaml:3: vllm.{name}")
    return replace(made, **changes)


def nobody(*_: object) -> Any:
    raise AssertionError("not to be asked")


def found(
    registry: FakeRegistry,
    *pins: ImagePin,
    order: Callable[[ImagePin, Registry], tuple[str, ...]] = nobody,
    created: Callable[[ImagePin, Registry], datetime | None] = nobody,
    policy: ExpiryPolicy | None = None,
) -> list[Finding]:
    asked = Upstream(
        registry=cast("Registry", registry),
        make_hub=nobody,
        order=order,
        created=created,
        now=NOW,
    )
    return list(upstream(pins, asked, policy or ExpiryPolicy()))


def shown(findings: list[Finding]) -> list[tuple[str, int, str]]:
    assert all(item.where == "lockfiles/vllm.yaml:3" for item in findings)
    return [(str(item.severity), item.exit_status, item.message) for item in findings]


def test_a_tag_that_names_what_is_pinned_is_nothing_to_report_and_one_request() -> None:
    registry = FakeRegistry({"nightly-a": A}, {A})
    assert found(registry, pin()) == []
    assert registry.asked == [f"HEAD {REPOSITORY}:nightly-a"]


def test_a_tag_that_moved_is_a_warning_as_long_as_the_image_is_there() -> None:
    registry = FakeRegistry({"nightly-a": B}, {A, B})
    (finding,) = found(registry, pin())
    assert shown([finding]) == [
        (
            "warning",
            0,
            f"vllm.night: the tag 'nightly-a' moved: it names {B} now, the lock pins {A}",
        )
    ]
    assert finding.hint == "builds go by the lock; to follow the tag: builder bump vllm night"
    assert registry.asked == [f"HEAD {REPOSITORY}:nightly-a", f"HEAD {REPOSITORY}@{A}"]


def test_a_tag_that_was_deleted_and_a_manifest_that_was_not() -> None:
    (finding,) = found(FakeRegistry({}, {A}), pin())
    assert shown([finding]) == [
        (
            "warning",
            0,
            (
                "vllm.night: upstream has deleted the tag 'nightly-a'; the image is still there by"
                " its digest"
            ),
        )
    ]
    assert finding.hint == "keep its bytes while they can be had: builder escrow"


def test_a_manifest_that_is_gone_is_an_error_unless_a_copy_is_kept() -> None:
    (finding,) = found(FakeRegistry({}, set()), pin())
    assert shown([finding]) == [("error", 7, f"vllm.night: {REPOSITORY}@{A}: not found")]
    kept = (Escrow(registry=Reference.parse("ghcr.io/me/kept"), digest=A),)
    assert shown(found(FakeRegistry({"nightly-a": B}, {B}), pin(escrow=kept))) == [
        (
            "warning",
            0,
            f"vllm.night: the tag 'nightly-a' moved: it names {B} now, the lock pins {A}",
        ),
        (
            "warning",
            0,
            "vllm.night: upstream has deleted it; a copy is kept at ghcr.io/me/kept",
        ),
    ]


def test_an_image_without_a_tag_is_asked_for_by_its_digest() -> None:
    registry = FakeRegistry({}, {A})
    assert found(registry, pin(tag=None)) == []
    assert registry.asked == [f"HEAD {REPOSITORY}@{A}"]


def test_a_manifest_that_is_pinned_without_its_index_is_looked_for_in_what_the_tag_names() -> None:
    document = index_of(B, C)
    registry = FakeRegistry(
        {"nightly-a": document.digest}, {document.digest, C}, {document.digest: document}
    )
    own = pin(index=None, platforms=((AMD64, PlatformPin(manifest=C)),))
    assert found(registry, own, replace(own, name="other")) == []
    assert registry.asked == [
        f"HEAD {REPOSITORY}:nightly-a",
        f"GET {REPOSITORY}@{document.digest}",
    ], "a document is fetched once"
    moved = replace(own, platforms=((AMD64, PlatformPin(manifest=A)),))
    assert [item.exit_status for item in found(registry, moved)] == [0, 7]


def test_each_tag_is_asked_for_once_whoever_follows_it() -> None:
    registry = FakeRegistry({f"nightly-{letter}": A for letter in "abcde"}, {A})
    pins = [pin(f"p{number}", tags="nightly-*") for number in range(10)]

    def by_time(_: ImagePin, asked: Registry) -> tuple[str, ...]:
        tags = asked.tags(Reference.parse(REPOSITORY))
        for tag in tags:
            asked.resolve(Reference.parse(f"{REPOSITORY}:{tag}"))
        return tags

    assert found(registry, *pins, order=by_time) == []
    counts = Counter(registry.asked)
    assert set(counts.values()) == {1}
    assert len(counts) == 6


NIGHTS = tuple(f"nightly-{number:02}" for number in range(1, 31))


@pytest.mark.parametrize(
    ("place", "severity", "status", "words"),
    [
        pytest.param(7, None, 0, "", id="in the newer half"),
        pytest.param(8, "warning", 0, "nobody keeps its bytes", id="in the older half"),
        pytest.param(14, "warning", 0, "nobody keeps its bytes", id="the last that is kept"),
        pytest.param(15, "error", 5, "it may be gone any day", id="beyond"),
    ],
)
def test_a_place_among_the_newest_tags_says_what_is_about_to_go(
    place: int, severity: str | None, status: int, words: str
) -> None:
    tag = NIGHTS[place - 1]
    registry = FakeRegistry({tag: A}, {A})
    own = pin(tag=tag, tags="nightly-*")
    findings = found(registry, own, order=lambda *_: NIGHTS)
    if severity is None:
        assert findings == []
        return
    ((got, exit_status, message),) = shown(findings)
    assert (got, exit_status) == (severity, status)
    assert message.startswith(
        f"vllm.night: {tag} is number {place} of 'nightly-*', newest first, and upstream keeps 14:"
    )
    assert words in message
    kept = (Escrow(layout="kept", digest=A),)
    assert found(registry, replace(own, escrow=kept)) == [], "what is kept may go"


@pytest.mark.parametrize(
    ("days", "statuses"),
    [
        pytest.param(45, [], id="half the time"),
        pytest.param(46, [0], id="more than half"),
        pytest.param(91, [5], id="over"),
        pytest.param(None, [], id="nobody knows when it was made"),
    ],
)
def test_an_age_says_what_is_about_to_go(days: int | None, statuses: list[int]) -> None:
    registry = FakeRegistry({"nightly-a": A}, {A})
    findings = found(
        registry,
        pin(tags="nightly-*"),
        order=lambda *_: ("nightly-a",),
        created=lambda *_: None if days is None else NOW - timedelta(days=days),
        policy=ExpiryPolicy(days=90),
    )
    assert [item.exit_status for item in findings] == statuses
    if findings:
        assert f"was made {days} days ago, and upstream keeps images for 90 days" in str(findings)


def test_a_tag_without_a_place_in_the_order_is_not_judged_by_it() -> None:
    registry = FakeRegistry({"nightly-a": A}, {A})
    assert found(registry, pin(tags="nightly-*"), order=lambda *_: NIGHTS) == []


OUTCOMES: Mapping[str, tuple[BuilderError, int]] = {
    "network": (NetworkError("no route"), 8),
    "auth": (AuthError("401"), 14),
    "rate limit": (RateLimitError("429"), 15),
    "offline": (OfflineError("no"), 8),
}


@pytest.mark.parametrize(("error", "status"), OUTCOMES.values(), ids=OUTCOMES)
def test_every_failure_is_a_finding_with_its_own_words(error: BuilderError, status: int) -> None:
    registry = FakeRegistry(broken=error)
    (finding,) = found(registry, pin())
    assert shown([finding]) == [("error", status, f"vllm.night: {error.message}")]
    assert finding.hint == type(error).usual_hint


def test_a_registry_that_cannot_be_reached_is_not_waited_for_again() -> None:
    registry = FakeRegistry(broken=NetworkError("no route"))
    others = [replace(pin(f"p{number}", tag=f"t{number}")) for number in range(5)]
    findings = found(registry, *others)
    assert [item.message for item in findings] == [f"vllm.p{n}: no route" for n in range(5)]
    assert len(registry.asked) == 1


def test_a_refusal_of_one_repository_says_nothing_of_another() -> None:
    registry = FakeRegistry(broken=AuthError("401"))
    other = replace(pin("b"), follows=Reference.parse("registry.example/other:t"))
    assert len(found(registry, pin("a"), other)) == 2
    assert len(registry.asked) == 2


def test_an_order_that_cannot_be_had_is_a_finding() -> None:
    def refuse(*_: object) -> tuple[str, ...]:
        raise ProjectError("lockfiles/vllm.yaml:3: vllm.night: nothing says which is the newest")

    registry = FakeRegistry({"nightly-a": A}, {A})
    assert shown(found(registry, pin(tags="nightly-*"), order=refuse)) == [
        ("error", 3, "vllm.night: nothing says which is the newest")
    ]
