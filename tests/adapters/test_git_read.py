"""Reading files and diffs: the bytes of the objects, whatever surrounds git."""

import os
import stat
import subprocess
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from builder.adapters import git_objects
from builder.adapters.git import GitMirror
from builder.adapters.git_objects import Objects
from builder.adapters.git_process import Answer, GitProcess
from builder.errors import EnvironmentFault, IntegrityError
from builder.ports import GitFile
from tests.adapters.git_world import Files, Upstream, git

URL = "https://code.example/acme/patches"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:" + b"0" * 64 + b"\nsize 12345\n"


@pytest.fixture
def upstream(tmp_path: Path) -> Upstream:
    return Upstream.make(tmp_path / "patches.git")


@pytest.fixture
def mirrored(upstream: Upstream, tmp_path: Path) -> GitMirror:
    return GitMirror(tmp_path / "store", mirrors={URL: str(upstream.path)}, offline=True)


@pytest.fixture
def hostile_surroundings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A user configuration, and the variables that stand inside a git hook, that spoil it all."""
    home = tmp_path / "user"
    home.mkdir()
    (home / ".gitconfig").write_text(
        "[core]\n\tautocrlf = true\n\tquotePath = false\n\tattributesFile = ~/attributes\n"
        "[diff]\n\tnoprefix = true\n\talgorithm = patience\n\tcontext = 9\n"
        "\texternal = /bin/false\n"
        "[color]\n\tui = always\n[protocol]\n\tallow = never\n"
        '[url "https://elsewhere.example/"]\n\tinsteadOf = /\n'
    )
    (home / "attributes").write_text("* -text diff=x\n")
    for name, value in {
        "HOME": str(home),
        "GIT_DIR": "/nowhere",
        "GIT_OBJECT_DIRECTORY": "/nowhere",
        "GIT_INDEX_FILE": "/nowhere",
        "GIT_EXTERNAL_DIFF": "/bin/false",
        "GIT_CONFIG_PARAMETERS": "'diff.noprefix'='true'",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.abbrev",
        "GIT_CONFIG_VALUE_0": "5",
        "LC_ALL": "de_DE.UTF-8",
    }.items():
        monkeypatch.setenv(name, value)


def test_files_are_the_bytes_of_the_objects_in_the_order_asked(
    upstream: Upstream, mirrored: GitMirror, hostile_surroundings: None
) -> None:
    files: Files = {
        ".gitattributes": b"* text=auto eol=crlf\nsecret.py export-ignore\n*.py export-subst\n",
        "secret.py": b"x = '$Format:%D$'\n",
        "dos.txt": b"a\r\nb\r\n",
        "run.sh": ("100755", b"#!/bin/sh\n"),
        "link": ("120000", b"run.sh"),
        "d/na\u00efve name.txt": b"",
    }
    commit = upstream.commit("refs/heads/main", files)
    asked = tuple(sorted(files, reverse=True))
    found = mirrored.files(URL, commit, asked)
    assert tuple(file.path for file in found) == asked
    got = {file.path: (file.mode, file.data) for file in found}
    assert got == {
        name: content if isinstance(content, tuple) else ("100644", content)
        for name, content in files.items()
    }


@pytest.mark.parametrize(
    "path, message",
    [
        ("d/none.py", "{at}: 'd/none.py': no such file; 'd' has no 'none.py'"),
        ("none/x.py", "{at}: 'none/x.py': no such file; the top directory has no 'none'"),
        ("d/f/x", "{at}: 'd/f/x': no such file; 'd/f' has no 'x'"),
        ("d", "{at}: 'd': is a directory, wanted a file"),
        ("d/", "{at}: 'd/': no such file; 'd' has no ''"),
        ("../d", "{at}: '../d': no such file; the top directory has no '..'"),
        (
            "sub",
            "{at}: 'sub': is a submodule at {sub}, wanted a file",
        ),
        ("big.bin", "{at}: 'big.bin': is a Git LFS pointer; the content is not in the repository"),
    ],
)
def test_what_is_no_file_is_refused_with_its_reason(
    upstream: Upstream, mirrored: GitMirror, path: str, message: str
) -> None:
    files: Files = {"d/f": b"", "sub": ("160000", b"0123456789" * 4), "big.bin": LFS}
    commit = upstream.commit("refs/heads/main", files)
    with pytest.raises(IntegrityError) as caught:
        mirrored.files(URL, commit, ("d/f", path))
    assert caught.value.message == message.format(at=f"{URL}: {commit}", sub="0123456789" * 4)


def test_a_text_about_lfs_is_a_file(upstream: Upstream, mirrored: GitMirror) -> None:
    text = LFS + b"is what a pointer looks like\n" * 60
    commit = upstream.commit("refs/heads/main", {"a": text})
    assert mirrored.files(URL, commit, ("a",))[0].data == text


def test_a_tag_object_is_refused_and_the_commit_named(
    upstream: Upstream, mirrored: GitMirror
) -> None:
    commit = upstream.commit("refs/heads/main", {"a": b"1"})
    tag = upstream.tag("v1", commit)
    nested = upstream.tag("v1-again", tag)
    for object_id in (tag, nested):
        with pytest.raises(IntegrityError) as caught:
            mirrored.tree(URL, object_id)
        assert caught.value.message == (
            f"{URL}: {object_id} names a tag object, the commit is {commit}"
        )
        assert caught.value.hint == f"write {commit}"


@pytest.mark.parametrize("suffix, kind", [("^{tree}", "tree"), (":a", "blob")])
def test_an_id_of_something_else_is_refused(
    upstream: Upstream, mirrored: GitMirror, suffix: str, kind: str
) -> None:
    commit = upstream.commit("refs/heads/main", {"a": b"1"})
    object_id = git(upstream.path, "rev-parse", commit + suffix)
    with pytest.raises(IntegrityError) as caught:
        mirrored.tree(URL, object_id)
    assert caught.value.message == f"{URL}: {object_id} names a {kind}, wanted a commit"


def test_a_diff_does_not_depend_on_what_surrounds_git(
    upstream: Upstream, mirrored: GitMirror, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    lines = [b"line %d\n" % n for n in range(40)]
    base = upstream.commit(
        "refs/heads/main",
        {
            ".gitattributes": b"*.py diff=python\n*.txt binary\n",
            "a.py": b"class A:\n    def f(self):\n" + b"".join(b"        %s" % x for x in lines),
            "moved.txt": b"".join(lines),
            "na\u00efve.txt": b"1\n",
            "bin": b"\0\1",
            "gone": b"x",
        },
    )
    changed = [*lines[:20], b"new\n", *lines[21:]]
    head = upstream.commit(
        "refs/heads/main",
        {
            ".gitattributes": b"*.py diff=python\n*.txt binary\n",
            "a.py": b"class A:\n    def f(self):\n" + b"".join(b"        %s" % x for x in changed),
            "elsewhere.txt": b"".join(lines),
            "na\u00efve.txt": ("100755", b"2\n"),
            "bin": b"\0\2",
        },
        parent=base,
    )
    clean = mirrored.diff(URL, base, head)
    request.getfixturevalue("hostile_surroundings")
    again = GitMirror(tmp_path / "other", mirrors={URL: str(upstream.path)}, offline=True)
    assert again.diff(URL, base, head) == clean
    assert b'diff --git "a/na\\303\\257ve.txt" "b/na\\303\\257ve.txt"\nold mode 100644\n' in clean
    assert b"\n@@ -20,7 +20,7 @@ class A:\n" in clean  # the attribute diff=python says otherwise
    assert b"deleted file mode 100644" in clean  # no rename
    assert b"rename" not in clean
    assert b"\nBinary files a/bin and b/bin differ\n" in clean
    assert b"\n-x\n\\ No newline at end of file\n" in clean
    work = tmp_path / "work"
    work.mkdir()
    for name in ("a.py", "moved.txt", "gone"):
        (work / name).write_bytes(mirrored.files(URL, base, (name,))[0].data)
    done = subprocess.run(
        ("git", "apply", "--include=a.py", "--include=moved.txt", "--include=gone", "-"),
        input=clean,
        cwd=work,
        env={"PATH": os.environ["PATH"], "HOME": str(work), "GIT_CEILING_DIRECTORIES": "/"},
        check=True,
    )
    assert done.returncode == 0
    assert (work / "a.py").read_bytes() == mirrored.files(URL, head, ("a.py",))[0].data
    assert sorted(path.name for path in work.iterdir()) == ["a.py"]


def test_hooks_and_replacements_of_a_mirror_do_not_run(
    upstream: Upstream, mirrored: GitMirror, tmp_path: Path
) -> None:
    first = upstream.commit("refs/heads/main", {"a": b"1"})
    tree = mirrored.tree(URL, first)
    (bare,) = (tmp_path / "store").glob("*.git")
    assert not (bare / "hooks").exists()
    hook = bare / "hooks" / "reference-transaction"
    hook.parent.mkdir()
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(hook.stat().st_mode | stat.S_IXUSR)
    second = upstream.commit("refs/heads/main", {"a": b"2"}, parent=first)
    mirrored.tree(URL, second)
    git(bare, "-c", "core.hooksPath=/dev/null", "replace", first, second)
    assert mirrored.tree(URL, first) == tree
    assert not (tmp_path / "ran").exists()


def test_a_machine_without_git_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(EnvironmentFault) as caught:
        GitMirror(tmp_path / "store", mirrors={URL: "/"}, offline=True).tree(URL, "0" * 40)
    assert caught.value.message == "git: no such program on the PATH"


def test_a_repository_of_the_sha256_format_is_read_too(tmp_path: Path) -> None:
    path = tmp_path / "new.git"
    subprocess.run(
        ("git", "init", "--quiet", "--bare", "--object-format=sha256", str(path)), check=True
    )
    commit = Upstream(path).commit("refs/heads/main", {"d/a": b"1"})
    assert len(commit) == 64
    mirrored = GitMirror(tmp_path / "store", mirrors={URL: str(path)}, offline=True)
    assert mirrored.files(URL, commit, ("d/a",))[0].data == b"1"


# --- whole directories ---------------------------------------------------------------------------


def test_a_directory_comes_with_everything_below_it(
    upstream: Upstream, mirrored: GitMirror, hostile_surroundings: None
) -> None:
    files: Files = {
        "p/.gitattributes": b"*.py export-ignore text eol=crlf\n",
        "p/a.py": b"1\n",
        "p/run": ("100755", b"#!/bin/sh\n"),
        "p/d/link": ("120000", b"../a.py"),
        "p/d/na\u00efve name": b"\r\n",
        "q": b"not of it",
    }
    commit = upstream.commit("refs/heads/main", files)
    found = mirrored.subtree(URL, commit, "p")
    assert found.tree == git(upstream.path, "rev-parse", f"{commit}:p")
    assert [(file.path, file.mode, file.data) for file in found.files] == [
        (".gitattributes", "100644", b"*.py export-ignore text eol=crlf\n"),
        ("a.py", "100644", b"1\n"),
        ("d/link", "120000", b"../a.py"),
        ("d/na\u00efve name", "100644", b"\r\n"),
        ("run", "100755", b"#!/bin/sh\n"),
    ]
    assert mirrored.subtree(URL, commit, "p/d").files == tuple(
        GitFile(path=file.path.removeprefix("d/"), mode=file.mode, data=file.data)
        for file in found.files
        if file.path.startswith("d/")
    )


def test_more_files_come_than_a_pipe_holds_names_of(
    upstream: Upstream, mirrored: GitMirror
) -> None:
    """64 KiB are 1,598 names of objects, and any one file is more than that again."""
    files: Files = {f"p/{n:04}": b"%04d" % n * 20_000 if n == 7 else b"%d" % n for n in range(3000)}
    commit = upstream.commit("refs/heads/main", files)
    found = mirrored.subtree(URL, commit, "p")
    assert {f"p/{file.path}": file.data for file in found.files} == files


@pytest.mark.parametrize(
    "path, message",
    [
        ("none", "'none': no such directory; the top directory has no 'none'"),
        ("p/f", "'p/f': is no directory"),
        ("p/f/x", "'p/f/x': no such directory; 'p/f' has no 'x'"),
        ("", "'': no such directory; the top directory has no ''"),
        ("..", "'..': no such directory; the top directory has no '..'"),
        ("m", f"'m': 'a/sub': is a submodule at {'0123456789' * 4}, wanted a file"),
        ("l", "'l': 'a/big': is a Git LFS pointer; the content is not in the repository"),
    ],
)
def test_what_is_no_directory_of_files_is_refused_with_its_reason(
    upstream: Upstream, mirrored: GitMirror, path: str, message: str
) -> None:
    files: Files = {"p/f": b"", "m/a/sub": ("160000", b"0123456789" * 4), "l/a/big": LFS}
    commit = upstream.commit("refs/heads/main", files)
    with pytest.raises(IntegrityError) as caught:
        mirrored.subtree(URL, commit, path)
    assert caught.value.message == f"{URL}: {commit}: {message}"


def tree_of(repository: Path, *entries: str) -> str:
    """Write a tree as it is told, by ``git mktree``, which looks at nothing."""
    text = "".join(f"{entry}\n" for entry in entries)
    return git(repository, "mktree", "--missing", data=text.encode())


def committed(repository: Path, tree: str) -> str:
    text = f"tree {tree}\nauthor A <a@e> 1 +0000\ncommitter A <a@e> 1 +0000\n\nx\n"
    return git(repository, "hash-object", "-w", "-t", "commit", "--stdin", data=text.encode())


def read_directory(upstream: Upstream, commit: str, tmp_path: Path) -> None:
    """Without a fetch, which refuses most of what these tests make."""
    with Objects(GitProcess(tmp_path / "home"), upstream.path, at="it") as objects:
        objects.subtree(commit, "p")


def written_tree(repository: Path, name: str, blob: str) -> str:
    """A tree of one file as no git command would write it."""
    data = b"100644 " + name.encode() + b"\0" + bytes.fromhex(blob)
    return git(repository, "hash-object", "-w", "-t", "tree", "--literally", "--stdin", data=data)


@pytest.mark.parametrize("name", ["..", ".", ".git", "", "a/b", "/etc/passwd", "../x"])
def test_no_name_leads_out_of_the_directory(upstream: Upstream, tmp_path: Path, name: str) -> None:
    blob = git(upstream.path, "hash-object", "-w", "--stdin", data=b"x")
    tree = written_tree(upstream.path, name, blob)
    commit = committed(upstream.path, tree_of(upstream.path, f"040000 tree {tree}\tp"))
    with pytest.raises(IntegrityError) as caught:
        read_directory(upstream, commit, tmp_path)
    assert caught.value.message == f"it: {commit}: 'p': not the name of a file: {name!r}"


def test_a_path_beyond_path_max_is_refused(upstream: Upstream, tmp_path: Path) -> None:
    blob = git(upstream.path, "hash-object", "-w", "--stdin", data=b"x")
    tree = tree_of(upstream.path, f"100644 blob {blob}\tf")
    for _ in range(21):
        tree = tree_of(upstream.path, f"040000 tree {tree}\t{'n' * 200}")
    commit = committed(upstream.path, tree_of(upstream.path, f"040000 tree {tree}\tp"))
    with pytest.raises(IntegrityError, match=f"it: {commit}: 'p': not the name of a file: 'nnn"):
        read_directory(upstream, commit, tmp_path)
    with (
        Objects(GitProcess(tmp_path / "home"), upstream.path, at="it") as objects,
        pytest.raises(IntegrityError, match=f"it: {commit}: more than 200000 entries"),
    ):
        objects.listing(commit)


def test_a_commit_whose_tree_leads_out_is_not_taken(
    upstream: Upstream, mirrored: GitMirror
) -> None:
    """Git's own check of what is fetched, which we switch on."""
    blob = git(upstream.path, "hash-object", "-w", "--stdin", data=b"x")
    commit = committed(upstream.path, written_tree(upstream.path, "..", blob))
    upstream.set_refs({"refs/heads/main": commit})
    with pytest.raises(IntegrityError, match="hasDotdot"):
        mirrored.tree(URL, commit)


