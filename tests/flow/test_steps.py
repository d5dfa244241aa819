"""Every kind of step from the project's files to the image, and what each refuses."""

import json
import py_compile
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from builder import diff
from builder.build_record import describe, recorded
from builder.digest import Digest
from builder.errors import (
    BuilderError,
    GoneError,
    IntegrityError,
    NetworkError,
    PatchError,
    ProjectError,
)
from builder.wheel_pack import pack
from tests.adapters.git_world import Remote, Upstream, git, serving
from tests.fakes import File
from tests.flow.conftest import Log
from tests.flow.images import PACKAGES, Directory, Hard, Node, image, serve, unpacked
from tests.flow.worlds import (
    BASE,
    CONFIG,
    MODULE,
    Tiny,
    at_packages,
    base_image,
    cached,
    content,
)
from tests.standin.registry import StandIn
from tests.wheel.wheels import row

REPOSITORY = "https://git.test/team/code"


@pytest.fixture
def on_base(tiny: Tiny, registry: StandIn) -> Tiny:
    """A project on the usual base."""
    made = base_image()
    serve(registry, made)
    tiny.pin(made)
    return tiny


def rebase(tiny: Tiny, registry: StandIn, tree: Mapping[str, Node]) -> None:
    """Pin another base."""
    made = image(tree)
    serve(registry, made)
    tiny.pin(made)


def refusal(tiny: Tiny, name: str = "it") -> BuilderError:
    """The error of a build; the project and the references are as they were."""
    before = tiny.snapshot(), tiny.references()
    with pytest.raises(BuilderError) as caught:
        tiny.bake(name)
    assert (tiny.snapshot(), tiny.references()) == before
    return caught.value


# --- overlay -------------------------------------------------------------------------------------


def test_a_whole_file_overlay_fits_the_base_it_was_made_for_and_no_other(
    tiny: Tiny, registry: StandIn
) -> None:
    """Four bases: as pinned; changed upstream; deleted upstream; moved upstream."""
    path = at_packages("vllm/config.py")
    rest = {key: node for key, node in BASE.items() if key != path}
    changed = CONFIG + b"FIX = True\n"
    tiny.overlay("it", files={"vllm/config.py": (CONFIG, b"SIZE = 256\n")})
    tiny.variant("it", "it")
    at = "overlays/it/overlay.yaml:4: files[0]"

    rebase(tiny, registry, BASE)
    assert content(tiny.bake(), path, tiny.store) == b"SIZE = 256\n"

    rebase(tiny, registry, rest | {path: changed})
    error = refusal(tiny)
    assert isinstance(error, PatchError)
    assert (error.exit_status, error.verdict, error.path) == (6, "refused", path)
    assert error.message == (
        f"{at}: {path!r} is not the file that this step was made for: expected"
        f" {Digest.of(CONFIG)}, the image has {Digest.of(changed)}"
    )
    assert error.difference == "\n".join(
        [
            f"--- image/{path}",
            "+++ step",
            "@@ -1,2 +1 @@",
            "-SIZE = 128",
            "-FIX = True",
            "+SIZE = 256",
        ]
    )

    rebase(tiny, registry, rest)
    error = refusal(tiny)
    assert isinstance(error, PatchError)
    assert (error.verdict, error.message) == (
        "file-missing",
        f"{at}: no file at {path!r} in the image",
    )

    moved = at_packages("vllm/chat/config.py")
    rebase(tiny, registry, rest | {moved: CONFIG})
    error = refusal(tiny)
    assert isinstance(error, PatchError)
    assert (error.verdict, error.message) == (
        "file-moved",
        (
            f"{at}: no file at {path!r} in the image; one of that name is at {moved!r}, the very"
            " bytes that are pinned"
        ),
    )


def test_a_file_that_must_not_exist_and_does_is_refused(on_base: Tiny) -> None:
    on_base.overlay("it", files={"vllm/config.py": (None, b"SIZE = 256\n")})
    on_base.variant("it", "it")
    error = refusal(on_base)
    assert error.message == (
        f"overlays/it/overlay.yaml:4: files[0]: {at_packages('vllm/config.py')!r} must not exist,"
        f" the image has a file {Digest.of(CONFIG)} of mode 0644"
    )


