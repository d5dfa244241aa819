"""From a wheel to the changes of an image."""

import stat
import subprocess
import sys
import tempfile
import warnings
import zipfile
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builder import record
from builder.changes import Change, Put
from builder.digest import Digest
from builder.errors import BuilderError, IntegrityError, PatchError, ProjectError
from builder.oci import Platform
from builder.python_layout import PythonLayout
from builder.tree import View
from builder.verdict import Verdict
from builder.wheel import install
from tests.wheel.views import Image
from tests.wheel.wheels import FILENAME, INFO, METADATA, WHEEL, Files, archive, row, wheel

PACKAGES = "usr/local/lib/python3.12/dist-packages"
PYTHON = PythonLayout(
    version="3.12", packages=PACKAGES, prefix="usr/local", interpreter="/usr/bin/python3"
)
AMD64 = Platform("linux", "amd64")
ARM64 = Platform("linux", "arm64", "v8")
EMPTY = Image({})
ENTRY_POINTS = b"""\
[console_scripts]
demo = demo.cli:App.main
[gui_scripts]
Demo-UI=demo:ui [gui]
[vllm.general_plugins]
x = demo:register
"""


def installed(
    data: bytes | Path, *, filename: str = FILENAME, view: View = EMPTY, platform: Platform = AMD64
) -> dict[str, tuple[int | None, bytes]]:
    """Path to mode and bytes, the sizes and digests checked on the way."""
    changes = install(data, filename=filename, python=PYTHON, platform=platform, view=view)
    assert [change.path for change in changes] == sorted(change.path for change in changes)
    return {change.path: (_put(change).mode, _bytes(change)) for change in changes}


def _put(change: Change) -> Put:
    assert isinstance(change, Put)
    return change


def _bytes(change: Change) -> bytes:
    content = _put(change).content
    with content.open() as stream:
        data = stream.read()
    assert (content.size, content.digest) == (len(data), Digest.of(data))
    return data


def test_a_wheel_becomes_files_with_a_record_of_all_of_them() -> None:
    data = wheel(
        {
            "demo/__init__.py": b"x = 1\n",
            "demo/run": (b"#!/bin/sh\n", 0o775),
            "demo/E=256,N=512.json": b"{}",
            "demo-1.0.data/purelib/more.py": b"",
            "demo-1.0.data/platlib/lib.so": (b"\x7fELF", 0o600),
            "demo-1.0.data/scripts/tool": b"#!pythonw -E\nimport demo\n",
            "demo-1.0.data/scripts/binary": b"\x7fELF",
            "demo-1.0.data/headers/demo.h": b"#pragma once\n",
            "demo-1.0.data/data/share/demo/x.jinja": b"{{ x }}",
            f"{INFO}/entry_points.txt": ENTRY_POINTS,
            f"{INFO}/INSTALLER": b"someone\n",
            f"{INFO}/REQUESTED": b"",
            f"{INFO}/direct_url.json": b"{}",
        }
    )
    found = installed(data)
    rows = found.pop(f"{PACKAGES}/{INFO}/RECORD")
    script = (
        b"#!/usr/bin/python3\nimport sys\n\nfrom demo.cli import App\n\n"
        b'if __name__ == "__main__":\n    sys.exit(App.main())\n'
    )
    assert found == {
        f"{PACKAGES}/demo/__init__.py": (0o644, b"x = 1\n"),
        f"{PACKAGES}/demo/run": (0o755, b"#!/bin/sh\n"),
        f"{PACKAGES}/demo/E=256,N=512.json": (0o644, b"{}"),
        f"{PACKAGES}/more.py": (0o644, b""),
        f"{PACKAGES}/lib.so": (0o644, b"\x7fELF"),
        "usr/local/bin/tool": (0o755, b"#!/usr/bin/python3\nimport demo\n"),
        "usr/local/bin/binary": (0o755, b"\x7fELF"),
        "usr/local/include/python3.12/demo/demo.h": (0o644, b"#pragma once\n"),
        "usr/local/share/demo/x.jinja": (0o644, b"{{ x }}"),
        "usr/local/bin/demo": (0o755, script),
        "usr/local/bin/Demo-UI": (
            0o755,
            script.replace(b"demo.cli", b"demo").replace(b"App.main", b"ui").replace(b"App", b"ui"),
        ),
        f"{PACKAGES}/{INFO}/METADATA": (0o644, METADATA),
        f"{PACKAGES}/{INFO}/WHEEL": (0o644, WHEEL),
        f"{PACKAGES}/{INFO}/entry_points.txt": (0o644, ENTRY_POINTS),
        f"{PACKAGES}/{INFO}/INSTALLER": (0o644, b"builder\n"),
    }
    assert rows[0] == 0o644
    lines = rows[1].decode().splitlines()
    assert lines[0].startswith("../../../bin/Demo-UI,sha256=")
    assert f"{INFO}/RECORD,," in lines
    assert any(line.startswith('"demo/E=256,N=512.json",sha256=') for line in lines)
    named = {item.path for item in record.parse(rows[1], at="RECORD")}
    assert len(named) == len(found) + 1


