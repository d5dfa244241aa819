"""Image references as people write them (case 22)."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.digest import Digest
from builder.errors import BuilderError, ProjectError, UsageError
from builder.reference import Reference

DIGEST = Digest.of(b"")
HUB = "docker.io"
LONGEST = "a/" + "b" * 253


@pytest.mark.parametrize(
    ("text", "registry", "repository", "tag", "digest"),
    [
        ("ubuntu", HUB, "library/ubuntu", None, None),
        ("ubuntu:24.04", HUB, "library/ubuntu", "24.04", None),
        ("docker.io/ubuntu", HUB, "library/ubuntu", None, None),
        ("docker.io/library/ubuntu", HUB, "library/ubuntu", None, None),
        ("index.docker.io/library/x", HUB, "library/x", None, None),
        ("index.docker.io/x:1", HUB, "library/x", "1", None),
        ("registry-1.docker.io/vllm/vllm-openai", HUB, "vllm/vllm-openai", None, None),
        ("vllm/vllm-openai:nightly", HUB, "vllm/vllm-openai", "nightly", None),
        ("a/b/c", HUB, "a/b/c", None, None),
        (f"a/b/c:1@{DIGEST}", HUB, "a/b/c", "1", DIGEST),
        (f"ubuntu@{DIGEST}", HUB, "library/ubuntu", None, DIGEST),
        ("a.b/c", "a.b", "c", None, None),
        ("localhost/x", "localhost", "x", None, None),
        ("localhost:5000/x", "localhost:5000", "x", None, None),
        ("localhost:5000", HUB, "library/localhost", "5000", None),
        ("host:5000/a/b", "host:5000", "a/b", None, None),
        ("host:5000/a/b:c", "host:5000", "a/b", "c", None),
        (f"host:5000/a/b@{DIGEST}", "host:5000", "a/b", None, DIGEST),
        (f"host:5000/a/b:c@{DIGEST}", "host:5000", "a/b", "c", DIGEST),
        ("host/a", HUB, "host/a", None, None),
        ("HOST/a", "HOST", "a", None, None),
        ("127.0.0.1:5000/a", "127.0.0.1:5000", "a", None, None),
        ("[::1]:5000/a:b", "[::1]:5000", "a", "b", None),
        ("[2001:db8::1]/a", "[2001:db8::1]", "a", None, None),
        ("ghcr.io/a-b/c_d/e__f/g--h:V1.0-x_Y", "ghcr.io", "a-b/c_d/e__f/g--h", "V1.0-x_Y", None),
        ("a:" + "t" * 128, HUB, "library/a", "t" * 128, None),
        ("ghcr.io/" + LONGEST, "ghcr.io", LONGEST, None, None),
    ],
)  # fmt: skip
def test_a_reference_is_read_part_by_part(
    text: str, registry: str, repository: str, tag: str | None, digest: Digest | None
) -> None:
    wanted = Reference(registry=registry, repository=repository, tag=tag, digest=digest)
    assert Reference.parse(text) == wanted
    assert Reference.parse(str(wanted)) == wanted


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "'' is not a repository"),
        ("Ubuntu", "'Ubuntu' is not a repository"),
        ("ghcr.io/Acme/x", "'Acme/x' is not a repository"),
        ("a//b", "'a//b' is not a repository"),
        ("a/", "'a/' is not a repository"),
        ("/a", "'/a' is not a repository"),
        ("a_-b/c", "'a_-b/c' is not a repository"),
        ("a..b", "'a..b' is not a repository"),
        ("a\n", "'a\\n' is not a repository"),
        ("https://ghcr.io/a", "'https:' is not a registry"),
        ("user@ghcr.io/a", None),
        ("-a.b/c", "'-a.b' is not a registry"),
        ("a.b:/c", "'a.b:' is not a registry"),
        ("a.b:x/c", "'a.b:x' is not a registry"),
        ("ü.b/c", "'ü.b' is not a registry"),
        ("repo:nightly-", "the tag 'nightly-' ends where its suffix should be"),
        ("repo:", "'' is not a tag"),
        ("repo:-x", "'-x' is not a tag"),
        ("repo:a:b", "'a:b' is not a tag"),
        ("repo:" + "t" * 129, f"'{'t' * 129}' is not a tag"),
        ("repo@", None),
        ("repo:tag@sha256:beef", None),
        (f"repo@{DIGEST}@{DIGEST}", None),
        ("repo@sha256:" + "A" * 64, None),
        ("ghcr.io/" + LONGEST + "b", f"'{LONGEST}b' is not a repository"),
    ],
)
def test_what_is_no_reference_names_the_part(text: str, message: str | None) -> None:
    with pytest.raises(BuilderError) as caught:
        Reference.parse(text)
    assert isinstance(caught.value, UsageError)
    if message is not None:
        assert caught.value.message == f"image reference: {text!r}: {message}"


def test_a_digest_that_is_none_is_said_in_the_words_of_the_command_line() -> None:
    with pytest.raises(UsageError) as caught:
        Reference.parse("repo@sha256:beef", at="--push")
    assert caught.value.message == (
        "--push: 'repo@sha256:beef': sha256 takes 64 hex digits, got 4: 'beef'"
    )
    assert not isinstance(caught.value, ProjectError)


def test_a_reference_at_a_digest_has_no_tag() -> None:
    reference = Reference.parse("ghcr.io/a/b:t").at(DIGEST)
    assert str(reference) == f"ghcr.io/a/b@{DIGEST}"
    assert reference.name == "ghcr.io/a/b"


@settings(max_examples=150)
@given(st.text(alphabet="aB1.:/@-_[]é \n", max_size=14))
def test_whatever_is_accepted_has_one_spelling(text: str) -> None:
    try:
        reference = Reference.parse(text)
    except UsageError:
        return
    assert Reference.parse(str(reference)) == reference
    assert "\n" not in str(reference)
