"""A tiny image for the tests: a mapping of image path to bytes, with directories as they follow."""

from collections.abc import Sequence

from builder.diff import Diff, Place, SourceText, resolve
from builder.tree import parents

PACKAGES = "usr/local/lib/python3.12/dist-packages"
ROOTS = (PACKAGES, f"{PACKAGES}/vllm", "")


class Image:
    """Files by path, and what was asked of them."""

    def __init__(self, files: dict[str, bytes], *, mode: int = 0o644) -> None:
        self.files = files
        self.mode = mode
        self._directories = {above for path in files for above in parents(path)}

    def read(self, path: str) -> SourceText | None:
        data = self.files.get(path)
        return None if data is None else SourceText(data=data, mode=self.mode)

    def is_directory(self, path: str) -> bool:
        return path in self._directories

    def resolve(
        self,
        diff: Diff,
        *,
        roots: Sequence[str] = ROOTS,
        root: str | None = None,
        strip: int | None = None,
        ignore: Sequence[str] = (),
    ) -> Place:
        return resolve(
            diff,
            exists=self.files.__contains__,
            is_directory=self.is_directory,
            roots=roots,
            root=root,
            strip=strip,
            ignore=ignore,
        )


def edit(path: str, *, old: str = "a/", new: str = "b/") -> bytes:
    """A section that changes the only line of a file from a to b."""
    name = path.encode()
    head = b"diff --git %s%s %s%s\n--- %s%s\n+++ %s%s\n" % (
        (old.encode(), name, new.encode(), name) * 2
    )
    return head + b"@@ -1 +1 @@\n-a\n+b\n"


def create(path: str) -> bytes:
    """A section that creates a file of one line."""
    name = path.encode()
    return (
        b"diff --git a/%s b/%s\nnew file mode 100644\n--- /dev/null\n+++ b/%s\n"
        b"@@ -0,0 +1 @@\n+new\n" % (name, name, name)
    )