def test_an_edit_whose_anchor_is_not_there_is_refused_and_never_applied_by_halves(
    on_base: Tiny,
) -> None:
    """What a patch script with ``str.replace`` calls applied."""
    edits = [{"anchor": "SIZE = 128", "replace": "SIZE = 1"}, {"anchor": "GONE", "replace": "HERE"}]
    on_base.overlay("it", edits=[{"path": "vllm/config.py", "edits": edits}])
    on_base.variant("it", "it")
    error = refusal(on_base)
    assert isinstance(error, PatchError)
    assert (error.exit_status, error.verdict) == (6, "drift-anchor")
    assert error.message == (
        "overlays/it/overlay.yaml:11: edits[0].edits[1]: the anchor 'GONE' stands 0 times in"
        f" {at_packages('vllm/config.py')!r}, wanted 1"
    )


def test_a_replaced_file_keeps_what_the_base_says_of_it(tiny: Tiny, registry: StandIn) -> None:
    path = at_packages("vllm/config.py")
    rebase(tiny, registry, BASE | {path: File(CONFIG, mode=0o750, uid=7, gid=8)})
    tiny.overlay(
        "it",
        files={
            "vllm/config.py": (CONFIG, b"SIZE = 256\n"),
            "/usr/bin/new": (None, b"#!/bin/sh\n"),
            "/opt/new/deep/file": (None, b""),
        },
        modes={"/usr/bin/new": "0755"},
        remove={"vllm/sub/module.py": MODULE},
    )
    tiny.variant("it", "it")
    build = tiny.bake()
    layer = build.image.own[0]
    with unpacked(tiny.store.read(layer.digest)) as archive:
        seen = {m.name: (m.type, oct(m.mode), m.uid, m.gid, m.mtime) for m in archive}
    epoch = 315532800
    assert seen == {
        "opt/new": (b"5", "0o755", 0, 0, epoch),
        "opt/new/deep": (b"5", "0o755", 0, 0, epoch),
        "opt/new/deep/file": (b"0", "0o644", 0, 0, epoch),
        "usr/bin": (b"5", "0o755", 0, 0, epoch),
        "usr/bin/new": (b"0", "0o755", 0, 0, epoch),
        path: (b"0", "0o750", 7, 8, epoch),
        at_packages("vllm/sub/.wh.module.py"): (b"0", "0o644", 0, 0, epoch),
    }


def test_a_hard_link_that_is_replaced_leaves_its_other_name_alone(
    tiny: Tiny, registry: StandIn
) -> None:
    one, two = at_packages("vllm/config.py"), at_packages("vllm/same.py")
    rebase(tiny, registry, BASE | {two: Hard(one)})
    tiny.edit("it", "vllm/same.py", "128", "256")
    tiny.variant("it", "it")
    build = tiny.bake()
    assert content(build, two, tiny.store) == b"SIZE = 256\n"
    assert content(build, one, tiny.store) == CONFIG


# --- two steps, one file -------------------------------------------------------------------------


def test_the_second_step_of_a_file_starts_from_what_the_first_one_made(on_base: Tiny) -> None:
    path = at_packages("vllm/config.py")
    twice = b"SIZE = 256\n"
    on_base.overlay("first", files={"vllm/config.py": (CONFIG, twice)})
    on_base.edit("second", "vllm/config.py", "256", "384")
    on_base.variant("it", "first", "second")
    build = on_base.bake()
    files = [item.output.files[0] for item in build.steps]
    assert [(file.path, file.pre, file.post) for file in files] == [
        (path, Digest.of(CONFIG), Digest.of(twice)),
        (path, Digest.of(twice), Digest.of(b"SIZE = 384\n")),
    ]
    why = on_base.run("why", "it", "vllm/config.py", "--json").json
    assert why["image"] == str(build.image.digest)
    assert why["touched_by"] == [
        {
            "step": name,
            "kind": "overlay",
            "pins": [f"overlay {name}"],
            "verdict": "applied",
            "pre": str(file.pre),
            "post": str(file.post),
            "offsets": [],
            "patches": [],
        }
        for name, file in zip(("first", "second"), files, strict=True)
    ]
    on_base.variant("it", "second", "first")
    error = refusal(on_base)
    assert isinstance(error, PatchError)
    assert error.verdict == "drift-anchor"


def test_explain_names_the_step_and_the_file_in_which_two_builds_differ(on_base: Tiny) -> None:
    on_base.edit("it", "vllm/config.py", "128", "256")
    on_base.edit("other", "vllm/config.py", "128", "384")
    on_base.variant("it", {"overlay": "it", "name": "size"})
    on_base.variant("other", {"overlay": "other", "name": "size"})
    one, two = on_base.bake("it"), on_base.bake("other")
    told = on_base.run("explain", "it", "other", "--json").json
    assert (told["first"], told["second"]) == (str(one.image.digest), str(two.image.digest))
    where = [item["where"] for item in told["differences"]]
    assert where == [
        "step size.edits[0].edits[0].text",
        f"file {at_packages('vllm/config.py')}",
        "image",
    ]


