"""Whole files: the four images of a full-file overlay, and what several files say together."""

from dataclasses import replace

import pytest

from builder.changes import Inline, Put, Remove
from builder.digest import Digest
from builder.errors import PatchError
from builder.outcome import FileOutcome
from builder.steps.whole import WholeFile, place
from builder.verdict import Verdict
from tests.fakes import File, Link, TreeView

PACKAGE = "usr/lib/python3/dist-packages/pkg"
SERVING = f"{PACKAGE}/serving.py"
STOCK = b"def serve():\n    return 1\n"
OURS = b"def serve():\n    return 2\n"
LATER = b"def serve():\n    check()\n    return 1\n"


def overlay(data: bytes | None = OURS, *, replaces: bytes | None = STOCK) -> WholeFile:
    return WholeFile(
        path=SERVING,
        data=data,
        replaces=None if replaces is None else Digest.of(replaces),
        at="overlay.yaml:3: files[0]",
    )


def image(**files: bytes) -> TreeView:
    return TreeView({f"{PACKAGE}/{name}.py": data for name, data in files.items()})


def test_a_file_whose_pre_image_is_there_is_replaced() -> None:
    outcome = place([overlay()], image(serving=STOCK), at="step")
    assert outcome.changes == (Put(path=SERVING, content=Inline(OURS)),)
    assert outcome.files == (
        FileOutcome(
            path=SERVING, verdict=Verdict.APPLIED, pre=Digest.of(STOCK), post=Digest.of(OURS)
        ),
    )


def test_a_file_that_upstream_changed_is_refused_with_the_difference() -> None:
    with pytest.raises(PatchError) as caught:
        place([overlay()], image(serving=LATER), at="step")
    assert caught.value.verdict == Verdict.REFUSED
    assert caught.value.message == (
        f"overlay.yaml:3: files[0]: {SERVING!r} is not the file that this step was made for:"
        f" expected {Digest.of(STOCK)}, the image has {Digest.of(LATER)}"
    )
    assert caught.value.difference is not None
    assert "-    check()" in caught.value.difference


def test_a_file_that_is_gone_is_missing() -> None:
    with pytest.raises(PatchError) as caught:
        place([overlay()], image(__init__=b"", other=STOCK), at="step")
    assert caught.value.verdict == Verdict.FILE_MISSING
    assert caught.value.message == f"overlay.yaml:3: files[0]: no file at {SERVING!r} in the image"


def test_a_file_that_moved_is_found_by_its_name() -> None:
    tree = TreeView({f"{PACKAGE}/__init__.py": b"", f"{PACKAGE}/chat/serving.py": STOCK})
    with pytest.raises(PatchError) as caught:
        place([overlay()], tree, at="step")
    assert caught.value.verdict == Verdict.FILE_MOVED
    assert caught.value.message == (
        f"overlay.yaml:3: files[0]: no file at {SERVING!r} in the image; one of that name is at"
        f" '{PACKAGE}/chat/serving.py', the very bytes that are pinned"
    )


def test_a_file_that_upstream_has_already_is_a_verdict() -> None:
    with pytest.raises(PatchError) as caught:
        place([overlay()], image(serving=OURS), at="step")
    assert caught.value.verdict == Verdict.ALREADY_UPSTREAM


def test_a_file_of_another_mode_is_not_what_the_step_makes() -> None:
    """A script that nobody may execute is no replacement for one that everybody may."""
    tree = TreeView({SERVING: File(OURS, mode=0o644)})
    for mode in (None, 0o644):
        for replaces in (None, OURS):
            with pytest.raises(PatchError) as caught:
                place([replace(overlay(replaces=replaces), mode=mode)], tree, at="step")
            assert caught.value.verdict == Verdict.ALREADY_UPSTREAM
    outcome = place([replace(overlay(replaces=OURS), mode=0o755)], tree, at="step")
    assert outcome.changes == (Put(path=SERVING, content=Inline(OURS), mode=0o755),)
    with pytest.raises(PatchError) as caught:
        place([replace(overlay(replaces=None), mode=0o755)], tree, at="step")
    assert (caught.value.verdict, caught.value.message) == (
        Verdict.REFUSED,
        (
            f"overlay.yaml:3: files[0]: {SERVING!r} must not exist, the image has a file"
            f" {Digest.of(OURS)} of mode 0644"
        ),
    )


def test_a_new_file_must_not_exist() -> None:
    with pytest.raises(PatchError) as caught:
        place([overlay(replaces=None)], image(serving=STOCK), at="step")
    assert caught.value.verdict == Verdict.REFUSED
    assert caught.value.message == (
        f"overlay.yaml:3: files[0]: {SERVING!r} must not exist, the image has a file"
        f" {Digest.of(STOCK)} of mode 0644"
    )


def test_a_new_file_is_placed_where_nothing_is() -> None:
    outcome = place([overlay(replaces=None)], image(other=STOCK), at="step")
    assert outcome.files[0].pre is None
    assert outcome.files[0].post == Digest.of(OURS)


def test_a_link_is_not_replaced_by_a_file() -> None:
    tree = TreeView({SERVING: Link("real.py"), f"{PACKAGE}/real.py": STOCK})
    with pytest.raises(PatchError) as caught:
        place([overlay()], tree, at="step")
    assert caught.value.message == (
        f"overlay.yaml:3: files[0]: expected a regular file at {SERVING!r}, found a symlink to"
        " 'real.py'"
    )


def test_a_removal_checks_what_it_removes() -> None:
    outcome = place([overlay(None)], image(serving=STOCK), at="step")
    assert outcome.changes == (Remove(path=SERVING),)
    assert outcome.files[0].post is None
    with pytest.raises(PatchError):
        place([overlay(None)], image(serving=LATER), at="step")


def test_upstream_having_only_some_of_the_files_is_an_error_that_names_them() -> None:
    other = WholeFile(
        path=f"{PACKAGE}/other.py", data=OURS, replaces=Digest.of(STOCK), at="files[1]"
    )
    with pytest.raises(PatchError) as caught:
        place([overlay(), other], image(serving=OURS, other=STOCK), at="step")
    assert caught.value.verdict == Verdict.REFUSED
    assert caught.value.message == "step: 1 of 2 files are already upstream, the others are not"
    assert caught.value.findings == (
        f"overlay.yaml:3: files[0]: {SERVING!r} is already upstream: the image has these bytes",
    )


def test_all_files_upstream_is_already_upstream_as_a_whole() -> None:
    other = WholeFile(
        path=f"{PACKAGE}/other.py", data=OURS, replaces=Digest.of(STOCK), at="files[1]"
    )
    with pytest.raises(PatchError) as caught:
        place([overlay(), other], image(serving=OURS, other=OURS), at="step")
    assert caught.value.verdict == Verdict.ALREADY_UPSTREAM
    assert caught.value.message == ("step: the base has this change already, in all of its 2 files")


def test_what_is_wrong_is_hinted_at_before_what_is_only_needless() -> None:
    """One file is upstream's by now, the other would undo its later work: that is the trouble."""
    other = WholeFile(
        path=f"{PACKAGE}/other.py", data=OURS, replaces=Digest.of(STOCK), at="files[1]"
    )
    with pytest.raises(PatchError) as caught:
        place([overlay(), other], image(serving=OURS, other=STOCK + b"# later\n"), at="step")
    assert caught.value.verdict == Verdict.REFUSED
    assert caught.value.path == f"{PACKAGE}/other.py"
    assert [line.partition(":")[0] for line in caught.value.findings] == [
        "already-upstream",
        "refused",
    ]
    assert caught.value.hint is not None
    assert "undo what upstream changed" in caught.value.hint
