"""A complete layout of an image, and what other tools make of it."""

import json
import subprocess
from pathlib import Path

import pytest

from builder.digest import Digest
from tests.fakes import File, Link
from tests.flow.images import PACKAGES, Directory, Hard, Layer, image, write_layout
from tests.flow.worlds import Tiny

CONFIG = b"SIZE = 128\n"
LIB = "usr/lib/python3.12/dist-packages"


@pytest.fixture
def odd(tmp_path: Path) -> Tiny:
    """A base with everything that makes a merged tree differ from its layers."""
    made = image(
        Layer(
            {
                "lib": Link("usr/lib"),
                "usr/lib64": Link("lib"),
                f"{LIB}/vllm/__init__.py": b"",
                f"{LIB}/vllm/config.py": File(CONFIG, mode=0o755),
                f"{LIB}/vllm/same.py": Hard(f"{LIB}/vllm/config.py"),
                "usr/local/lib/python3.12": Link("/usr/lib/python3.12"),
                "d/a": b"a of the lower layer\n",
                "d/b": b"b\n",
                "e/gone": b"gone\n",
                "e/back": b"old\n",
                "f/x/deep": b"deep\n",
            },
            "tar",
        ),
        {
            "d/new": b"new\n",
            "d/.wh..wh..opq": b"",
            "e/.wh.gone": b"",
            "e/.wh.back": b"",
            "e/back": b"new\n",
            "f/.wh.x": b"",
        },
        Layer({"etc": Directory(0o750), "etc/top": b"top\n"}, "gzip"),
    )
    tiny = Tiny.make(tmp_path)
    write_layout(tiny.root / "base", made)
    tiny.variant("it", "it", base={"layout": "base", "digest": str(made.digest)})
    return tiny


def test_a_layout_is_complete_and_is_written_once(odd: Tiny, tmp_path: Path) -> None:
    odd.edit("it", "vllm/config.py", "128", "256")
    layout = tmp_path / "layout"
    assert odd.run("build", "it", "--out", str(layout)).status == 0
    build = odd.bake()
    blobs = layout / "blobs" / "sha256"
    held = {path.name: path.stat().st_mtime_ns for path in blobs.iterdir()}
    descriptors = (*build.image.manifest.layers, build.image.manifest.config)
    assert set(held) == {item.digest.hex for item in descriptors} | {build.image.digest.hex}
    for path in blobs.iterdir():
        assert Digest.of(path.read_bytes()).hex == path.name
    index = json.loads((layout / "index.json").read_bytes())
    assert [(item["digest"], item["annotations"]) for item in index["manifests"]] == [
        (str(build.image.digest), {"org.opencontainers.image.ref.name": "it"})
    ]
    assert odd.run("build", "it", "--out", str(layout)).status == 0
    assert {path.name: path.stat().st_mtime_ns for path in blobs.iterdir()} == held


@pytest.mark.requires("umoci", "skopeo", "root")
def test_the_tree_that_umoci_unpacks_is_the_patched_one(odd: Tiny, tmp_path: Path) -> None:
    odd.overlay(
        "it",
        files={
            "vllm/same.py": (CONFIG, b"SAME = 1\n"),
            "vllm/added/it.py": (None, b"ADDED = 1\n"),
            "/usr/lib64/new/below-a-link": (None, b"1\n"),
            "/lib/beside": (None, b"2\n"),
            "/d/new": (b"new\n", b"newer\n"),
            "/d/a": (None, b"a of ours\n"),
            "/etc/own": (None, b"own\n"),
        },
        remove={"/e/back": b"new\n"},
    )
    before, after = tmp_path / "before", tmp_path / "after"
    bundle = {}
    for place, arguments in ((before, ()), (after, ("it",))):
        odd.variant(
            "it", *arguments, base=json.loads((odd.root / "variants/it.yaml").read_text())["base"]
        )
        done = odd.run("build", "it", "--out", str(place))
        assert done.status == 0, done.err
        target = tmp_path / f"{place.name}-bundle"
        subprocess.run(
            ["umoci", "unpack", "--image", f"{place}:it", str(target)],
            check=True,
            capture_output=True,
        )
        bundle[place] = tree_of(target / "rootfs")
    changed = {
        path: bundle[after].get(path)
        for path in {*bundle[before], *bundle[after]}
        if bundle[before].get(path) != bundle[after].get(path)
    }
    assert changed == {
        f"{LIB}/vllm/same.py": ("file", 0o755, b"SAME = 1\n"),
        f"{LIB}/vllm/added": ("directory", 0o755, b""),
        f"{LIB}/vllm/added/it.py": ("file", 0o644, b"ADDED = 1\n"),
        "usr/lib/new": ("directory", 0o755, b""),
        "usr/lib/new/below-a-link": ("file", 0o644, b"1\n"),
        "usr/lib/beside": ("file", 0o644, b"2\n"),
        "d/new": ("file", 0o644, b"newer\n"),
        "d/a": ("file", 0o644, b"a of ours\n"),
        "etc/own": ("file", 0o644, b"own\n"),
        "e/back": None,
    }


