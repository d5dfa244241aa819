"""``builder check``: accepted results that a locked build would refuse, and pins that nobody
keeps."""

import re
from pathlib import Path

import pytest

from builder.check import Finding, Severity, exit_status
from tests.cli.bases import write_base
from tests.cli.conftest import Builder, tree
from tests.cli.test_check import ZERO, findings, write

RESULTS = "lockfiles/images/hello.yaml"
HEX = re.compile("sha256:[0-9a-f]{64}")


def change(project: Path) -> None:
    """Give the overlay another file."""
    write(project, "overlays/greeting/files/limits.py", "REPEAT = 7\n")


def said(found: list[tuple[str, str, str]]) -> list[tuple[str, str, str]]:
    return [(severity, where, HEX.sub("DIGEST", message)) for severity, where, message in found]


def test_what_was_accepted_is_what_it_bakes_to(builder: Builder, project: Path) -> None:
    builder("accept", "hello")
    text = (project / RESULTS).read_text()
    plan = builder("plan", "hello", "--json").json
    assert f"derivation: {plan['steps'][-1]['derivation']}\n" in text
    assert findings(builder) == []


def test_a_result_of_a_recipe_that_changed_is_an_error(builder: Builder, project: Path) -> None:
    builder("accept", "hello")
    change(project)
    ran = builder("check", "--json")
    assert ran.status == 4
    assert ran.json["findings"] == [
        {
            "severity": "error",
            "where": f"{RESULTS}:4",
            "message": "results.linux/amd64: accepted before hello changed: what it bakes to now is"
            " not known",
            "hint": "look at a build, then: builder accept hello",
            "exit_status": 4,
        }
    ]
    assert builder("build", "hello", "--locked").status == 4, "as CI would say"


def test_a_build_that_came_to_something_else_says_what_differs(
    builder: Builder, project: Path
) -> None:
    builder("accept", "hello")
    change(project)
    builder("build", "hello")
    assert said(findings(builder)) == [
        (
            "error",
            f"{RESULTS}:4",
            (
                "results.linux/amd64: expected image DIGEST, the build gave DIGEST; files that"
                " differ: usr/local/lib/python3.12/dist-packages/hello/limits.py"
            ),
        )
    ]


def test_settings_of_the_image_are_part_of_what_it_bakes_to(
    builder: Builder, project: Path
) -> None:
    """No step is asked anything else, and the image is another one."""
    builder("accept", "hello")
    text = (project / "variants/hello.yaml").read_text()
    write(project, "variants/hello.yaml", text.replace("title: hello", "title: hi"))
    ((severity, _, message),) = said(findings(builder))
    assert (severity, message) == (
        "error",
        "results.linux/amd64: expected image DIGEST, the build gave DIGEST",
    )


def test_another_recipe_for_the_same_image_is_a_warning(builder: Builder, project: Path) -> None:
    builder("accept", "hello")
    text = (project / RESULTS).read_text()
    write(project, RESULTS, re.sub("derivation: .*", f"derivation: {ZERO}", text))
    ran = builder("check", "--json")
    assert ran.status == 0
    (found,) = ran.json["findings"]
    assert (found["severity"], found["message"], found["hint"]) == (
        "warning",
        "results.linux/amd64: accepted before hello changed, and it bakes to the same image",
        "builder accept hello writes down what it is made of now",
    )
    assert builder("build", "hello", "--locked").status == 0, "the image is what counts"
    builder("accept", "hello")
    assert (project / RESULTS).read_text() == text


def test_without_a_store_the_recipe_is_compared_and_nothing_is_made(
    builder: Builder, project: Path, store: Path
) -> None:
    builder("accept", "hello")
    elsewhere = store.parent / "elsewhere"
    assert findings(builder, "--store", str(elsewhere)) == []
    change(project)
    before = tree(project)
    found = findings(builder, "--store", str(elsewhere))
    assert [message for *_, message in found] == [
        "results.linux/amd64: accepted before hello changed: what it bakes to now is not known"
    ]
    assert tree(project) == before
    assert not elsewhere.exists()


