"""Envelopes: the encoding that is signed, and readers that take one spelling of it."""

import json
from base64 import b64encode
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.attest import dsse, statement
from builder.attest.dsse import Envelope, Signature
from builder.attest.statement import Statement, Subject
from builder.digest import Digest
from builder.errors import IntegrityError

SIGNED = Envelope(
    payload_type="http://example.com/HelloWorld",
    payload=b"hello world",
    signatures=(Signature(keyid="SHA256:x", sig=b"\x01\x02"),),
)


def test_the_encoding_that_is_signed_is_that_of_the_specification() -> None:
    # protocol.md, "Test Vectors".
    assert SIGNED.signed == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"


def test_lengths_are_those_of_bytes() -> None:
    assert dsse.pae("é", "ü\n".encode()) == b"DSSEv1 2 \xc3\xa9 3 \xc3\xbc\n"


@given(
    st.text(min_size=1, max_size=20, alphabet=st.characters(exclude_categories=["Cs"])),
    st.binary(max_size=50),
    st.lists(
        st.builds(
            Signature,
            keyid=st.text(max_size=9, alphabet=st.characters(exclude_categories=["Cs"])),
            sig=st.binary(max_size=80),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_what_is_written_reads_back(kind: str, payload: bytes, found: list[Signature]) -> None:
    envelope = Envelope(payload_type=kind, payload=payload, signatures=tuple(found))
    assert dsse.parse(dsse.encode(envelope), at="x") == envelope


def changed(**fields: Any) -> bytes:
    document = {**dsse.record(SIGNED), **fields}
    return json.dumps({key: value for key, value in document.items() if value is not ...}).encode()


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b"", "not JSON"),
        (b"[]", "not a DSSE envelope"),
        (dsse.encode(SIGNED)[:-1] + b',"payload":"eA=="}', "payload"),
        (
            changed(payload=...),
            r"not a DSSE envelope: expected the keys \['payload', 'payloadType', 'signatures'\]",
        ),
        (changed(more=1), "not a DSSE envelope"),
        (changed(payloadType=""), "payloadType"),
        (changed(payloadType=3), "payloadType"),
        (changed(signatures=[]), "without signatures"),
        (changed(signatures={}), "without signatures"),
        (changed(signatures={"sig": "AQI="}), "without signatures"),
        (changed(signatures=5), "without signatures"),
        (changed(signatures=[5]), "expected 'sig'"),
        (changed(signatures=[["sig"]]), "expected 'sig'"),
        (changed(signatures=[{"sig": "AQI="}] * 33), "33 signatures, the limit is 32"),
        (changed(signatures=[{"keyid": "a"}]), "expected 'sig'"),
        (changed(signatures=[{"sig": "AQI=", "cert": "x"}]), "expected 'sig'"),
        (changed(signatures=[{"sig": "AQI=", "keyid": None}]), "keyid"),
        (changed(payload="aGVsbG8gd29ybGQ"), "not base64"),  # no padding
        (changed(payload="aGVsbG8gd29ybGR="), "not the usual spelling"),  # unused bits
        (changed(payload="aGVsbG8g\nd29ybGQ="), "not base64"),
        (changed(payload="aGVsbG8-d29ybGQ="), "not base64"),  # URL-safe alphabet
        (changed(payload="aGVsbG8gd29ybGQ=é"), "not base64"),
        (changed(payload=7), "not base64"),
    ],
)
def test_what_is_no_envelope_is_refused(raw: bytes, said: str) -> None:
    with pytest.raises(IntegrityError, match=said):
        dsse.parse(raw, at="x")


def test_an_envelope_may_have_as_many_signatures_as_the_limit_says() -> None:
    raw = changed(signatures=[{"sig": "AQI="}] * dsse.SIGNATURE_LIMIT)
    assert len(dsse.parse(raw, at="x").signatures) == 32


def test_a_signature_needs_no_key_id() -> None:
    raw = changed(signatures=[{"sig": "AQI="}])
    assert dsse.parse(raw, at="x").signatures == (Signature(keyid="", sig=b"\1\2"),)


IMAGE = Digest.of(b"image")
SAID = Statement(
    subjects=(Subject(name="registry.test/vllm", digest=IMAGE),),
    predicate_type="https://slsa.dev/provenance/v1",
    predicate={"a": [1, "é"]},
)