# --- until: upstream -----------------------------------------------------------------------------


def test_a_step_that_upstream_has_is_an_error_unless_it_is_marked(on_base: Tiny, log: Log) -> None:
    on_base.overlay("had", files={"vllm/config.py": (b"SIZE = 64\n", CONFIG)})
    on_base.edit("more", "vllm/sub/module.py", "41", "42")
    on_base.variant("it", "had", "more")
    error = refusal(on_base)
    assert isinstance(error, PatchError)
    assert (error.exit_status, error.verdict) == (6, "already-upstream")
    on_base.variant("it", {"overlay": "had", "until": "upstream"}, "more")
    on_base.variant("bare", "more")
    log.lines.clear()
    build = on_base.bake()
    path = at_packages("vllm/config.py")
    assert [line for line in log.lines if "left out" in line] == [
        (
            f"step had is left out: overlays/had/overlay.yaml:4: files[0]: {path!r} is already"
            " upstream: the image has these bytes"
        )
    ]
    assert len(build.image.own) == 1
    assert build.image == on_base.bake("bare").image
    record = describe(build)["steps"][0]
    assert (record["name"], record["output"]["layer"], record["output"]["summary"]) == (
        "had",
        None,
        "left out: already upstream",
    )
    told = on_base.run("build", "it", "--json").json["images"][0]
    assert told["left_out"] == ["had"]
    assert [layer["step"] for layer in told["layers"]] == ["more"]
    said = on_base.run("build", "it").out
    assert "left out: already upstream" in said


def test_a_step_that_upstream_has_in_part_is_refused_even_when_it_is_marked(
    on_base: Tiny,
) -> None:
    on_base.overlay(
        "had",
        files={
            "vllm/config.py": (b"SIZE = 64\n", CONFIG),
            "vllm/sub/module.py": (MODULE, b"def answer():\n    return 42\n"),
        },
    )
    on_base.variant("it", {"overlay": "had", "until": "upstream"})
    error = refusal(on_base)
    assert isinstance(error, PatchError)
    assert (error.verdict, error.message) == (
        "refused",
        "variants/it.yaml:7: steps[0]: 1 of 2 files are already upstream, the others are not",
    )


def test_a_left_out_step_comes_back_on_a_base_that_lacks_it(tiny: Tiny, registry: StandIn) -> None:
    old = b"SIZE = 64\n"
    tiny.overlay("had", files={"vllm/config.py": (old, CONFIG)})
    tiny.variant("it", {"overlay": "had", "until": "upstream"}, image={"env": {"A": "1"}})
    layers = []
    for text in (CONFIG, old, CONFIG):
        rebase(tiny, registry, BASE | {at_packages("vllm/config.py"): text})
        layers.append(len(tiny.bake().image.own))
    assert layers == [0, 1, 0]


# --- no old code may run -------------------------------------------------------------------------


def _python_tree(directory: Path, source: bytes) -> dict[str, Node]:
    """A package as an image has it: sources of one time, and what Python compiled of them."""
    package = directory / "vllm"
    package.mkdir()
    tree: dict[str, Node] = {}
    for name, text in {"__init__.py": b"", "size.py": source, "other.py": b"OTHER = 1\n"}.items():
        (package / name).write_bytes(text)
        subprocess.run(["touch", "-d", "@315532800", str(package / name)], check=True)
        for level in (0, 1, 2):
            py_compile.compile(str(package / name), optimize=level, doraise=True)
    py_compile.compile(str(package / "size.py"), cfile=str(package / "size.pyc"), doraise=True)
    for path in sorted(package.rglob("*")):
        if path.is_file():
            tree[at_packages(str(path.relative_to(directory)))] = path.read_bytes()
    return tree


