"""The payload of simple signing: exact bytes out, one reading in."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.sigstore import simple_signing
from builder.sigstore.simple_signing import PAYLOAD_LIMIT, SimpleSigning
from tests import mutations

SIGNING = SimpleSigning(reference="example.com/team/app:t", digest=Digest.of(b""))
DOCUMENT = json.loads(simple_signing.encode(SIGNING))


def test_the_bytes_are_those_that_cosign_writes() -> None:
    assert simple_signing.encode(SIGNING) == (
        b'{"critical":{"identity":{"docker-reference":"example.com/team/app:t"},"image":'
        b'{"docker-manifest-digest":"sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b'
        b'7852b855"},"type":"cosign container image signature"},"optional":null}'
    )


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40), st.binary(max_size=9))
def test_what_is_written_reads_back(reference: str, data: bytes) -> None:
    signing = SimpleSigning(reference=reference, digest=Digest.of(data))
    assert simple_signing.parse(simple_signing.encode(signing), at="x") == signing
    assert signing.about(Digest.of(data))
    assert not signing.about(Digest.of(data + b"x"))


@pytest.mark.parametrize("optional", [..., None, {}, {"creator": "cosign", "timestamp": 1.5}])
def test_what_is_optional_is_the_writers(optional: Any) -> None:
    document = {"critical": DOCUMENT["critical"], "optional": optional}
    kept = {key: value for key, value in document.items() if value is not ...}
    assert simple_signing.parse(json.dumps(kept, indent=3).encode(), at="x") == SIGNING


def test_a_key_left_out_there_twice_or_unknown_is_refused() -> None:
    cases = [*mutations.without(DOCUMENT), *mutations.twice(DOCUMENT)]
    cases += mutations.with_one_more(DOCUMENT)
    for path, raw in cases:
        if path == "optional" and raw.count(b'"optional"') == 0:
            continue
        with pytest.raises(IntegrityError):
            simple_signing.parse(raw, at=path)


def test_a_value_of_another_kind_is_refused() -> None:
    taken = []
    for path, other, raw in mutations.with_another(DOCUMENT):
        try:
            simple_signing.parse(raw, at=path)
        except IntegrityError:
            continue
        taken.append((path, other))
    assert taken == [
        ("critical.identity.docker-reference", ""),
        ("critical.identity.docker-reference", "odd"),
        ("optional", {}),
        ("optional", {"odd": 1}),
    ]


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "x: not JSON"),
        (b"[]", "x: not a simple signing payload: expected 'critical'"),
        (b"\xff", "x: not JSON"),
        (b'{"critical":' + b"[" * 100_000, "x: not JSON"),
        (b" " * (PAYLOAD_LIMIT + 1), f"the limit is {PAYLOAD_LIMIT}"),
        (
            simple_signing.encode(SIGNING).replace(b"cosign container", b"atomic container"),
            "x: critical.type: expected 'cosign container image signature', got 'atomic",
        ),
        (
            simple_signing.encode(SIGNING).replace(b"sha256:", b"sha512:"),
            "x: critical.image: expected 'sha256:' and 64 hex digits",
        ),
    ],
)
def test_what_is_no_payload_is_refused_with_its_own_message(raw: bytes, said: str) -> None:
    with pytest.raises(IntegrityError) as caught:
        simple_signing.parse(raw, at="x")
    assert said in caught.value.message
