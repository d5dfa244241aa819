"""What a program is shown of an image, and what is taken of what it left."""

import pytest

from builder.changes import Inline, Put, Remove
from builder.digest import Digest
from builder.errors import PatchError, SandboxError
from builder.observed import Observed
from builder.outcome import FileOutcome
from builder.sandbox import Finished, Job, Laid, Left, LeftFile, LeftLink, LeftOther
from builder.steps.scratch import Taken, laid, taken
from builder.verdict import Verdict
from tests.fakes import File, Link, Node, TreeView

P = "usr/lib/python3.12/site-packages"
TREE: dict[str, Node] = {
    f"{P}/vllm/a.py": File(b"a = 1\n", mode=0o755),
    f"{P}/vllm/_C.abi3.so": b"\x7fELF" + bytes(96),
    f"{P}/vllm/include/k.h": b"#define K\n",
    f"{P}/vllm/link.py": Link("a.py"),
    f"{P}/vllm/sub/b.json": b"{}",
    f"{P}/vllm/__pycache__/a.cpython-312.pyc": b"old",
    f"{P}/torch/__init__.py": b"",
    "opt/run.sh": File(b"#!/bin/sh\n", mode=0o4755),
    "opt/other.sh": b"",
}
A, SO = f"{P}/vllm/a.py", f"{P}/vllm/_C.abi3.so"


def test_text_is_laid_with_its_content_and_the_rest_as_holes_of_its_size() -> None:
    view = Observed(TreeView(TREE))
    assert laid(view, (f"{P}/vllm",)) == (
        Laid(path=SO, data=None, size=100),
        Laid(path=A, data=b"a = 1\n", mode=0o755),
        Laid(path=f"{P}/vllm/include/k.h", data=None, size=10),
        Laid(path=f"{P}/vllm/sub/b.json", data=b"{}"),
    )


def test_a_text_that_is_too_large_to_be_kept_is_a_hole() -> None:
    view = Observed(TreeView({f"{P}/vllm/big.py": bytes((1 << 20) + 1)}))
    assert laid(view, (f"{P}/vllm",)) == (
        Laid(path=f"{P}/vllm/big.py", data=None, size=(1 << 20) + 1),
    )


def test_what_is_wanted_whole_is_laid_wherever_it_is_and_whatever() -> None:
    tree = TreeView(TREE)
    found = laid(Observed(tree), (f"{P}/vllm/sub",), whole=(SO, "opt/run.sh", "opt/none"))
    assert found == (
        Laid(path="opt/run.sh", data=b"#!/bin/sh\n", mode=0o755),
        Laid(path=SO, data=b"\x7fELF" + bytes(96)),
        Laid(path=f"{P}/vllm/sub/b.json", data=b"{}"),
    )
    assert tree.prefetched == [SO, "opt/run.sh", "opt/none"]


def test_a_directory_that_is_not_there_is_empty() -> None:
    assert laid(Observed(TreeView(TREE)), (f"{P}/none",)) == ()


def test_one_answer_covers_all_that_is_laid() -> None:
    view = Observed(TreeView(TREE))
    laid(view, (f"{P}/vllm",), whole=("opt/run.sh",))
    asked = [(operation, path) for operation, path, _ in view.reads]
    assert asked == [("below", f"{P}/vllm"), ("stat", "opt/run.sh")]


# --- taking back ---------------------------------------------------------------------------------


def judged(*left: Left, removed: tuple[str, ...] = ()) -> Taken:
    view = Observed(TreeView(TREE))
    job = Job(
        command=("python",),
        roots=(P, "opt"),
        files=laid(view, (f"{P}/vllm",), whole=("opt/run.sh",)),
    )
    finished = Finished(status=0, stdout=b"", stderr=b"", left=left, removed=removed)
    return taken(finished, view, job=job, at="step 'it'")


def file(path: str, data: bytes = b"new", mode: int = 0o644) -> LeftFile:
    return LeftFile(path=path, data=data, mode=mode)


def test_files_are_changed_added_and_removed() -> None:
    new, gone = f"{P}/vllm/new.py", f"{P}/vllm/sub/b.json"
    assert judged(file(A, b"a = 2\n", 0o755), file(new), removed=(gone,)) == (
        (
            Put(path=A, content=Inline(b"a = 2\n")),
            Put(path=new, content=Inline(b"new"), mode=0o644),
            Remove(path=gone),
        ),
        (
            FileOutcome(
                path=A,
                verdict=Verdict.APPLIED,
                pre=Digest.of(b"a = 1\n"),
                post=Digest.of(b"a = 2\n"),
            ),
            FileOutcome(path=new, verdict=Verdict.APPLIED, post=Digest.of(b"new")),
            FileOutcome(path=gone, verdict=Verdict.APPLIED, pre=Digest.of(b"{}")),
        ),
    )


def test_permission_bits_are_taken_where_they_were_changed() -> None:
    changes, (outcome,) = judged(file(A, b"a = 1\n", 0o600))
    assert changes == (Put(path=A, content=Inline(b"a = 1\n"), mode=0o600),)
    assert outcome.pre == outcome.post == Digest.of(b"a = 1\n")


