"""Where a diff applies: found where only one place fits, stated otherwise, verified always."""

import pytest

from builder.diff import Place, parse
from builder.errors import PatchError, ProjectError
from builder.verdict import Verdict
from tests.diff.images import PACKAGES, Image, create, edit

IMAGE = Image(
    {
        f"{PACKAGES}/vllm/__init__.py": b"",
        f"{PACKAGES}/vllm/envs.py": b"a\n",
        f"{PACKAGES}/vllm/config/__init__.py": b"",
        f"{PACKAGES}/vllm/config/vllm.py": b"a\n",
        f"{PACKAGES}/other/envs.py": b"a\n",
    }
)


@pytest.mark.parametrize(
    "data, place",
    [
        pytest.param(
            edit("vllm/config/vllm.py"), Place(root=PACKAGES, strip=1), id="from site-packages"
        ),
        pytest.param(
            edit("config/vllm.py"), Place(root=f"{PACKAGES}/vllm", strip=1), id="from the package"
        ),
        pytest.param(
            edit(f"{PACKAGES}/vllm/config/vllm.py", old="", new=""),
            Place(root="", strip=0),
            id="from the root",
        ),
        pytest.param(
            edit("vllm/config/vllm.py", old="", new=""),
            Place(root=PACKAGES, strip=0),
            id="without prefixes",
        ),
        pytest.param(
            edit("config/vllm.py") + create("config/new.py"),
            Place(root=f"{PACKAGES}/vllm", strip=1),
            id="a new file beside a changed one",
        ),
        pytest.param(
            edit("vllm/envs.py") + create("vllm/fresh/part/x.py"),
            Place(root=PACKAGES, strip=1),
            id="a new package inside the package",
        ),
        pytest.param(
            edit("config/vllm.py") + create("new.py"),
            Place(root=f"{PACKAGES}/vllm", strip=1),
            id="a new file in the package itself",
        ),
    ],
)
def test_each_of_the_path_styles_has_one_place(data: bytes, place: Place) -> None:
    assert IMAGE.resolve(parse(data, at="d")) == place


def test_a_stated_place_that_fits_is_kept() -> None:
    diff = parse(edit("vllm/envs.py"), at="d")
    place = IMAGE.resolve(diff, root=f"/{PACKAGES}/vllm/", strip=2)
    assert place == Place(root=f"{PACKAGES}/vllm", strip=2)


def test_a_stated_root_finds_its_strip_and_a_stated_strip_its_root() -> None:
    diff = parse(edit("vllm/envs.py"), at="d")
    assert IMAGE.resolve(diff, root=f"{PACKAGES}/vllm") == Place(root=f"{PACKAGES}/vllm", strip=2)
    assert IMAGE.resolve(diff, strip=2) == Place(root=f"{PACKAGES}/vllm", strip=2)


def test_only_new_files_are_never_guessed_and_may_be_stated() -> None:
    diff = parse(create("config/new.py"), at="d")
    with pytest.raises(PatchError) as caught:
        IMAGE.resolve(diff)
    assert (caught.value.verdict, caught.value.message, caught.value.hint) == (
        Verdict.REFUSED,
        "d: the diff has only new files, which fit anywhere; its place is not guessed",
        "state root and strip",
    )
    with pytest.raises(PatchError, match="its place is not guessed"):
        IMAGE.resolve(diff, root=f"{PACKAGES}/vllm")
    place = IMAGE.resolve(diff, root=f"{PACKAGES}/vllm", strip=1)
    assert place == Place(root=f"{PACKAGES}/vllm", strip=1)


def test_only_new_files_are_not_guessed_from_files_of_their_names_either() -> None:
    with pytest.raises(PatchError, match="its place is not guessed"):
        IMAGE.resolve(parse(create("vllm/config/vllm.py"), at="d"))


@pytest.mark.parametrize("path", ["config/new.py", "new.py"])
def test_a_new_file_at_the_wrong_depth_is_refused_where_the_place_is_stated(path: str) -> None:
    with pytest.raises(PatchError) as caught:
        IMAGE.resolve(parse(create(path), at="d"), root=PACKAGES, strip=1)
    assert (caught.value.verdict, caught.value.message) == (
        Verdict.REFUSED,
        (
            f"d: '{PACKAGES}/{path}' would be a new file outside of any package, "
            f"under '/{PACKAGES}' with strip 1"
        ),
    )


