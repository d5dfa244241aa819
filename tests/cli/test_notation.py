"""``builder key certificate``, ``sign --notation``, ``trust export --format notation``."""

import json
import shlex
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from builder.adapters.store import FileStore
from builder.adapters.store.attachments import LayoutPlace
from builder.digest import Digest
from builder.keys.public import PublicKey
from builder.notation import envelope
from builder.notation.attach import ARTIFACT_TYPE
from builder.notation.certificate import read_chain
from builder.oci import Manifest
from tests.cli.conftest import Builder, Ran, tree
from tests.cli.test_trust import write
from tests.notation.authorities import certificate
from tests.signers import MemorySigner, ed, p256
from tests.standin.referrers import referrers_stand_in
from tests.trust import command as signing
from tests.trust.keys import public

SUBJECT = "CN=release,O=Acme,ST=Berlin,C=DE"


@pytest.fixture
def key(tmp_path: Path) -> Path:
    return kept(tmp_path / "key.pem", p256())


def kept(file: Path, signer: MemorySigner) -> Path:
    file.write_bytes(signer.pem)
    file.chmod(0o600)
    return file


def certified(builder: Builder, key: Path, file: Path, *more: str) -> Path:
    ran = made(builder, key, "--out", str(file), *more)
    assert (ran.status, ran.out) == (0, ""), ran.err
    return file


def made(builder: Builder, key: Path, *more: str) -> Ran:
    options = ("--subject", SUBJECT, "--allow-plaintext")
    return builder("key", "certificate", key, *options, *more)


def signed(builder: Builder, layout: Path, key: Path, file: Path, *more: str) -> Ran:
    options = ("--key", key, "--allow-plaintext", "--notation", file, *more)
    return builder("sign", "hello", f"oci:{layout}", *options)


def test_a_certificate_is_printed_or_written(builder: Builder, key: Path, tmp_path: Path) -> None:
    ran = made(builder, key, "--days", "2")
    assert (ran.status, ran.err) == (0, "")
    chain = read_chain(ran.out.encode(), at="it")
    assert chain.public == p256().public
    file = certified(builder, key, tmp_path / "it.crt", "--days", "2")
    assert file.read_bytes() == chain.pem
    assert made(builder, key, "--out", str(file)).status == 2, "it is there already"
    document = made(builder, key, "--json", "--days", "2").json
    assert document == {
        "key": p256().public.fingerprint,
        "certificate": f"sha256:{chain.thumbprints[0]}",
        "until": f"{datetime.now(UTC).date() + timedelta(days=1)}T23:59:59Z",
        "pem": chain.pem.decode(),
    }


def test_what_has_no_certificate_is_told(builder: Builder, key: Path, tmp_path: Path) -> None:
    other = kept(tmp_path / "ed.pem", ed())
    ran = made(builder, other, "--out", str(tmp_path / "x"))
    assert (ran.status, "Notation has no signatures of ed25519 keys" in ran.err) == (2, True)
    for subject, days in (("CN=x", "1"), (SUBJECT, "0"), (SUBJECT, "99999999")):
        options = ("--allow-plaintext", "--subject", subject, "--days", days)
        assert builder("key", "certificate", key, *options).status == 2
    assert not (tmp_path / "x").exists()


