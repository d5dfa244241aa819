"""Which Python and which vLLM an image has."""

import pytest

from builder.errors import IntegrityError, ProjectError
from builder.python_layout import (
    PythonLayout,
    VllmFound,
    discover,
    from_statement,
    project_of,
    vllm_build,
)
from tests.wheel.views import Image, Link

DIST = "usr/local/lib/python3.12/dist-packages"
SITE = "usr/local/lib/python3.12/site-packages"
BOTH = f"{DIST!r}, {SITE!r}"
LAYOUT = PythonLayout(
    version="3.12", packages=DIST, prefix="usr/local", interpreter="/usr/bin/python3"
)
INFO = "vllm-0.22.0.dist-info/METADATA"

Files = dict[str, bytes | Link | None]


@pytest.mark.parametrize(
    "files, packages, prefix, version, interpreter",
    [
        pytest.param(
            {f"{DIST}/{INFO}": b"", "usr/lib/python3/dist-packages": None,
             "usr/bin/python3": Link("python3.12"), "usr/bin/python3.12": b""},
            DIST, "usr/local", "3.12", "/usr/bin/python3",
            id="Debian's Python, pip's directory",
        ),
        pytest.param(
            {f"{DIST}/vllm/__init__.py": b"", "usr/bin/python3": Link("/etc/alternatives/python3"),
             "etc/alternatives/python3": Link("/usr/bin/python3.10"), "usr/bin/python3.10": b"",
             "usr/bin/python3.12": b""},
            DIST, "usr/local", "3.12", "/usr/bin/python3.12",
            id="an older python3 beside it",
        ),
        pytest.param(
            {f"{SITE}/{INFO}": b"", "usr/local/bin/python3": Link("python3.12"),
             "usr/lib/python3.11/dist-packages": None},
            SITE, "usr/local", "3.12", "/usr/local/bin/python3",
            id="Python's own image",
        ),
        pytest.param(
            {f"opt/venv/lib/python3.11/site-packages/{INFO}": b"", DIST: None,
             "opt/venv/lib64": Link("lib"), "opt/venv/bin/python3": Link("/usr/bin/python3"),
             "usr/bin/python3": Link("python3.11")},
            "opt/venv/lib/python3.11/site-packages", "opt/venv", "3.11", "/opt/venv/bin/python3",
            id="an environment in opt, its lib64 a link",
        ),
        pytest.param(
            {f"app/.venv/lib/python3.12/site-packages/{INFO}": b""},
            "app/.venv/lib/python3.12/site-packages", "app/.venv", "3.12",
            "/app/.venv/bin/python3",
            id="an environment beside the application",
        ),
        pytest.param(
            {"usr/lib/python3/dist-packages/vllm/__init__.py": b"",
             "usr/bin/python3": Link("python3.12")},
            "usr/lib/python3/dist-packages", "usr", "3.12", "/usr/bin/python3",
            id="a Debian package",
        ),
        pytest.param(
            {SITE: None}, SITE, "usr/local", "3.12", "/usr/local/bin/python3",
            id="no vLLM, one Python",
        ),
    ],
)  # fmt: skip
def test_the_packages_directory_is_found(
    files: Files, packages: str, prefix: str, version: str, interpreter: str
) -> None:
    assert discover(Image(files)) == PythonLayout(
        version=version, packages=packages, prefix=prefix, interpreter=interpreter
    )


@pytest.mark.parametrize(
    "files, message",
    [
        pytest.param(
            {f"{DIST}/{INFO}": b"", f"{SITE}/{INFO}": b""},
            f"image: 2 Python packages directories with vLLM in them, wanted one: {BOTH}",
            id="two with vLLM",
        ),
        pytest.param(
            {DIST: None, SITE: None},
            f"image: 2 Python packages directories (none with vLLM), wanted one: {BOTH}",
            id="two without",
        ),
        pytest.param(
            {"vllm/__init__.py": b"", "etc/passwd": b""},
            "image: 0 Python packages directories (none with vLLM), wanted one: none",
            id="none",
        ),
        pytest.param(
            {f"usr/lib/python3/dist-packages/{INFO}": b"", "usr/bin/python3": b""},
            "image: 'usr/lib/python3/dist-packages' does not say which Python it is of, and"
            " usr/bin/python3 leads to 'python3'",
            id="an unknown version",
        ),
    ],
)  # fmt: skip
def test_what_is_not_clear_is_asked_for(files: Files, message: str) -> None:
    with pytest.raises(ProjectError) as caught:
        discover(Image(files))
    assert caught.value.message == message
    assert caught.value.hint is not None
    assert "python:" in caught.value.hint


def test_a_loop_of_links_is_refused() -> None:
    loop = Image({f"{DIST}/{INFO}": b"", "usr/bin/python3": Link("python3")})
    with pytest.raises(IntegrityError, match="too many levels of symbolic links"):
        discover(loop)


