"""Signatures of models against the lock: who signed, what, and where the two differ."""

import json
from base64 import b64decode
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder import canonical
from builder.errors import BuilderError, SignatureError, UntrustedError
from builder.lock.model import ModelFile
from builder.models.signature import LIMIT, Held, ModelSignature, hold, read_model_signature
from tests.models.signing import (
    IGNORED,
    altered,
    model_signature,
    predicate,
    resources,
    root,
    signed,
    statement,
)
from tests.models.worlds import SHARDS, pin_of, tiny
from tests.signers import ed, p256

FILES = tiny()
KEY = p256().public
RAW = model_signature(FILES)


def read(raw: bytes) -> ModelSignature:
    return read_model_signature(raw, keys=(KEY,), at="model.sig")


def held(files: dict[str, bytes], **pinned: Any) -> Held:
    """A signature of the files against the lock of the tiny model."""
    return hold(pin_of(FILES, **pinned), read(model_signature(files)))


def test_a_signature_says_which_files_there_are_and_who_signed() -> None:
    found = read(RAW)
    assert (found.key, found.name, found.at) == (KEY, "tiny", "model.sig")
    assert {path: digest.hex for path, digest in found.files.items()} == {
        item["name"]: item["digest"] for item in resources(FILES)
    }
    assert found.ignored == frozenset(IGNORED)
    assert hold(pin_of(FILES), found) == Held(
        signature=found, same=tuple(sorted(FILES)), findings=(), beside=(), ignored=()
    )


@pytest.mark.parametrize(
    "by", [pytest.param(p256("b"), id="P-256"), pytest.param(ed(), id="Ed25519")]
)
def test_any_of_several_keys_will_do(by: Any) -> None:
    raw = model_signature(FILES, by)
    assert read_model_signature(raw, keys=(KEY, by.public), at="x").key == by.public
    with pytest.raises(UntrustedError) as caught:
        read(raw)
    assert caught.value.message == f"model.sig: signed by none of {KEY.fingerprint}"


def test_what_a_bundle_says_of_its_key_decides_nothing() -> None:
    for hint in ("", "0" * 64, KEY.fingerprint):
        assert read(signed(statement(FILES), hint=hint)).key == KEY
    stranger = signed(statement(FILES), p256("b"), hint=KEY.hint)
    with pytest.raises(SignatureError) as caught:
        read(stranger)
    assert caught.value.message == (
        f"model.sig: not a signature of {KEY.fingerprint}, which it names"
    )


def test_another_payload_under_a_signature_is_damage() -> None:
    other = canonical.encode(statement(FILES | {"config.json": b"other"}))
    with pytest.raises(SignatureError, match="not a signature of"):
        read(altered(RAW, other))


def test_files_that_are_signed_as_others_are_named() -> None:
    found = held(FILES | {"config.json": b"other"})
    ours, theirs = (resources({"x": data})[0]["digest"] for data in (b"{}\n", b"other"))
    assert found.findings == (f"config.json: signed as sha256:{theirs}, locked as sha256:{ours}",)
    assert (found.ok, len(found.same)) == (False, 3)


def test_what_is_locked_and_not_signed_is_a_finding_and_the_other_way_round_is_told() -> None:
    files = {path: data for path, data in FILES.items() if path != SHARDS[1]}
    found = held(files | {"README.md": b"", "a/b": b""})
    assert found.findings == (f"{SHARDS[1]}: locked and not signed",)
    assert found.remarks == ("2 signed and not locked: README.md, a/b",)


def test_findings_are_in_the_order_of_their_paths() -> None:
    pin = pin_of(FILES)
    signature = read(model_signature({"config.json": b"other"}))
    found = hold(replace(pin, files=pin.files[::-1]), signature)
    assert [each.partition(":")[0] for each in found.findings] == sorted(FILES)


def test_the_model_of_somebody_else_is_one_finding() -> None:
    assert held({"x": b"", "y": b""}).findings == (
        "none of 4 locked files is signed: it is over 2 signed files",
    )


def test_what_the_signer_left_out_is_told_and_no_finding() -> None:
    files = FILES | {".gitattributes": b"", ".git/config": b"", ".gitx": b""}
    found = hold(pin_of(files), read(RAW))
    assert found.findings == (".gitx: locked and not signed",)
    assert found.remarks == ("2 left out by the signer: .git/config, .gitattributes",)


def test_leaving_everything_out_signs_nothing() -> None:
    said = predicate({"x": b""}, serialization={"method": "files", "ignore_paths": [*FILES]})
    digest = {"sha256": root(said["resources"])}
    raw = signed(statement({}, predicate=said, subject=[{"name": "", "digest": digest}]))
    assert not hold(pin_of(FILES), read(raw)).ok


def test_a_file_that_is_signed_all_the_same_is_not_left_out() -> None:
    files = FILES | {".gitattributes": b"signed"}
    raw = model_signature(files)
    found = hold(pin_of(files | {".gitattributes": b"other"}), read(raw))
    assert found.findings[0].startswith(".gitattributes: signed as ")