def test_nothing_is_said_above_a_base_that_is_not_at_hand(builder: Builder, project: Path) -> None:
    builder("accept", "hello")
    pin = f"{{follows: {{image: registry.example/x}}, index: {ZERO}, escrow: [{{layout: e, digest:"
    write(project, "lockfiles/vllm.yaml", f"version: 1\nvllm:\n  x: {pin} {ZERO}}}]}}\n")
    text = (project / "variants/hello.yaml").read_text()
    write(project, "variants/hello.yaml", re.sub("(?m)^base:.*", "base: {pin: x}", text))
    found = findings(builder, "hello")
    assert [message for severity, _, message in found if severity == "error"] == []


def test_a_base_in_the_project_is_read_where_it_lies(
    builder: Builder, project: Path, store: Path
) -> None:
    digest = write_base(project / "bases/engine")
    text = (project / "variants/hello.yaml").read_text()
    base = f"base: {{layout: bases/engine, digest: '{digest}'}}"
    write(project, "variants/hello.yaml", re.sub("(?m)^base:.*", base, text))
    assert builder("accept", "hello").status == 0
    change(project)
    elsewhere = store.parent / "elsewhere"
    found = findings(builder, "hello", "--store", str(elsewhere))
    assert ["what it bakes to now" in message for *_, message in found] == [True]
    assert not elsewhere.exists()
    (project / "bases/engine/blobs/sha256" / digest.hex).unlink()
    ((severity, _, message),) = findings(builder, "hello", "--store", str(elsewhere))
    assert severity == "error"
    assert f"no blob {digest} in the layout" in message
    assert builder("check", "hello", "--store", str(elsewhere)).status == 7


def wheel(number: int, escrow: str = "") -> str:
    return (
        f"  w{number:02}:\n    follows: {{project: w, version: '1'}}\n"
        f"    filename: w-1-{number}-py3-none-any.whl\n    digest: {ZERO}\n{escrow}"
    )


def test_pins_that_nobody_keeps_are_one_line_a_kind(builder: Builder, project: Path) -> None:
    own = (project / "lockfiles/wheels.yaml").read_text()
    kept = f"    escrow: [{{layout: kept, digest: {ZERO}}}]\n"
    more = "".join(wheel(number) for number in range(12)) + wheel(99, kept)
    write(project, "lockfiles/wheels.yaml", own + more)
    text = (project / "variants/hello.yaml").read_text()
    names = ", ".join(["hello", "w99", *(f"w{number:02}" for number in range(12))])
    write(project, "variants/hello.yaml", text.replace("wheels: [hello]", f"wheels: [{names}]"))
    found = builder("check", "hello", "--json").json["findings"]
    assert [(item["severity"], item["where"], item["message"], item["hint"]) for item in found] == [
        (
            "warning",
            "lockfiles/wheels.yaml",
            (
                "nobody keeps the bytes of 12 wheels: if upstream deletes them, they are lost: w00,"
                " w01, w02, w03, w04, w05, w06, w07, w08, w09 and 2 more"
            ),
            "keep them: builder escrow hello --to PLACE",
        )
    ]


@pytest.mark.parametrize(
    ("statuses", "worst"),
    [
        pytest.param([0, 0], 0, id="warnings alone"),
        pytest.param([8, 7, 0], 7, id="what is gone before what could not be asked"),
        pytest.param([9, 8], 9, id="this machine before the network"),
        pytest.param([3, 4, 8], 4, id="wrong bytes before everything"),
        pytest.param([6, 5], 5, id="rules before steps"),
        pytest.param([6, 3, 5], 3, id="what cannot be read before what it would say"),
        pytest.param([7, 3], 3, id="the project before the world"),
    ],
)
def test_the_exit_status_is_that_of_the_worst(statuses: list[int], worst: int) -> None:
    made = [
        Finding(severity=Severity.ERROR, where="x", message="x", exit_status=status)
        for status in statuses
    ]
    assert exit_status(made) == exit_status(made[::-1]) == worst
