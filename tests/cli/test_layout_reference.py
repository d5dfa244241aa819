"""``oci:DIR:NAME@DIGEST`` as people write it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.cli.layout_reference import LayoutReference
from builder.digest import Digest
from builder.errors import ProjectError, UsageError

IMAGE = Digest.of(b"image")
UPPER = IMAGE.hex.upper()
EXPECTED = "expected 'sha256:' and 64 hex digits"


def parse(text: str, *layouts: str) -> LayoutReference:
    return LayoutReference.parse(text, is_layout=lambda path: path in layouts, at="REF")


@pytest.mark.parametrize(
    ("text", "layouts", "wanted"),
    [
        pytest.param("oci:it", ("it",), ("it", "", False), id="alone"),
        pytest.param("/a/it", ("/a/it",), ("/a/it", "", False), id="without oci:"),
        pytest.param("oci:it:x", ("it",), ("it", "x", False), id="a name"),
        pytest.param(f"oci:it@{IMAGE}", ("it",), ("it", "", True), id="a digest"),
        pytest.param(f"oci:it:x@{IMAGE}", ("it",), ("it", "x", True), id="both"),
        pytest.param("oci:it:r.io/a:1", ("it",), ("it", "r.io/a:1", False), id="colon in the name"),
        pytest.param("oci:it:a@b", ("it",), ("it", "a@b", False), id="@ in the name"),
        pytest.param("oci:a@b", ("a@b",), ("a@b", "", False), id="@ in the path"),
        pytest.param("oci:a@b:x", ("a@b",), ("a@b", "x", False), id="@ in the path, a name"),
        pytest.param("oci:a@sha:x", ("a@sha",), ("a@sha", "x", False), id="@sha in the path"),
        pytest.param(f"oci:a@b@{IMAGE}", ("a@b",), ("a@b", "", True), id="two @"),
        pytest.param("oci:a:b", ("a:b",), ("a:b", "", False), id="colon in the path"),
        pytest.param("oci:a:b:c@d", ("a:b",), ("a:b", "c@d", False), id="colons, a name"),
        pytest.param(f"oci:a:b@{IMAGE}", ("a:b",), ("a:b", "", True), id="colon, a digest"),
        pytest.param("oci:a:b", ("a", "a:b"), ("a", "b", False), id="the first colon counts"),
        pytest.param("oci:a:b/", ("a:b/",), ("a:b/", "", False), id="a slash at the end"),
        pytest.param(
            f"oci:x@{IMAGE}/", (f"x@{IMAGE}/",), (f"x@{IMAGE}/", "", False), id="a path like that"
        ),
    ],
)
def test_what_is_written_is_read(
    text: str, layouts: tuple[str, ...], wanted: tuple[str, str, bool]
) -> None:
    found = parse(text, *layouts)
    assert (found.directory, found.name, found.digest is not None) == wanted
    assert found.digest in (None, IMAGE)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("oci:it@", "REF: 'it@' ends where its digest should be"),
        ("oci:it:x@", "REF: 'it:x@' ends where its digest should be"),
        ("oci:it@sha256:", "REF: 'it@sha256:': sha256 takes 64 hex digits, got 0: ''"),
        (
            f"oci:it@SHA256:{IMAGE.hex}",
            f"REF: 'it@SHA256:{IMAGE.hex}': {EXPECTED}, got 'SHA256:{IMAGE.hex}'",
        ),
        (
            f"oci:it@sha256:{UPPER}",
            f"REF: 'it@sha256:{UPPER}': sha256 takes lower-case hex digits, got '{UPPER}'",
        ),
        (
            "oci:it@sha512:beef",
            f"REF: 'it@sha512:beef': {EXPECTED}, got 'sha512:beef'",
        ),
        (
            f"oci:it@sha256:{IMAGE.hex} ",
            f"REF: 'it@sha256:{IMAGE.hex} ': sha256 takes 64 hex digits, got 65: '{IMAGE.hex} '",
        ),
        ("oci:it:", "REF: 'it:': there is nothing where the name should be"),
        (f"oci:it:@{IMAGE}", f"REF: 'it:@{IMAGE}': there is nothing where the name should be"),
        ("oci:it:@0", "REF: '@0' counts the entries of index.json, and is no name"),
        ("oci:", "REF: 'oci:' names no directory"),
        ("oci::x", "REF: 'oci::x' names no directory"),
        (f"oci:@{IMAGE}", "REF: 'oci:' names no directory"),
        (f"oci:{'x:' * 3000}", "REF: 6000 characters, the limit is 5000"),
    ],
)
def test_what_is_no_reference_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse(text, "it")
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("text", "told", "hint"),
    [
        ("oci:no", "'no'", "builder build V --out DIR makes one"),
        ("oci:no:x:y", "'no' or 'no:x:y'", "builder build V --out DIR makes one"),
        ("oci:no@0", "'no@0'", "an image is named oci:DIR@sha256:HEX or oci:DIR:NAME"),
        (f"oci:no@{IMAGE.hex}", f"'no@{IMAGE.hex}'", "an image is named oci:DIR@sha256:HEX or"),
    ],
)
def test_where_no_layout_is_all_that_was_tried_is_named(text: str, told: str, hint: str) -> None:
    with pytest.raises(ProjectError) as caught:
        parse(text, "it")
    message = f"REF: {told} is not an OCI image layout: it has no file 'oci-layout'"
    assert caught.value.message == message
    assert str(caught.value.hint).startswith(hint)


WORD = st.text("ab@:./-", min_size=1, max_size=8)


@given(directory=WORD, name=st.just("") | WORD, digest=st.none() | st.just(IMAGE))
def test_what_is_told_is_read_as_the_same(directory: str, name: str, digest: Digest | None) -> None:
    """Unless another reading comes first; then the layouts that are there decide."""
    wanted = LayoutReference(directory=directory, name=name, digest=digest)
    try:
        found = parse(str(wanted), directory)
    except (UsageError, ProjectError):
        return
    assert (found, str(found)) == (wanted, str(wanted))