def test_git_reaches_nothing_by_a_way_that_was_not_allowed(
    upstream: Upstream, tmp_path: Path
) -> None:
    process = GitProcess(tmp_path / "home")
    for protocols, ok in (("", False), ("https:ssh", False), ("file", True)):
        answer = process.run(None, "ls-remote", str(upstream.path), protocols=protocols)
        assert answer.ok is ok
        assert ok or answer.complaint == "fatal: transport 'file' not allowed"


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://me:sesame@code.example/x/", "https://code.example/x/"),
        ("https://me:an@sesame@code.example/x/", "https://code.example/x/"),
        ("https://me:a/sesame@code.example/x/", "https://***@code.example/x/"),
        ("https://me:a'sesame@code.example/x/", "https://code.example/x/"),
        ("https://code.example/x?access_token=sesame", "https://code.example/x"),
        ("https://code.example/x/#sesame", "https://code.example/x/"),
        ("ssh://git@code.example/x", "ssh://code.example/x"),
        ("git@code.example:x", "git@code.example:x"),
    ],
)
def test_what_git_complains_of_holds_no_credentials_and_steers_no_terminal(
    url: str, shown: str
) -> None:
    said = f"fatal: unable to access '{url}': \x1b[2JCould not resolve\n"
    assert Answer(status=128, stdout=b"", stderr=said).complaint == (
        f"fatal: unable to access '{shown}':  [2JCould not resolve"
    )


