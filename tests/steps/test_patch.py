"""Diffs as steps see them: the changes they come to, and what is said of each file."""

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