def test_a_missing_file_is_named_under_the_nearest_place() -> None:
    diff = parse(edit("vllm/envs.py") + edit("vllm/gone.py") + edit("tests/t.py"), at="d")
    with pytest.raises(PatchError) as caught:
        IMAGE.resolve(diff)
    assert (caught.value.verdict, caught.value.path, caught.value.message) == (
        Verdict.FILE_MISSING,
        f"{PACKAGES}/vllm/gone.py",
        (
            f"d: no place fits: under '/{PACKAGES}' with strip 1, 2 of 3 files are missing: "
            f"'{PACKAGES}/vllm/gone.py', '{PACKAGES}/tests/t.py'"
        ),
    )


def test_a_stated_place_is_verified() -> None:
    with pytest.raises(PatchError) as caught:
        IMAGE.resolve(parse(edit("vllm/envs.py"), at="d"), root=PACKAGES, strip=2)
    assert (caught.value.verdict, caught.value.message) == (
        Verdict.FILE_MISSING,
        (
            f"d: the stated place does not fit: under '/{PACKAGES}' with strip 2, 1 of 1 files are "
            f"missing: '{PACKAGES}/envs.py'"
        ),
    )


def test_a_stated_root_must_be_a_directory_inside_the_image() -> None:
    diff = parse(edit("vllm/envs.py"), at="d")
    with pytest.raises(PatchError, match="root 'opt/x' is not a directory of the image"):
        IMAGE.resolve(diff, root="/opt/x", strip=1)
    with pytest.raises(ProjectError) as caught:
        IMAGE.resolve(diff, root="/usr/../..", strip=1)
    assert caught.value.message == "d: a root that has a '..' component: 'usr/../..'"


def test_two_places_that_fit_are_refused_with_both() -> None:
    roots = (f"{PACKAGES}/vllm", f"{PACKAGES}/other")
    with pytest.raises(PatchError) as caught:
        IMAGE.resolve(parse(edit("envs.py"), at="d"), roots=roots)
    assert (caught.value.verdict, caught.value.message) == (
        Verdict.REFUSED,
        (
            f"d: the diff fits at 2 places: '/{PACKAGES}/vllm' with strip 1, "
            f"'/{PACKAGES}/other' with strip 1"
        ),
    )


def test_ignored_files_take_no_part() -> None:
    diff = parse(edit("vllm/envs.py") + edit("tests/t.py") + create("docs/x.md"), at="d")
    place = IMAGE.resolve(diff, ignore=("tests/**", "docs/**"))
    assert place == Place(root=PACKAGES, strip=1)


def test_a_place_at_which_a_glob_is_dead_does_not_count_beside_one_where_it_is_not() -> None:
    """At strip 2, tests/test_a.py would be a new file of the package, and ``tests/**`` dead."""
    data = edit("vllm/envs.py") + create("tests/test_envs.py")
    assert IMAGE.resolve(parse(data, at="d"), ignore=("tests/**",)) == Place(root=PACKAGES, strip=1)


def test_native_sources_are_the_reason_that_is_given_before_missing_files() -> None:
    diff = parse(edit("vllm/envs.py") + edit("tests/t.py") + edit("csrc/k.cu"), at="d")
    with pytest.raises(PatchError) as caught:
        IMAGE.resolve(diff)
    assert (caught.value.verdict, caught.value.message) == (
        Verdict.REFUSED,
        (
            "d:13: native sources and build files have no effect on an installed package: "
            "'b/csrc/k.cu'"
        ),
    )


def test_a_file_that_an_earlier_commit_creates_is_at_hand() -> None:
    later = edit("vllm/fresh.py")
    diff = parse(edit("vllm/envs.py") + create("vllm/fresh.py") + later, at="d")
    assert [change.commit for change in diff.changes] == [0, 0, 1]
    assert IMAGE.resolve(diff) == Place(root=PACKAGES, strip=1)


def test_a_rename_that_upstream_has_made_finds_its_place_so_that_apply_can_say_so() -> None:
    data = (
        b"diff --git a/vllm/old.py b/vllm/envs.py\nsimilarity index 100%\n"
        b"rename from vllm/old.py\nrename to vllm/envs.py\n"
    )
    assert IMAGE.resolve(parse(data, at="d")) == Place(root=PACKAGES, strip=1)


def test_a_new_file_may_not_take_the_place_of_a_directory() -> None:
    diff = parse(edit("vllm/envs.py") + create("vllm/config"), at="d")
    with pytest.raises(PatchError, match="would be a new file outside of any package"):
        IMAGE.resolve(diff)
