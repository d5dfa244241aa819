"""``builder.compose.document`` and ``builder.compose.service``: files as Docker Compose reads
them, and what services name."""

import pytest

from builder.compose.document import read
from builder.compose.service import Service, services
from builder.errors import ProjectError
from tests.compose.worlds import FILE

NO_SERVICES = "is it a compose file? those that it includes are given one by one"


def found(data: str, mapped: dict[str, str] | None = None) -> dict[str, Service]:
    return {item.name: item for item in services(read(data.encode(), file=FILE), mapped or {})}


@pytest.mark.parametrize(
    "service",
    [
        pytest.param("    image: x:1\n    labels: {builder.variant: demo}\n", id="a mapping"),
        pytest.param("    image: x:1\n    labels: [a=b, builder.variant=demo]\n", id="a list"),
        pytest.param("    image: x:1\n    labels:\n    - 'builder.variant=demo'\n", id="quoted"),
        pytest.param("    image: x:1 # builder: demo\n", id="a comment beside it"),
        pytest.param("    image: x:1\t#builder:demo  \n", id="a comment without blanks"),
        pytest.param("    # builder: demo\n    image: x:1\n", id="a comment above"),
        pytest.param("    # builder: demo\r\n    image: x:1\r\n", id="a comment above, CRLF"),
        pytest.param("    <<: *named\n    image: x:1\n", id="a merged label"),
        pytest.param("    labels: {<<: *labels}\n    image: x:1\n", id="a label merged in"),
        pytest.param("    extends: named\n    image: x:1\n", id="an inherited label"),
        pytest.param(
            "    # builder: demo\n    image: x:1 # builder: demo\n    labels: *labels\n",
            id="all of it, and it agrees",
        ),
    ],
)
def test_a_service_says_what_it_runs(service: str) -> None:
    head = (
        "x-l: &labels {builder.variant: demo}\nx-n: &named {labels: *labels}\nservices:\n"
        "  named: {image: y:1, labels: *labels}\n  a:\n"
    )
    a = found(head + service)["a"]
    assert (a.runs, [image.value for image in a.images]) == ("demo", ["x:1"])


@pytest.mark.parametrize(
    "service",
    [
        pytest.param("    # builder: demo\n\n    image: x:1\n", id="a line between"),
        pytest.param(
            "    command: x # builder: demo\n    image: x:1\n", id="another key's comment"
        ),
        pytest.param("    image: 'x # builder: demo'\n", id="in quotes"),
        pytest.param("    image: x#builder:demo\n", id="no comment"),
        pytest.param("    deploy: {labels: {builder.variant: demo}}\n    image: x:1\n", id="swarm"),
        pytest.param("    labels: [builder.variants=demo]\n    image: x:1\n", id="another label"),
        pytest.param("    labels: x\n    image: x:1\n", id="labels that are a text"),
    ],
)
def test_nothing_else_names_it(service: str) -> None:
    assert found(f"services:\n  a:\n{service}")["a"].runs is None


def test_builder_yaml_names_services() -> None:
    data = "services:\n  a: {image: x:1}\n  b: {image: x:2}\n"
    assert {name: item.runs for name, item in found(data, {"b": "demo"}).items()} == {
        "a": None,
        "b": "demo",
    }


