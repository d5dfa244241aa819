"""Signatures of the Notary Project as ``notation`` itself reads them, in a registry that has the
referrers API, in one that has not, and in a layout; by a policy that ``trust export`` made; and
notation's own as we do.
"""

import json
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from tempfile import TemporaryDirectory

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.adapters.store import FileStore
from builder.adapters.store.attachments import LayoutPlace
from builder.keys.signer import Signer
from builder.notation import attach as attaching
from builder.notation import envelope
from builder.notation.attach import attach
from builder.notation.certificate import Chain, read_chain
from builder.notation.self_signed import self_signed
from builder.oci import Descriptor, Manifest
from builder.reference import Reference
from builder.signatures.place import Place
from builder.signatures.registry import RegistryPlace
from builder.trust.codec import read_policy
from builder.trust.export.notation import notation as exported
from tests.claims import Claims
from tests.commands import CommandError, clean_environment, run
from tests.notation.authorities import various
from tests.plugins.requires import missing
from tests.real.debian_tool import LATEST, debian_tool
from tests.real.signatures import (
    BORROWED,
    INDEX,
    OTHER,
    SIGNED,
    TAMPERED,
    UNSIGNED,
    Forger,
    push_all,
    registries,
    takes,
)
from tests.registry.images import tiny_image
from tests.signed_images import place, push
from tests.signers import MemorySigner, p256

SUBJECT = "CN=release,O=Acme \\, Inc.,ST=Berlin,C=DE"
_IMAGES = (INDEX.descriptor, SIGNED.manifest.descriptor, OTHER.manifest.descriptor)


@dataclass(frozen=True, slots=True, kw_only=True)
class Notation:
    """The program, with a directory of configuration for each thing that may be trusted."""

    program: Path
    scratch: Path
    now: datetime

    def verify(self, image: str, trusted: Path) -> None:
        """Raises CommandError where it does not take an image under the policy in ``trusted``."""
        self._run(trusted, "verify", "--insecure-registry", image)

    def verify_layout(self, image: str, scope: str, trusted: Path) -> None:
        """Likewise for an image of a layout."""
        self._run(trusted, "verify", "--oci-layout", "--scope", scope, image)

    def sign(self, image: str, configuration: Path) -> None:
        """Sign with the key that is configured there."""
        self._run(configuration, "sign", "--insecure-registry", image)

    def _run(self, configuration: Path, *arguments: str) -> None:
        environment = clean_environment(
            HOME=str(self.scratch), XDG_CONFIG_HOME=str(configuration), NOTATION_EXPERIMENTAL="1"
        )
        run((self.program, *arguments), environment=environment)

    def trusting(self, name: str, repository: str, chain: Chain) -> Path:
        """The configuration that an exported policy makes."""
        text = (
            f"version: 1\nexpires: {self.now.date() + timedelta(days=9)}\nkeys:\n  it:\n"
            f"    public: {chain.public.openssh.decode().strip()}\n    owner: it\n"
            "    state: active\nroles:\n  root: {keys: [it], threshold: 1}\n"
            "  image: {keys: [it], threshold: 1}\n"
            f'scopes: [{{repositories: ["{repository}"], role: image}}]\n'
        )
        export = exported(read_policy(text.encode()), [chain], today=self.now.date())
        return self._written(name, export.files)

    def trusting_root(self, name: str, repository: str, root: bytes) -> Path:
        """One by hand, of an authority and a name."""
        policy = {
            "version": "1.0",
            "trustPolicies": [
                {
                    "name": "it",
                    "registryScopes": [repository],
                    "signatureVerification": {"level": "strict"},
                    "trustStores": ["ca:it"],
                    "trustedIdentities": ["x509.subject: C=DE, ST=Berlin, O=Acme"],
                }
            ],
        }
        files = {"trustpolicy.json": json.dumps(policy).encode()}
        return self._written(name, files | {"truststore/x509/ca/it/root.pem": root})

    def signing(self, name: str, signer: MemorySigner, chain: Chain) -> Path:
        """The configuration with which it signs with a key."""
        at = self.scratch / name / "notation"
        known = {"name": "it", "keyPath": str(at / "it.key"), "certPath": str(at / "it.pem")}
        keys = json.dumps({"default": "it", "keys": [known]}).encode()
        return self._written(
            name, {"it.key": signer.pem, "it.pem": chain.pem, "signingkeys.json": keys}
        )

    def _written(self, name: str, files: dict[str, bytes]) -> Path:
        for file, data in files.items():
            path = self.scratch / name / "notation" / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
        return self.scratch / name


