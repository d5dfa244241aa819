"""Where the image's Python keeps its packages, and which vLLM lies there. Nothing is imported."""

import posixpath
import re
from collections.abc import Iterator

from builder.errors import IntegrityError, ProjectError
from builder.tree import Kind, View, normal
from builder.value import value

# Compiled when a layout is first looked for.
_PACKAGES = r"(?P<prefix>.+)/lib(?:64)?/python(?P<version>3(?:\.\d+)?)/(?:site|dist)-packages"
_HINT = "state it in the variant: python: {version: '3.12', packages: usr/local/lib/...}"
_LINKS = 40  # as Linux: ELOOP


@value
class PythonLayout:
    """One Python installation of an image. Paths are from the root, without a leading slash;
    ``interpreter`` is what a script's first line names, with one."""

    version: str
    """``3.12``"""
    packages: str
    """``usr/local/lib/python3.12/dist-packages``"""
    prefix: str
    """``usr/local``: what lies beside the packages (``bin``, ``include``) is below it."""
    interpreter: str
    """``/usr/bin/python3``"""

    def record(self) -> dict[str, str]:
        """The layout as canonical JSON takes it."""
        return {
            "version": self.version,
            "packages": self.packages,
            "prefix": self.prefix,
            "interpreter": self.interpreter,
        }


@value
class VllmFound:
    """The vLLM that an image holds, as it says of itself."""

    version: str
    commit: str | None
    """The git commit it was built from, abbreviated as found (9 digits or so)."""
    package: str
    """``usr/local/lib/python3.12/dist-packages/vllm``"""


def from_statement(version: str, packages: str, *, at: str) -> PythonLayout:
    """The layout that a variant states, for images where nothing can be found (``scratch``).
    ``at`` is where it does.

    Raises:
        ProjectError: Not a version, not a path inside the image, or the two disagree.
    """
    if not re.fullmatch(r"3\.\d+", version):
        raise ProjectError(f"{at}.version: expected a version like '3.12', got {version!r}")
    try:
        packages = normal(packages, at=f"{at}.packages")
    except IntegrityError as error:
        raise ProjectError(error.message) from error
    match = re.fullmatch(_PACKAGES, packages)
    if match and match["version"] not in ("3", version):
        raise ProjectError(
            f"{at}: version is {version!r}, but packages is of Python {match['version']}:"
            f" {packages!r}",
            hint="write the version that the path is of",
        )
    prefix = match["prefix"] if match else "usr/local"
    return PythonLayout(
        version=version,
        packages=packages,
        prefix=prefix,
        interpreter=f"/{_interpreters(packages, prefix, version)[0]}",
    )


def discover(view: View) -> PythonLayout:
    """The Python that has vLLM; where none has it, the only one there is.

    Looked at: ``usr/local``, ``usr``, everything in ``opt``, and environments named ``venv`` or
    ``.venv`` at most one directory deep. Two names of one directory count once.

    Raises:
        ProjectError: No such directory, or several; the message lists them.
    """
    found: dict[str, str] = {}
    for path in _candidates(view):
        found.setdefault(posixpath.dirname(view.resolve(f"{path}/x")), path)
    all_of_them = sorted(found.values())
    with_vllm = [path for path in all_of_them if _has_vllm(view, path)]
    chosen = with_vllm or all_of_them
    if len(chosen) != 1:
        what = "with vLLM in them" if with_vllm else "(none with vLLM)"
        listed = ", ".join(map(repr, chosen)) or "none"
        raise ProjectError(
            f"image: {len(chosen)} Python packages directories {what}, wanted one: {listed}",
            hint=_HINT,
        )
    return _layout(view, chosen[0])


def _candidates(view: View) -> Iterator[str]:
    prefixes = ["usr/local", "usr", *(f"opt/{name}" for name in view.children("opt"))]
    for top in ("", *(f"{name}/" for name in view.children("") if name not in ("proc", "sys"))):
        prefixes += [f"{top}.venv", f"{top}venv"]
    for prefix in dict.fromkeys(prefixes):
        for lib in (f"{prefix}/lib", f"{prefix}/lib64"):
            for name in view.children(lib):
                if not re.fullmatch(r"python3(\.\d+)?", name):
                    continue
                for leaf in ("dist-packages", "site-packages"):
                    path = f"{lib}/{name}/{leaf}"
                    entry = view.stat(path)
                    if entry is not None and entry.kind in (Kind.DIRECTORY, Kind.SYMLINK):
                        yield path


def _has_vllm(view: View, packages: str) -> bool:
    return view.stat(f"{packages}/vllm/__init__.py") is not None or any(
        project_of(name) == "vllm" for name in view.children(packages)
    )