@pytest.mark.parametrize("commit", ["main", "0" * 12, "A" * 40, "0" * 41, "--upload-pack=x"])
def test_what_is_no_full_id_is_a_bug_of_the_caller(mirrored: GitMirror, commit: str) -> None:
    with pytest.raises(RuntimeError, match="not a full object id"):
        mirrored.tree(URL, commit)


def test_a_tree_that_names_itself_a_million_times_is_refused_in_time(
    upstream: Upstream, tmp_path: Path
) -> None:
    blob = git(upstream.path, "hash-object", "-w", "--stdin", data=b"x")
    tree = tree_of(upstream.path, *(f"100644 blob {blob}\t{n}" for n in range(10)))
    for _ in range(5):
        tree = tree_of(upstream.path, *(f"040000 tree {tree}\t{n}" for n in range(10)))
    commit = committed(upstream.path, tree_of(upstream.path, f"040000 tree {tree}\tp"))
    with pytest.raises(IntegrityError) as caught:
        read_directory(upstream, commit, tmp_path)
    assert caught.value.message == f"it: {commit}: 'p': more than 20000 files"


def test_a_small_commit_of_many_bytes_is_refused(upstream: Upstream, tmp_path: Path) -> None:
    blob = git(upstream.path, "hash-object", "-w", "--stdin", data=bytes(32 << 20))
    tree = tree_of(upstream.path, *(f"100644 blob {blob}\t{n}" for n in range(9)))
    commit = committed(upstream.path, tree_of(upstream.path, f"040000 tree {tree}\tp"))
    with pytest.raises(IntegrityError) as caught:
        read_directory(upstream, commit, tmp_path)
    assert caught.value.message == f"it: {commit}: 'p': more than {256 << 20} bytes"


