"""Layers are inflated by what they are, within bounds, and to their last byte."""

import gzip
import os
import subprocess
from collections.abc import Callable, Iterator

import pytest

from builder import inflate as module
from builder.errors import IntegrityError
from builder.inflate import Compression, check_media_type, inflate
from builder.oci import DOCKER_LAYER_GZIP, OCI_LAYER_GZIP, OCI_LAYER_TAR, OCI_LAYER_ZSTD
from tests.scan import zstd
from tests.scan.archives import in_pieces

DATA = os.urandom(50_000) + bytes(2_000_000) + b"end"
ZSTD = zstd.compress(DATA)
SKIPPABLE = b"\x50\x2a\x4d\x18\x04\x00\x00\x00abcd"


def bgzf(data: bytes) -> bytes:
    """Gzip in many members, as pigz -i and bgzip write."""
    return b"".join(gzip.compress(piece, 1) for piece in in_pieces(data, 100_000))


@pytest.mark.parametrize("size", [13, 1000, 1 << 20])
@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(DATA, id="plain"),
        pytest.param(gzip.compress(DATA), id="gzip"),
        pytest.param(bgzf(DATA), id="gzip members"),
        pytest.param(gzip.compress(DATA) + bytes(5000), id="gzip padded with zeros"),
        pytest.param(
            subprocess.run(["gzip", "-1"], input=DATA, capture_output=True, check=True).stdout,
            id="gzip of the system",
        ),
        pytest.param(ZSTD, id="zstd"),
        pytest.param(zstd.streamed(DATA), id="zstd of unknown size"),
        pytest.param(ZSTD + SKIPPABLE, id="zstd with a table of contents, as zstd:chunked"),
        pytest.param(SKIPPABLE + ZSTD, id="zstd behind a skippable frame, as pzstd"),
        pytest.param(b"".join(zstd.compress(p) for p in in_pieces(DATA, 99_999)), id="zstd frames"),
    ],
)
def test_every_packing_gives_the_bytes_however_they_arrive(packed: bytes, size: int) -> None:
    pieces = list(inflate(in_pieces(packed, size), at="layer"))
    assert b"".join(pieces) == DATA
    assert max(map(len, pieces)) <= 1 << 20


@pytest.mark.parametrize("pack", [gzip.compress, zstd.compress, bytes])
def test_single_bytes_are_enough(pack: Callable[[bytes], bytes]) -> None:
    data = b"abc" * 100
    assert b"".join(inflate(in_pieces(pack(data) + pack(data), 1), at="layer")) == data * 2


def test_the_chunks_are_read_to_their_end_so_that_they_verify_themselves() -> None:
    ended = []

    def chunks() -> Iterator[bytes]:
        yield gzip.compress(b"abc")
        yield bytes(10)
        ended.append(True)

    assert b"".join(inflate(chunks(), at="layer")) == b"abc"
    assert ended == [True]


def damaged(data: bytes, place: int) -> bytes:
    return data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]


GZIP = gzip.compress(DATA)


@pytest.mark.parametrize(
    ("packed", "message"),
    [
        pytest.param(GZIP[:-4], "layer: the gzip stream is truncated", id="gzip cut"),
        pytest.param(b"\x1f\x8b", "layer: the gzip stream is truncated", id="gzip cut in header"),
        pytest.param(
            damaged(GZIP, len(GZIP) - 6),
            "layer: not a valid gzip stream: Error -6 Incorrect checksum found",
            id="gzip checksum",
        ),
        pytest.param(
            GZIP + b"garbage!" * 4,
            "layer: not a valid gzip stream: Error -4 Invalid gzip/zlib wrapper found",
            id="data after gzip",
        ),
    ],
)
def test_broken_packing_is_refused(packed: bytes, message: str) -> None:
    with pytest.raises(IntegrityError) as refused:
        list(inflate(in_pieces(packed, 1 << 16), at="layer"))
    assert refused.value.message == message


def test_data_after_zstd_frames_is_refused() -> None:
    with pytest.raises(IntegrityError, match=r"^layer: not a valid zstd stream: "):
        list(inflate([ZSTD + b"garbage!" * 4], at="layer"))


def test_a_zstd_window_beyond_what_the_zstd_command_takes_is_refused() -> None:
    """RFC 8878, 3.1.1: magic, descriptor, window, and a last block of one byte as it is."""
    frame = b"\x28\xb5\x2f\xfd\x00%b\x09\x00\x00x"
    assert list(inflate([frame % b"\x88"], at="layer")) == [b"x"]  # 128 MiB
    with pytest.raises(IntegrityError, match=r"^layer: not a valid zstd stream: "):
        list(inflate([frame % b"\x89"], at="layer"))


@pytest.mark.parametrize(
    "packed",
    [
        pytest.param(gzip.compress(bytes(8 << 20)), id="gzip"),
        pytest.param(zstd.compress(bytes(8 << 20)), id="zstd"),
    ],
)
def test_a_bomb_is_refused_before_it_goes_off(
    packed: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "RATIO_FREE", 1 << 20)
    inflated: list[int] = []
    with pytest.raises(IntegrityError, match="the limit is a ratio of 250"):
        inflated.extend(map(len, inflate([packed], at="layer")))
    assert sum(inflated) <= (1 << 20) + 250 * len(packed)
    monkeypatch.setattr(module, "INFLATED_LIMIT", 1 << 19)
    with pytest.raises(IntegrityError) as refused:
        list(inflate([packed], at="layer"))
    assert refused.value.message == "layer: inflates to more than 524288 bytes"


@pytest.mark.parametrize(
    ("media_type", "compression"),
    [
        (OCI_LAYER_TAR, Compression.NONE),
        (OCI_LAYER_GZIP, Compression.GZIP),
        (OCI_LAYER_ZSTD, Compression.ZSTD),
        (DOCKER_LAYER_GZIP, Compression.GZIP),
        ("application/vnd.docker.image.rootfs.foreign.diff.tar.gzip", Compression.GZIP),
        ("application/vnd.oci.image.layer.nondistributable.v1.tar+zstd", Compression.ZSTD),
        ("application/vnd.docker.image.rootfs.diff.tar", Compression.NONE),
    ],
)
def test_media_types_of_layers_say_their_compression(
    media_type: str, compression: Compression
) -> None:
    check_media_type(media_type, compression, at="layer")
    for other in Compression:
        if other is not compression:
            with pytest.raises(IntegrityError):
                check_media_type(media_type, other, at="layer")


def test_zstd_labelled_gzip_is_refused_by_name() -> None:
    with pytest.raises(IntegrityError) as refused:
        list(inflate([ZSTD], at="layer 3", media_type=OCI_LAYER_GZIP))
    assert refused.value.message == (
        "layer 3: labelled 'application/vnd.oci.image.layer.v1.tar+gzip', but its bytes are zstd"
    )


def test_a_type_that_is_no_layer_is_refused() -> None:
    with pytest.raises(IntegrityError) as refused:
        list(inflate([b"{}"], at="layer", media_type="application/json"))
    assert refused.value.message == "layer: 'application/json' is not the media type of a layer"