def test_a_file_without_a_digest_in_the_lock_is_left_to_verify() -> None:
    pin = pin_of(FILES)
    bare = (replace(pin.files[0], digest=None), *pin.files[1:])
    found = hold(replace(pin, files=bare), read(RAW))
    assert (found.findings, len(found.same)) == ((), 3)
    only = hold(replace(pin, files=(ModelFile(path="config.json"),)), read(RAW))
    assert (only.findings, only.same) == ((), ())


def test_fields_that_nobody_knows_are_passed_over() -> None:
    said = predicate(FILES, future={"a": [1]})
    assert read(signed(statement(FILES, predicate=said))).files


def _serialization(**fields: Any) -> dict[str, Any]:
    whole = {"method": "files", "hash_type": "sha256", "allow_symlinks": False} | fields
    return statement(FILES, predicate=predicate(FILES, serialization=whole))


def _resource(**fields: Any) -> dict[str, Any]:
    """The statement with another first file, and the digest of the whole as it must be then."""
    first, *rest = resources(FILES)
    changed = [first | fields, *rest]
    return statement(FILES, predicate=predicate(FILES, resources=changed))


@pytest.mark.parametrize(
    ("kind", "hint"),
    [
        (
            "https://model_signing/Digests/v0.1",
            "signatures of model_signing before 1.0 are to be made anew",
        ),
        (
            "https://slsa.dev/provenance/v1",
            "it is signed, and says nothing of the files of a model",
        ),
    ],
)
def test_a_statement_of_another_kind_says_what_it_is(kind: str, hint: str) -> None:
    with pytest.raises(SignatureError) as caught:
        read(signed(statement(FILES, predicateType=kind)))
    assert caught.value.hint == hint


@pytest.mark.parametrize(
    ("said", "wanted"),
    [
        pytest.param(
            statement(FILES, predicateType="https://slsa.dev/provenance/v1"),
            "predicateType: expected 'https://model_signing/signature/v1.0', got"
            " 'https://slsa.dev/provenance/v1'",
            id="another statement",
        ),
        pytest.param(
            statement(FILES, predicateType="\x1b[2J" * 100),
            "predicateType: expected 'https://model_signing/signature/v1.0', got"
            f" '{(chr(92) * 2 + 'x1b[2J') * 100!s:.119}",
            id="a type that steers a terminal",
        ),
        pytest.param(
            statement(FILES, predicateType="https://model_signing/Digests/v0.1"),
            "predicateType: expected 'https://model_signing/signature/v1.0', got"
            " 'https://model_signing/Digests/v0.1'",
            id="an older version",
        ),
        pytest.param(
            statement(FILES, subject=statement(FILES)["subject"] * 2),
            "subject: expected one model, got 2",
            id="two subjects",
        ),
        pytest.param(
            statement(FILES, subject=[{"name": "x", "digest": {"sha256": "0" * 64}}]),
            f"it contradicts itself: its subject is sha256:{'0' * 64}, its files give"
            f" sha256:{root(resources(FILES))}",
            id="another root",
        ),
        pytest.param(
            statement(FILES, predicate=predicate(FILES, resources=resources(FILES)[1:])),
            f"it contradicts itself: its subject is sha256:{root(resources(FILES))}, its files give"
            f" sha256:{root(resources(FILES)[1:])}",
            id="a file less",
        ),
        pytest.param(
            statement(FILES, predicate=predicate(FILES, resources=resources(FILES)[::-1])),
            f"it contradicts itself: its subject is sha256:{root(resources(FILES))}, its files give"
            f" sha256:{root(resources(FILES)[::-1])}",
            id="another order",
        ),
        pytest.param(
            statement(FILES, predicate=predicate({})),
            "resources: expected a list of files, and one at least",
            id="no files",
        ),
        pytest.param(
            statement(FILES, predicate=predicate(FILES, resources={})),
            "resources: expected a list of files, and one at least",
            id="no list",
        ),
        pytest.param(
            statement(FILES, predicate={"resources": resources(FILES)}),
            "serialization: expected an object",
            id="no serialization",
        ),
        pytest.param(
            _serialization(method="shards", shard_size=1000),
            "serialization: method: expected 'files', got 'shards'",
            id="shards",
        ),
        pytest.param(
            _serialization(ignore_paths="x"),
            "serialization: ignore_paths: expected a list of texts",
            id="ignored as a text",
        ),
        pytest.param(
            _resource(algorithm="blake3"),
            "resources[0]: 'config.json': algorithm: expected 'sha256', got 'blake3'",
            id="another algorithm",
        ),
        pytest.param(
            _resource(algorithm="sha256-sharded-1000"),
            "resources[0]: 'config.json': algorithm: expected 'sha256', got 'sha256-sharded-1000'",
            id="a digest of a part",
        ),
        pytest.param(
            _resource(digest="0" * 40),
            "resources[0]: 'config.json': digest: expected 64 lower-case hex digits",
            id="a git blob",
        ),
        pytest.param(
            _resource(name="../config.json"),
            "resources[0]: name: not a plain relative path: '../config.json'",
            id="a way out",
        ),
        pytest.param(
            _resource(name="/config.json"),
            "resources[0]: name: not a plain relative path: '/config.json'",
            id="an absolute path",
        ),
        pytest.param(
            _resource(name="a\x1b[2J"),
            r"resources[0]: name: not a plain relative path: 'a\x1b[2J'",
            id="a name that steers a terminal",
        ),
        pytest.param(
            _resource(name=None),
            "resources[0]: name: not a plain relative path: None",
            id="no name",
        ),
        pytest.param(
            _resource(digest=7),
            "resources[0]: 'config.json': digest: expected 64 lower-case hex digits",
            id="a number for a digest",
        ),
        pytest.param(
            _resource(name=SHARDS[0]), f"resources[1]: {SHARDS[0]!r} a second time", id="twice"
        ),
        pytest.param(
            statement(
                FILES,
                predicate=predicate(FILES, serialization={"method": "files", "ignore_paths": [1]}),
            ),
            "serialization: ignore_paths: expected a list of texts",
            id="a number is left out",
        ),
        pytest.param(
            statement(FILES, predicate=predicate(FILES, resources=["config.json"])),
            "resources[0]: expected an object",
            id="a name for a resource",
        ),
    ],
)
def test_what_is_signed_must_be_of_the_form(said: dict[str, Any], wanted: str) -> None:
    with pytest.raises(SignatureError) as caught:
        read(signed(said))
    assert caught.value.message == f"model.sig: {wanted}"


