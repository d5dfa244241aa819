"""A repository of a registry as the place of signatures.

Tags are lists that several signers add to, and the protocol has no compare-and-swap: whoever reads,
adds and puts may undo what another put in between. So after each put some time is let pass, the
list is read again, and what is missing of ours, or of anything that was seen there, is put again.
Another signer's put is only harmful while it is under way: the time to wait is several times what
ours took, and a reading that has become old before it could be used is done again.
"""

import io
import logging
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import inf

from builder.digest import Digest
from builder.errors import NetworkError
from builder.oci import OCI_EMPTY, Descriptor, Index, Manifest
from builder.ports import Registry
from builder.reference import Reference
from builder.signatures.place import Addition, Listed, Referring
from builder.sigstore import listing
from builder.value import value

_log = logging.getLogger(__name__)

ATTEMPTS = 20
"""How often a list is put before the others have won."""
SETTLE = 0.15
"""The least seconds to wait before a list is read back."""
_FACTOR = 4
"""How many times as long as our own slowest put it may take another's."""
_STALE = 0.1
"""Seconds that a reading may take. Where it took longer, and not because the way is that long, it
is read again instead of used."""
_AT_ONCE = 6


@value
class RegistryPlace:
    """:class:`builder.signatures.place.Place` over ``repository``, a reference whose tag and digest
    are not looked at.

    Args:
        sleep: Waits for some seconds.
        clock: Seconds that only go up.
    """

    registry: Registry
    repository: Reference
    sleep: Callable[[float], None]
    clock: Callable[[], float]

    def at(self, name: object) -> str:
        """See the Protocol."""
        return f"{self.repository.name}{'@' if isinstance(name, Digest) else ':'}{name}"

    def tagged(self, tag: str) -> Manifest | Index | None:
        """See the Protocol."""
        return self.registry.tagged(self.reference(tag))

    def manifest(self, digest: Digest) -> Manifest | Index:
        """See the Protocol."""
        return self.registry.manifest(self.repository.at(digest))

    def blob(self, descriptor: Descriptor) -> bytes:
        """See the Protocol."""
        return b"".join(self.registry.blob(self.repository.at(descriptor.digest), descriptor))

    def referrers(self, subject: Digest, artifact_type: str) -> tuple[Descriptor, ...]:
        """See the Protocol. Where the registry keeps no list, cosign 3 enters its bundles with the
        type of their config: what is listed so may be one."""
        listed = self.registry.referrers(self.repository, subject, artifact_type=artifact_type)
        wanted = (artifact_type, OCI_EMPTY, None)
        return tuple(entry for entry in listed if entry.artifact_type in wanted)

    def add(self, additions: Sequence[Addition]) -> None:
        """See the Protocol."""
        if not additions:
            return
        blobs = dict.fromkeys(blob for addition in additions for blob in addition.blobs)
        with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
            list(pool.map(self._push_blob, blobs))
            referring = [item for item in additions if isinstance(item, Referring)]
            indexed = list(pool.map(self._push_manifest, referring))
        lists = [item for item in additions if isinstance(item, Listed)]
        lists += [item.listed for item, known in zip(referring, indexed, strict=True) if not known]
        self._settle([_List(self, tag, items) for tag, items in _by_tag(lists).items()])

    def _push_blob(self, blob: bytes) -> None:
        descriptor = Descriptor(
            media_type="application/octet-stream", digest=Digest.of(blob), size=len(blob)
        )
        self.registry.push_blob(self.repository, descriptor, io.BytesIO(blob))

    def _push_manifest(self, referring: Referring) -> bool:
        target = self.repository.at(referring.manifest.digest)
        return self.registry.push_manifest(target, referring.manifest)

    def _settle(self, lists: "list[_List]") -> None:
        for attempt in range(ATTEMPTS):
            with ThreadPoolExecutor(max_workers=_AT_ONCE) as pool:
                changed = list(pool.map(_List.put, lists))
            unsettled = [each for each, put in zip(lists, changed, strict=True) if put]
            if not unsettled:
                return
            lists = unsettled
            slowest = max(each.seconds for each in unsettled)
            wait = max(SETTLE, _FACTOR * slowest) * (1 + lists[0].jitter(attempt))
            _log.debug("%s: reading back in %.2f s", lists[0].at, wait)
            self.sleep(wait)
        raise NetworkError(
            f"{lists[0].at}: put {ATTEMPTS} times, and each time replaced by others",
            hint="too many sign this image at once: try again",
        )

    def reference(self, tag: str) -> Reference:
        """A tag of the repository."""
        return Reference(
            registry=self.repository.registry, repository=self.repository.repository, tag=tag
        )


class _List:
    """One list under way."""

    def __init__(self, place: RegistryPlace, tag: str, items: Sequence[Listed]) -> None:
        self.at = place.at(tag)
        self.seconds = 0.0
        """How long the slowest put took, reading included."""
        self._quickest = inf
        self._place = place
        self._tag = tag
        self._form = items[0].form
        self._wanted = [entry for item in items for entry in item.entries]

    def put(self) -> bool:
        """Put what is missing; returns whether anything was."""
        start, document = self._read()
        missing = listing.lacking(document, self._wanted, self._form, at=self.at)
        # What was there once stays wanted: a put that undid it would be somebody's mistake.
        self._wanted += listing.entries(document, self._form, at=self.at)
        if not missing:
            return False
        more = listing.extended(document, missing, self._form, at=self.at)
        self._place.registry.push_manifest(self._place.reference(self._tag), more)
        self.seconds = max(self.seconds, self._place.clock() - start)
        return True

    def jitter(self, attempt: int) -> float:
        """Between 0 and 1, another for other entries and attempts: signers that got in each other's
        way do not meet again. 0 the first time, when nobody has."""
        if attempt == 0:
            return 0.0
        text = "".join(str(entry) for entry in self._wanted[:1]) + str(attempt)
        return int(Digest.of(text.encode()).hex[:4], 16) / 0xFFFF

    def _read(self) -> tuple[float, Manifest | Index | None]:
        """What is there, and when it was asked for."""
        for last in (False, False, True):
            start = self._place.clock()
            document = self._place.tagged(self._tag)
            took = self._place.clock() - start
            usual, self._quickest = self._quickest, min(took, self._quickest)
            if last or took < _STALE or took < 2 * usual < inf:
                return start, document
        raise AssertionError("the last reading is used")


def _by_tag(lists: Iterable[Listed]) -> dict[str, list[Listed]]:
    found: dict[str, list[Listed]] = {}
    for item in lists:
        found.setdefault(item.tag, []).append(item)
    return found
