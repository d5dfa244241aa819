"""Signatures beside a file: keys are counted, bytes are exact."""

import json
from base64 import b64decode, b64encode

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.errors import IntegrityError, SignatureError
from builder.trust.chain import root_signers
from builder.trust.codec import read_policy
from builder.trust.names import PAYLOAD_TYPE, WAIVER_TYPE
from builder.trust.signatures import FILE_LIMIT, LINE_LIMIT, added, read_signatures, signed, signers
from tests.trust.keys import FixedSigner, policy_text, public, signatures, signer, text

RAW = policy_text().encode()
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
KEYS = (public("ada"), public("bob"), public("carol"))


def found(data: bytes, *, kind: str = PAYLOAD_TYPE, raw: bytes = RAW) -> set[str]:
    envelopes = read_signatures(data, file="f")
    by = signers(raw, kind, envelopes, KEYS)
    return {name for name in ("ada", "bob", "carol") if public(name) in by}


def with_signature(data: bytes, signature: bytes) -> bytes:
    """The first line with another signature."""
    document = json.loads(data.splitlines()[0])
    document["signatures"][0]["sig"] = b64encode(signature).decode()
    return json.dumps(document).encode()


def test_signatures_are_found_by_trying_keys() -> None:
    data = signatures(RAW, "ada", "carol") or b""
    assert found(data) == {"ada", "carol"}
    assert data.count(b"\n") == 2


def test_the_other_signature_of_the_same_key_counts_for_the_same_key() -> None:
    """ECDSA: where (r, s) verifies, (r, n-s) does."""
    data = signatures(RAW, "ada") or b""
    r, s = decode_dss_signature(b64decode(json.loads(data)["signatures"][0]["sig"]))
    other = with_signature(data, encode_dss_signature(r, ORDER - s))
    assert found(other) == {"ada"}
    both = text(RAW)
    both = type(both)(file=both.file, raw=RAW, signatures=data + other + b"\n")
    assert [key.name for key in root_signers(read_policy(RAW), both)] == ["ada"]


@pytest.mark.parametrize(
    "keyid",
    ["", "SHA256:nobody", public("bob").fingerprint],
    ids=["none", "a made up one", "another key's"],
)
def test_a_key_id_decides_nothing(keyid: str) -> None:
    document = json.loads(signatures(RAW, "ada") or b"")
    document["signatures"][0]["keyid"] = keyid
    assert found(json.dumps(document).encode()) == {"ada"}


def test_a_signature_of_something_else_is_none() -> None:
    data = signatures(RAW, "ada") or b""
    assert found(data, raw=RAW + b"\n") == set()
    assert found(data, raw=RAW.replace(b"\n", b"\r\n")) == set()
    assert found(data, kind=WAIVER_TYPE) == set()
    as_waiver = signatures(RAW, "ada", kind=WAIVER_TYPE) or b""
    assert found(as_waiver) == set()


def test_signing_again_adds_nothing() -> None:
    data = signatures(RAW, "ada", "bob") or b""
    again = added(
        data, signed(RAW, PAYLOAD_TYPE, signer("ada")), by=public("ada"), file="f", payloads=()
    )
    assert again == data


def test_what_is_no_longer_signed_by_anybody_goes() -> None:
    old = signatures(b"old", "ada", "bob")
    data = added(
        old, signed(RAW, PAYLOAD_TYPE, signer("ada")), by=public("ada"), file="f", payloads=()
    )
    assert data == signatures(RAW, "ada")


def test_a_signer_that_signs_with_another_key_is_found_out() -> None:
    false = FixedSigner(signer("bob").key, public("ada"))
    with pytest.raises(IntegrityError, match="is no signature of this key"):
        signed(RAW, PAYLOAD_TYPE, false)


LINE = (signatures(RAW, "ada") or b"").strip()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        pytest.param(b"no", "f:1: not JSON", id="no JSON"),
        pytest.param(LINE + b"\n[]", "f:2: not a DSSE envelope", id="a list"),
        pytest.param(LINE + LINE, "f:1: not JSON", id="two on a line"),
        pytest.param(
            LINE.replace(b'"payload":', b'"payload":"","payload":', 1),
            "f:1: duplicate key 'payload'",
            id="a key twice",
        ),
        pytest.param(
            json.dumps(json.loads(LINE) | {"signatures": []}).encode(),
            "f:1: an envelope without signatures",
            id="no signature",
        ),
        pytest.param(
            json.dumps(
                json.loads(LINE) | {"signatures": json.loads(LINE)["signatures"] * 2}
            ).encode(),
            "f:1: 2 signatures in one envelope, wanted 1",
            id="two signatures in one envelope",
        ),
        pytest.param(
            (LINE + b"\n") * (LINE_LIMIT + 1),
            f"f: {LINE_LIMIT + 1} signatures, the limit is {LINE_LIMIT}",
            id="too many",
        ),
        pytest.param(
            b" " * (FILE_LIMIT + 1),
            f"f: {FILE_LIMIT + 1} bytes, the limit is {FILE_LIMIT}",
            id="too large",
        ),
    ],
)
def test_a_damaged_file_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(SignatureError) as caught:
        read_signatures(data, file="f")
    assert caught.value.message.startswith(message)


def test_what_is_just_within_the_limits_is_read() -> None:
    assert len(read_signatures((LINE + b"\n") * LINE_LIMIT, file="f")) == LINE_LIMIT
    assert len(read_signatures(LINE.ljust(FILE_LIMIT), file="f")) == 1


def test_a_file_to_which_nothing_is_added_stays_as_it_is_byte_for_byte() -> None:
    data = b"\n" + json.dumps(json.loads(LINE), indent=None).encode() + b"\r\n"
    envelope = signed(RAW, PAYLOAD_TYPE, signer("ada"))
    assert added(data, envelope, by=public("ada"), file="f", payloads=()) == data


def test_empty_lines_and_line_ends_of_other_systems_are_passed_over() -> None:
    assert found(b"\n" + LINE + b"\r\n\r\n  \n") == {"ada"}


@settings(max_examples=200)
@given(st.integers(0, len(LINE) - 1), st.integers(1, 255))
def test_a_byte_that_changes_makes_no_other_signature(place: int, flip: int) -> None:
    """Only the key id is free: nobody looks at it."""
    data = bytearray(LINE)
    data[place] ^= flip
    try:
        by = found(bytes(data))
    except SignatureError:
        return
    if by:
        old, new = json.loads(LINE), json.loads(bytes(data))
        for document in (old, new):
            document["signatures"][0].pop("keyid", None)
        assert by == {"ada"}
        assert old == new