@pytest.mark.requires("skopeo", "umoci", "root")
def test_no_bytecode_of_the_old_source_is_left_to_be_run(
    tiny: Tiny, registry: StandIn, tmp_path: Path
) -> None:
    """Same length, same whole second: Python itself could not tell that the source changed."""
    (tmp_path / "tree").mkdir()
    tree = _python_tree(tmp_path / "tree", b"SIZE = 128\n")
    assert len([path for path in tree if path.endswith(".pyc")]) == 10
    rebase(tiny, registry, tree)
    tiny.edit("it", "vllm/size.py", "128", "640")
    tiny.variant("it", "it")
    done = tiny.run("build", "it", "--out", str(tmp_path / "layout"))
    assert done.status == 0, done.err
    root = _unpack(tmp_path, "it")
    left = sorted(path.name for path in root.rglob("*.pyc"))
    assert left == sorted(
        f"{name}.cpython-{sys.version_info[0]}{sys.version_info[1]}{level}.pyc"
        for name in ("__init__", "other")
        for level in ("", ".opt-1", ".opt-2")
    )
    said = subprocess.run(
        [sys.executable, "-I", "-c", _ASK, str(root / PACKAGES)],
        env={"PATH": "/usr/bin:/bin"},  # above all no PYTHONDONTWRITEBYTECODE
        stdout=subprocess.PIPE,
        check=True,
    )
    assert said.stdout == b"640\n"


_ASK = "import sys; sys.path.insert(0, sys.argv[1]); from vllm import size; print(size.SIZE)"


