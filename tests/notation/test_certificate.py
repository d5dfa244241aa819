"""Certificates: made by a key for itself, read from files, refused where they do not fit."""

from base64 import b64encode, encodebytes
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.hashes import SHA224
from cryptography.hazmat.primitives.serialization import Encoding
from cryptography.x509.oid import ExtendedKeyUsageOID, ObjectIdentifier
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.errors import BuilderError, ExpiredError, IntegrityError, UsageError
from builder.notation.certificate import CHAIN_LIMIT, read_chain
from builder.notation.self_signed import (
    _BIT_STRING,
    _ECDSA_SHA256,
    _SEQUENCE,
    _der,
    self_signed,
)
from tests.notation.authorities import (
    CODE_SIGNING,
    LEAF,
    NOW,
    authority,
    certificate,
    issued,
    usage,
    various,
)
from tests.signers import ed, p256, random_p256

SUBJECT = "CN=release,O=Acme,ST=Berlin,C=DE"
KEY = p256("leaf")
MINE: Any = KEY.private
OTHER: Any = p256("other").private


def leaf(*extensions: tuple[x509.ExtensionType, bool], **more: Any) -> bytes:
    return certificate(MINE, by=MINE, extensions=extensions or LEAF, **more)


def refusal(pem: bytes, kind: type[BuilderError] = IntegrityError) -> str:
    with pytest.raises(kind) as error:
        read_chain(pem, at="it")
    assert "pin another" not in str(error.value.hint), "that is about other things"
    return error.value.message


def test_a_key_makes_a_certificate_that_it_can_sign_with() -> None:
    chain = self_signed(KEY, SUBJECT, now=NOW, days=2)
    assert chain.public == KEY.public
    assert chain.self_signed
    assert (f"{chain.since}", f"{chain.until}") == (
        "2027-06-15 00:00:00+00:00",
        "2027-06-16 23:59:59+00:00",
    )
    chain.check(KEY.public, now=NOW)
    made = x509.load_pem_x509_certificate(chain.pem)
    assert made.subject.rfc4514_string() == SUBJECT
    critical = {type(each.value): each.critical for each in made.extensions}
    assert critical == {
        x509.KeyUsage: True,
        x509.ExtendedKeyUsage: False,
        x509.BasicConstraints: True,
    }
    assert read_chain(chain.pem, at="it") == chain


def test_the_same_day_key_and_name_give_the_same_bytes() -> None:
    later = NOW + timedelta(hours=9)
    made = self_signed(KEY, SUBJECT, now=NOW, days=9).pem
    assert self_signed(p256("leaf"), SUBJECT, now=later, days=9).pem == made
    others = {
        self_signed(KEY, SUBJECT, now=NOW + timedelta(days=1), days=9).pem,
        self_signed(KEY, SUBJECT, now=NOW, days=10).pem,
        self_signed(KEY, SUBJECT.replace("release", "x"), now=NOW, days=9).pem,
        self_signed(p256("other"), SUBJECT, now=NOW, days=9).pem,
    }
    serials = {x509.load_pem_x509_certificate(pem).serial_number for pem in (made, *others)}
    assert len({made, *others}) == len(serials) == 5


def test_who_keeps_the_key_elsewhere_signs_a_certificate_as_well() -> None:
    """A signer whose nonces are by chance, and whose private half nobody sees."""
    chain = self_signed(random_p256("leaf"), SUBJECT, now=NOW, days=2)
    assert read_chain(chain.pem, at="it").public == KEY.public


@pytest.mark.parametrize(
    "subject, told",
    [
        ("CN=x,O=Acme,ST=Berlin", "lacks C,"),
        ("CN=x", "lacks C, ST, O,"),
        ("", "lacks C, ST, O,"),
        ("CN=x,O=Acme,ST=Berlin,C=Germany", "2"),
        ("CN=x,O=Acme,O=Acme,ST=Berlin,C=DE", "each part once"),
        ("CN=x+O=Acme,ST=Berlin,C=DE", "each part once"),
        ("CN=x,O= ,ST=Berlin,C=DE", "--subject"),
        ("CN=x,O=\\0A,ST=Berlin,C=DE", "printable"),
        ("release", "--subject: 'release'"),
        ("X=1,O=Acme,ST=Berlin,C=DE", "--subject"),
        (f"CN={'x' * 65},O=Acme,ST=Berlin,C=DE", "--subject"),
        ("/C=DE/ST=Berlin/O=Acme", "--subject"),
    ],
)
def test_names_that_notation_does_not_take_are_refused(subject: str, told: str) -> None:
    with pytest.raises(UsageError) as error:
        self_signed(KEY, subject, now=NOW, days=2)
    assert told in error.value.message
    assert "CN=release,O=Acme" in (error.value.hint or "")


@settings(max_examples=60)
@given(st.text(max_size=80))
def test_any_text_is_a_name_or_a_usage_error(text: str) -> None:
    try:
        chain = self_signed(KEY, f"{text},O=Acme,ST=Berlin,C=DE", now=NOW, days=2)
    except UsageError:
        return
    assert chain.public == KEY.public