def test_the_image_keeps_the_bits_that_no_program_is_shown() -> None:
    """The file is set-uid in the image, and is laid without that."""
    changes, _ = judged(file("opt/run.sh", b"#!/bin/dash\n", 0o755))
    assert changes == (Put(path="opt/run.sh", content=Inline(b"#!/bin/dash\n")),)


@pytest.mark.parametrize(
    "path",
    [
        f"{P}/vllm/__pycache__/a.cpython-312.pyc",
        f"{P}/vllm/__pycache__/deep/anything",
        f"{P}/vllm/a.pyc",
        f"{P}/vllm/a.pyo",
    ],
)
def test_compiled_files_are_dropped(path: str) -> None:
    assert judged(file(path)) == ((), ())


def test_a_compiled_file_that_is_a_link_is_dropped_too() -> None:
    link = LeftLink(path=f"{P}/vllm/__pycache__/x.pyc", target="/etc/passwd")
    assert judged(link) == ((), ())


@pytest.mark.parametrize(
    "item, said",
    [
        pytest.param(
            LeftLink(path="opt/l", target="/etc/passwd"),
            "'opt/l', a link to '/etc/passwd'",
            id="a link",
        ),
        pytest.param(
            LeftFile(path="opt/a\nverdict: applied", data=b"", mode=0o644),
            r"'opt/a\nverdict: applied', a name that nobody can read",
            id="two lines",
        ),
        pytest.param(
            LeftFile(path="opt/\x1b[2J", data=b"", mode=0o644),
            r"'opt/\x1b[2J', a name that nobody can read",
            id="a sequence for the terminal",
        ),
        pytest.param(
            LeftFile(path="opt/\udcff", data=b"", mode=0o644),
            r"'opt/\udcff', a name that nobody can read",
            id="not UTF-8",
        ),
        pytest.param(
            LeftOther(path="opt/p", kind="a named pipe"), "'opt/p', a named pipe", id="pipe"
        ),
        pytest.param(file("opt/new", mode=0o4755), "'opt/new', of mode 4755", id="set-uid"),
        pytest.param(file("opt/new", mode=0o1644), "'opt/new', of mode 1644", id="sticky"),
    ],
)
def test_what_is_no_plain_file_is_refused(item: Left, said: str) -> None:
    with pytest.raises(SandboxError) as caught:
        judged(file(A), item)
    assert caught.value.message == (f"step 'it': the program left what cannot be taken: {said}")
    assert caught.value.hint == (
        "only regular files are taken from a sandbox, with permission bits up to 0777"
    )


@pytest.mark.parametrize(
    "path, said",
    [
        pytest.param(
            SO,
            "was changed without its content having been there: it is no Python text",
            id="a library",
        ),
        pytest.param(
            f"{P}/torch/__init__.py",
            "the image has a file there, which the program did not see",
            id="a file that was not laid",
        ),
        pytest.param(
            f"{P}/vllm/link.py",
            "the image has a symlink there, which the program did not see",
            id="a link of the image",
        ),
        pytest.param(
            f"{P}/torch",
            "the image has a dir there, which the program did not see",
            id="a directory of the image",
        ),
        pytest.param(
            f"{P}/vllm/a.py.rej",
            "left by a patch program, of whose change a part did not apply",
            id="rejects",
        ),
        pytest.param(
            f"{P}/vllm/a.py.orig",
            "left by a patch program, of whose change a part did not apply",
            id="a copy made by patch",
        ),
    ],
)
def test_a_change_that_was_made_unseen_is_refused(path: str, said: str) -> None:
    with pytest.raises(PatchError) as caught:
        judged(file(A), file(path))
    error = caught.value
    assert (error.message, error.findings, error.verdict) == (
        "step 'it': 1 of the program's changes cannot be taken",
        (f"{path}: {said}",),
        Verdict.REFUSED,
    )


def test_a_library_is_not_removed_unseen() -> None:
    with pytest.raises(PatchError) as caught:
        judged(removed=(SO,))
    assert caught.value.findings == (
        f"{SO}: was changed without its content having been there: it is no Python text",
    )


def test_a_file_below_a_link_that_was_not_shown_is_refused() -> None:
    """Where it would land, the program could not know."""
    tree: dict[str, Node] = {f"{P}/vllm/a.py": b"", f"{P}/vllm/d": Link("../torch")}
    view = Observed(TreeView({**tree, f"{P}/torch/b.py": b""}))
    job = Job(command=("python",), roots=(f"{P}/vllm",), files=laid(view, (f"{P}/vllm",)))
    left = (file(f"{P}/vllm/d/c.py"),)
    with pytest.raises(PatchError) as caught:
        taken(Finished(status=0, stdout=b"", stderr=b"", left=left), view, job=job, at="step 'it'")
    assert caught.value.findings == (
        f"{P}/vllm/d/c.py: is below a link of the image, which the program did not see",
    )


def test_all_that_is_wrong_is_named_at_once() -> None:
    with pytest.raises(PatchError) as caught:
        judged(file(SO), file("opt/a.rej"), file("opt/other.sh"))
    assert caught.value.message == "step 'it': 3 of the program's changes cannot be taken"
    assert [line.partition(":")[0] for line in caught.value.findings] == [
        SO,
        "opt/a.rej",
        "opt/other.sh",
    ]