def test_an_image_is_signed_for_notation_too(
    builder: Builder, layout: Path, key: Path, tmp_path: Path
) -> None:
    file = certified(builder, key, tmp_path / "it's.crt")
    ran = signed(builder, layout, key, file)
    assert ran.status == 0, ran.err
    store = FileStore(layout)
    image = store.references()["hello"]
    first, _, last = ran.out.splitlines()
    assert first.endswith("8 signatures added, 0 were there; verified")
    year = f"{datetime.now(UTC).date() + timedelta(days=364)}"
    assert last == (
        f"notation: 1 signatures added, 0 were there; verified; the certificate holds to {year}"
    )
    verify = "NOTATION_EXPERIMENTAL=1 notation verify --oci-layout --scope REGISTRY/REPOSITORY"
    assert ran.err.splitlines()[-3:] == [
        "with a trust policy that names the store:",
        f"notation cert add --type ca --store builder {shlex.quote(str(file))}",
        f"{verify} {layout}@{image.digest}",
    ]
    place = LayoutPlace(store)
    (entry,) = place.referrers(image.digest, ARTIFACT_TYPE)
    manifest = place.manifest(entry.digest)
    assert isinstance(manifest, Manifest)
    chain = read_chain(file.read_bytes(), at="it")
    said = envelope.verify(place.blob(manifest.layers[0]), image, chain, at="it")
    assert abs(datetime.now(UTC) - said.moment) < timedelta(minutes=5)
    before = tree(layout)
    document = signed(builder, layout, key, file, "--json").json
    assert (document["present"], document["notation"]["present"]) == (8, 1)
    assert document["notation"]["added"] == document["added"] == []
    assert tree(layout) == before
    assert builder("verify", f"oci:{layout}", "--key", key.with_suffix(".pub")).status == 2
    key.with_suffix(".pub").write_bytes(p256().public.pem)
    assert builder("verify", f"oci:{layout}", "--key", key.with_suffix(".pub")).status == 0


@pytest.fixture
def release(
    builder: Builder, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, str, str, Path]:
    """Options of ``build`` that sign for notation, too."""
    monkeypatch.setenv("BUILDER_KEYS", str(tmp_path / "keys"))
    monkeypatch.setenv("BUILDER_KEY_PASSWORD", "of no worth")
    assert builder("key", "import", "release", key).status == 0
    file = certified(builder, Path("release"), tmp_path / "it's.crt")
    return "--sign", "release", "--notation", file


def test_a_build_signs_what_it_pushes_and_writes_for_notation_too(
    builder: Builder, release: tuple[str, str, str, Path], tmp_path: Path
) -> None:
    with referrers_stand_in() as registry:
        pushed = f"{registry.host}/team/hello:t"
        layout = tmp_path / "a:b@c"  # a path that no reference can name by its first colon
        ran = builder("build", "hello", "--push", pushed, "--out", layout, *release, "--json")
        assert ran.status == 0, ran.err
        image = Digest.parse(ran.json["images"][0]["digest"])
        notation = "notation: 1 signatures added, 0 were there; verified; the certificate holds to"
        told = [line for line in ran.err.splitlines() if "signatures added" in line]
        assert [line.partition(": 8 signatures added")[0] for line in told[::2]] == [
            pushed,
            f"oci:{layout}:hello",
        ]
        assert [line.startswith(notation) for line in told[1::2]] == [True, True]
        assert len(LayoutPlace(FileStore(layout)).referrers(image, ARTIFACT_TYPE)) == 1
        public = tmp_path / "keys/release.pub"
        for where in (pushed, f"oci:{layout}"):
            assert builder("verify", where, "--key", public).status == 0
        again = builder("sign", "hello", pushed, "--key", "release", *release[2:], "--json").json
        assert (again["present"], again["notation"]["present"]) == (8, 1)


def test_nothing_is_baked_or_pushed_with_a_certificate_that_does_not_fit(
    builder: Builder, release: tuple[str, str, str, Path], tmp_path: Path, store: Path
) -> None:
    layout = tmp_path / "layout"
    for name in ("another key's", "expired", "with a wrong usage", "rubbish"):
        status, told = _wrong(release[-1], name)
        ran = builder("build", "hello", "--out", layout, *release)
        assert (ran.status, told in ran.err) == (status, True), ran.err
    ran = builder("build", "hello", "--out", layout, *release[2:])
    assert (ran.status, ran.err.splitlines()) == (
        2,
        [
            "builder: error: --notation signs, too",
            "  hint: add --sign KEY, the certificate's key",
        ],
    )
    assert not layout.exists()
    assert not (store / "index.json").exists()


