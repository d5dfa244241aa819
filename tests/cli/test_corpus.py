"""The hostile corpus of signatures: each case is refused by ``builder verify`` with its own status
and its own message.

Of the threat model's table (verifier logic, floods, lies about size and digest, trust, clocks), what
a reader of signatures can be shown:

    what is said       payloadType, _type, predicateType, subjects, keys that are there twice
    how it is written  base64, numbers of signatures, versions, certificates, bare signatures
    whose it is        hints and key ids that lie, other keys, one key as two, malleable signatures
    where it lies      another image's, another type, lists that lie, floods, indexes
    who may            thresholds, revoked, retired, expired, other versions of trust.yaml
    what serves it     registries that lie about type, size and digest, or never end

What is pure and needs no command line has its cases in tests/attest, tests/sigstore,
tests/signatures, tests/trust and tests/verification.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)

from builder.attest import dsse
from builder.attest.dsse import IN_TOTO
from builder.cli.app import run
from builder.cli.start import start_project
from builder.digest import Digest
from builder.oci import OCI_INDEX, OCI_MANIFEST, Manifest
from builder.signatures.collect import collect
from builder.signatures.place import BLOB_LIMIT, COUNT_LIMIT
from builder.signatures.publish import SIGNED
from builder.sigstore import bundle, carriers, simple_signing
from builder.sigstore.simple_signing import SimpleSigning
from builder.statements import PREDICATE_TYPES
from builder.statements import Kind as Statements
from builder.attest.statement import STATEMENT_V1
from tests.cli.conftest import Builder, Ran
from tests.cli.signed_world import (
    CARRIERS,
    NAME,
    World,
    as_bundle,
    b64,
    envelope,
    in_attachment,
    in_bundle,
    index_of,
    said,
)
from tests.signers import ed, p256
from tests.trust.keys import key_entry, policy_text, public, signatures, signer

ME, OTHER = p256("me"), ed("other")
ORDER = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
ANOTHER = Digest.of(b"another image")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> World:
    """The image of a new project in a layout, with nothing beside it."""
    directory = tmp_path_factory.mktemp("template")
    project, layout = directory / "project", directory / "layout"
    start_project(project)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("BUILDER_STORE", str(directory / "store"))
        patched.setenv("HOME", str(directory))
        patched.chdir(project)
        assert run(["build", NAME, "--out", str(layout), "--quiet"]) == 0
        key = directory / "me.pem"
        from tests.cli.test_sign import pem_of

        key.write_bytes(pem_of(ME))
        key.chmod(0o600)
        made = World(layout=layout, statements=()).copy(directory / "signed")
        sign = ["sign", NAME, f"oci:{made.layout}", "--key", str(key), "--allow-plaintext"]
        assert run([*sign, "--quiet"]) == 0
    found = collect(made.image.digest, made.place).found
    read = [item.read(ME.public) for item in found if item.kind == "dsse-attachment"]
    return World(layout=layout, statements=tuple(read))  # type: ignore[arg-type]  # statements


@pytest.fixture
def world(template: World, tmp_path: Path) -> World:
    """A copy of it, to be spoilt."""
    return template.copy(tmp_path / "layout")


@pytest.fixture
def verified(world: World, builder: Builder, tmp_path: Path) -> Callable[..., Ran]:
    """Run ``builder verify`` with the one key that is trusted, and more options."""
    (tmp_path / "me.pub").write_bytes(ME.public.pem)

    def call(*more: str) -> Ran:
        return builder("verify", f"oci:{world.layout}", "--key", tmp_path / "me.pub", *more)

    return call


def refused(ran: Ran, status: int, message: str) -> None:
    """That it was, and by what: the first line that is printed."""
    first = ran.err.partition("\n")[0]
    assert (ran.status, message in first) == (status, True), first
    assert ran.err.startswith("builder: error: ")
    assert len(ran.err) < 3000
    assert ran.out == ""


def test_everything_that_is_signed_is_accepted(
    world: World, verified: Callable[..., Ran]
) -> None:
    """The control: without it the cases below would prove nothing."""
    assert verified().status == 13
    world.sign(ME)
    assert verified().status == 0


# --- what is said ---------------------------------------------------------------------------------

IMAGE_SAID: dict[str, tuple[Callable[[Digest], bytes], str, str]] = {
    "another payload type": (
        said,
        "application/vnd.in-toto+JSON",
        "expected payload type application/vnd.in-toto+json, got 'application/vnd.in-toto+JSON'",
    ),
    "the type of a trust policy": (
        said,
        "application/vnd.vllm-image-builder.trust.v1+yaml",
        "got 'application/vnd.vllm-image-builder.trust.v1+yaml'",
    ),
    "no _type": (lambda i: said(i, _type=...), IN_TOTO, f"expected a {STATEMENT_V1}, got None"),
    "a _type of a version to come": (
        lambda i: said(i, _type="https://in-toto.io/Statement/v2"),
        IN_TOTO,
        "got 'https://in-toto.io/Statement/v2'",
    ),
    "a statement in a list": (lambda i: b"[%b]" % said(i), IN_TOTO, f"expected a {STATEMENT_V1}"),
    "no predicateType": (
        lambda i: said(i, predicateType=...), IN_TOTO, "predicateType: expected a text, got None",
    ),
    "an empty predicateType": (
        lambda i: said(i, predicateType=""), IN_TOTO, "predicateType: expected a text, got ''",
    ),
    "a predicateType in a list": (
        lambda i: said(i, predicateType=[SIGNED]), IN_TOTO, "predicateType: expected a text, got [",
    ),
    "a predicate that is a text": (
        lambda i: said(i, predicate="yes"), IN_TOTO, "predicate: expected an object",
    ),
    "no subject": (lambda i: said(i, subject=...), IN_TOTO, "subject: expected 1 to 64 subjects"),
    "subjects of nothing": (lambda i: said(i, subject=[]), IN_TOTO, "expected 1 to 64 subjects"),
    "more subjects than anybody reads": (
        lambda i: said(i, subject=[{"digest": {"sha256": i.hex}}] * 65),
        IN_TOTO,
        "subject: expected 1 to 64 subjects",
    ),
    "a subject by sha512 alone": (
        lambda i: said(i, subject=[{"digest": {"sha512": "0" * 128}}]),
        IN_TOTO,
        "subject[0]: no sha256 among its digests",
    ),
    "a subject without digests": (
        lambda i: said(i, subject=[{"name": str(i), "digest": {}}]),
        IN_TOTO,
        "subject[0]: no sha256 among its digests",
    ),
    "a subject of whose digests one is empty": (
        lambda i: said(i, subject=[{"digest": {"sha256": ""}}]),
        IN_TOTO,
        "subject[0]: no sha256 among its digests",
    ),
    "a digest in upper case": (
        lambda i: said(i, subject=[{"digest": {"sha256": i.hex.upper()}}]),
        IN_TOTO,
        "subject[0]: no sha256 among its digests",
    ),
    "a digest with its algorithm": (
        lambda i: said(i, subject=[{"digest": {"sha256": str(i)}}]),
        IN_TOTO,
        "subject[0]: no sha256 among its digests",
    ),
    "a digest with a line end": (
        lambda i: said(i, subject=[{"digest": {"sha256": f"{i.hex}\n"}}]),
        IN_TOTO,
        "subject[0]: no sha256 among its digests",
    ),
    "the second subject is malformed": (
        lambda i: said(i, subject=[{"digest": {"sha256": i.hex}}, {"digest": {"sha1": "0"}}]),
        IN_TOTO,
        "subject[1]: no sha256 among its digests",
    ),
    "another image": (
        lambda _: said(ANOTHER), IN_TOTO, f"{ANOTHER}",
    ),
    "another image under this one's name": (
        lambda i: said(i, subject=[{"name": str(i), "digest": {"sha256": ANOTHER.hex}}]),
        IN_TOTO,
        "but about another image than",
    ),
    "the digest twice in one set": (
        lambda i: said(i).replace(
            b'"digest": {"sha256": ', b'"digest": {"sha256": "%b", "sha256": ' % (b"0" * 64)
        ),
        IN_TOTO,
        "duplicate key 'sha256'",
    ),
    "subject twice": (
        lambda i: said(ANOTHER)[:-1] + b', "subject": [{"digest": {"sha256": "%b"}}]}'
        % i.hex.encode(),
        IN_TOTO,
        "duplicate key 'subject'",
    ),
    "subject twice, once in escapes": (
        lambda i: said(ANOTHER)[:-1] + b', "s\\u0075bject": [{"digest": {"sha256": "%b"}}]}'
        % i.hex.encode(),
        IN_TOTO,
        "duplicate key 'subject'",
    ),
    "predicateType twice": (
        lambda i: said(i)[:-1] + b', "predicateType": "x"}', IN_TOTO,
        "duplicate key 'predicateType'",
    ),
    "a key twice deep in the predicate": (
        lambda i: said(i).replace(b'"predicate": {}', b'"predicate": {"a": {"b": 1, "b": 2}}'),
        IN_TOTO,
        "duplicate key 'b'",
    ),
    "something behind the statement": (lambda i: said(i) + b"{}", IN_TOTO, "not JSON: Extra data"),
    "no JSON": (lambda _: b"signed", IN_TOTO, "not JSON: Expecting value"),
    "nothing": (lambda _: b"", IN_TOTO, "not JSON: Expecting value"),
    "UTF-16": (lambda i: said(i).decode().encode("utf-16"), IN_TOTO, "not JSON: 'utf-8' codec"),
    "a mark of byte order": (lambda i: b"\xef\xbb\xbf" + said(i), IN_TOTO, "not JSON: Unexpected"),
    "half of a surrogate pair": (
        lambda i: said(i, predicate={"a": "\ud800"}), IN_TOTO, "not JSON: 'utf-8' codec",
    ),
    "not a number": (
        lambda i: said(i, predicate={"a": float("nan")}), IN_TOTO, "NaN is not JSON",
    ),
    "nested without end": (lambda _: b"[" * 200_000, IN_TOTO, "not JSON: "),
    "a number without end": (lambda _: b"1" * 10_000, IN_TOTO, "not JSON: Exceeds the limit"),
    "a text without end where a type is": (
        lambda i: said(i, _type="x" * 1_000_000), IN_TOTO, f"expected a {STATEMENT_V1}, got 'xxx",
    ),
}  # fmt: skip


@pytest.mark.parametrize("carrier", CARRIERS)
@pytest.mark.parametrize("case", IMAGE_SAID)
def test_what_a_trusted_key_signed_and_no_image_is_said_to_be(
    case: str, carrier: str, world: World, verified: Callable[..., Ran]
) -> None:
    payload, kind, message = IMAGE_SAID[case]
    CARRIERS[carrier](world, envelope(payload(world.image.digest), ME, kind=kind))
    ran = verified()
    refused(ran, 10, message)
    assert ": no signature that holds: " in ran.err
