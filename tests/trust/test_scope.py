"""Patterns of repositories: one spelling, and no way around it."""

import pytest

from builder.errors import ProjectError
from builder.reference import Reference
from builder.trust.codec import read_policy
from builder.trust.model import Policy
from builder.trust.scope import covers, scope_of
from tests.trust.keys import policy_text

ROLES = "".join(f"  {name}: {{keys: [carol], threshold: 1}}\n" for name in ("wide", "tight", "one"))


def scoped(**patterns: str) -> Policy:
    scopes = "".join(
        f'  - {{repositories: ["{pattern}"], role: {role}}}\n' for role, pattern in patterns.items()
    )
    return read_policy(policy_text(roles=ROLES, scopes=scopes).encode())


@pytest.mark.parametrize(
    ("pattern", "name", "covered"),
    [
        ("registry.example/acme/*", "registry.example/acme/vllm", True),
        ("registry.example/acme/*", "registry.example/acme/team/vllm:tag", True),
        ("registry.example/acme/*", "registry.example/acme", False),
        ("registry.example/acme/*", "registry.example/acme-evil/vllm", False),
        ("registry.example/acme/*", "registry.example/acmevil", False),
        ("registry.example/acme/*", "registry.example:443/acme/vllm", True),
        ("registry.example/acme/*", "registry.example:0443/acme/vllm", True),
        ("registry.example/acme/*", "registry.example:5443/acme/vllm", False),
        ("registry.example:5000/acme/*", "registry.example:05000/acme/vllm", True),
        ("[::1]/acme/*", "[::1]:443/acme/vllm", True),
        ("[::1]:5000/acme/*", "[::1]:5000/acme/vllm", True),
        ("[::1]:5000/acme/*", "[::1]/acme/vllm", False),
        ("registry.example/acme/*", "evil.example/registry.example/acme/vllm", False),
        ("registry.example/acme/*", "REGISTRY.example/acme/vllm", True),
        ("registry.example/*", "registry.example.evil/acme/vllm", False),
        ("registry.example/acme/vllm", "registry.example/acme/vllm@sha256:" + "0" * 64, True),
        ("registry.example/acme/vllm", "registry.example/acme/vllm2", False),
        ("registry.example/acme/vllm", "registry.example/acme/vllm/cache", False),
        ("docker.io/*", "python", True),
        ("docker.io/library/python", "index.docker.io/python:3.12", True),
        ("docker.io/library/python", "DOCKER.io/python", True),
        ("docker.io/acme/*", "Index.Docker.io/acme/vllm", True),
        ("docker.io/acme/*", "registry-1.docker.io:443/acme/vllm", True),
        ("docker.io/acme/*", "registry-1.docker.io:0443/acme/vllm", True),
        ("docker.io/acme/*", "registry-1.docker.io:5000/acme/vllm", False),
        ("localhost:5000/*", "localhost:5000/a", True),
        ("*", "registry.example/a", True),
    ],
)
def test_a_pattern_ends_at_a_slash(pattern: str, name: str, covered: bool) -> None:
    assert covers(pattern, Reference.parse(name)) is covered
    assert (scope_of(scoped(one=pattern), Reference.parse(name)) is not None) is covered


def test_an_image_of_no_repository_is_in_a_scope_of_everything_alone() -> None:
    assert scope_of(scoped(one="registry.example/*"), None) is None
    assert scope_of(scoped(one="*"), None) is not None


def test_of_scopes_that_overlap_the_narrowest_decides_wherever_it_stands() -> None:
    patterns = {"wide": "*", "tight": "r.example/acme/*", "one": "r.example/acme/vllm"}
    for order in (patterns, dict(reversed(patterns.items()))):
        policy = scoped(**order)
        for name, role in (
            ("r.example/acme/vllm", "one"),
            ("r.example/acme/other", "tight"),
            ("r.example/acme/v", "tight"),
            ("r.example/acme/vllm/more", "tight"),
            ("r.example/other", "wide"),
        ):
            found = scope_of(policy, Reference.parse(name))
            assert found is not None
            assert found.role == role


