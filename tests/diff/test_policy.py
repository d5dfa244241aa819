"""Which paths are applied, ignored by name, or refused."""

import pytest

from builder.diff import Place, apply, parse
from builder.diff.policy import matches
from builder.errors import PatchError, ProjectError
from builder.verdict import Verdict
from tests.diff.images import Image, edit

HERE = Place(root="", strip=1)
IMAGE = Image({"vllm/a.py": b"a\n", "csrc/k.cu": b"a\n", "setup.py": b"a\n"})


@pytest.mark.parametrize(
    "glob, path, expected",
    [
        ("tests/**", "tests/v1/test_a.py", True),
        ("tests/**", "vllm/tests/a.py", False),
        ("tests/*", "tests/v1/test_a.py", False),
        ("tests/*", "tests/test_a.py", True),
        ("**/*.md", "README.md", True),
        ("**/*.md", "docs/a/b.md", True),
        ("docs/**/x.md", "docs/x.md", True),
        ("te?t.py", "test.py", True),
        ("te?t.py", "te/t.py", False),
        ("a.py", "axpy", False),
        ("[ab].py", "a.py", False),
        ("new\nline*", "new\nline.py", True),
    ],
)
def test_one_star_stays_in_a_component_and_two_cross(glob: str, path: str, expected: bool) -> None:
    assert matches(glob, path) is expected


@pytest.mark.parametrize(
    "path",
    [
        "csrc/k.cu", "csrc/deep/ops.py", "CMakeLists.txt", "cmake/utils.cmake", "vllm/x.cuh",
        "vllm/x.cpp", "x.cc", "x.c", "x.h", "x.hpp", "setup.py", "pyproject.toml",
        "requirements-cuda.txt", "requirements/cuda.txt", "Dockerfile.cpu", "docker/Dockerfile",
        "docker/entry.sh",
    ],
)  # fmt: skip
def test_native_sources_and_build_files_are_refused_even_where_they_exist(path: str) -> None:
    image = Image({path: b"a\n", "vllm/a.py": b"a\n"})
    diff = parse(edit("vllm/a.py") + edit(path), at="d")
    with pytest.raises(PatchError) as caught:
        apply(diff, HERE, read=image.read)
    assert (caught.value.verdict, caught.value.message, caught.value.hint) == (
        Verdict.REFUSED,
        f"d:7: native sources and build files have no effect on an installed package: 'b/{path}'",
        "if the rest of the change works without a rebuild, ignore them with a glob",
    )
    applied = apply(diff, HERE, read=image.read, ignore=(path,))
    assert ([file.path for file in applied.files], applied.ignored) == (["vllm/a.py"], (path,))


def test_a_native_source_does_not_hide_behind_a_deep_strip() -> None:
    diff = parse(edit("csrc/ops.py"), at="d")
    with pytest.raises(PatchError, match="native sources and build files"):
        apply(diff, Place(root="vllm", strip=2), read=Image({"vllm/ops.py": b"a\n"}).read)


def test_ignored_files_are_listed_and_not_read() -> None:
    read: list[str] = []
    diff = parse(edit("vllm/a.py") + edit("tests/b.py") + edit("tests/a.py"), at="d")

    def reading(path: str) -> object:
        read.append(path)
        return IMAGE.read(path)

    applied = apply(diff, HERE, read=reading, ignore=("tests/**",))  # type: ignore[arg-type]  # a recording reader
    assert applied.ignored == ("tests/a.py", "tests/b.py")
    assert read == ["vllm/a.py"]


def test_a_glob_that_matches_nothing_is_an_error() -> None:
    with pytest.raises(ProjectError) as caught:
        apply(parse(edit("vllm/a.py"), at="d"), HERE, read=IMAGE.read, ignore=("test/**",))
    assert caught.value.message == "d: ignore 'test/**' matches no path of the diff"


def test_a_diff_of_which_nothing_is_left_is_refused() -> None:
    with pytest.raises(PatchError) as caught:
        apply(parse(edit("vllm/a.py"), at="d"), HERE, read=IMAGE.read, ignore=("vllm/**",))
    assert (caught.value.verdict, caught.value.message) == (
        Verdict.REFUSED,
        "d: every path of the diff is ignored, nothing is left to apply",
    )


def test_a_rename_across_the_border_of_what_is_ignored_is_an_error() -> None:
    data = (
        b"diff --git a/tests/a.py b/vllm/b.py\nsimilarity index 100%\n"
        b"rename from tests/a.py\nrename to vllm/b.py\n"
    )
    with pytest.raises(ProjectError) as caught:
        apply(parse(data, at="d"), HERE, read=IMAGE.read, ignore=("tests/**",))
    assert caught.value.message == (
        "d:1: 'tests/a.py' becomes 'vllm/b.py', and only one of them is ignored"
    )


def test_too_few_components_for_the_strip_are_an_error() -> None:
    with pytest.raises(ProjectError) as caught:
        apply(parse(edit("a.py"), at="d"), Place(root="", strip=2), read=IMAGE.read)
    assert caught.value.message == "d:1: 'b/a.py' has too few components for strip 2"


def test_a_binary_file_is_refused_by_name_and_may_be_ignored() -> None:
    binary = b"diff --git a/docs/x.png b/docs/x.png\nBinary files a/x and b/x differ\n"
    diff = parse(binary + edit("vllm/a.py"), at="d")
    with pytest.raises(PatchError) as caught:
        apply(diff, HERE, read=IMAGE.read)
    assert (caught.value.verdict, caught.value.message) == (
        Verdict.REFUSED,
        (
            "d:1: 'docs/x.png' is a binary file without its content, "
            "which a diff cannot bring into an image"
        ),
    )
    assert apply(diff, HERE, read=IMAGE.read, ignore=("docs/**",)).ignored == ("docs/x.png",)