def test_ed25519_keys_have_no_certificates() -> None:
    with pytest.raises(UsageError, match="no signatures of ed25519 keys"):
        self_signed(ed(), SUBJECT, now=NOW, days=2)
    pem = certificate(p256("x").private, by=p256("x").private)
    assert read_chain(pem, at="it").self_signed
    theirs: Any = ed().private
    made = x509.load_pem_x509_certificate(certificate(theirs, by=OTHER, issuer="other"))
    assert "ed25519" in refusal(made.public_bytes(Encoding.PEM), UsageError)


def test_a_chain_is_read_to_its_root() -> None:
    chain = read_chain(issued(KEY), at="it")
    assert (len(chain.certificates), chain.self_signed) == (3, False)
    assert chain.public == KEY.public
    assert read_chain(issued(KEY, path_length=0), at="it").public == KEY.public
    assert read_chain(b"text around\r\n" + issued(KEY).replace(b"\n", b"\r\n"), at="it") == chain


def test_certificates_of_every_kind_that_is_right_are_read() -> None:
    """``make real`` asks notation about the same ones."""
    days = timedelta(days=1)
    for name, pem in various(KEY, since=NOW - days, until=NOW + days).items():
        read_chain(pem, at=name).check(KEY.public, now=NOW)


def blocks(pem: bytes) -> list[bytes]:
    return [b"-----BEGIN" + part for part in pem.split(b"-----BEGIN")[1:]]


def _shuffled(pem: bytes, *order: int) -> bytes:
    parts = blocks(pem)
    return b"".join(parts[number] for number in order)


def _of_version_1(pem: bytes) -> bytes:
    """The certificate without its version, which says 1 by that, signed anew."""
    tbs = x509.load_pem_x509_certificate(pem).tbs_certificate_bytes
    version = bytes.fromhex("a003020102")
    head, _, rest = tbs.partition(version)
    assert len(head) == 4, "a sequence of some hundred bytes"
    fields = _der(_SEQUENCE, rest)
    signature = _der(_BIT_STRING, b"\0" + KEY.sign(fields))
    made = _der(_SEQUENCE, fields + _ECDSA_SHA256 + signature)
    return b"-----BEGIN CERTIFICATE-----\n%s-----END CERTIFICATE-----\n" % encodebytes(made)


CHAIN = issued(KEY)
WRONG: dict[str, tuple[Callable[[], bytes], str]] = {
    "nothing": (lambda: b"", "not certificates in PEM"),
    "rubbish": (lambda: b"\xff\0", "not certificates in PEM"),
    "no certificate inside": (
        lambda: b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
        "not certificates in PEM",
    ),
    "cut off": (lambda: leaf()[:-200] + b"-----END CERTIFICATE-----\n", "not certificates in PEM"),
    "too large": (lambda: b"x" * (CHAIN_LIMIT + 1), "the limit is"),
    "too many": (lambda: leaf() * 11, "11 certificates, the limit is 10"),
    "a private key in it": (
        lambda: leaf() + b"-----BEGIN PRIVATE KEY-----\n",
        "has a private key",
    ),
    "the root first": (lambda: _shuffled(CHAIN, 2, 1, 0), "certificate 1: expected the key usage"),
    "without its root": (lambda: _shuffled(CHAIN, 0, 1), "certificate 2: did not issue itself"),
    "without its issuers": (lambda: _shuffled(CHAIN, 0), "did not issue itself"),
    "an issuer left out": (lambda: _shuffled(CHAIN, 0, 2), "certificate 1: not issued by the one"),
    "twice the same": (lambda: leaf() * 2, "certificate 2: not the certificate of an authority"),
    "signed by another of the same name": (
        lambda: certificate(MINE, by=OTHER),
        "did not issue itself",
    ),
    "an issuer that is no authority": (
        lambda: (
            certificate(MINE, by=OTHER, issuer="other") + certificate(OTHER, by=OTHER, name="other")
        ),
        "certificate 2: not the certificate of an authority",
    ),
    "too many authorities": (
        lambda: (
            certificate(MINE, by=p256("b").private, issuer="b")
            + certificate(p256("b").private, by=OTHER, name="b", issuer="r", extensions=authority())
            + certificate(OTHER, by=OTHER, name="r", extensions=authority(0))
        ),
        "certificate 3: allows 0 authorities below it, and there are 1",
    ),
    "an authority that may sign no certificates": (
        lambda: (
            certificate(MINE, by=OTHER, issuer="r")
            + certificate(
                OTHER,
                by=OTHER,
                name="r",
                extensions=(
                    (x509.BasicConstraints(ca=True, path_length=None), True),
                    (usage("digital_signature"), True),
                ),
            )
        ),
        "without the key usage keyCertSign",
    ),
    "of version 1, with extensions": (
        lambda: _of_version_1(leaf()),
        "expected a certificate of version 3",
    ),
    "no key usage": (lambda: leaf((CODE_SIGNING, False)), "has no key usage"),
    "a key usage that is not critical": (
        lambda: leaf((usage("digital_signature"), False)),
        "its key usage is not critical",
    ),
    "another key usage": (
        lambda: leaf((usage("key_agreement"), True)),
        "expected the key usage digitalSignature alone, got key_agreement",
    ),
    "one key usage more": (
        lambda: leaf((usage("digital_signature", "key_encipherment"), True)),
        "got digital_signature, key_encipherment",
    ),
    "an authority itself": (
        lambda: leaf(*LEAF, (x509.BasicConstraints(ca=True, path_length=None), True)),
        "the certificate of an authority, which signs no images",
    ),
    "of a server": (
        lambda: leaf(LEAF[0], (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), False)),
        "expected the extended key usage codeSigning alone",
    ),
    "of a server, too": (
        lambda: leaf(
            LEAF[0],
            (
                x509.ExtendedKeyUsage(
                    [ExtendedKeyUsageOID.CODE_SIGNING, ExtendedKeyUsageOID.SERVER_AUTH]
                ),
                False,
            ),
        ),
        "expected the extended key usage codeSigning alone",
    ),
    "something critical that nobody knows": (
        lambda: leaf(
            *LEAF, (x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4"), b"\5\0"), True)
        ),
        "a critical extension that is not known: 1.2.3.4",
    ),
    "another curve": (
        lambda: certificate(P384, by=P384),
        "expected a key on P-256 or Ed25519, got one on secp384r1",
    ),
    "RSA": (lambda: certificate(RSA, by=RSA), "expected a key on P-256"),
    "signed over a short hash": (
        lambda: certificate(MINE, by=MINE, hashed=SHA224()),
        "signed over sha224, expected sha256",
    ),
}
P384: Any = ec.derive_private_key(7, ec.SECP384R1())
RSA: Any = rsa.generate_private_key(public_exponent=65537, key_size=2048)


