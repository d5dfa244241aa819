"""``builder.compose.judge``: what is wrong with images."""

import pytest

from builder.compose.judge import Judgement, State
from tests.compose.worlds import DEMO, FILE, ONE, judged

AGAIN = f"builder compose pin {FILE}"
OVERRIDE = "builder compose pin without --keep-override replaces the variable, too"
NAMING = (
    "pin it by digest, or let the service name what it runs: a label builder.variant, a comment"
    " # builder: NAME at the image, or composes in builder.yaml"
)


def said(service: str) -> tuple[State, str, str | None]:
    (found,) = judged(f"services:\n  a:\n{service}")
    return found.state, found.message, found.hint


@pytest.mark.parametrize(
    "service, state, message, hint",
    [
        pytest.param(
            f"    image: {DEMO} # builder: demo\n", State.PINNED, "", None, id="as it shall be"
        ),
        pytest.param(
            "    image: x:1 # builder: demo\n",
            State.LOOSE,
            f"service 'a': 'x:1', wanted '{DEMO}' (variant demo)",
            AGAIN,
            id="by tag",
        ),
        pytest.param(
            f"    image: {DEMO[:-1]}0 # builder: demo\n",
            State.LOOSE,
            f"service 'a': '{DEMO[:-1]}0', wanted '{DEMO}' (variant demo)",
            AGAIN,
            id="another digest",
        ),
        pytest.param(
            f"    image: registry.example/acme/vllm:old@{ONE} # builder: demo\n",
            State.LOOSE,
            f"service 'a': 'registry.example/acme/vllm:old@{ONE}', wanted '{DEMO}' (variant demo)",
            AGAIN,
            id="another tag",
        ),
        pytest.param(
            f"    image: ${{IMG:-{DEMO}}} # builder: demo\n",
            State.OVERRIDABLE,
            "service 'a': can be overridden by IMG, in the environment or in .env",
            OVERRIDE,
            id="a default",
        ),
        pytest.param(
            "    image: ${IMG:-x:${TAG}} # builder: demo\n",
            State.LOOSE,
            f"service 'a': '${{IMG:-x:${{TAG}}}}', wanted '{DEMO}' (variant demo)",
            AGAIN,
            id="a variable within",
        ),
        pytest.param(
            "    image: x:1 # builder: unbaked\n",
            State.UNPROVEN,
            "service 'a': nobody has accepted what variant unbaked bakes to: it has no digest, and"
            " is unproven",
            f"builder build unbaked, then builder accept unbaked, then {AGAIN}",
            id="not baked yet",
        ),
        pytest.param(
            "    image: x:1\n",
            State.BY_TAG,
            "service 'a': 'x:1' has no digest: what runs can change",
            NAMING,
            id="by tag alone",
        ),
        pytest.param(f"    image: x:1@{ONE}\n", State.PINNED, "", None, id="pinned by hand"),
        pytest.param(
            f"    image: ${{IMG-x:1@{ONE}}}\n",
            State.OVERRIDABLE,
            "service 'a': can be overridden by IMG, in the environment or in .env",
            OVERRIDE,
            id="pinned by hand, as a default",
        ),
        pytest.param("    build: .\n    image: x:1\n", State.BUILT, "", None, id="built"),
        pytest.param(
            "    image: x:1 # builder: dmeo\n",
            State.REFUSED,
            "service 'a': no variant and no pinned base 'dmeo'",
            None,
            id="a name that is none",
        ),
        pytest.param(
            "    build: .\n    image: x:1 # builder: demo\n",
            State.REFUSED,
            "service 'a': it names 'demo', and has 'build': what it runs is built here",
            "remove 'build', or the name",
            id="named and built",
        ),
    ],
)
def test_an_image_is_judged(service: str, state: State, message: str, hint: str | None) -> None:
    assert said(service) == (state, message, hint)


def test_one_that_is_wrong_hides_no_other() -> None:
    found = judged(
        "services:\n  a:\n    image: x:1 # builder: gone\n  b: {image: x:2}\n  c: {command: x}\n"
        f"  d:\n    image: {DEMO} # builder: demo\n  e:\n    image: &i x # builder: demo\n"
        "  f: {image: *i}\n"
    )
    shared = "service 'e' names 'demo', and shares its image with services that name something else"
    assert [(item.service, item.line, item.state) for item in found] == [
        ("a", 3, State.REFUSED),
        ("b", 4, State.BY_TAG),
        ("d", 7, State.PINNED),
        ("e", 9, State.REFUSED),
        ("f", 9, State.BY_TAG),
    ]
    assert found[3] == Judgement(
        service="e",
        line=9,
        runs="demo",
        image="x",
        state=State.REFUSED,
        message=f"{shared}: 'f' (nothing)",
        hint="let all of them name the same, or give each an image of its own",
    )