def test_pip_agrees_on_the_installed_files(tmp_path: Path) -> None:
    """The oracle: the same files, the same rows, but for INSTALLER, scripts and bytecode."""
    data = wheel(
        {
            "demo/__init__.py": b"x = 1\n",
            "demo/a,b.json": b"{}",
            "demo-1.0.data/purelib/more.py": b"",
            "demo-1.0.data/data/share/x": b"1",
        }
    )
    (tmp_path / FILENAME).write_bytes(data)
    target = tmp_path / "target"
    subprocess.run(
        (
            *(sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--no-compile"),
            *("--prefix", str(target), "--ignore-installed", "--quiet"),
            *("--disable-pip-version-check", "--root-user-action=ignore"),
            str(tmp_path / FILENAME),
        ),
        check=True,
    )
    (info,) = target.rglob("*.dist-info")
    theirs = {item.path: item for item in record.parse((info / "RECORD").read_bytes(), at="pip")}
    ours = installed(data)
    own = {
        item.path: item for item in record.parse(ours[f"{PACKAGES}/{INFO}/RECORD"][1], at="ours")
    }
    # pip records the data scheme where the interpreter's own prefix has it; only RECORD differs.
    skip = {f"{INFO}/INSTALLER", f"{INFO}/REQUESTED", f"{INFO}/direct_url.json"}
    assert {p: i for p, i in own.items() if p not in skip} == {
        p: i for p, i in theirs.items() if p not in skip
    }


def test_contents_stream_from_a_file_without_being_held(tmp_path: Path) -> None:
    path = tmp_path / FILENAME
    path.write_bytes(wheel({"demo/big.bin": bytes(range(256)) * 8192}))
    changes = install(path, filename=FILENAME, python=PYTHON, platform=AMD64, view=EMPTY)
    big = next(_put(change).content for change in changes if change.path.endswith("big.bin"))
    with big.open() as one, big.open() as other:
        assert one.read(512) == other.read(512) == bytes(range(256)) * 2
    assert big.size == 2 << 20


@pytest.mark.parametrize(
    "filename, platform",
    [
        ("demo-1.0-cp312-cp312-manylinux_2_28_x86_64.whl", AMD64),
        ("demo-1.0-cp312-cp312-manylinux_2_17_aarch64.manylinux2014_aarch64.whl", ARM64),
        ("demo-1.0-cp38-abi3-manylinux_2_28_x86_64.whl", AMD64),
        ("demo-1.0-cp312-cp312-linux_x86_64.whl", AMD64),
        ("demo-1.0-1build-py2.py3-none-any.whl", AMD64),
        ("demo-1.0-cp312-none-any.whl", AMD64),
        ("Demo-1.0.0-py3-none-any.whl", AMD64),
    ],
)  # fmt: skip
def test_a_wheel_whose_tags_fit_is_taken(filename: str, platform: Platform) -> None:
    assert installed(wheel({"demo.py": b""}), filename=filename, platform=platform)


@pytest.mark.parametrize(
    "tag",
    [
        "cp311-cp311-manylinux_2_28_x86_64",
        "cp313-abi3-manylinux_2_28_x86_64",
        "cp312-cp312-manylinux_2_28_aarch64",
        "cp312-cp312-musllinux_1_2_x86_64",
        "cp312-cp312t-manylinux_2_28_x86_64",
        "cp312-cp312-win_amd64",
        "py313-none-any",
    ],
)
def test_a_wheel_whose_tags_do_not_fit_is_refused(tag: str) -> None:
    with pytest.raises(PatchError) as caught:
        installed(wheel({"demo.py": b""}), filename=f"demo-1.0-{tag}.whl")
    assert caught.value.verdict == Verdict.REFUSED
    assert caught.value.message == (
        f"demo-1.0-{tag}.whl: tags {tag} do not fit Python 3.12 on linux/amd64, which takes"
        " cp312-cp312-manylinux_2_28_x86_64, cp38-abi3-manylinux_2_28_x86_64, py3-none-any and the"
        " like"
    )


def test_a_platform_without_wheels_is_an_error_of_the_project() -> None:
    with pytest.raises(ProjectError) as caught:
        installed(wheel({"demo.py": b""}), platform=Platform("windows", "amd64"))
    assert caught.value.message.startswith("no wheels for platform 'windows/amd64', wanted one of")


GOOD = row(f"{INFO}/METADATA", METADATA) + row(f"{INFO}/WHEEL", WHEEL)
OWN = f"{INFO}/RECORD,,\n".encode()
WEAK = f"{INFO}/METADATA,md5=AAAA,{len(METADATA)}\n".encode()


@pytest.mark.parametrize(
    "data, message",
    [
        pytest.param(
            wheel({"demo.py": b"x"}, record=GOOD + OWN),
            f"{FILENAME}: RECORD does not list 'demo.py' (1 in all)",
            id="a file that RECORD does not list",
        ),
        pytest.param(
            wheel({}, extra=row("gone.py", b"")),
            f"{FILENAME}: has no 'gone.py', which RECORD lists (1)",
            id="a file that the archive lacks",
        ),
        pytest.param(
            wheel({"demo.py": b"x"}, record=GOOD + row("demo.py", b"y") + OWN),
            f"{FILENAME}: 'demo.py': RECORD says {Digest.of(b'y')} (1 bytes), got"
            f" {Digest.of(b'x')} (1 bytes)",
            id="another content",
        ),
        pytest.param(
            wheel({"demo.py": b"x"}, record=GOOD + OWN + b"demo.py,,\n"),
            f"{FILENAME}: 'demo.py': RECORD has no hash or no size for it",
            id="no hash",
        ),
        pytest.param(
            wheel({}, record=WEAK + row(f"{INFO}/WHEEL", WHEEL) + OWN),
            f"{FILENAME}: {INFO}/RECORD:1: '{INFO}/METADATA': hash: expected sha256, got"
            " 'md5=AAAA'",
            id="a weak hash",
        ),
        pytest.param(
            wheel({}, extra=row(f"{INFO}/WHEEL", WHEEL)),
            f"{FILENAME}: {INFO}/RECORD: '{INFO}/WHEEL' stands there twice",
            id="two rows for one file",
        ),
        pytest.param(
            wheel({}, extra=b"one,two\n"),
            f"{FILENAME}: {INFO}/RECORD:4: expected path,hash,size, got 'one,two'",
            id="a row of two fields",
        ),
        pytest.param(
            archive([(f"{INFO}/METADATA", METADATA)]),
            f"{FILENAME}: has no '{INFO}/RECORD'",
            id="no RECORD",
        ),
        pytest.param(
            archive([("demo.py", b"")]),
            f"{FILENAME}: expected one .dist-info directory, got []",
            id="no dist-info",
        ),
        pytest.param(
            archive([("other-1.0.dist-info/RECORD", b"")]),
            f"{FILENAME}: the .dist-info is of another wheel: 'other-1.0.dist-info'",
            id="the dist-info of another project",
        ),
        pytest.param(
            wheel({f"{INFO}/METADATA": METADATA.replace(b"1.0", b"1.1")}),
            f"{FILENAME}: {INFO}/METADATA: Version is '1.1', wanted '1.0'",
            id="the metadata of another version",
        ),
        pytest.param(
            wheel({f"{INFO}/WHEEL": b"Wheel-Version: 2.0\n"}),
            f"{FILENAME}: {INFO}/WHEEL: Wheel-Version is '2.0', wanted 1.x",
            id="a wheel of the future",
        ),
        pytest.param(
            wheel({"../evil.py": b""}),
            f"{FILENAME}: '../evil.py': not a plain relative path",
            id="a path that leaves",
        ),
        pytest.param(
            wheel({"/etc/passwd": b""}),
            f"{FILENAME}: '/etc/passwd': not a plain relative path",
            id="an absolute path",
        ),
        pytest.param(
            wheel({"demo-1.0.data/data/../../../etc/x": b""}),
            f"{FILENAME}: 'demo-1.0.data/data/../../../etc/x': not a plain relative path",
            id="a data path that leaves",
        ),
        pytest.param(
            wheel({"a\\..\\b": b""}),
            f"{FILENAME}: 'a\\\\..\\\\b': not a plain relative path",
            id="backslashes",
        ),
        pytest.param(
            wheel({"link": (b"/etc/passwd", stat.S_IFLNK | 0o777)}),
            f"{FILENAME}: 'link': is neither a file nor a directory (mode 120000)",
            id="a symbolic link",
        ),
        pytest.param(
            wheel({"demo.py": b"x"}, method=zipfile.ZIP_BZIP2),
            f"{FILENAME}: '{INFO}/METADATA': compression 12, wanted 0 or 8",
            id="an odd compression",
        ),
        pytest.param(
            wheel({"demo-1.0.data/etc/x": b""}),
            f"{FILENAME}: 'demo-1.0.data/etc/x': no such scheme, wanted one of ['data', 'headers',"
            " 'platlib', 'purelib', 'scripts']",
            id="an unknown scheme",
        ),
        pytest.param(
            wheel({"other-1.0.data/data/x": b""}),
            f"{FILENAME}: 'other-1.0.data/data/x': wanted 'demo-1.0.data' for its data",
            id="data of another name",
        ),
        pytest.param(
            wheel({"demo.py": b"", "demo-1.0.data/purelib/demo.py": b""}),
            f"{FILENAME}: 'demo.py': two members for '{PACKAGES}/demo.py'",
            id="two members for one file",
        ),
        pytest.param(
            wheel({"demo": b"", "demo/x.py": b""}),
            f"{FILENAME}: '{PACKAGES}/demo' is both a file and a directory",
            id="a file below a file",
        ),
        pytest.param(
            wheel({f"{INFO}/entry_points.txt": b"[console_scripts]\n../x = a:b\n"}),
            f"{FILENAME}: entry_points.txt: console_scripts: not an entry point: ../x = a:b",
            id="a script that leaves",
        ),
        pytest.param(
            wheel({f"{INFO}/entry_points.txt": b"[console_scripts]\nx = a:b; c\n"}),
            f"{FILENAME}: entry_points.txt: console_scripts: not an entry point: x = a:b; c",
            id="code in an entry point",
        ),
        pytest.param(
            wheel({f"{INFO}/entry_points.txt": b"[console_scripts]\npython3 = a:b\n"}),
            f"{FILENAME}: 'usr/local/bin/python3' would be found for the image's Python",
            id="an entry point called Python",
        ),
        pytest.param(
            wheel({"demo-1.0.data/scripts/python3.12": b"#!python\n"}),
            f"{FILENAME}: 'usr/local/bin/python3.12' would be found for the image's Python",
            id="a script called Python",
        ),
        pytest.param(
            wheel({"demo-1.0.data/data/bin/python": b""}),
            f"{FILENAME}: 'usr/local/bin/python' would be found for the image's Python",
            id="data called Python",
        ),
    ],
)  # fmt: skip
def test_an_unsound_wheel_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(IntegrityError) as caught:
        installed(data)
    assert caught.value.message == message


def test_a_bomb_is_refused_before_it_is_unpacked() -> None:
    data = wheel({"zeros": bytes(4 << 20)})
    with zipfile.ZipFile(BytesIO(data)) as file:
        packed = file.getinfo("zeros").compress_size
    with pytest.raises(IntegrityError) as caught:
        installed(data)
    assert caught.value.message == (
        f"{FILENAME}: 'zeros': 4194304 bytes packed into {packed}, the limit is 250 times"
    )


def test_a_name_that_goes_on_behind_a_nul_is_refused() -> None:
    """The library cuts it off there; others may not."""
    data = wheel({"demo.py": b"x", "demo_py": b"x"}).replace(b"demo_py", b"demo\0py")
    with pytest.raises(IntegrityError) as caught:
        installed(data)
    assert caught.value.message == f"{FILENAME}: 'demo': spelt 'demo\\x00py' in the archive"


def test_two_members_of_one_name_are_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        data = archive([(f"{INFO}/RECORD", b""), ("a.py", b"1"), ("a.py", b"2")])
    with pytest.raises(IntegrityError, match=r"'a\.py': stands there twice"):
        installed(data)


@pytest.mark.parametrize("data", [b"", b"PK\3\4 not a zip", wheel({"a": b"x" * 99})[:-60]])
def test_what_is_no_zip_is_refused(data: bytes) -> None:
    with pytest.raises(IntegrityError, match="not a sound zip file: File is not a zip file"):
        installed(data)


@given(st.data())
@settings(max_examples=60)
def test_a_damaged_wheel_is_never_a_crash(data: st.DataObject) -> None:
    """One byte changed: the same files, or a refusal of ours."""
    sound = wheel({"demo/__init__.py": b"x = 1\n" * 20})
    at = data.draw(st.integers(0, len(sound) - 1))
    broken = bytearray(sound)
    broken[at] ^= data.draw(st.integers(1, 255))
    try:
        files = installed(bytes(broken))
    except BuilderError:
        return
    assert {path: body for path, (_, body) in files.items()} == {
        path: body for path, (_, body) in installed(sound).items()
    }


@pytest.mark.parametrize("path", ["demo/x.pyc", "demo/__pycache__/x.cpython-312.pyc"])
def test_bytecode_in_a_wheel_is_refused(path: str) -> None:
    with pytest.raises(PatchError) as caught:
        installed(wheel({path: b""}))
    assert caught.value.message == f"{FILENAME}: {path!r}: bytecode in a wheel"
    assert caught.value.verdict == Verdict.REFUSED


def test_the_same_wheel_again_is_already_upstream_whoever_installed_it() -> None:
    files: Files = {"demo/__init__.py": b"x = 1\n", f"{INFO}/entry_points.txt": b""}
    there = {path: data for path, (_, data) in installed(wheel(files)).items()}
    there[f"{PACKAGES}/{INFO}/INSTALLER"] = b"pip\n"
    with pytest.raises(PatchError) as caught:
        installed(wheel(files), view=Image(there))
    assert caught.value.verdict == Verdict.ALREADY_UPSTREAM
    assert (
        caught.value.message == f"{FILENAME}: demo 1.0 is in the image already, with the same bytes"
    )


@pytest.mark.parametrize(
    "there",
    [
        {f"{PACKAGES}/{INFO}/METADATA": b"", f"{PACKAGES}/demo.py": b"y"},
        {f"{PACKAGES}/{INFO}/METADATA": b""},
        {f"{PACKAGES}/Demo-0.9.dist-info/METADATA": b""},
    ],
    ids=["patched", "half there", "another version"],
)
def test_a_project_that_is_installed_is_not_replaced(there: dict[str, bytes]) -> None:
    info = next(path for path in there if "dist-info" in path).split("/")[-2]
    with pytest.raises(PatchError) as caught:
        installed(wheel({"demo.py": b"x"}), view=Image(there))
    assert caught.value.verdict == Verdict.REFUSED
    assert caught.value.message == f"{FILENAME}: demo is installed already: {info!r}"


@pytest.mark.parametrize(
    "obstacle", [f"{PACKAGES}/ns/__init__.py", f"{PACKAGES}/ns", "usr/local/bin/tool"]
)
def test_a_file_that_is_in_the_way_is_not_replaced(obstacle: str) -> None:
    data = wheel({"ns/__init__.py": b"", "demo-1.0.data/scripts/tool": b""})
    with pytest.raises(PatchError) as caught:
        installed(data, view=Image({obstacle: b""}))
    assert (
        caught.value.message == f"{FILENAME}: {obstacle!r} exists in the image and is not of demo"
    )
    assert caught.value.path == obstacle


@pytest.mark.parametrize("name", ["demo.zip", f"demo-{5000 * '1'}-py3-none-any.whl"])
def test_a_name_that_is_no_wheel_is_an_error_of_the_project(name: str) -> None:
    with tempfile.TemporaryDirectory() as directory, pytest.raises(ProjectError) as caught:
        installed(Path(directory) / "x", filename=name)
    assert caught.value.message.startswith(f"{name!r:.200}: not the file name of a wheel: ")