@pytest.mark.parametrize(
    "packages, prefix, interpreter",
    [
        (f"/{DIST}/", "usr/local", "/usr/bin/python3"),
        (SITE, "usr/local", "/usr/local/bin/python3"),
        ("opt/venv/lib/python3.12/site-packages", "opt/venv", "/opt/venv/bin/python3"),
        ("app/packages", "usr/local", "/usr/local/bin/python3"),
    ],
)
def test_a_stated_python_is_taken(packages: str, prefix: str, interpreter: str) -> None:
    assert from_statement("3.12", packages, at="v.yaml:1: python") == PythonLayout(
        version="3.12", packages=packages.strip("/"), prefix=prefix, interpreter=interpreter
    )


@pytest.mark.parametrize(
    "version, packages, message",
    [
        ("3", DIST, "v.yaml:1: python.version: expected a version like '3.12', got '3'"),
        (
            "3.11",
            DIST,
            "v.yaml:1: python: version is '3.11', but packages is of Python 3.12: " + repr(DIST),
        ),
        ("3.12", "../x", "v.yaml:1: python.packages: a path that leaves the image: '../x'"),
    ],
)
def test_a_statement_that_cannot_be_is_refused(version: str, packages: str, message: str) -> None:
    with pytest.raises(ProjectError) as caught:
        from_statement(version, packages, at="v.yaml:1: python")
    assert caught.value.message == message


@pytest.mark.parametrize(
    "name, project",
    [
        ("vllm-0.22.0.dist-info", "vllm"),
        ("Flash_Attn.x-2.8.dist-info", "flash-attn-x"),
        ("old-1.egg-info", "old"),
        ("vllm", None),
        ("vllm.py", None),
    ],
)
def test_a_project_is_known_by_its_dist_info(name: str, project: str | None) -> None:
    assert project_of(name) == project


def image(metadata: str | None, module: bytes | None) -> Image:
    files: Files = {f"{DIST}/vllm/__init__.py": b""}
    if metadata is not None:
        files[f"{DIST}/vllm-{metadata}.dist-info/METADATA"] = (
            f"Metadata-Version: 2.4\r\nName: vllm\r\nVersion: {metadata}\r\n\r\nVersion: 9\r\n"
        ).encode()
    if module is not None:
        files[f"{DIST}/vllm/_version.py"] = module
    return Image(files)


def module(version: str, commit: str | None = None) -> bytes:
    """As the generators of setuptools-scm and vcs-versioning write it."""
    text = f"TYPE_CHECKING = False\nversion: str\n__version__ = version = '{version}'\n"
    text += "__version_tuple__ = version_tuple = (0, 20, 2)\n"
    return (text + (f"\n__commit_id__ = commit_id = '{commit}'\n" if commit else "")).encode()


MODULE = f"{DIST}/vllm/_version.py"
NIGHTLY = "0.20.2rc1.dev9+g01d4d1ad3"


@pytest.mark.parametrize(
    "metadata, text, version, commit",
    [
        pytest.param("0.22.0", module("0.22.0", "g0b3ba88f1"), "0.22.0", "0b3ba88f1", id="release"),
        pytest.param(NIGHTLY, module(NIGHTLY), NIGHTLY, "01d4d1ad3", id="nightly"),
        pytest.param(f"{NIGHTLY}.cu129", module(NIGHTLY, "g01d4d1ad375"), f"{NIGHTLY}.cu129",
                     "01d4d1ad375", id="a CUDA suffix added after the module was written"),
        pytest.param("0.22.0+cu129", module("0.22.0"), "0.22.0+cu129", None, id="release for CUDA"),
        pytest.param("0.22.0", None, "0.22.0", None, id="no module"),
        pytest.param(None, module(NIGHTLY), NIGHTLY, "01d4d1ad3", id="no metadata"),
        pytest.param("0.22.0", b"version = compute()\n", "0.22.0", None, id="code is not run"),
    ],
)  # fmt: skip
def test_the_build_of_vllm_is_read(
    metadata: str | None, text: bytes | None, version: str, commit: str | None
) -> None:
    assert vllm_build(image(metadata, text), LAYOUT) == VllmFound(
        version=version, commit=commit, package=f"{DIST}/vllm"
    )


def test_an_image_without_vllm_has_no_build() -> None:
    assert vllm_build(Image({f"{DIST}/other.py": b""}), LAYOUT) is None


@pytest.mark.parametrize(
    "metadata, text, message",
    [
        pytest.param(
            "0.22.0", module("0.21.0"),
            f"image: vllm-0.22.0.dist-info/METADATA says vLLM '0.22.0', {MODULE} says '0.21.0'",
            id="versions",
        ),
        pytest.param(
            NIGHTLY, module(NIGHTLY, "gffffffff"),
            f"image: vLLM '{NIGHTLY}' says it is of commit '01d4d1ad3', {MODULE} says 'ffffffff'",
            id="commits",
        ),
    ],
)  # fmt: skip
def test_a_mixture_of_two_builds_is_refused(metadata: str, text: bytes, message: str) -> None:
    with pytest.raises(IntegrityError) as caught:
        vllm_build(image(metadata, text), LAYOUT)
    assert caught.value.message == message


def test_two_installations_at_once_are_refused() -> None:
    both = Image({f"{DIST}/vllm-{version}.dist-info/METADATA": b"" for version in ("1", "2")})
    with pytest.raises(IntegrityError, match="several vLLM at once"):
        vllm_build(both, LAYOUT)