def test_a_statement_reads_back_and_its_bytes_are_canonical() -> None:
    made = statement.envelope(SAID)
    assert statement.parse(made, at="x") == SAID
    assert (
        made.payload
        == (
            '{"_type":"https://in-toto.io/Statement/v1","predicate":{"a":[1,"é"]},'
            '"predicateType":"https://slsa.dev/provenance/v1","subject":[{"digest":{"sha256":"'
            f'{IMAGE.hex}"}},"name":"registry.test/vllm"}}]}}'
        ).encode()
    )
    assert SAID.about(IMAGE)
    assert not SAID.about(Digest.of(b"other"))


def stated(*, kind: str = dsse.IN_TOTO, **fields: Any) -> Envelope:
    document = {**json.loads(statement.envelope(SAID).payload), **fields}
    kept = {key: value for key, value in document.items() if value is not ...}
    return Envelope(payload_type=kind, payload=json.dumps(kept).encode())


@pytest.mark.parametrize(
    ("envelope", "said"),
    [
        (stated(kind="application/json"), "expected payload type"),
        (stated(_type="https://in-toto.io/Statement/v0.2"), "expected a https"),
        (stated(_type=["https://in-toto.io/Statement/v1"]), "expected a https"),
        (stated(_type=...), "expected a https"),
        (stated(subject=[]), "1 to 64 subjects"),
        (stated(subject=...), "1 to 64 subjects"),
        (stated(subject=[{"digest": {"sha256": IMAGE.hex}}] * 65), "1 to 64 subjects"),
        (stated(subject=[{"name": "x"}]), "no sha256"),
        (stated(subject=[{"digest": {"sha1": "a" * 40}}]), "no sha256"),
        (stated(subject=[{"digest": {"sha256": IMAGE.hex.upper()}}]), "no sha256"),
        (stated(subject=[{"digest": {"sha256": f"sha256:{IMAGE.hex}"}}]), "no sha256"),
        (stated(subject=["x"]), "no sha256"),
        (stated(predicateType=""), "predicateType"),
        (stated(predicateType=["x"]), "predicateType"),
        (Envelope(payload_type=dsse.IN_TOTO, payload=b"[1]"), r"expected a .*, got \[1\]"),
        (stated(predicate=[]), "expected an object"),
    ],
)
def test_what_is_no_statement_is_refused(envelope: Envelope, said: str) -> None:
    with pytest.raises(IntegrityError, match=said):
        statement.parse(envelope, at="x")


def test_a_statement_may_have_as_many_subjects_as_the_limit_says() -> None:
    many = stated(subject=[{"digest": {"sha256": IMAGE.hex}}] * statement.SUBJECT_LIMIT)
    assert len(statement.parse(many, at="x").subjects) == 64


@pytest.mark.parametrize("name", [5, None, ["x"], {"a": "b"}])
def test_a_name_that_is_no_text_is_none(name: object) -> None:
    """It is for people: nothing is decided by it."""
    one = stated(subject=[{"name": name, "digest": {"sha256": IMAGE.hex}}])
    assert statement.parse(one, at="x").subjects == (Subject(name="", digest=IMAGE),)


def test_a_subject_twice_in_the_payload_is_refused() -> None:
    """Python would take the last one, other readers the first."""
    raw = statement.envelope(SAID).payload
    twice = raw[:-1] + b',"subject":[{"digest":{"sha256":"' + b"0" * 64 + b'"}}]}'
    with pytest.raises(IntegrityError, match="subject"):
        statement.parse(Envelope(payload_type=dsse.IN_TOTO, payload=twice), at="x")


def test_the_payload_is_what_was_signed_and_not_what_it_means() -> None:
    spaced = json.dumps(json.loads(statement.envelope(SAID).payload), indent=2).encode()
    one = Envelope(payload_type=dsse.IN_TOTO, payload=spaced)
    assert statement.parse(one, at="x") == SAID
    assert one.signed != statement.envelope(SAID).signed
    assert b64encode(spaced).decode() == dsse.record(one)["payload"]


def test_what_cosign_attest_writes_is_a_statement_under_an_older_name() -> None:
    older = statement.parse(stated(_type="https://in-toto.io/Statement/v0.1"), at="x")
    assert older == statement.parse(stated(), at="x")
