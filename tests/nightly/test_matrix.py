"""The matrix: every variant as a job, on one line; with --ready those that can be baked."""

import json

import pytest

from builder.matrix import LIMIT
from tests.flow.images import image, serve
from tests.flow.worlds import REGISTRY, Tiny, base_image
from tests.standin.registry import StandIn

IT = {
    "variant": "it",
    "platform": "linux/amd64",
    "base": "base",
    "accepted": None,
    "sandbox": False,
    "tag": "it",
    "reference": None,
}


@pytest.fixture
def project(tiny: Tiny, registry: StandIn) -> Tiny:
    """One variant whose base the registry has, one whose base is gone."""
    serve(registry, base_image())
    tiny.pin(base_image())
    tiny.pin(image({"etc/hostname": b"lost\n"}), name="lost", repository=f"{REGISTRY}/lost")
    tiny.edit("sizes", "vllm/config.py", "SIZE = 128", "SIZE = 256")
    tiny.script("made", make_py="print()\n")
    tiny.variant("it", "sizes")
    script = {
        "script": {"overlay": "made", "path": "make.py"},
        "interpreter": "python",
        "touches": ["vllm/config.py"],
        "name": "made",
    }
    tiny.variant("later", script, base={"pin": "lost"})
    return tiny


def test_it_is_one_line_and_asks_nobody(project: Tiny, registry: StandIn) -> None:
    ran = project.run("matrix", "--json")
    assert (ran.status, ran.err, ran.out.count("\n")) == (0, "", 1)
    later = IT | {"variant": "later", "base": "lost", "sandbox": True, "tag": "later"}
    assert ran.json == {"include": [IT, later]}
    assert registry.calls == []


def test_only_what_is_ready_and_the_rest_is_named(project: Tiny) -> None:
    ran = project.run("matrix", "--json", "--ready")
    assert ran.json == {"include": [IT]}
    assert ran.first.startswith("builder: later (linux/amd64) is left out: ")
    assert "404 Not Found" in ran.first
    assert project.run("matrix", "--json", "--ready", "--quiet").err == ""


def test_nothing_ready_is_an_empty_matrix(project: Tiny) -> None:
    ran = project.run("matrix", "--json", "--ready", "--platform", "linux/arm64")
    assert (ran.status, ran.out) == (0, '{"include": []}\n')


def test_accepted_results_and_where_to_publish(project: Tiny) -> None:
    settings = json.loads((project.root / "builder.yaml").read_text())
    project.document("builder.yaml", settings | {"publish": "ghcr.io/acme/images"})
    accepted = project.run("accept", "it", "--json").json["accepted"][0]["digest"]
    path = project.root / "lockfiles/images/it.yaml"
    head, _, rest = path.read_text().partition("  linux/amd64:")
    path.write_text(f"{head}  linux/amd64:{rest}  linux/arm64:{rest}")
    jobs = project.run("matrix", "--json").json["include"]
    assert [(job["variant"], job["platform"], job["accepted"]) for job in jobs] == [
        ("it", "linux/amd64", accepted),
        ("it", "linux/arm64", accepted),
        ("later", "linux/amd64", None),
    ]
    assert [job["reference"] for job in jobs] == [
        "ghcr.io/acme/images:it",
        "ghcr.io/acme/images:it-linux-arm64",
        "ghcr.io/acme/images:later",
    ]


def test_people_read_a_table(project: Tiny) -> None:
    assert project.run("matrix").out == (
        "VARIANT  PLATFORM     BASE  ACCEPTED  NEEDS\n"
        "it       linux/amd64  base  -         -\n"
        "later    linux/amd64  lost  -         sandbox\n"
    )


def test_more_than_a_matrix_takes_is_refused(tiny: Tiny) -> None:
    for number in range(LIMIT + 1):
        tiny.variant(f"v{number}", base="scratch")
    ran = tiny.run("matrix", "--json")
    assert ran.status == 3
    assert ran.json["error"]["message"] == "257 jobs, and a matrix takes 256"


def test_a_recipe_that_cannot_be_read_is_refused(project: Tiny) -> None:
    project.document("variants/broken.yaml", {"version": 1})
    ran = project.run("matrix", "--json")
    assert ran.status == 3
    assert "variants/broken.yaml" in ran.json["error"]["message"]
