"""No old code may run: what Python would load in place of a changed module.

Python looks for module ``m`` in a directory in this order (``importlib``'s FileFinder): a package
``m/`` with an ``__init__``, an extension module ``m.*.so``, the source ``m.py`` (through a compiled
file in ``__pycache__`` that may claim to be unchanged), a compiled ``m.pyc`` without source.

A compiled file is trusted by whole-second mtime and size, by a hash, or not checked at all. Ours
have a fixed mtime, so an edit that keeps the size would be invisible: every compiled file of a
changed source goes, whatever its kind.
"""

import posixpath
from collections.abc import Iterable, Iterator

from builder.errors import PatchError, ProjectError
from builder.tree import Kind, View, normal
from builder.verdict import Verdict

_CACHED = (".pyc", ".pyo", ".nbi", ".nbc")
"""What a cache holds for one source: compiled files, and numba's index and data (``cache=True``),
which numba trusts by mtime and size as well."""


def stale_bytecode(
    changed: Iterable[str], view: View, *, prefixes: tuple[str, ...] = ()
) -> tuple[str, ...]:
    """The compiled files of the parent tree that could be loaded for a source that changes.

    Args:
        changed: Every path that the step writes or removes. Of the ``*.py`` among them the
            compiled files are looked for; none that is itself in ``changed`` is returned.
        view: The parent tree.
        prefixes: Values of ``PYTHONPYCACHEPREFIX`` that the image runs with. A prefix files a
            source under the path by which Python found it: the one in ``changed`` and the
            resolved one are looked at.

    Returns:
        Resolved paths, sorted, of files and links; to be removed in the same layer.

    Raises:
        ProjectError: A prefix that is not an absolute path.
        IntegrityError: A prefix that leaves the image or names no directory below its root.
    """
    spelled = tuple(changed)
    own = {view.resolve(path) for path in spelled}
    found: set[str] = set()
    for path in sorted({*spelled, *own}):
        directory, stem = _module(path)
        if not stem:
            continue
        for cache in (_beneath(directory, "__pycache__"), *_prefixed(directory, prefixes)):
            # Any tag: another interpreter's, an optimised one's (".opt-1"), pytest's. The file of a
            # neighbour "m.x.py" matches, too; losing it costs one compilation.
            compiled = _children(cache, view, prefix=f"{stem}.")
            found.update(file for file, name in compiled if name.endswith(_CACHED))
        legacy = (f"{stem}.pyc", f"{stem}.pyo")
        beside = _children(directory, view, prefix=f"{stem}.")
        found.update(file for file, name in beside if name in legacy)
    return tuple(sorted(file for file in found - own if _is_removable(file, view)))


def refuse_shadows(
    written: Iterable[str], view: View, *, removed: Iterable[str] = (), at: str = "layer"
) -> None:
    """Make sure that each written ``m.py`` is what ``import m`` loads.

    What stands in its way in the parent tree is fine when the same step writes or removes it. A
    compiled module that remains where the source is removed is fine, too.

    Raises:
        PatchError: ``refused``: an extension module or a package has precedence.
    """
    sources = {view.resolve(path) for path in written}
    touched = sources | {view.resolve(path) for path in removed}
    for path in sorted(sources):
        for shadow in _shadows(path, view):
            # What is compiled from an __init__.py that the step touches goes with it.
            origin = shadow.removesuffix("c") if shadow.endswith(".pyc") else shadow
            if not touched & {shadow, origin}:
                raise PatchError(
                    f"{at}: {path!r} would never be imported, {shadow!r} comes before it",
                    verdict=Verdict.REFUSED,
                    path=path,
                    hint=f"change or remove {shadow!r} in the same step, or leave {path!r} alone",
                )


def _shadows(path: str, view: View) -> Iterator[str]:
    """What Python prefers to the source at ``path``."""
    directory, stem = _module(path)
    if not stem:
        return
    if stem != "__init__":
        for found, name in _children(_beneath(directory, stem), view, prefix="__init__."):
            if name in ("__init__.py", "__init__.pyc") or _is_extension(name, "__init__"):
                yield found
    for found, name in _children(directory, view, prefix=f"{stem}."):
        if _is_extension(name, stem):
            yield found


def _module(path: str) -> tuple[str, str]:
    """The directory and the name of a source file; no name where it is not one."""
    directory, name = posixpath.split(path)
    return directory, name.removesuffix(".py") if name.endswith(".py") else ""


def _is_extension(name: str, stem: str) -> bool:
    """``m.so``, ``m.abi3.so``, ``m.cpython-312-x86_64-linux-gnu.so``: no ABI tag has a dot."""
    dots = name.count(".", len(stem))
    return name.startswith(f"{stem}.") and name.endswith(".so") and dots <= 2


def _prefixed(directory: str, prefixes: tuple[str, ...]) -> Iterator[str]:
    for prefix in prefixes:
        if not prefix.startswith("/"):
            raise ProjectError(
                f"PYTHONPYCACHEPREFIX: expected an absolute path, got {prefix!r}",
                hint="where a relative one leads depends on the directory a process starts in",
            )
        yield _beneath(normal(prefix, at="PYTHONPYCACHEPREFIX"), directory)


def _beneath(directory: str, name: str) -> str:
    return posixpath.join(directory, name) if name else directory


def _children(directory: str, view: View, *, prefix: str) -> Iterator[tuple[str, str]]:
    """The resolved path and the name of what starts with ``prefix`` in a directory, which may be a
    link to one. No more is asked for, so that a new neighbour upstream does not matter."""
    real = posixpath.dirname(view.resolve(_beneath(directory, "_")))
    for name in view.children(real, prefix=prefix):
        yield _beneath(real, name), name


def _is_removable(path: str, view: View) -> bool:
    entry = view.stat(path)
    return entry is not None and entry.kind in (Kind.FILE, Kind.SYMLINK)
