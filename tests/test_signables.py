"""What of an index gets a signature: all of it, or nothing."""

import pytest

from builder.attest.statement import Statement, Subject
from builder.digest import Digest
from builder.errors import IntegrityError
from builder.oci import OCI_INDEX, Index
from builder.sign import signables
from builder.statements import PREDICATE_TYPES, Kind
from tests.registry.images import index_of, tiny_image

REFERENCE = "registry.example/team/hello:t"
ONE, TWO = (tiny_image(content).manifest for content in (b"one", b"two"))


def said(image: Digest, *, platform: str, variant: str) -> tuple[Statement, ...]:
    predicate = {"platform": platform, "variant": {"name": variant}}
    subject = Subject(name=REFERENCE, digest=image)
    manifest = PREDICATE_TYPES[Kind.MANIFEST]
    return (Statement(subjects=(subject,), predicate_type=manifest, predicate=predicate),)


def index(one: str, two: str) -> Index:
    """Two images, listed for two architectures."""
    return index_of((ONE, "linux", one), (TWO, "linux", two))


def test_an_index_is_signed_with_its_members() -> None:
    statements = {
        ONE.digest: said(ONE.digest, platform="linux/amd64", variant="hello"),
        TWO.digest: said(TWO.digest, platform="linux/arm64", variant="hello"),
    }
    top = index("amd64", "arm64")
    found = signables(top, statements, reference=REFERENCE, name=REFERENCE)
    assert [item.image.digest for item in found] == [top.digest, ONE.digest, TWO.digest]
    assert [len(item.statements) for item in found] == [0, 1, 1]
    assert top.media_type == OCI_INDEX


@pytest.mark.parametrize(
    ("two", "variant", "message"),
    [
        pytest.param(
            "arm64", "debug",
            f"lists images of several variants: {ONE.digest} of 'hello', {TWO.digest} of 'debug'",
            id="another variant",
        ),
        pytest.param(
            "amd64", "hello",
            f"lists {ONE.digest} and {TWO.digest}, both for linux/amd64: an engine would take"
            " either",
            id="two for one platform",
        ),
    ],
)  # fmt: skip
def test_an_index_with_something_built_here_that_does_not_belong_to_it(
    two: str, variant: str, message: str
) -> None:
    statements = {
        ONE.digest: said(ONE.digest, platform="linux/amd64", variant="hello"),
        TWO.digest: said(TWO.digest, platform=f"linux/{two}", variant=variant),
    }
    with pytest.raises(IntegrityError) as caught:
        signables(index("amd64", two), statements, reference=REFERENCE, name=REFERENCE)
    assert caught.value.message == f"{REFERENCE} {message}"