def _changed(change: Callable[[dict[str, Any]], object]) -> bytes:
    document = json.loads(RAW)
    change(document)
    return json.dumps(document).encode()


@pytest.mark.parametrize(
    ("raw", "wanted"),
    [
        pytest.param(b"", "model.sig: not JSON", id="empty"),
        pytest.param(RAW[:-1], "model.sig: not JSON", id="cut"),
        pytest.param(b"[" * 10000, "model.sig: not JSON", id="nested without end"),
        pytest.param(b"[]", "model.sig: not a Sigstore bundle", id="a list"),
        pytest.param(b"{}", "model.sig: mediaType", id="nothing in it"),
        pytest.param(b" " * (LIMIT + 1), "model.sig: .* the limit is", id="too large"),
        pytest.param(
            _changed(lambda doc: doc.update(verificationMaterial={"certificate": {}})),
            "signed by a certificate, not by a key",
            id="a certificate",
        ),
        pytest.param(
            _changed(lambda doc: doc["dsseEnvelope"].update(payloadType="text/plain")),
            "not a signature of",
            id="another payload type",
        ),
        pytest.param(
            _changed(lambda doc: doc["dsseEnvelope"]["signatures"].append({"sig": "AA=="})),
            "2 signatures, a bundle has exactly one",
            id="two signatures",
        ),
    ],
)
def test_a_damaged_bundle_is_refused(raw: bytes, wanted: str) -> None:
    with pytest.raises(SignatureError, match=wanted):
        read(raw)


@settings(max_examples=100)
@given(place=st.integers(0, len(RAW) - 1), bit=st.integers(0, 7))
def test_a_bit_that_flips_is_found(place: int, bit: int) -> None:
    """But in the hint: nobody's word, and nothing is decided by it."""
    raw = bytearray(RAW)
    raw[place] ^= 1 << bit
    try:
        found = read(bytes(raw))
    except (SignatureError, UntrustedError):
        return
    before = json.loads(RAW)
    after = json.loads(raw)
    assert before.pop("verificationMaterial") != after.pop("verificationMaterial")
    assert before == after
    assert found.files == read(RAW).files


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda items: st.lists(items, max_size=4) | st.dictionaries(st.text(max_size=8), items),
    max_leaves=8,
)


@settings(max_examples=100)
@given(field=st.sampled_from(["subject", "predicate", "predicateType", "_type"]), said=JSON)
def test_whatever_a_key_signs_is_read_or_refused_by_type(field: str, said: Any) -> None:
    with pytest.raises(BuilderError):
        read(signed(statement(FILES, **{field: said})))


@settings(max_examples=100)
@given(field=st.sampled_from(["serialization", "resources"]), said=JSON)
def test_so_is_a_predicate(field: str, said: Any) -> None:
    with pytest.raises(SignatureError):
        read(signed(statement(FILES, predicate=predicate(FILES, **{field: said}))))


def test_the_payload_is_what_it_was_before_it_was_wrapped() -> None:
    """The generator of these tests: a statement, and nothing around it."""
    payload = b64decode(json.loads(RAW)["dsseEnvelope"]["payload"])
    assert json.loads(payload) == statement(FILES)
