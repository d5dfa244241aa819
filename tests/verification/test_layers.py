"""The files of a layer are read from the blob that the statement names, and from no other."""

import gzip
import io
import tarfile

import pytest

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.verification.chain import SaidLayer
from builder.verification.layers import index_of

CONTENT = b"NAME = 'it'\n"


def tar() -> bytes:
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        member = tarfile.TarInfo("it.py")
        member.size = len(CONTENT)
        archive.addfile(member, io.BytesIO(CONTENT))
    return file.getvalue()


BLOB = gzip.compress(tar(), mtime=0)
SAID = SaidLayer(
    digest=Digest.of(BLOB), size=len(BLOB), diff_id=Digest.of(tar()), step="overlay it"
)


def test_its_files_are_what_its_own_bytes_are() -> None:
    entry = index_of(SAID, [BLOB[:20], BLOB[20:]], at="here").lookup("it.py")
    assert entry is not None
    assert entry.digest == Digest.of(CONTENT)


@pytest.mark.parametrize(
    ("blob", "message"),
    [
        pytest.param(
            gzip.compress(tar(), mtime=1),
            f"here: layer of step 'overlay it': {Digest.of(gzip.compress(tar(), mtime=1))}, wanted"
            f" {SAID.digest}",
            id="the same files in another blob",
        ),
        pytest.param(
            gzip.compress(tar()[:512] + b"X" + tar()[513:], mtime=0),
            "here: layer of step 'overlay it'",
            id="another file",
        ),
    ],
)
def test_another_blob_is_refused(blob: bytes, message: str) -> None:
    with pytest.raises(IntegrityError) as caught:
        index_of(SAID, [blob], at="here")
    assert caught.value.message.startswith(message)
