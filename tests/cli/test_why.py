"""``builder why``: from a file of the image to the steps and pins behind it."""

import shutil
from pathlib import Path

import pytest

from builder.digest import Digest
from tests.cli.bases import PACKAGES, write_base
from tests.cli.conftest import Builder
from tests.plugins.golden import Golden

HELLO = "usr/local/lib/python3.12/dist-packages/hello"


@pytest.fixture
def patched(builder: Builder, project: Path) -> Builder:
    """The command line, after a build of ``patched``: an edit on a base with links."""
    digest = write_base(project / "base")
    (project / "variants/patched.yaml").write_text(
        f"version: 1\nbase: {{layout: base, digest: '{digest}'}}\nsteps: [{{overlay: limit}}]\n"
    )
    overlay = project / "overlays/limit"
    overlay.mkdir()
    (overlay / "overlay.yaml").write_text(
        "version: 1\n"
        "edits:\n"
        "  - path: engine/config.py\n"
        "    edits: [{anchor: LIMIT = 4, replace: LIMIT = 8}]\n"
        "remove:\n"
        "  - path: engine/other.py\n"
        f"    replaces: {Digest.of(b'OTHER = 1' + bytes([10]))}\n"
    )
    assert builder("build", "patched").status == 0
    return builder


@pytest.mark.parametrize(
    "path",
    [f"/{HELLO}/greeting.py", f"{HELLO}/greeting.py", "hello/greeting.py", "greeting.py"],
)
def test_a_file_is_found_by_its_path_or_the_end_of_it(
    path: str, builder: Builder, golden: Golden
) -> None:
    builder("build", "hello")
    ran = builder("why", "hello", path)
    assert (ran.status, ran.err) == (0, "")
    golden("cli/why.txt", ran.out)


def test_the_document_has_whole_digests(builder: Builder, golden: Golden) -> None:
    builder("build", "hello")
    golden("cli/why.json", builder("why", "hello", "greeting.py", "--json").out)


def test_a_file_that_only_a_wheel_brought_is_found_by_its_end(builder: Builder) -> None:
    builder("build", "hello")
    lines = builder("why", "hello", "hello/__main__.py").out.splitlines()
    assert lines[0] == f"/{HELLO}/__main__.py"
    assert [line.split()[0] for line in lines[1:]] == ["STEP", "wheels"]


def test_a_step_on_a_file_of_the_base_shows_both(patched: Builder) -> None:
    lines = patched("why", "patched", "engine/config.py").out.splitlines()
    assert lines[0] == f"/{PACKAGES}/engine/config.py"
    before = Digest.of(b"LIMIT = 4\n").short
    after = Digest.of(b"LIMIT = 8\n").short
    document = patched("why", "patched", "engine/config.py", "--json").json
    layer = Digest.parse(document["base"]["layer"]).short
    assert lines[2].split() == ["base", before, "layer", layer]
    assert lines[3].split() == ["limit", "overlay", "applied", before, after, "overlay", "limit"]


def test_a_path_below_a_link_is_followed(patched: Builder) -> None:
    ran = patched("why", "patched", "/lib/python3.12/site-packages/engine/config.py")
    assert ran.out.splitlines()[0] == (
        f"/lib/python3.12/site-packages/engine/config.py leads to /{PACKAGES}/engine/config.py"
    )
    assert len(ran.out.splitlines()) == 4


def test_a_link_says_where_it_leads(patched: Builder) -> None:
    ran = patched("why", "patched", "/etc/engine.link", "--json")
    assert (ran.json["path"], ran.json["link"]) == ("etc/engine.link", "engine.conf")
    text = patched("why", "patched", "/etc/engine.link").out
    assert text.startswith("/etc/engine.link, a link to 'engine.conf'\n")


@pytest.mark.parametrize("path", ["/etc/engine.conf", "engine.conf"])
def test_a_file_of_the_base_alone_is_said_to_be_that(path: str, patched: Builder) -> None:
    lines = patched("why", "patched", path).out.splitlines()
    assert lines[:2] == [
        "/etc/engine.conf",
        "no step of patched writes it: it is as the base has it",
    ]
    assert lines[3].split()[:2] == ["base", Digest.of(b"quiet\n").short]


def test_a_removed_file_still_has_its_story(patched: Builder) -> None:
    document = patched("why", "patched", "engine/other.py", "--json").json
    (touch,) = document["touched_by"]
    assert (touch["step"], touch["post"]) == ("limit", None)
    assert touch["pre"] == document["base"]["content"]
    assert "removed" in patched("why", "patched", "engine/other.py").out


def test_a_base_that_was_not_read_here_is_not_guessed_at(patched: Builder, store: Path) -> None:
    shutil.rmtree(store / "notes/layer")
    ran = patched("why", "patched", f"/{PACKAGES}/engine/config.py")
    assert ran.status == 0
    assert "what the base has there is not known: its layers were not read here" in ran.out
    assert "limit     overlay" in ran.out.replace("limit  overlay", "limit     overlay")
    document = patched("why", "patched", "/etc/engine.conf", "--json").json
    assert (document["base"], document["base_read"], document["touched_by"]) == (None, False, [])


REFUSED = [
    (
        "/etc/engine.con",
        "no file '/etc/engine.con' in the image, and neither base nor steps ever had it",
        "did you mean 'engine.conf'?",
    ),
    (
        "nothing/like.it",
        "no file 'nothing/like.it' in the image, and neither base nor steps ever had it",
        None,
    ),
    (
        "/etc",
        "/etc is a directory",
        "it has: engine.conf, engine.link",
    ),
    (
        "/etc/engine.conf/x",
        (
            "no file '/etc/engine.conf/x' in the image: 'etc/engine.conf/x': its parent"
            " 'etc/engine.conf' is a file, wanted a directory"
        ),
        None,
    ),
    ("../x", "PATH: a path that leaves the image: '../x'", None),
    ("", "PATH: an empty path: ''", None),
    ("/", "PATH: an empty path: ''", None),
]


@pytest.mark.parametrize(("path", "message", "hint"), REFUSED, ids=[row[0] for row in REFUSED])
def test_a_path_that_the_image_does_not_have_is_refused(
    path: str, message: str, hint: str | None, patched: Builder
) -> None:
    ran = patched("why", "patched", path)
    hints = "" if hint is None else f"  hint: {hint}\n"
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == f"builder: error: {message}\n{hints}"


def test_the_end_of_two_paths_is_refused(builder: Builder, project: Path) -> None:
    overlay = project / "overlays/greeting"
    text = (overlay / "overlay.yaml").read_text()
    rule = "  - {path: /etc/limits.py, file: files/limits.py, replaces: nothing}\n"
    (overlay / "overlay.yaml").write_text(text.replace("edits:\n", f"{rule}edits:\n", 1))
    builder("build", "hello")
    ran = builder("why", "hello", "limits.py")
    assert ran.status == 2
    assert ran.err == (
        f"builder: error: 'limits.py' is the end of 2 paths: etc/limits.py, {HELLO}/limits.py\n"
        "  hint: write more of the path\n"
    )


def test_a_variant_that_was_not_built_has_no_story(builder: Builder) -> None:
    ran = builder("why", "hello", "greeting.py")
    assert ran.status == 3
    assert ran.err == (
        "builder: error: variant 'hello' was not built for linux/amd64 yet\n"
        "  hint: builder build hello\n"
    )