def _layout(view: View, packages: str) -> PythonLayout:
    match = re.fullmatch(_PACKAGES, packages)
    if match is None:  # _candidates yields nothing else
        raise RuntimeError(packages)
    version, prefix = match["version"], match["prefix"]
    if version == "3":  # Debian's usr/lib/python3 serves every Python 3 of the distribution
        name = posixpath.basename(_target(view, "usr/bin/python3"))
        version = name.removeprefix("python")
        if not re.fullmatch(r"3\.\d+", version):
            raise ProjectError(
                f"image: {packages!r} does not say which Python it is of, and usr/bin/python3 leads"
                f" to {name!r}",
                hint=_HINT,
            )
    names = _interpreters(packages, prefix, version)
    fit = [
        name
        for name in names
        if view.stat(name) is not None and _fits(posixpath.basename(_target(view, name)), version)
    ]
    return PythonLayout(
        version=version,
        packages=packages,
        prefix=prefix,
        interpreter=f"/{(fit or names)[0]}",
    )


def _interpreters(packages: str, prefix: str, version: str) -> tuple[str, str]:
    # dist-packages is Debian's: its Python lives in /usr also where the packages are in /usr/local.
    home = "usr" if packages.endswith("/dist-packages") else prefix
    return f"{home}/bin/python3", f"{home}/bin/python{version}"


def _fits(name: str, version: str) -> bool:
    return name in ("python", "python3", f"python{version}")


def _target(view: View, path: str) -> str:
    """Where a chain of links ends; the last name that is no link, whether it exists or not."""
    for _ in range(_LINKS):
        entry = view.stat(path)
        if entry is None or entry.kind is not Kind.SYMLINK or entry.target is None:
            return path
        joined = posixpath.join(posixpath.dirname(view.resolve(path)), entry.target)
        path = posixpath.normpath("/" + joined).lstrip("/")
    raise IntegrityError(f"image: {path!r}: too many levels of symbolic links")


def project_of(name: str) -> str | None:
    """The normalised project name of ``NAME-VERSION.dist-info`` (or ``.egg-info``), as the
    specification of name normalisation has it; ``None`` for anything else.

    >>> project_of("Flash_Attn-2.8.1.dist-info")
    'flash-attn'
    """
    stem, dot, kind = name.rpartition(".")
    if not dot or kind not in ("dist-info", "egg-info"):
        return None
    return re.sub(r"[-_.]+", "-", stem.partition("-")[0]).lower()


def vllm_build(view: View, layout: PythonLayout) -> VllmFound | None:
    """Which vLLM is installed, by its ``METADATA`` and its ``_version.py``; ``None`` for none.

    ``METADATA`` may add to the local version (``+cu129``) what the build appends after
    ``_version.py`` was written; beyond that they must agree.

    Raises:
        IntegrityError: They disagree, or there are several ``vllm-*.dist-info``.
    """
    package = f"{layout.packages}/vllm"
    infos = [name for name in view.children(layout.packages) if project_of(name) == "vllm"]
    if len(infos) > 1:
        raise IntegrityError(f"image: {layout.packages!r}: several vLLM at once: {infos}")
    told = _lines(view, f"{layout.packages}/{infos[0]}/METADATA") if infos else ""
    own = _lines(view, f"{package}/_version.py")
    metadata = re.search(r"^Version:[ \t]*(\S+)\s*$", told.partition("\n\n")[0], re.MULTILINE)
    module = re.search(_assigned("version"), own, re.MULTILINE)
    commit_id = re.search(_assigned("commit_id"), own, re.MULTILINE)
    version = metadata[1] if metadata else module[2] if module else None
    if version is None:
        return None
    if module and not _continues(version, module[2]):
        raise IntegrityError(
            f"image: {infos[0]}/METADATA says vLLM {version!r}, {package}/_version.py says"
            f" {module[2]!r}",
            hint="the image is a mixture of two builds; choose another base",
        )
    local = re.search(r"\+(?:.*\.)?g([0-9a-f]{7,40})(?:\.|$)", version)
    commits = [text.removeprefix("g") for text in (commit_id[2] if commit_id else "",) if text]
    commits += [local[1]] if local else []
    longest = max(commits, key=len, default=None)
    if longest is not None and not all(longest.startswith(text) for text in commits):
        raise IntegrityError(
            f"image: vLLM {version!r} says it is of commit {commits[1]!r}, {package}/_version.py"
            f" says {commits[0]!r}",
            hint="the image is a mixture of two builds; choose another base",
        )
    return VllmFound(version=version, commit=longest, package=package)


def _assigned(name: str) -> str:
    """``__NAME__ = NAME = 'text'``, as setuptools-scm and vcs-versioning write it."""
    return rf"^(?:__{name}__ *= *)?{name} *= *(['\"])([^'\"\\]*)\1[ \t]*$"


def _continues(version: str, start: str) -> bool:
    return version == start or version.startswith(f"{start}{'.' if '+' in start else '+'}")


def _lines(view: View, path: str) -> str:
    entry = view.stat(path)
    if entry is None or not entry.is_file:
        return ""
    return view.read(path).decode("utf-8", "replace").replace("\r\n", "\n")