def _unpack(tmp_path: Path, name: str) -> Path:
    """What umoci makes of an exported image."""
    subprocess.run(
        ["umoci", "unpack", "--image", f"{tmp_path / 'layout'}:{name}", str(tmp_path / "bundle")],
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return tmp_path / "bundle" / "rootfs"


def test_bytecode_below_the_prefix_of_the_image_goes_too(tiny: Tiny, registry: StandIn) -> None:
    stale = f"var/pyc/{at_packages('vllm/config.cpython-312.pyc')}"
    made = image(BASE | {stale: b"old"}, settings={"Env": ["PYTHONPYCACHEPREFIX=/var/pyc"]})
    serve(registry, made)
    tiny.pin(made)
    tiny.edit("it", "vllm/config.py", "128", "256")
    tiny.variant("it", "it")
    made_of = tiny.bake()
    assert content(made_of, stale, tiny.store) is None
    # The prefix is part of what was asked, and is told with it.
    (planned,) = tiny.run("--json", "plan", "it").json["steps"]
    (recorded_step,) = recorded(made_of.image.digest, tiny.store).steps
    assert planned["inputs"] == recorded_step.inputs
    assert planned["inputs"]["bytecode_prefixes"] == ["/var/pyc"]


def test_a_source_that_would_never_be_imported_is_refused(tiny: Tiny, registry: StandIn) -> None:
    shadow = at_packages("vllm/config.cpython-312-x86_64-linux-gnu.so")
    rebase(tiny, registry, BASE | {shadow: b"\x7fELF"})
    tiny.edit("it", "vllm/config.py", "128", "256")
    tiny.variant("it", "it")
    assert refusal(tiny).message == (
        f"step 'it': {at_packages('vllm/config.py')!r} would never be imported, {shadow!r} comes"
        " before it"
    )


# --- pull ----------------------------------------------------------------------------------------

SECTIONS = {
    "vllm/config.py": (CONFIG, b"SIZE = 256\n"),
    "tests/test_a.py": (None, b"def test(): pass\n"),
    "csrc/k.cu": (b"int k;\n", b"int kk;\n"),
}


def _diff(*paths: str) -> bytes:
    """A git diff of some of ``SECTIONS``."""
    text = b""
    for path in paths:
        old, new = SECTIONS[path]
        name = path.encode()
        text += b"diff --git a/%s b/%s\n" % (name, name)
        text += b"new file mode 100644\n--- /dev/null\n" if old is None else b"--- a/%s\n" % name
        text += b"+++ b/%s\n@@ -%s +1 @@\n" % (name, b"0,0" if old is None else b"1")
        text += b"" if old is None else b"-" + old
        text += b"+" + new
    return text


def _canonical(data: bytes) -> str:
    return str(diff.canonical(diff.parse(data, at="a test's diff")))


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    """A repository where the project's mirrors say that it is."""
    (tmp_path / "git" / "team").mkdir(parents=True)
    return Upstream.make(tmp_path / "git" / "team" / "code.git")


def mirrored(tiny: Tiny, registry: StandIn, target: str = "../git/") -> None:
    """Say where the repository is."""
    tiny.document(
        "builder.yaml",
        {
            "version": 1,
            "registries": {"registry.test": {"location": registry.host}},
            "mirrors": {"git": {"https://git.test/": target}},
        },
    )


def publish_source(tiny: Tiny, upstream: Upstream, content: Mapping[str, Any], **pin: Any) -> str:
    """Commit files and pin them; returns the commit."""
    commit = upstream.commit("refs/heads/main", content)
    pins = {
        path: {"digest": str(Digest.of(data)), "size": len(data)}
        for path, data in content.items()
        if isinstance(data, bytes)
    }
    tiny.lock(
        "sources",
        "code",
        {
            "follows": {"repository": REPOSITORY, "ref": "main"},
            "commit": commit,
            "tree": git(upstream.path, "rev-parse", f"{commit}^{{tree}}"),
            "files": pins,
        }
        | pin,
    )
    return commit


@pytest.fixture
def published(on_base: Tiny, registry: StandIn, upstream: Upstream) -> Tiny:
    """A project whose source pin publishes diffs."""
    mirrored(on_base, registry)
    publish_source(
        on_base,
        upstream,
        {
            "all.diff": _diff(*SECTIONS),
            "some.diff": _diff("vllm/config.py", "tests/test_a.py"),
        },
    )
    for name, paths in (("all", tuple(SECTIONS)), ("some", ("vllm/config.py", "tests/test_a.py"))):
        on_base.lock(
            "pulls",
            name,
            {
                "follows": {"repository": REPOSITORY, "pull": 7},
                "published": {"source": "code", "path": f"{name}.diff"},
                "diff": _canonical(_diff(*paths)),
            },
        )
    return on_base


@pytest.mark.requires("git")
def test_a_diff_that_touches_native_sources_is_refused_by_default(published: Tiny) -> None:
    published.variant("it", {"pull": "all"})
    error = refusal(published)
    assert isinstance(error, PatchError)
    assert (error.exit_status, error.verdict) == (6, "refused")
    assert "csrc/k.cu" in error.message
    published.variant("it", {"pull": "all", "ignore": ["tests/**"]})
    assert "csrc/k.cu" in refusal(published).message


@pytest.mark.requires("git")
def test_a_published_diff_is_applied_and_what_is_ignored_is_on_record(
    published: Tiny, log: Log
) -> None:
    published.variant("it", {"pull": "some", "ignore": ["tests/**"]})
    build = published.bake()
    path = at_packages("vllm/config.py")
    assert content(build, path, published.store) == b"SIZE = 256\n"
    output = describe(build)["steps"][0]["output"]
    assert output["ignored"] == ["tests/test_a.py"]
    assert output["files"] == [
        {
            "path": path,
            "verdict": "applied",
            "pre": str(Digest.of(CONFIG)),
            "post": str(Digest.of(b"SIZE = 256\n")),
        }
    ]
    log.runs()
    shutil.rmtree(published.store_path / "git")
    shutil.rmtree(published.root.parent / "git")
    assert published.bake(check=True).image == build.image
    assert log.runs() == ["some"]


@pytest.mark.requires("git")
def test_a_diff_with_a_file_that_the_image_lacks_is_refused_where_it_is_not_ignored(
    published: Tiny,
) -> None:
    published.variant("it", {"pull": "some"})
    error = refusal(published)
    assert isinstance(error, PatchError)
    assert (error.verdict, error.message) == (
        "refused",
        (
            "variants/it.yaml:7: steps[0]: pull some:"
            f" {at_packages('tests/test_a.py')!r} would be a new file outside of any package, under"
            f" {'/' + PACKAGES!r} with strip 1"
        ),
    )


@pytest.mark.requires("git")
def test_a_published_diff_that_is_not_the_pinned_change_is_refused(published: Tiny) -> None:
    other = _canonical(_diff("vllm/config.py"))
    published.lock(
        "pulls",
        "some",
        {
            "follows": {"repository": REPOSITORY, "pull": 7},
            "published": {"source": "code", "path": "some.diff"},
            "diff": other,
        },
    )
    published.variant("it", {"pull": "some", "ignore": ["tests/**"]})
    error = refusal(published)
    assert isinstance(error, IntegrityError)
    got = _canonical(_diff("vllm/config.py", "tests/test_a.py"))
    assert error.message == (
        f"lockfiles/pulls.yaml:15: pulls.some: the change is {got}, the lock pins {other}"
    )
    assert error.hint == (
        "look at the change; if it is the one that you mean, write its digest into the lock"
    )


@pytest.fixture
def pull(on_base: Tiny, registry: StandIn, upstream: Upstream) -> Tiny:
    """A project with a pull request of two commits."""
    mirrored(on_base, registry)
    before = {"vllm/config.py": CONFIG, "vllm/sub/module.py": MODULE}
    base = upstream.commit("refs/heads/main", before)
    after = before | {"vllm/config.py": b"SIZE = 256\n", "vllm/new.py": b"NEW = 1\n"}
    head = upstream.commit("refs/pull/7/head", after, parent=base)
    data = git(upstream.path, "diff", base, head).encode() + b"\n"
    on_base.lock(
        "pulls",
        "seven",
        {
            "follows": {"repository": REPOSITORY, "pull": 7},
            "base": base,
            "head": head,
            "diff": _canonical(data),
            "root": ".",
            "strip": 1,
        },
    )
    on_base.variant("it", {"pull": "seven"})
    return on_base


@pytest.mark.requires("git")
def test_a_pull_is_the_diff_between_its_commits(pull: Tiny) -> None:
    build = pull.bake()
    assert content(build, at_packages("vllm/config.py"), pull.store) == b"SIZE = 256\n"
    assert content(build, at_packages("vllm/new.py"), pull.store) == b"NEW = 1\n"
    assert [file.path for file in build.steps[0].output.files] == [
        at_packages("vllm/config.py"),
        at_packages("vllm/new.py"),
    ]


@pytest.mark.requires("git")
def test_a_pull_that_upstream_has_merged_can_be_left_out(pull: Tiny, registry: StandIn) -> None:
    merged = {"vllm/config.py": b"SIZE = 256\n", "vllm/new.py": b"NEW = 1\n"}
    rebase(pull, registry, BASE | {at_packages(path): data for path, data in merged.items()})
    error = refusal(pull)
    assert isinstance(error, PatchError)
    assert error.verdict == "already-upstream"
    pull.variant("it", {"pull": "seven", "until": "upstream"})
    assert pull.bake().image.own == ()
    part = BASE | {at_packages("vllm/new.py"): b"NEW = 1\n"}
    rebase(pull, registry, part)
    error = refusal(pull)
    assert isinstance(error, PatchError)
    assert error.verdict == "refused"


@pytest.mark.requires("git")
def test_a_hunk_that_moved_is_on_record_and_strict_forbids_it(
    pull: Tiny, registry: StandIn, upstream: Upstream
) -> None:
    lines = b"".join(b"LINE_%d = %d\n" % (n, n) for n in range(20))
    base = upstream.commit("refs/heads/main", {"vllm/config.py": lines})
    head = upstream.commit(
        "refs/pull/8/head",
        {"vllm/config.py": lines.replace(b"LINE_10 = 10", b"LINE_10 = 0")},
        parent=base,
    )
    data = git(upstream.path, "diff", base, head).encode() + b"\n"
    pull.lock(
        "pulls",
        "seven",
        {
            "follows": {"repository": REPOSITORY, "pull": 8},
            "base": base,
            "head": head,
            "diff": _canonical(data),
        },
    )
    rebase(pull, registry, BASE | {at_packages("vllm/config.py"): b"# new\n# lines\n" + lines})
    build = pull.bake()
    assert [(file.verdict, file.offsets) for file in build.steps[0].output.files] == [
        ("applied-with-offset", (2,))
    ]
    with pytest.raises(PatchError) as caught:
        pull.bake(strict=True)
    assert caught.value.exit_status == 6


# --- source --------------------------------------------------------------------------------------


@pytest.fixture
def source(on_base: Tiny, registry: StandIn, upstream: Upstream) -> Tiny:
    """A project that places one file of another repository."""
    mirrored(on_base, registry)
    publish_source(on_base, upstream, {"chat.jinja": b"{{ chat }}\n"})
    _place(on_base, "chat.jinja")
    return on_base


def _place(tiny: Tiny, path: str) -> None:
    placement = {"from": path, "to": "/opt/chat.jinja", "replaces": "nothing"}
    tiny.variant("it", {"source": "code", "files": [placement]})


@pytest.mark.requires("git")
def test_a_file_of_another_repository_is_placed(source: Tiny) -> None:
    build = source.bake()
    assert content(build, "opt/chat.jinja", source.store) == b"{{ chat }}\n"


@pytest.mark.requires("git")
def test_a_commit_with_another_tree_than_pinned_is_refused(
    source: Tiny, upstream: Upstream
) -> None:
    commit = publish_source(source, upstream, {"chat.jinja": b"{{ chat }}\n"}, tree="0" * 39 + "1")
    tree = git(upstream.path, "rev-parse", f"{commit}^{{tree}}")
    error = refusal(source)
    assert (error.exit_status, error.message) == (
        4,
        (
            f"lockfiles/sources.yaml:4: sources.code: commit {commit} has tree {tree}, the lock"
            f" pins {'0' * 39}1"
        ),
    )


@pytest.mark.requires("git")
def test_a_file_with_other_bytes_than_pinned_is_refused(source: Tiny, upstream: Upstream) -> None:
    pins = {"chat.jinja": {"digest": str(Digest.of(b"other")), "size": 5}}
    commit = publish_source(source, upstream, {"chat.jinja": b"{{ chat }}\n"}, files=pins)
    error = refusal(source)
    assert isinstance(error, IntegrityError)
    assert error.message == (
        f"lockfiles/sources.yaml:4: sources.code: 'chat.jinja' at {commit[:12]}: expected"
        f" {Digest.of(b'other')}, got {Digest.of(b'{{ chat }}' + bytes([10]))} (11 bytes)"
    )


@pytest.mark.requires("git")
def test_a_symbolic_link_is_no_file_to_place(source: Tiny, upstream: Upstream) -> None:
    pins = {"link": {"digest": str(Digest.of(b"chat.jinja")), "size": 10}}
    publish_source(source, upstream, {"link": ("120000", b"chat.jinja")}, files=pins)
    _place(source, "link")
    error = refusal(source)
    assert (error.exit_status, error.message) == (
        4,
        "lockfiles/sources.yaml:4: sources.code: 'link' is a symbolic link, not a file",
    )


@pytest.fixture
def remote(tmp_path: Path, upstream: Upstream) -> Iterator[Remote]:
    with serving(tmp_path / "git") as server:
        yield server


@pytest.mark.requires("git")
def test_a_commit_that_is_gone_is_told_from_a_server_that_is_down(
    source: Tiny, registry: StandIn, remote: Remote
) -> None:
    mirrored(source, registry, remote.url)
    gone = "1" * 40
    pins = {"chat.jinja": {"digest": str(Digest.of(b"other")), "size": 5}}
    source.lock(
        "sources",
        "code",
        {
            "follows": {"repository": REPOSITORY, "ref": "main"},
            "commit": gone,
            "tree": gone,
            "files": pins,
        },
    )
    error = refusal(source)
    assert isinstance(error, GoneError)
    assert error.exit_status == 7
    assert error.message.startswith(
        f"{REPOSITORY}: {gone}: the remote answers and does not have it"
    )
    remote.status = 503
    error = refusal(source)
    assert isinstance(error, NetworkError)
    assert error.exit_status == 8
    remote.status = 404
    error = refusal(source)
    assert isinstance(error, GoneError)


@pytest.mark.requires("git")
def test_offline_asks_no_remote(source: Tiny, registry: StandIn, remote: Remote) -> None:
    mirrored(source, registry, remote.url)
    assert source.run("plan", "it").status == 0  # the base's documents are here now
    done = source.run("--offline", "build", "it")
    assert done.status == 8
    assert "--offline" in done.first
    assert remote.requests == []
    source.bake()
    assert source.run("--offline", "build", "it").status == 0


# --- wheels --------------------------------------------------------------------------------------


def _wheel(tiny: Tiny, *, tag: str = "py3-none-any", version: str = "1.0") -> None:
    """An unpacked wheel in the project, and its pin."""
    info = f"thing-{version}.dist-info"
    files = {
        "thing/__init__.py": b"THING = 1\n",
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: thing\nVersion: {version}\n".encode(),
        f"{info}/WHEEL": f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n".encode(),
    }
    files[f"{info}/RECORD"] = (
        b"".join(row(path, data) for path, data in files.items()) + f"{info}/RECORD,,\n".encode()
    )
    filename = f"thing-{version}-{tag}.whl"
    directory = tiny.root / "wheels" / filename.removesuffix(".whl")
    for path, data in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_bytes(data)
    tiny.lock(
        "wheels",
        "thing",
        {
            "follows": {"project": "thing", "version": version},
            "filename": filename,
            "digest": str(Digest.of(pack(directory))),
            "path": f"wheels/{directory.name}",
        },
    )


def test_a_wheel_is_installed_into_the_packages_of_the_image(on_base: Tiny) -> None:
    _wheel(on_base)
    on_base.variant("it", {"wheels": ["thing"]})
    build = on_base.bake()
    assert content(build, at_packages("thing/__init__.py"), on_base.store) == b"THING = 1\n"
    installer = at_packages("thing-1.0.dist-info/INSTALLER")
    assert content(build, installer, on_base.store) == b"builder\n"
    assert build.steps[0].output.summary == "thing 1.0: 5 files"


def test_how_a_pin_spells_the_project_of_a_wheel_changes_nothing(on_base: Tiny) -> None:
    _wheel(on_base)
    on_base.variant("it", {"wheels": ["thing"]})
    first = on_base.bake()
    path = on_base.root / "lockfiles/wheels.yaml"
    path.write_text(path.read_text().replace('"project": "thing"', '"project": "THING"'))
    again = on_base.bake(check=True)
    assert again.steps[0].output == first.steps[0].output
    assert first.steps[0].output.summary == "thing 1.0: 5 files"


def test_a_wheel_for_another_python_is_refused(on_base: Tiny) -> None:
    _wheel(on_base, tag="cp311-cp311-manylinux_2_28_x86_64")
    on_base.variant("it", {"wheels": ["thing"]})
    error = refusal(on_base)
    assert isinstance(error, PatchError)
    assert error.verdict == "refused"
    assert error.message.startswith(
        "thing-1.0-cp311-cp311-manylinux_2_28_x86_64.whl: tags cp311-cp311-manylinux_2_28_x86_64"
        " do not fit Python 3.12 on linux/amd64"
    )


def test_a_project_that_is_installed_already_is_refused(tiny: Tiny, registry: StandIn) -> None:
    there = at_packages("thing-0.9.dist-info")
    rebase(tiny, registry, BASE | {there: Directory(), f"{there}/METADATA": b"Name: thing\n"})
    _wheel(tiny)
    tiny.variant("it", {"wheels": ["thing"]})
    error = refusal(tiny)
    assert isinstance(error, PatchError)
    assert error.message == (
        "thing-1.0-py3-none-any.whl: thing is installed already: 'thing-0.9.dist-info'"
    )


def test_a_wheel_that_was_edited_is_not_the_pinned_one(on_base: Tiny) -> None:
    _wheel(on_base)
    on_base.variant("it", {"wheels": ["thing"]})
    directory = on_base.root / "wheels" / "thing-1.0-py3-none-any"
    pinned = Digest.of(pack(directory))
    (directory / "thing-1.0.dist-info" / "METADATA").write_bytes(
        b"Metadata-Version: 2.1\nName: thing\nVersion: 1.0\nX: y\n"
    )
    error = refusal(on_base)
    assert (error.exit_status, error.message) == (
        4,
        (
            "lockfiles/wheels.yaml:4: wheels.thing: the wheel in 'wheels/thing-1.0-py3-none-any' is"
            f" {Digest.of(pack(directory))}, the lock pins {pinned}"
        ),
    )


# --- what is named and is not there --------------------------------------------------------------


@pytest.mark.parametrize(
    ("step", "said"),
    [
        pytest.param({"pull": "it"}, "no pull 'it' in lockfiles/pulls.yaml", id="pull"),
        pytest.param({"overlay": "nothing"}, "no overlay 'nothing' in overlays", id="overlay"),
        pytest.param({"wheels": ["it"]}, "no wheel 'it' in lockfiles/wheels.yaml", id="wheel"),
        pytest.param(
            {"source": "it", "files": [{"from": "a", "to": "/a", "replaces": "nothing"}]},
            "no source 'it' in lockfiles/sources.yaml",
            id="source",
        ),
    ],
)
def test_a_step_that_names_nothing_is_refused_before_anything_is_asked(
    on_base: Tiny, registry: StandIn, step: Mapping[str, Any], said: str
) -> None:
    on_base.variant("it", step)
    error = refusal(on_base)
    assert isinstance(error, ProjectError)
    assert said in error.message
    assert registry.calls == []


def test_what_was_run_is_said_at_the_level_that_asks_for_it(on_base: Tiny) -> None:
    on_base.edit("it", "vllm/config.py", "128", "256")
    on_base.variant("it", "it")
    assert on_base.run("-q", "build", "it").err == ""
    on_base.edit("it", "vllm/config.py", "128", "384")
    told = on_base.run("-v", "build", "it").err.splitlines()
    assert told == ["builder: running step it"]
    assert json.loads(on_base.run("--json", "build", "it").out)["images"][0]["variant"] == "it"
    assert cached(on_base.bake()) == {"it": True}