def tree_of(root: Path) -> dict[str, tuple[str, int, bytes]]:
    """What stands on disk: kind, mode and content of everything."""
    found = {}
    for path in root.rglob("*"):
        mode = path.lstat().st_mode & 0o7777
        if path.is_symlink():
            kind, data = "link", str(path.readlink()).encode()
        elif path.is_dir():
            kind, data = "directory", b""
        else:
            kind, data = "file", path.read_bytes()
        found[str(path.relative_to(root))] = (kind, mode, data)
    return found


@pytest.mark.parametrize(
    ("target", "old", "verdict"),
    [
        pytest.param("/d/a", b"a of the lower layer\n", "file-missing", id="below an opaque"),
        pytest.param("/e/gone", b"gone\n", "file-missing", id="whited out"),
        pytest.param("/f/x/deep", b"deep\n", "file-missing", id="in a directory whited out"),
        pytest.param("/e/back", b"old\n", "refused", id="put back in the same layer"),
        pytest.param("/d/new", b"new\n", "applied", id="beside the opaque marker"),
        pytest.param("/lib/python3.12/dist-packages/vllm/same.py", CONFIG, "applied", id="links"),
    ],
)
def test_whiteouts_of_the_base_hold_for_steps(
    odd: Tiny, target: str, old: bytes, verdict: str
) -> None:
    odd.overlay("it", files={target: (old, b"ours\n")})
    done = odd.run("build", "it", "--json")
    if verdict == "applied":
        assert done.status == 0, done.err
    else:
        assert (done.status, done.json["error"]["verdict"]) == (6, verdict)


@pytest.mark.requires("skopeo")
def test_skopeo_keeps_the_digest_of_an_exported_image(odd: Tiny, tmp_path: Path) -> None:
    odd.edit("it", "vllm/config.py", "128", "256")
    done = odd.run("build", "it", "--json", "--out", str(tmp_path / "layout"))
    copied = tmp_path / "copied"
    subprocess.run(
        ["skopeo", "--insecure-policy", "copy", "-q", "--preserve-digests"]
        + [f"oci:{tmp_path / 'layout'}:it", f"oci:{copied}:there"],
        check=True,
    )
    index = json.loads((copied / "index.json").read_bytes())
    digest = done.json["images"][0]["digest"]
    assert [item["digest"] for item in index["manifests"]] == [digest]


# --- where the packages are ----------------------------------------------------------------------

DIST = "usr/local/lib/python3.12/dist-packages"
SITE = "usr/local/lib/python3.12/site-packages"
VENV = "opt/venv/lib/python3.12/site-packages"


@pytest.mark.parametrize(
    ("places", "lands"),
    [
        pytest.param({DIST: True}, DIST, id="dist-packages"),
        pytest.param({SITE: True}, SITE, id="site-packages"),
        pytest.param({VENV: True}, VENV, id="opt/venv"),
        pytest.param({DIST: False, VENV: True}, VENV, id="only one has vLLM"),
        pytest.param(
            {DIST: True, SITE: True},
            f"2 Python packages directories with vLLM in them, wanted one: {DIST!r}, {SITE!r}",
            id="both have vLLM",
        ),
        pytest.param(
            {}, "0 Python packages directories (none with vLLM), wanted one: none", id="none"
        ),
    ],
)
def test_the_packages_are_where_vllm_is(
    tmp_path: Path, places: dict[str, bool], lands: str
) -> None:
    tree: dict[str, bytes] = {"etc/it": b""}
    for place, has_vllm in places.items():
        tree |= {f"{place}/other/__init__.py": b""}
        tree |= {f"{place}/vllm/__init__.py": b""} if has_vllm else {}
    made = image(tree)
    tiny = Tiny.make(tmp_path)
    write_layout(tiny.root / "base", made)
    tiny.overlay("it", files={"vllm/new.py": (None, b"NEW = 1\n")})
    tiny.variant("it", "it", base={"layout": "base", "digest": str(made.digest)})
    done = tiny.run("build", "it")
    if done.status == 0:
        files = tiny.bake().steps[0].output.files
        assert [file.path for file in files] == [f"{lands}/vllm/new.py"]
    else:
        assert (done.status, done.first) == (3, f"builder: error: image: {lands}")
        python = {"version": "3.12", "packages": PACKAGES}
        tiny.variant("it", "it", base={"layout": "base", "digest": str(made.digest)}, python=python)
        assert tiny.run("build", "it").status == 0
