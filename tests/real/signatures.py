"""Signatures as other tools read them, and theirs as we do.

An index and its two members are signed in a registry that has no referrers API, in one that has it
as the specification says, and in one of others that has it (:mod:`tests.real.referring_registry`),
by a key of each type; then every verifier is asked about every one of them: with the key, with
another key, about an image that nobody signed, about one that has another one's signatures, and
about one whose signatures are over other bytes. Each generation of forms is tried alone, too.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

from builder import artifact
from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.adapters.store import FileStore
from builder.adapters.store.attachments import LayoutPlace
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.keys.public import KeyType, PublicKey, read_public_key
from builder.notation.attach import attach
from builder.notation.self_signed import self_signed
from builder.oci import Manifest
from builder.ports import Registry
from builder.reference import Reference
from builder.signatures.collect import collect
from builder.signatures.found import Found
from builder.signatures.place import Listed, Referring
from builder.signatures.publish import publish
from builder.signatures.registry import RegistryPlace
from builder.sigstore import bundle, carriers
from tests.claims import Claims
from tests.commands import CommandError
from tests.plugins.requires import missing
from tests.real.referring_registry import running_referring_registry
from tests.real.signature_tools import BUNDLES_ONLY, Cosign, Crane, Oras, Tools, tools
from tests.registry.images import index_of, tiny_image, with_config_of
from tests.services import running_registry
from tests.signatures.memory_place import MemoryPlace
from tests.signed_images import place, provenance, push, signable
from tests.signers import SIGNERS, MemorySigner, p256
from tests.standin.referrers import referrers_stand_in

SIGNED, OTHER = tiny_image(b"amd64"), tiny_image(b"arm64", architecture="arm64")
UNSIGNED, BORROWED = tiny_image(b"unsigned"), tiny_image(b"with signatures of another")
TAMPERED = tiny_image(b"with signatures over other bytes")
_ASIDE = {
    "unsigned": UNSIGNED,
    "borrowed": BORROWED,
    "tampered": TAMPERED,
    "unsound": with_config_of(tiny_image(b"another"), tiny_image(b"a layer")),
}
_OF_OTHERS = "API of go-containerregistry"
_MODES = ("tag", "API", _OF_OTHERS)
"""Debian's registry, without the referrers API; one with it: our stand-in; another with it."""
INDEX = index_of((SIGNED.manifest, "linux", "amd64"), (OTHER.manifest, "linux", "arm64"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Cells:
    """One registry, one key, and what is asked of every verifier."""

    claims: Claims
    title: str
    repository: str
    keys: Path

    def name(self, what: str | Digest) -> str:
        """An image as tools are told it."""
        return f"{self.repository}{'@' if isinstance(what, Digest) else ':'}{what}"

    def all(self, verifiers: Mapping[str, Callable[[str, Path], None]]) -> None:
        """Ask everybody everything."""
        good, wrong = self.keys / "good.pem", self.keys / "wrong.pem"
        for name, verify in verifiers.items():
            answers = {
                "the index": takes(verify, self.name("t"), good),
                "a member": takes(verify, self.name(SIGNED.manifest.digest), good),
                "not by another key": not takes(verify, self.name("t"), wrong),
                "not unsigned": not takes(verify, self.name(UNSIGNED.manifest.digest), good),
                "not another's": not takes(verify, self.name(BORROWED.manifest.digest), good),
                "not tampered": not takes(verify, self.name(TAMPERED.manifest.digest), good),
            }
            bad = [what for what, right in answers.items() if not right]
            said = ", ".join(answers) if not bad else f"not so: {', '.join(bad)}"
            self.claims.holds(f"{self.title}: {name}", not bad, said)


def prove(claims: Claims) -> None:
    """Check it all."""
    if why := missing("docker-registry"):
        claims.not_run("signatures as other tools read them", why)
        return
    with TemporaryDirectory(prefix="builder-signatures-") as name, ExitStack() as stack:
        scratch = Path(name)
        found = tools(claims, scratch)
        for mode, host in registries(claims, "signatures", scratch, stack):
            client = stack.enter_context(RegistryClient(RegistryConfiguration()))
            for kind, make in SIGNERS.items():
                repository = Reference.parse(f"{host}/team/{kind}:t")
                cells = _cells(claims, f"{mode}, {kind}", place(client, repository), scratch, make)
                cells.all(found.verifiers())
                _referrers(cells, found.oras)
                _sound(cells, found.crane)
            _alone(claims, mode, place(client, Reference.parse(f"{host}/alone")), found, scratch)
            for cosign in found.cosigns:
                theirs = place(client, Reference.parse(f"{host}/team/theirs"))
                _theirs(claims, mode, cosign, theirs, scratch)
            if mode == "tag":
                _carried(claims, found, host, scratch)


def registries(
    claims: Claims, what: str, scratch: Path, stack: ExitStack
) -> Iterator[tuple[str, str]]:
    """Each mode that there is, with the host of a registry that runs as long as the stack; one that
    cannot be had is a claim that was not run."""
    for mode in _MODES:
        try:
            host = stack.enter_context(_registry_of(mode, scratch))
        except CommandError as error:
            claims.not_run(f"{what} in a registry: {mode}", error.said or str(error))
            continue
        yield mode, host


@contextmanager
def _registry_of(mode: str, scratch: Path) -> Iterator[str]:
    """The host of one of :data:`_MODES`.

    Raises:
        CommandError: It cannot be had.
    """
    if mode == _OF_OTHERS:
        with running_referring_registry() as host:
            yield host
        return
    if mode == "API":
        with referrers_stand_in() as stand_in:
            yield stand_in.host
        return
    directory = scratch / "registry"
    directory.mkdir()
    with running_registry(directory) as running:
        yield running.host


def _cells(
    claims: Claims,
    title: str,
    there: RegistryPlace,
    scratch: Path,
    make: Callable[[str], MemorySigner],
) -> Cells:
    """Push and sign what will be asked about."""
    signer, keys = make("good"), scratch / title.replace(", ", "-")
    keys.mkdir()
    (keys / "good.pem").write_bytes(signer.public.pem)
    (keys / "wrong.pem").write_bytes(make("wrong").public.pem)
    push_all(there.registry, there.repository)
    images = (INDEX.descriptor, SIGNED.manifest.descriptor, OTHER.manifest.descriptor)
    wanted = [signable(image, there.repository) for image in images]
    added = publish(wanted, signer, there)
    again = publish(wanted, signer, there)
    if signer.public.type is KeyType.ECDSA_P256:  # nobody minds what lies there for notation
        now = datetime.now(UTC)
        chain = self_signed(signer, "CN=it,O=Acme,ST=Berlin,C=DE", now=now, days=9)
        attach(images, signer, chain, place=there, again=there, now=now)
    claims.holds(
        f"{title}: signing again adds nothing",
        (len(added.added), len(again.added), again.present) == (12, 0, 12),
        f"{len(added.added)} signatures, then {len(again.added)}",
    )
    for image in images:
        collected = collect(image.digest, there)
        said = [item.read(signer.public) for item in collected.found]
        claims.count(f"{title}: we read our own", len(said) == 4 and not collected.refused)
    _borrow(there, signer)
    publish([signable(TAMPERED.manifest.descriptor, there.repository)], Forger(signer), there)
    return Cells(claims=claims, title=title, repository=there.repository.name, keys=keys)


def push_all(client: Registry, repository: Reference) -> None:
    for image in (SIGNED, OTHER):
        push(client, repository.at(image.manifest.digest), image)
    client.push_manifest(repository, INDEX)
    for tag, image in _ASIDE.items():
        push(client, Reference.parse(f"{repository.name}:{tag}"), image)


class Forger:
    """Has a key's signatures over other bytes than those it is asked for."""

    def __init__(self, signer: MemorySigner) -> None:
        self.public = signer.public
        self._signer = signer

    def sign(self, message: bytes) -> bytes:
        return self._signer.sign(message + b" ")


def _borrow(there: RegistryPlace, signer: MemorySigner) -> None:
    """Put the signatures of one image where those of another are looked for."""
    source, target = SIGNED.manifest.digest, BORROWED.manifest
    for tag in (carriers.signature_tag, carriers.attestation_tag):
        document = there.tagged(tag(source))
        assert document is not None
        there.registry.push_manifest(there.reference(tag(target.digest)), document)
    for entry in there.referrers(source, bundle.MEDIA_TYPE):
        manifest = there.manifest(entry.digest)
        assert isinstance(manifest, Manifest)
        raw = there.blob(manifest.layers[0])
        other = carriers.bundle_manifest(raw, "borrowed", subject=target.descriptor)
        there.add([Referring(manifest=other, blobs=(artifact.EMPTY, raw))])
    found = collect(target.digest, there).found
    assert len(found) == 4
    assert not any(_reads(item, signer.public) for item in found)


def _reads(item: Found, key: PublicKey) -> bool:
    try:
        item.read(key)
    except IntegrityError:
        return False
    return True


def _referrers(cells: Cells, oras: Oras | None) -> None:
    if oras is not None:
        count = oras.referrers("--plain-http", cells.name("t"))
        wanted = 3 if cells.title.endswith("p256") else 2  # that of Notation, too
        cells.claims.equal(f"{cells.title}: signatures of the index that oras finds", count, wanted)


def _sound(cells: Cells, crane: Crane | None) -> None:
    """What was signed is the image that was pushed, whole."""
    if crane is None:
        return
    claim = f"{cells.title}: crane validates the signed index and its members, byte for byte"
    with cells.claims.group(claim):
        same = []
        for pushed in (INDEX, SIGNED.manifest, OTHER.manifest):
            name = cells.name("t" if pushed is INDEX else pushed.digest)
            crane.validate(name)
            same.append(crane.manifest(name) == pushed.raw)
        cells.claims.holds(claim, all(same), INDEX.digest)
    refused = not takes(lambda name, _: crane.validate(name), cells.name("unsound"), cells.keys)
    cells.claims.holds(f"{cells.title}: crane does not validate what is unsound", refused)


def _alone(claims: Claims, mode: str, there: RegistryPlace, found: Tools, scratch: Path) -> None:
    """Each generation of forms without the other, at an image of its own."""
    signer, key = p256("alone"), scratch / "alone.pem"
    key.write_bytes(signer.public.pem)
    for forms, kind in (("older forms", Listed), ("bundles", Referring)):
        image, tag = tiny_image(forms.encode()), forms.replace(" ", "-")
        reference = Reference.parse(f"{there.repository.name}:{tag}")
        push(there.registry, reference, image)
        aside = MemoryPlace()
        publish([signable(image.manifest.descriptor, reference)], signer, aside)
        there.add([item for item in aside.added if isinstance(item, kind)])
        for name, verify in found.verifiers().items():
            taken = takes(verify, str(reference), key)
            newer = name.startswith(("cosign 3", BUNDLES_ONLY))
            wanted = name != BUNDLES_ONLY if kind is Listed else newer
            claims.equal(f"{mode}: {name} takes {forms} alone", taken, wanted)


def _theirs(claims: Claims, mode: str, cosign: Cosign, there: RegistryPlace, scratch: Path) -> None:
    """What cosign signs we read; what is there stays when cosign, or we, sign once more."""
    title = f"{mode}: {cosign.name}"
    private, public = cosign.key_pair(scratch / f"{mode}-{cosign.name.replace(' ', '-')}")
    key = read_public_key(public.read_bytes(), at=str(public))
    image, ours = tiny_image(cosign.name.encode()), p256("ours")
    name = f"{there.repository.name}:{cosign.name.replace(' ', '-')}"
    push(there.registry, Reference.parse(name), image)
    predicate = scratch / "predicate.json"
    predicate.write_text(json.dumps(provenance(image.manifest.descriptor).predicate))
    digest = f"{there.repository.name}@{image.manifest.digest}"
    with claims.group(f"{title} signs, we sign, it signs again"):
        cosign.sign(digest, private)
        cosign.attest(digest, private, predicate)
        collected = collect(image.manifest.digest, there)
        said = [item.kind.value for item in collected.found if _reads(item, key)]
        wanted = (
            ["bundle"] * 2 if cosign.name == "cosign 3" else ["simple-signing", "dsse-attachment"]
        )
        claims.equal(f"{title} signs and attests, and we read it", said, wanted)
        publish([signable(image.manifest.descriptor, name)], ours, there)
        (scratch / "ours.pem").write_bytes(ours.public.pem)
        for each in (public, scratch / "ours.pem"):
            cosign.verify(name, each)
            cosign.verify_attestation(name, each)
        claims.holds(f"{title} takes its own and ours, beside each other", True)
        cosign.sign(digest, private)
        found = collect(image.manifest.digest, there).found
        kept = sum(_reads(item, ours.public) for item in found)
        claims.equal(f"{title} signs again, and ours are still there", kept, 4)


def _carried(claims: Claims, found: Tools, host: str, scratch: Path) -> None:
    """From a layout, by name, to a registry: what skopeo copies, cosign verifies."""
    signer, key = p256("carried"), scratch / "carried.pem"
    key.write_bytes(signer.public.pem)
    image, layout = tiny_image(b"in a layout"), scratch / "layout"
    store = FileStore(layout)
    for blob in (image.config, image.layer, image.manifest.raw):
        store.put(blob)
    store.set_reference("t", image.manifest.descriptor)
    publish([signable(image.manifest.descriptor, f"{host}/carried:t")], signer, LayoutPlace(store))
    if found.oras is not None:
        count = found.oras.referrers("--oci-layout", f"{layout}:t")
        claims.equal("a layout: bundles that oras finds", count, 2)
    if found.skopeo is None:
        return
    with claims.group("a layout is copied by skopeo, name by name"):
        for tag in store.references():
            found.skopeo.copy(
                *("--all", "--dest-tls-verify=false", f"oci:{layout}:{tag}"),
                f"docker://{host}/carried:{tag}",
            )
        for name, verify in found.verifiers().items():
            verify(f"{host}/carried:t", key)
            claims.holds(f"a layout, copied by skopeo: {name}", True)


def takes(verify: Callable[[str, Path], None], image: str, key: Path) -> bool:
    try:
        verify(image, key)
    except CommandError:
        return False
    return True
