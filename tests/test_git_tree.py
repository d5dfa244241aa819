"""Trees of git from their files: the ids that git gives, and the text that is kept of them."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.digest import ObjectId
from builder.errors import IntegrityError
from builder.git_tree import pack, tree_id, unpack
from builder.ports import GitFile
from tests.adapters.git_world import Files, Upstream, git

SHA1, SHA256 = ObjectId("0" * 40), ObjectId("0" * 64)
PARTS = st.text(
    st.characters(codec="utf-8", exclude_characters="\0/"), min_size=1, max_size=6
).filter(lambda part: part not in {".", ".."})
PATHS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
FILES = st.lists(
    st.builds(
        GitFile,
        path=PATHS,
        mode=st.sampled_from(["100644", "100755", "120000"]),
        data=st.binary(max_size=20),
    ),
    max_size=8,
)


def made(files: Files) -> list[GitFile]:
    found = []
    for path, content in files.items():
        mode, data = content if isinstance(content, tuple) else ("100644", content)
        found.append(GitFile(path=path, mode=mode, data=data))
    return found


@pytest.mark.requires("git")
@pytest.mark.parametrize("form, like", [("sha1", SHA1), ("sha256", SHA256)])
@pytest.mark.parametrize(
    "files",
    [
        pytest.param({"a": b""}, id="one empty file"),
        pytest.param({"a": b"1", "a.b": b"2", "a0": b"3", "a-": b"4"}, id="names alike"),
        pytest.param({"a/x": b"1", "a.b": b"2", "a0": b"3", "a-": b"4"}, id="a directory sorts"),
        pytest.param({"run": ("100755", b"#!"), "l": ("120000", b"run")}, id="modes"),
        pytest.param({"a/b/c/d": b"1", "a/b/e": b"2", "f/g": b"3"}, id="directories"),
        pytest.param({"na\u00efve/\u6f22": b"1", "Z": b"2", "z": b"3"}, id="more than ASCII"),
    ],
)
def test_the_id_is_the_one_that_git_gives(
    tmp_path: Path, form: str, like: ObjectId, files: Files
) -> None:
    path = tmp_path / "it.git"
    subprocess.run(
        ("git", "init", "--quiet", "--bare", f"--object-format={form}", str(path)), check=True
    )
    Upstream(path).commit("refs/heads/main", files)
    assert str(tree_id(made(files), like=like)) == git(path, "rev-parse", "main^{tree}")


def test_the_empty_tree_has_the_name_that_all_of_git_knows() -> None:
    assert str(tree_id((), like=SHA1)) == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"


def test_a_tree_may_be_deeper_than_python_recurses() -> None:
    deep = GitFile(path="/".join("d" * 2000), mode="100644", data=b"")
    assert tree_id([deep], like=SHA1) != tree_id([], like=SHA1)


@given(FILES)
def test_the_id_does_not_depend_on_the_order_of_the_files(files: list[GitFile]) -> None:
    assert tree_id(files, like=SHA1) == tree_id(files[::-1], like=SHA1)


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(GitFile(path="a", mode="100644", data=b"2"), id="content"),
        pytest.param(GitFile(path="a", mode="100755", data=b"1"), id="mode"),
        pytest.param(GitFile(path="b", mode="100644", data=b"1"), id="name"),
        pytest.param(GitFile(path="d/a", mode="100644", data=b"1"), id="directory"),
    ],
)
def test_the_id_covers_every_field_of_a_file(change: GitFile) -> None:
    file = GitFile(path="a", mode="100644", data=b"1")
    assert tree_id([change], like=SHA1) != tree_id([file], like=SHA1)


@given(FILES)
def test_what_is_packed_is_unpacked(files: list[GitFile]) -> None:
    assert unpack(pack(files)) == tuple(files)


@given(st.binary(max_size=60))
def test_what_is_no_pack_ends_in_one_error_or_in_other_files(raw: bytes) -> None:
    try:
        files = unpack(raw)
    except IntegrityError:
        return
    assert all(isinstance(file, GitFile) for file in files)


@pytest.mark.parametrize(
    "head",
    [
        "1",
        "[1]",
        '[["a"]]',
        '[["a","100644","x"]]',
        "[[1,2,3]]",
        '[["/",  "", 0]]',
        '[["../a","",1]]',
    ],
)
def test_a_head_of_another_form_is_refused(head: str) -> None:
    with pytest.raises(IntegrityError):
        tree_id(unpack(head.encode() + b"\nabc"), like=SHA1)
