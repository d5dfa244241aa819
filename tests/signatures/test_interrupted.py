"""A registry that fails half way: nothing dangles, and doing it again completes it."""

from itertools import count

import pytest

from builder.adapters.registry.client import RegistryClient
from builder.errors import NetworkError
from builder.notation.attach import attach
from builder.notation.self_signed import self_signed
from builder.oci import Index, parse_document
from builder.reference import Reference
from builder.signatures.collect import collect
from builder.signatures.publish import publish
from builder.sigstore import carriers
from tests.notation.authorities import NOW
from tests.signatures.conftest import IMAGES, hurried
from tests.signed_images import push, signable
from tests.signers import p256
from tests.standin.referrers import referrers_stand_in
from tests.standin.registry import Call, Reply, StandIn, stand_in

IMAGE = IMAGES[0].manifest.descriptor
SIGNER = p256()


class Failing:
    """Answers the first ``good`` writes as a registry does, and no more until it is mended."""

    def __init__(self, good: int) -> None:
        self.good = good
        self.writes = count(1)
        self.mended = False

    def __call__(self, call: Call) -> Reply | None:
        return None if self.mended or next(self.writes) <= self.good else Reply(status=507)


@pytest.mark.parametrize("serve", [stand_in, referrers_stand_in])
def test_every_write_may_be_the_last(client: RegistryClient, serve: object) -> None:
    failures = 0
    for good in count():
        with serve() as server:  # type: ignore[operator]  # either of two
            reference = Reference.parse(f"{server.host}/team/app:t")
            push(client, reference, IMAGES[0])
            failing = Failing(good)
            server.on("PUT", ".*", failing, forever=True)
            place, wanted = hurried(client, reference), [signable(IMAGE, reference)]
            try:
                publish(wanted, SIGNER, place)
            except NetworkError:
                failures += 1
                assert collect(IMAGE.digest, place).refused == ()
                check_nothing_dangles(server)
            else:
                break
            failing.mended = True
            publish(wanted, SIGNER, place)
            assert len(collect(IMAGE.digest, place).found) == 4
    assert failures >= 8


@pytest.mark.parametrize("serve", [stand_in, referrers_stand_in])
def test_every_write_of_a_signature_of_notation_may_be_the_last(
    client: RegistryClient, serve: object
) -> None:
    failures = 0
    chain = self_signed(SIGNER, "CN=it,O=Acme,ST=Berlin,C=DE", now=NOW, days=2)
    for good in count():
        with serve() as server:  # type: ignore[operator]  # either of two
            reference = Reference.parse(f"{server.host}/team/app:t")
            push(client, reference, IMAGES[0])
            failing, place = Failing(good), hurried(client, reference)
            server.on("PUT", ".*", failing, forever=True)
            try:
                attach([IMAGE], SIGNER, chain, place=place, again=place, now=NOW)
            except NetworkError:
                failures += 1
                check_nothing_dangles(server)
            else:
                break
            failing.mended = True
            done = attach([IMAGE], SIGNER, chain, place=place, again=place, now=NOW)
            assert done.present + len(done.added) == 1
            assert attach([IMAGE], SIGNER, chain, place=place, again=place, now=NOW).present == 1
    assert failures >= 3


def check_nothing_dangles(server: StandIn) -> None:
    """Whatever a tag names is there."""
    for (repository, name), (kind, raw) in server.manifests.items():
        document = parse_document(raw, media_type=kind, at=name)
        if isinstance(document, Index):
            assert name == carriers.referrers_tag(IMAGE.digest) or ":" in name
            for entry in document.manifests:
                assert (repository, str(entry.digest)) in server.manifests
        else:
            for blob in (document.config, *document.layers):
                assert (repository, blob.digest) in server.blobs
