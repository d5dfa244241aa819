"""Random stacks of layers against umoci, which really unpacks them, and the kernel, which really
follows the links of what was unpacked."""

import ctypes
import os
import stat
import struct
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from builder.digest import Digest
from builder.errors import IntegrityError
from builder.merged import MergedView
from builder.tree import Kind, parents
from tests.scan.archives import Item, MemoryLayer, archive, directory, file, hardlink, symlink
from tests.scan.umoci import NEEDS_UMOCI, umoci, write_layout

_OPENAT2 = 437
_RESOLVE_IN_ROOT = 0x10
_ELOOP = 40

pytestmark = NEEDS_UMOCI

# Names that sort before, between and behind a directory and what is in it.
NAMES = st.sampled_from(["a", "a", "a", "b", "b", "a-b", "a.b", "a0"])
PATHS = st.lists(NAMES, min_size=1, max_size=3).map("/".join)
TARGETS = st.sampled_from(
    ["a", "b", "../a", "/a", "/b", "/a/b", "../../../b", "a/b", "..", "/", "missing/../a", "./b/"]
)
CONTENTS = st.sampled_from([b"", b"1", b"2", b"3"])


@st.composite
def layers(draw: st.DrawFn) -> tuple[Item, ...]:
    """One layer as a tool would write it: parents first, whiteouts first in each directory."""
    made: dict[str, Item] = {}
    files: list[str] = []
    for path in draw(st.lists(PATHS, min_size=2, max_size=10, unique=True)):
        above = parents(path)
        if path in made or any(p in made and made[p].kind is not Kind.DIRECTORY for p in above):
            continue
        for parent in above:
            made.setdefault(parent, directory(parent, mode=draw(st.sampled_from([0o755, 0o700]))))
        kind = draw(st.sampled_from(["file", "file", "directory", "symlink", "hardlink"]))
        if kind == "hardlink" and files:
            made[path] = hardlink(path, draw(st.sampled_from(files)))
        elif kind == "symlink":
            made[path] = symlink(path, draw(TARGETS))
        elif kind == "directory":
            made[path] = directory(path)
        else:
            made[path] = file(path, draw(CONTENTS), mode=draw(st.sampled_from([0o644, 0o4755])))
            files.append(path)
    marks: list[Item] = []
    for path in draw(st.lists(PATHS, max_size=4, unique=True)):
        head, _, name = path.rpartition("/")
        if all(p in made and made[p].kind is Kind.DIRECTORY for p in parents(path)):
            marks.append(file(f"{head}/.wh.{name}" if head else f".wh.{name}"))
    for path, item in made.items():
        if item.kind is Kind.DIRECTORY and draw(st.integers(0, 3)) == 0:
            marks.append(file(f"{path}/.wh..wh..opq"))
    tail = [item for item in made.values() if item.kind is Kind.HARDLINK]
    head_items = [item for item in made.values() if item.kind is not Kind.HARDLINK]
    return (*[i for i in head_items if i.kind is Kind.DIRECTORY], *marks, *_rest(head_items), *tail)


def _rest(items: list[Item]) -> list[Item]:
    return [item for item in items if item.kind is not Kind.DIRECTORY]


def unpacked(root: Path) -> dict[str, object]:
    """What umoci made: path to kind, mode and content."""
    found: dict[str, object] = {}
    for top, directories, names in os.walk(root):
        for name in (*directories, *names):
            path = os.path.join(top, name)
            info = os.lstat(path)
            key = os.path.relpath(path, root)
            if stat.S_ISLNK(info.st_mode):
                found[key] = os.readlink(path)
            elif stat.S_ISDIR(info.st_mode):
                found[key] = stat.S_IMODE(info.st_mode)
            else:
                found[key] = (stat.S_IMODE(info.st_mode), Digest.of(Path(path).read_bytes()))
    return found


def merged(view: MergedView) -> dict[str, object]:
    """The same of a view."""
    found: dict[str, object] = {}
    todo = list(view.children(""))
    while todo:
        path = todo.pop()
        entry = view.stat(path)
        assert entry is not None
        if entry.kind is Kind.SYMLINK:
            found[path] = entry.target
        elif entry.is_directory:
            found[path] = entry.mode
            todo += [f"{path}/{name}" for name in view.children(path)]
        else:
            found[path] = (entry.mode, Digest.of(view.read(path)))
    return found


def opened(root: int, path: str) -> os.stat_result | int:
    """What the kernel finds at a path below a root that nothing leaves, or its errno."""
    libc = ctypes.CDLL(None, use_errno=True)
    how = struct.pack("QQQ", os.O_PATH | os.O_NOFOLLOW, 0, _RESOLVE_IN_ROOT)
    descriptor = libc.syscall(_OPENAT2, root, path.encode(), how, len(how))
    if descriptor < 0:
        return ctypes.get_errno()
    try:
        return os.fstat(descriptor)
    finally:
        os.close(descriptor)


def compare_with_kernel(view: MergedView, root: Path, paths: list[str]) -> None:
    top = os.open(root, os.O_PATH)
    try:
        for path in paths:
            real = opened(top, path)
            if real == _ELOOP:
                with pytest.raises(IntegrityError):
                    view.stat(path)
                continue
            entry = view.stat(path)
            assert (entry is None) == isinstance(real, int), path
            if entry is not None and isinstance(real, os.stat_result):
                there = os.lstat(root / view.resolve(path))
                assert (there.st_dev, there.st_ino) == (real.st_dev, real.st_ino), path
    finally:
        os.close(top)


@settings(max_examples=50, suppress_health_check=[HealthCheck.too_slow], database=None)
@given(
    st.lists(layers(), min_size=2, max_size=5),
    st.lists(
        st.lists(NAMES, min_size=2, max_size=5).map("/".join), min_size=20, max_size=40, unique=True
    ),
)
def test_the_merged_view_is_what_umoci_unpacks_and_the_kernel_finds(
    stack: list[tuple[Item, ...]], paths: list[str]
) -> None:
    archives = [archive(items) for items in stack]
    view = MergedView([MemoryLayer(data) for data in archives])
    with tempfile.TemporaryDirectory() as temporary:
        place = Path(temporary)
        write_layout(place / "image", archives)
        umoci("raw", "unpack", "--image", f"{place}/image:t", f"{place}/root")
        assert merged(view) == unpacked(place / "root")
        compare_with_kernel(view, place / "root", paths)
    for number in range(1, len(archives)):
        lower = MergedView([MemoryLayer(data) for data in archives[:number]])
        for data in archives[number:]:
            lower = lower.over(MemoryLayer(data))
        assert merged(lower) == merged(view)
