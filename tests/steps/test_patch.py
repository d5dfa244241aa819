"""Diffs as steps see them: the changes they come to, and what is said of each file."""

from dataclasses import replace

import pytest

from builder.changes import Inline, Put, Remove
from builder.digest import Digest
from builder.outcome import FileOutcome
from builder.python_layout import from_statement
from builder.steps.patch import apply_diff
from builder.steps.request import DiffRule
from builder.verdict import Verdict
from tests.fakes import File, TreeView

LAYOUT = from_statement("3.12", "usr/lib/python3.12/site-packages", at="variant")
VLLM = f"{LAYOUT.packages}/vllm"
RULE = DiffRule(root=".", strip=1, at="variant.yaml:3: pull it")
RENAME = b"""\
diff --git a/vllm/old.py b/vllm/new.py
similarity index 60%
rename from vllm/old.py
rename to vllm/new.py
--- a/vllm/old.py
+++ b/vllm/new.py
@@ -1,2 +1,2 @@
 one
-two
+three
"""


def test_a_renamed_file_is_removed_once_and_put_in_its_new_place() -> None:
    view = TreeView({f"{VLLM}/__init__.py": b"", f"{VLLM}/old.py": File(b"one\ntwo\n", 0o755)})
    outcome = apply_diff(RENAME, RULE, view, LAYOUT)
    assert sorted(outcome.changes, key=lambda change: change.path) == [
        Put(path=f"{VLLM}/new.py", content=Inline(b"one\nthree\n"), mode=0o755),
        Remove(path=f"{VLLM}/old.py"),
    ]
    assert sorted(outcome.files, key=lambda file: file.path) == [
        FileOutcome(
            path=f"{VLLM}/new.py", verdict=Verdict.APPLIED, post=Digest.of(b"one\nthree\n")
        ),
        FileOutcome(path=f"{VLLM}/old.py", verdict=Verdict.APPLIED, pre=Digest.of(b"one\ntwo\n")),
    ]


@pytest.mark.parametrize(
    ("diff", "stated"),
    [
        pytest.param(RENAME, "root: . and strip: 1", id="packages"),
        pytest.param(RENAME.replace(b"vllm/", b""), "root: vllm and strip: 1", id="vllm"),
        pytest.param(
            RENAME.replace(b"/vllm/", f"/{VLLM}/".encode()).replace(
                b" vllm/", f" {VLLM}/".encode()
            ),
            "root: / and strip: 1",
            id="the whole path",
        ),
    ],
)
def test_of_a_place_that_was_found_it_is_told_what_to_write_and_where(
    caplog: pytest.LogCaptureFixture, diff: bytes, stated: str
) -> None:
    view = TreeView({f"{VLLM}/__init__.py": b"", f"{VLLM}/old.py": File(b"one\ntwo\n", 0o755)})
    found = replace(RULE, root=None, strip=None, stated_at="lockfiles/pulls.yaml:3: pulls.it")
    outcome = apply_diff(diff, found, view, LAYOUT)
    (told,) = caplog.messages
    assert told.startswith("variant.yaml:3: pull it: found to apply at root '/")
    assert told.endswith(
        f"; so that it stays there, write {stated} at lockfiles/pulls.yaml:3: pulls.it"
    )
    caplog.clear()
    root, strip = stated.removeprefix("root: ").split(" and strip: ")
    again = apply_diff(diff, replace(found, root=root, strip=int(strip)), view, LAYOUT)
    assert (again, caplog.messages) == (outcome, [])
