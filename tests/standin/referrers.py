"""A registry in memory that has the referrers API (distribution-spec v1.1, "Listing Referrers")."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

from builder.digest import Digest
from builder.oci import OCI_INDEX, Manifest, parse_document
from builder.sigstore import carriers
from tests.standin.registry import Call, Reply, StandIn, serving


class ReferrersStandIn(StandIn):
    """Lists what refers to a manifest, page by page; ``filters``: whether it does so by type."""

    def __init__(self) -> None:
        super().__init__()
        self.filters = True

    def _good(self, call: Call) -> Reply:
        if call.path == "/v2/":
            return Reply()
        found = re.fullmatch(r"/v2/(?P<name>.+)/referrers/(?P<digest>.*)", call.path)
        if found:
            return self._referrers(call, found["name"], Digest.parse(found["digest"]))
        reply = super()._good(call)
        if call.method == "PUT" and "/manifests/" in call.path and reply.status == 201:
            subject = self._subject(call.body)
            if subject is not None:
                reply.headers["OCI-Subject"] = str(subject)
        return reply

    def _referrers(self, call: Call, name: str, subject: Digest) -> Reply:
        wanted = call.query.get("artifactType", [None])[0] if self.filters else None
        entries = [
            carriers.referrer(manifest).record()
            for manifest in self._manifests(name)
            if self._subject(manifest.raw) == subject
        ]
        entries = [item for item in entries if wanted in (None, item["artifactType"])]
        start = int(call.query.get("from", ["0"])[0])
        headers = {"Content-Type": OCI_INDEX}
        if wanted:
            headers["OCI-Filters-Applied"] = "artifactType"
        if start + self.page_size < len(entries):
            query = {"from": start + self.page_size} | ({"artifactType": wanted} if wanted else {})
            headers["Link"] = f'<{call.path}?{urlencode(query)}>; rel="next"'
        page = entries[start : start + self.page_size]
        body = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": page}
        return Reply(headers=headers, body=json.dumps(body).encode())

    def _manifests(self, name: str) -> list[Manifest]:
        raw = [
            (media_type, data)
            for (repository, reference), (media_type, data) in self.manifests.items()
            if repository == name and reference.startswith("sha256:")
        ]
        parsed = [parse_document(data, media_type=kind, at="held") for kind, data in raw]
        return [item for item in parsed if isinstance(item, Manifest)]

    @staticmethod
    def _subject(raw: bytes) -> Digest | None:
        subject = json.loads(raw).get("subject")
        return None if subject is None else Digest.parse(subject["digest"])


@contextmanager
def referrers_stand_in() -> Iterator[ReferrersStandIn]:
    """Serve one on a free loopback port."""
    with serving(ReferrersStandIn()) as registry:
        yield registry