def prove(claims: Claims) -> None:
    """Check it all."""
    if why := missing("docker-registry"):
        claims.not_run("signatures as notation reads them", why)
        return
    try:
        program = debian_tool("notation", LATEST, "usr/bin/notation")
    except CommandError as error:
        why = error.said or str(error)
        claims.not_run("signatures as notation reads them", why, wants=LATEST)
        return
    with TemporaryDirectory(prefix="builder-notation-") as name, ExitStack() as stack:
        scratch = Path(name)
        tool = Notation(program=program, scratch=scratch, now=datetime.now(UTC))
        for mode, host in registries(claims, "notation", scratch, stack):
            client = stack.enter_context(RegistryClient(RegistryConfiguration()))
            there = place(client, Reference.parse(f"{host}/team/app:t"))
            _cells(claims, mode, tool, there)
            _certificates(claims, mode, tool, place(client, Reference.parse(f"{host}/team/ca:t")))
            _theirs(claims, mode, tool, place(client, Reference.parse(f"{host}/team/theirs:t")))
        _layout(claims, tool)


def _cells(claims: Claims, mode: str, tool: Notation, there: RegistryPlace) -> None:
    """An index and its members are signed, and notation is asked about everything."""
    signer, repository = p256("good"), there.repository.name
    chain = self_signed(signer, SUBJECT, now=tool.now, days=30)
    push_all(there.registry, there.repository)
    counts = [_attach(_IMAGES, signer, chain, there, tool.now) for _ in range(2)]
    claims.equal(f"{mode}, notation: signing again adds nothing", counts, [(3, 0), (0, 3)])
    _borrow(there)
    _spoil(there, signer, chain, tool.now)
    good = tool.trusting(f"{mode}-good", repository, chain)
    other = self_signed(p256("wrong"), SUBJECT, now=tool.now, days=30)
    wrong = tool.trusting(f"{mode}-wrong", repository, other)
    later = self_signed(signer, SUBJECT, now=tool.now, days=31)
    renewed = tool.trusting(f"{mode}-renewed", repository, later)
    elsewhere = tool.trusting(f"{mode}-elsewhere", f"{repository}x", chain)

    def asked(what: object, trusted: Path, told: str) -> bool:
        """Whether notation says that; nothing, where it takes the image."""
        name = f"{repository}{'@' if ':' in str(what) else ':'}{what}"
        try:
            tool.verify(name, trusted)
        except CommandError as error:
            return bool(told) and told in error.said
        return not told

    failed, scopes = "verification failed for all the signatures", "no applicable trust policy"
    answers = {
        "the index": asked("t", good, ""),
        "the index by digest": asked(INDEX.digest, good, ""),
        "a member": asked(SIGNED.manifest.digest, good, ""),
        "not by another key's certificate": asked(INDEX.digest, wrong, failed),
        "not by another certificate of the key": asked(INDEX.digest, renewed, failed),
        "not in another place": asked(INDEX.digest, elsewhere, scopes),
        "not unsigned": asked(UNSIGNED.manifest.digest, good, "no signature is associated"),
        "not another's": asked(BORROWED.manifest.digest, good, failed),
        "not tampered": asked(TAMPERED.manifest.digest, good, failed),
    }
    bad = [what for what, right in answers.items() if not right]
    said = ", ".join(answers) if not bad else f"not so: {', '.join(bad)}"
    claims.holds(f"{mode}, notation, as trust export has it", not bad, said)