@pytest.mark.parametrize("what", ["file", "directory"])
def test_an_object_of_many_bytes_is_refused_before_it_is_read(
    upstream: Upstream, mirrored: GitMirror, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """A few bytes of a pack can stand for any number."""
    monkeypatch.setattr(git_objects, "_BYTES", 1 << 20)
    commit = upstream.commit("refs/heads/main", {"p/f": bytes(32 << 20)})
    blob = git(upstream.path, "rev-parse", "main:p/f")
    reads: dict[str, Callable[[], object]] = {
        "file": lambda: mirrored.files(URL, commit, ("p/f",)),
        "directory": lambda: mirrored.subtree(URL, commit, "p"),
    }
    tracemalloc.start()
    try:
        with pytest.raises(IntegrityError) as caught:
            reads[what]()
        assert tracemalloc.get_traced_memory()[1] < 4 << 20
    finally:
        tracemalloc.stop()
    at = f"object {blob}" if what == "file" else f"{commit}: 'p'"
    assert caught.value.message == f"{URL}: {at}: more than {1 << 20} bytes"


def test_a_commit_is_listed_with_directories_links_and_submodules(
    upstream: Upstream, mirrored: GitMirror
) -> None:
    files: Files = {
        "a/b/c.txt": b"c",
        "a/x": ("100755", b"x"),
        "a.txt": b"a",
        "l": ("120000", b"a.txt"),
        "m": ("160000", b"1" * 40),
        "\u00fc": b"u",
    }
    commit = upstream.commit("refs/heads/main", files)
    listing = mirrored.listing(URL, commit)
    assert [*listing] == ["a", "a.txt", "a/b", "a/b/c.txt", "a/x", "l", "m", "\u00fc"]
    modes = {path: entry.mode for path, entry in listing.items() if not entry.is_directory}
    assert modes == {
        **dict.fromkeys(("a.txt", "a/b/c.txt", "\u00fc"), "100644"),
        "a/x": "100755",
        "l": "120000",
        "m": "160000",
    }
    for path in ("a", "a/b", "a.txt", "l"):
        assert listing[path].id == git(upstream.path, "rev-parse", f"{commit}:{path}")
    assert listing["m"].id == "1" * 40


def test_a_tree_that_stands_for_any_number_of_files_is_not_listed_to_its_end(
    upstream: Upstream, mirrored: GitMirror
) -> None:
    tree = git(upstream.path, "mktree", data=b"")
    for _ in range(7):
        lines = "".join(f"040000 tree {tree}\td{n}\n" for n in range(10))
        tree = git(upstream.path, "mktree", data=lines.encode())
    commit = git(
        upstream.path, "commit-tree", "-m", "x", tree, config=("user.name=A", "user.email=a")
    )
    upstream.set_refs({"refs/heads/main": commit})
    with pytest.raises(IntegrityError) as caught:
        mirrored.listing(URL, commit)
    assert caught.value.message == f"{URL}: {commit}: more than 200000 entries"