@pytest.mark.parametrize("name", WRONG)
def test_certificates_that_do_not_fit_are_refused(name: str) -> None:
    make, told = WRONG[name]
    assert told in refusal(make())


def test_a_small_issuer_is_refused() -> None:
    small: Any = rsa.generate_private_key(public_exponent=65537, key_size=1024)
    pem = certificate(MINE, by=small, issuer="r") + certificate(
        small, by=small, name="r", extensions=authority()
    )
    assert "certificate 2: expected a key of ECDSA (256 bits) or RSA (2048)" in refusal(pem)


def test_a_certificate_of_rsa_authorities_will_do() -> None:
    pem = certificate(MINE, by=RSA, issuer="r") + certificate(
        RSA, by=RSA, name="r", extensions=authority()
    )
    assert read_chain(pem, at="it").public == KEY.public


def test_another_keys_certificate_and_another_time_are_refused() -> None:
    chain = self_signed(KEY, SUBJECT, now=NOW, days=1)
    with pytest.raises(IntegrityError, match="expected a certificate of SHA256:"):
        chain.check(p256("other").public, now=NOW)
    for moment in (NOW - timedelta(days=1), NOW + timedelta(days=1)):
        with pytest.raises(ExpiredError, match="holds from 2027-06-15T00:00:00Z to"):
            chain.check(KEY.public, now=moment)
    chain.check(KEY.public, now=chain.since)
    chain.check(KEY.public, now=chain.until)


def test_a_chain_holds_as_long_as_all_of_it() -> None:
    root = certificate(
        OTHER, by=OTHER, name="r", extensions=authority(), until=NOW + timedelta(seconds=1)
    )
    chain = read_chain(certificate(MINE, by=OTHER, issuer="r") + root, at="it")
    assert chain.until == NOW.replace(second=6)
    with pytest.raises(ExpiredError):
        chain.check(KEY.public, now=NOW + timedelta(minutes=1))


def test_a_serial_number_that_is_not_positive_is_refused_and_no_warning() -> None:
    der = bytearray(x509.load_pem_x509_certificate(leaf()).public_bytes(Encoding.DER))
    serial = der.index(bytes.fromhex("a003020102 02")) + 7
    der[serial] |= 0x80
    body = b64encode(bytes(der))
    told = refusal(b"-----BEGIN CERTIFICATE-----\n" + body + b"\n-----END CERTIFICATE-----\n")
    assert told.startswith("it: Parsed a serial number which wasn't positive")


@settings(max_examples=150)
@given(st.data())
def test_damaged_certificates_raise_nothing_else(data: st.DataObject) -> None:
    der = bytearray(x509.load_pem_x509_certificate(leaf()).public_bytes(Encoding.DER))
    for _ in range(data.draw(st.integers(1, 3))):
        der[data.draw(st.integers(0, len(der) - 1))] = data.draw(st.integers(0, 255))
    body = b64encode(bytes(der))
    pem = b"-----BEGIN CERTIFICATE-----\n" + body + b"\n-----END CERTIFICATE-----\n"
    try:
        read_chain(pem, at="it")
    except BuilderError:
        return
    assert bytes(der) == x509.load_pem_x509_certificate(leaf()).public_bytes(Encoding.DER)
