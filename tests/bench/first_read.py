"""Reading a layer for the first time, in a process of its own whose memory is measured.

    python -m tests.bench.first_read ours|bare HOST REPOSITORY DIGEST SIZE DIFF_ID STORE

``ours`` makes index and pack as a build does; ``bare`` streams, hashes (as it came and inflated,
because a digest and a diff_id are promised) and inflates, and does nothing else. Prints seconds and
the peak of its memory in bytes.
"""

import json
import sys
import time
from pathlib import Path

import urllib3
from isal import igzip_lib

from builder.adapters.registry.client import RegistryClient
from builder.adapters.registry.configuration import RegistryConfiguration
from builder.adapters.store import FileStore
from builder.cli.progress import NoProgress
from builder.digest import Digest, Hasher
from builder.layer_files import BaseLayer
from builder.oci import OCI_LAYER_GZIP, Descriptor
from builder.origin import RegistryOrigin
from builder.reference import Reference


def _ours(reference: Reference, descriptor: Descriptor, diff_id: Digest, store: Path) -> None:
    client = RegistryClient(RegistryConfiguration())
    layer = BaseLayer(
        descriptor,
        diff_id,
        origin=RegistryOrigin(lambda: client, reference),
        store=FileStore(store),
        progress=NoProgress(),
    )
    layer.index  # noqa: B018 - asking for it is what reads the layer


def _bare(reference: Reference, descriptor: Descriptor, diff_id: Digest, store: Path) -> None:
    url = f"http://{reference.registry}/v2/{reference.repository}/blobs/{descriptor.digest}"
    answer = urllib3.PoolManager().request("GET", url, preload_content=False)
    packed, inflated = Hasher(), Hasher()
    gzip = igzip_lib.IgzipDecompressor(flag=igzip_lib.DECOMP_GZIP)
    for chunk in answer.stream(1 << 20):
        packed.update(chunk)
        inflated.update(gzip.decompress(chunk))
    assert (packed.digest(), inflated.digest()) == (descriptor.digest, diff_id)


def main() -> None:
    """Measure one read."""
    how, host, repository, digest, size, diff_id, store = sys.argv[1:]
    reference = Reference.parse(f"{host}/{repository}")
    descriptor = Descriptor(media_type=OCI_LAYER_GZIP, digest=Digest.parse(digest), size=int(size))
    read = {"ours": _ours, "bare": _bare}[how]
    start = time.perf_counter()
    read(reference, descriptor, Digest.parse(diff_id), Path(store))
    seconds = time.perf_counter() - start
    print(json.dumps({"seconds": seconds, "peak": _peak()}))


def _peak() -> int:
    # Not getrusage: Linux carries its maximum over from the process that started this one.
    status = Path("/proc/self/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmHWM:"))
    return int(line.split()[1]) * 1024


if __name__ == "__main__":
    main()