@pytest.mark.parametrize(
    "data, mapped, message, hint",
    [
        pytest.param("a: b\n", {}, ": no services", NO_SERVICES, id="no services"),
        pytest.param("", {}, ": no services", NO_SERVICES, id="nothing"),
        pytest.param("services: []\n", {}, ": no services", NO_SERVICES, id="a list"),
        pytest.param(
            "services: {web: {}}\n",
            {"wbe": "demo"},
            ": no service 'wbe', which builder.yaml names under composes",
            "did you mean 'web'?",
            id="a service of builder.yaml that is not there",
        ),
        pytest.param(
            "services:\n  a:\n    image: x:1 # builder: demo\n    labels: [builder.variant=base]\n",
            {"a": "third"},
            ":2: service 'a': what it runs is said in two ways: 'third' by builder.yaml, 'base' by"
            " the label on line 4, 'demo' by the comment at line 3",
            "keep one",
            id="two names",
        ),
        *(
            pytest.param(
                f"services:\n  a:\n    image: x:1\n    labels: {label}\n",
                {},
                f":2: service 'a': the label on line 4 names {value!r}, wanted the name of a"
                " variant or a pinned base",
                "names stand in variants/ and in lockfiles/vllm.yaml",
                id=f"a label {label}",
            )
            for label, value in (
                ("{builder.variant: }", ""),
                ("[builder.variant]", ""),
                ("{builder.variant: '${V}'}", "${V}"),
                ("{builder.variant: [x]}", ""),
                ("{builder.variant: a b}", "a b"),
            )
        ),
        pytest.param(
            "services:\n  a:\n    image: x\n    image: y\n",
            {},
            ":4:5: duplicate key 'image', first on line 3",
            "Docker Compose refuses the file, too: remove one of them",
            id="a duplicate key",
        ),
        pytest.param(
            "x-a: &a {b: c}\nservices:\n  a:\n    <<: *a\n    <<: *a\n",
            {},
            ":5:5: duplicate key '<<', first on line 4",
            "Docker Compose refuses the file, too: remove one of them",
            id="two merge keys",
        ),
        pytest.param(
            "services:\n  a: *b\n",
            {},
            ":2:6: alias '*b' of no anchor above it",
            None,
            id="no anchor",
        ),
        pytest.param(
            "a: &a\n  b: *a\n",
            {},
            ":2:6: alias '*a' of no anchor above it",
            None,
            id="within itself",
        ),
        pytest.param(
            "a: &a b\n---\nservices: {c: *a}\n",
            {},
            ":3:15: alias '*a' of no anchor above it",
            None,
            id="an anchor of another document",
        ),
        pytest.param("[" * 65, {}, ":1:65: nested deeper than 64", None, id="very deep"),
        pytest.param(
            "a: [", {}, ":2:1: not YAML: did not find expected node content", None, id="not YAML"
        ),
    ],
)
def test_what_is_no_compose_file_is_refused(
    data: str, mapped: dict[str, str], message: str, hint: str | None
) -> None:
    with pytest.raises(ProjectError) as caught:
        found(data, mapped)
    assert (caught.value.message, caught.value.hint) == (FILE + message, hint)


@pytest.mark.parametrize(
    "data, message",
    [
        pytest.param(b"a: \xff\n", ": byte 0xff at 3 is not UTF-8", id="Latin-1"),
        pytest.param("a: b\n".encode("utf-16"), ": byte 0xff at 0 is not UTF-8", id="UTF-16"),
        pytest.param(
            b"#" * (4 << 20) + b"#", ": 4194305 bytes of YAML, the limit is 4194304", id="huge"
        ),
    ],
)
def test_bytes_that_are_no_text_are_refused(data: bytes, message: str) -> None:
    with pytest.raises(ProjectError) as caught:
        read(data, file=FILE)
    assert caught.value.message == FILE + message


def test_merges_of_merges_cost_one_look_each() -> None:
    """Doubled 40 times over, they would be 10^12 entries."""
    lines = ["x-0: &x0 {a: b}"]
    lines += [f"x-{n}: &x{n} {{<<: [*x{n - 1}, *x{n - 1}]}}" for n in range(1, 41)]
    lines += ["services:", "  a: {<<: *x40, image: 'x:1'}"]
    assert [image.value for image in found("\n".join(lines))["a"].images] == ["x:1"]


def test_a_long_chain_of_merges_is_no_recursion() -> None:
    lines = ["x-0: &x0 {image: 'x:1'}"]
    lines += [f"x-{n}: &x{n} {{<<: *x{n - 1}}}" for n in range(1, 3000)]
    lines += ["services:", "  a: {<<: *x2999}"]
    assert [image.value for image in found("\n".join(lines))["a"].images] == ["x:1"]