@pytest.mark.parametrize(
    "pattern",
    [
        pytest.param("**", id="two stars"),
        pytest.param("*/*", id="any registry"),
        pytest.param("*.example/acme", id="any host of a domain"),
        pytest.param("registry.example/*/vllm", id="a star in the middle"),
        pytest.param("registry.example/acme*", id="a star behind letters"),
        pytest.param("registry.example/acme/**", id="two stars at the end"),
        pytest.param("registry.example/ac?e", id="a question mark"),
        pytest.param("registry.example/[ab]", id="a set"),
        pytest.param("/*", id="no registry"),
        pytest.param("acme/vllm", id="a repository without its registry"),
        pytest.param("acme/*", id="a namespace without its registry"),
        pytest.param("index.docker.io/acme/vllm", id="an alias of docker.io"),
        pytest.param("registry.example/acme/vllm:tag", id="a tag"),
        pytest.param("registry.example/acme:tag/*", id="a tag before a star"),
        pytest.param("registry.example/acme/vllm@sha256:" + "0" * 64, id="a digest"),
        pytest.param("Registry.example/acme/vllm", id="a host in upper case"),
        pytest.param("registry.example/Acme/vllm", id="a repository in upper case"),
        pytest.param("registry.example/\u0430cme/vllm", id="a Cyrillic a"),
        pytest.param("registry.example/acme\u200b/vllm", id="a blank of no width"),
        pytest.param("registry\u3002example/acme/vllm", id="an ideographic full stop"),
        pytest.param("registry.example/acme/\uff0a", id="a wide star"),
        pytest.param("registry.example//acme", id="an empty part"),
        pytest.param("registry.example/../acme", id="a way up"),
        pytest.param("https://registry.example/acme", id="a URL"),
        pytest.param("registry.example/" + "a" * 300, id="a long one"),
    ],
)
def test_what_could_be_read_in_another_way_is_refused(pattern: str) -> None:
    with pytest.raises(ProjectError, match=r"^trust\.yaml:26: scopes\[0\]\.repositories\[0\]: "):
        scoped(one=pattern)


def test_where_a_star_may_stand_is_said() -> None:
    with pytest.raises(ProjectError, match="a star stands alone or behind the last slash"):
        scoped(one="registry.example/*/vllm")


def test_a_repository_of_one_letter_is_narrower_than_the_star_in_its_place() -> None:
    """Both patterns are as long."""
    for order in (("wide", "one"), ("one", "wide")):
        patterns = {"wide": "r.example/acme/*", "one": "r.example/acme/v"}
        found = scope_of(
            scoped(**{name: patterns[name] for name in order}), Reference.parse("r.example/acme/v")
        )
        assert found is not None
        assert found.role == "one"


@pytest.mark.parametrize(
    ("written", "wanted"),
    [
        ("registry.example:443/a", "registry.example/a"),
        ("registry.example:0443/*", "registry.example/*"),
        ("registry.example:05000/a/*", "registry.example:5000/a/*"),
        ("REGISTRY.example/a/*", "registry.example/a/*"),
        ("index.docker.io/*", "docker.io/*"),
        ("registry-1.docker.io:443/*", "docker.io/*"),
        ("index.docker.io:443/acme/vllm", "docker.io/acme/vllm"),
        ("DOCKER.io/python", "docker.io/library/python"),
        ("acme/*", "REGISTRY/acme/*"),
    ],
)
def test_another_spelling_is_refused_with_the_one_that_counts(written: str, wanted: str) -> None:
    with pytest.raises(ProjectError, match="not the one spelling of a repository") as caught:
        scoped(one=written)
    assert str(caught.value.hint).endswith(f": {wanted}")