def _wrong(file: Path, name: str) -> tuple[int, str]:
    """Write a certificate that is not to be taken; its exit status, and what is said."""
    now = datetime.now(UTC)
    mine, other = p256().private, p256("other").private
    old: dict[str, Any] = {"since": now - timedelta(days=3), "until": now - timedelta(days=1)}
    new: dict[str, Any] = {"since": now - timedelta(days=3), "until": now + timedelta(days=1)}
    match name:
        case "another key's":
            pem = certificate(other, by=other, **new)
            wanted = 4, "expected a certificate of"
        case "expired":
            pem, wanted = certificate(mine, by=mine, **old), (12, "and it is")
        case "with a wrong usage":
            pem = certificate(mine, by=mine, extensions=(), **new)
            wanted = 4, "has no key usage"
        case _:
            pem, wanted = b"rubbish", (4, "not certificates in PEM")
    file.write_bytes(pem)
    return wanted


@pytest.mark.parametrize("name", ["another key's", "expired", "with a wrong usage", "rubbish"])
def test_nothing_is_signed_with_a_certificate_that_does_not_fit(
    name: str, builder: Builder, layout: Path, key: Path, tmp_path: Path
) -> None:
    status, told = _wrong(tmp_path / "it.crt", name)
    before = tree(layout)
    ran = signed(builder, layout, key, tmp_path / "it.crt")
    assert (ran.status, told in ran.err) == (status, True), ran.err
    assert tree(layout) == before


def test_an_ed25519_key_signs_nothing_for_notation(
    builder: Builder, layout: Path, key: Path, tmp_path: Path
) -> None:
    file, before = certified(builder, key, tmp_path / "it.crt"), tree(layout)
    ran = signed(builder, layout, kept(tmp_path / "ed.pem", ed()), file)
    assert (ran.status, "Notation has no signatures of ed25519 keys" in ran.err) == (2, True)
    assert tree(layout) == before


def test_a_policy_is_exported_with_certificates(
    builder: Builder, project: Path, tmp_path: Path
) -> None:
    repository = "registry.example/acme/app"
    write(project, "ada", "bob", scopes=f"  - {{repositories: [{repository}], role: image}}\n")
    builder("trust", "init", "--accept-first")
    options = ("trust", "export", "--format=notation", "--out=out")
    ran = builder(*options)
    assert (ran.status, "no key of its role has a certificate" in ran.err) == (5, True)
    _, at, *rest = signing.options("dan", tmp_path)
    file = tmp_path / "dan.crt"
    done = builder("key", "certificate", at, *rest, "--subject", SUBJECT, "--out", file)
    assert done.status == 0, "by a command that keeps the key"
    assert _public(file) == public("dan")
    ran = builder(*options, "--certificate", file)
    assert ran.status == 0
    assert "note: key 'carol' (ed25519) has no certificate" in ran.err
    (statement,) = json.loads((project / "out/trustpolicy.json").read_bytes())["trustPolicies"]
    assert statement["registryScopes"] == [repository]
    (store,) = statement["trustStores"]
    kept_in = f"out/truststore/x509/{store.replace(':', '/')}/dan.pem"
    assert ran.out == f"out/trustpolicy.json\n{kept_in}\n"
    assert (project / kept_in).read_bytes() == file.read_bytes()
    ran = builder("trust", "export", "--format=cosign", "--out=o", "--certificate", file)
    assert (ran.status, "--certificate is for --format notation" in ran.err) == (2, True)


def _public(file: Path) -> PublicKey:
    return read_chain(file.read_bytes(), at="it").public


UNUSED = ("builder.notation", "builder.cli.notation", "cryptography.x509")
SIGN = """
import sys
import builder.cli.sign, builder.cli.key, builder.cli.trust_export, builder.cli.signing
import builder.cli.build
print([name for name in sys.argv[1:] if name in sys.modules])
"""


def test_who_does_not_ask_for_it_does_not_load_it() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", SIGN, *UNUSED], capture_output=True, check=True, text=True
    )
    assert ran.stdout == "[]\n"