def _attach(
    images: tuple[Descriptor, ...], signer: Signer, chain: Chain, there: Place, now: datetime
) -> tuple[int, int]:
    done = attach(images, signer, chain, place=there, again=there, now=now)
    return len(done.added), done.present


def _borrow(there: RegistryPlace) -> None:
    """Put the envelope of one image where those of another are looked for."""
    (entry,) = there.referrers(SIGNED.manifest.digest, attaching.ARTIFACT_TYPE)
    manifest = there.manifest(entry.digest)
    assert isinstance(manifest, Manifest)
    raw = there.blob(manifest.layers[0])
    thumbprints = dict(manifest.annotations)[attaching.THUMBPRINTS]
    there.add([attaching.referring(BORROWED.manifest.descriptor, raw, json.loads(thumbprints))])


def _spoil(there: RegistryPlace, signer: MemorySigner, chain: Chain, now: datetime) -> None:
    """Put an envelope beside an image whose signature is over other bytes."""
    image = TAMPERED.manifest.descriptor
    raw = envelope.encode(image, chain, Forger(signer), now=now)
    there.add([attaching.referring(image, raw, chain.thumbprints)])


def _certificates(claims: Claims, mode: str, tool: Notation, there: RegistryPlace) -> None:
    """What we take for a certificate to sign with, notation takes as well."""
    signer = p256("leaf")
    since, until = tool.now - timedelta(days=1), tool.now + timedelta(days=1)
    refused = []
    for name, pem in various(signer, since=since, until=until).items():
        tag = name.replace(" ", "-")
        reference = Reference.parse(f"{there.repository.name}:{tag}")
        image, chain = tiny_image(name.encode()), read_chain(pem, at=name)
        push(there.registry, reference, image)
        _attach((image.manifest.descriptor,), signer, chain, there, tool.now)
        root = b"-----BEGIN" + pem.rpartition(b"-----BEGIN")[2]
        trusted = tool.trusting_root(f"{mode}-{tag}", there.repository.name, root)
        if not takes(tool.verify, str(reference), trusted):
            refused.append(name)
    told = f"refused: {refused}" if refused else ""
    claims.holds(f"{mode}, notation takes the certificates that we take", not refused, told)


def _theirs(claims: Claims, mode: str, tool: Notation, there: RegistryPlace) -> None:
    """What notation signed with the same certificate is there, for us."""
    signer, image = p256("shared"), tiny_image(b"signed by notation")
    chain = self_signed(signer, SUBJECT, now=tool.now, days=30)
    push(there.registry, there.repository, image)
    by_digest = f"{there.repository.name}@{image.manifest.digest}"
    with claims.group(f"{mode}, notation signs, and we read it"):
        tool.sign(by_digest, tool.signing(f"{mode}-signing", signer, chain))
        done = _attach((image.manifest.descriptor,), signer, chain, there, tool.now)
        claims.equal(f"{mode}, notation signs, and we have nothing to add", done, (0, 1))


def _layout(claims: Claims, tool: Notation) -> None:
    signer, image, layout = p256("layout"), tiny_image(b"in a layout"), tool.scratch / "layout"
    chain = self_signed(signer, SUBJECT, now=tool.now, days=30)
    store = FileStore(layout)
    for blob in (image.config, image.layer, image.manifest.raw):
        store.put(blob)
    store.set_reference("t", image.manifest.descriptor)
    _attach((image.manifest.descriptor,), signer, chain, LayoutPlace(store), tool.now)
    trusted = tool.trusting("layout-good", "registry.example/team/app", chain)
    name = f"{layout}@{image.manifest.digest}"
    with claims.group("a layout, by notation"):
        tool.verify_layout(name, "registry.example/team/app", trusted)
        claims.holds("a layout, by notation", True)
