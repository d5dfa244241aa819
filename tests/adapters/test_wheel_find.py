"""What pip would take, from an index on loopback."""

import importlib.util
import json
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from packaging.tags import Tag

from builder.adapters import wheel_index, wheelhouse
from builder.adapters.wheel_index import Offer
from builder.adapters.wheel_target import target_of, usual
from builder.adapters.wheelhouse import Wheelhouse
from builder.digest import Digest
from builder.errors import (
    AuthError,
    BuilderError,
    EnvironmentFault,
    GoneError,
    IntegrityError,
    NetworkError,
    OfflineError,
    ProjectError,
)
from builder.upstream import FoundWheel
from builder.wheel_archive import WheelName
from tests.standin.index import StandInIndex, stand_in_index
from tests.wheel.wheels import FILENAME, archive

ANY = "py3-none-any"
LINUX = "cp312-cp312-manylinux_2_28_x86_64"


def demo(version: str, text: bytes = b"") -> bytes:
    """A wheel of ``demo``, as far as pip looks into one."""
    info = f"demo-{version}.dist-info"
    metadata = f"Metadata-Version: 2.1\nName: demo\nVersion: {version}\n".encode()
    tags = b"Wheel-Version: 1.0\nGenerator: t\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    files = {"METADATA": metadata, "WHEEL": tags, "RECORD": b""}
    return archive([("demo.py", text), *((f"{info}/{name}", data) for name, data in files.items())])


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInIndex]:
    """What the user's pip asks, and nothing else."""
    if importlib.util.find_spec("pip") is None:
        pytest.fail("these tests need pip beside pytest: python -m ensurepip")
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)  # the environment goes before the file
    monkeypatch.setenv("no_proxy", "*")
    monkeypatch.setenv("PIP_CONFIG_FILE", str(tmp_path / "pip.conf"))
    with stand_in_index() as server:
        configure(tmp_path, server)
        yield server


def configure(tmp_path: Path, server: StandInIndex, *more: str) -> None:
    lines = ["[global]", f"index-url = {server.url}", "retries = 0", *more]
    (tmp_path / "pip.conf").write_text("\n".join(lines) + "\n")


def house(tmp_path: Path, *, offline: bool = False) -> Wheelhouse:
    return Wheelhouse(tmp_path / "project", cache=tmp_path / "cache", offline=offline)


def find(tmp_path: Path, version: str | None = None, like: str | None = None) -> FoundWheel:
    return house(tmp_path).find(project="demo", version=version, like=like)


def test_the_newest_release_for_the_usual_target_is_found(
    tmp_path: Path, index: StandInIndex
) -> None:
    """Not a pre-release, not another machine's, not what wants another Python; and what installing
    here is bound to does not count."""
    wanted = demo("1.10")
    for version, tag in [("1.9", LINUX), ("1.10", LINUX), ("1.11rc1", LINUX)]:
        index.add("demo", f"demo-{version}-{tag}.whl", demo(version))
    for tag in (
        "cp312-cp312-macosx_11_0_arm64",
        "cp312-cp312-manylinux_2_99_x86_64",
        "cp312-cp312-musllinux_1_2_x86_64",
        "cp313-cp313-manylinux_2_28_x86_64",
    ):
        index.add("demo", f"demo-2.0-{tag}.whl", demo("2.0"))
    python = 'data-requires-python="&gt;=3.13"'
    index.add("demo", f"demo-2.1-{ANY}.whl", demo("2.1"), attributes=python)
    index.add("demo", "demo-2.2.tar.gz", b"no wheel")
    (tmp_path / "constraints.txt").write_text("demo<1.10\n")
    configure(
        tmp_path,
        index,
        f"constraint = {tmp_path / 'constraints.txt'}",
        "pre = true",
        "require-hashes = true",
        "user = true",
        "quiet = 3",
    )
    assert find(tmp_path) == FoundWheel(
        filename=f"demo-1.10-{LINUX}.whl", version="1.10", digest=Digest.of(wanted)
    )
    assert list((tmp_path / "cache").iterdir()) == []


def test_a_version_is_taken_as_it_is_asked_for(
    tmp_path: Path, index: StandInIndex, caplog: pytest.LogCaptureFixture
) -> None:
    """Also one that was yanked, with a warning, and one with a local part; of two builds, pip's
    choice is the later one."""
    index.add("demo", f"demo-1.0+local.1-{ANY}.whl", demo("1.0+local.1"))
    index.add("demo", f"demo-2.0-{ANY}.whl", demo("2.0"), attributes='data-yanked="broken"')
    index.add("demo", f"demo-2.0-1-{ANY}.whl", demo("2.0"), attributes='data-yanked="broken"')
    assert find(tmp_path, "1.0+local.1").filename == f"demo-1.0+local.1-{ANY}.whl"
    with caplog.at_level(logging.WARNING):
        assert find(tmp_path, "2.0").filename == f"demo-2.0-1-{ANY}.whl"
    assert f"wheel demo==2.0: demo-2.0-1-{ANY}.whl was yanked from the index" in caplog.text


def test_a_wheel_like_another_is_for_its_python_and_platform(
    tmp_path: Path, index: StandInIndex
) -> None:
    for tag in ("cp312-cp312-manylinux_2_28_x86_64", "cp311-cp311-manylinux_2_34_aarch64"):
        index.add("demo", f"demo-1.0-{tag}.whl", demo("1.0"))
    like = "other-3-cp311-cp311-manylinux_2_17_aarch64.manylinux2014_aarch64.whl"
    assert find(tmp_path, like=like).filename == "demo-1.0-cp311-cp311-manylinux_2_34_aarch64.whl"


@pytest.mark.parametrize("fragment", ["", "#md5={md5}"])
def test_a_wheel_without_a_sha256_is_fetched_hashed_and_kept_where_pip_did_not_do_it(
    tmp_path: Path, index: StandInIndex, fragment: str
) -> None:
    data = demo("1.0")
    index.add("demo", f"demo-1.0-{ANY}.whl", data, fragment=fragment)
    found = find(tmp_path)
    assert found.digest == Digest.of(data)
    if fragment:  # and so the size is known
        kept = tmp_path / "cache" / found.digest.hex / found.filename
        assert kept.read_bytes() == data
        assert found.size == len(data)


def test_another_wheel_than_the_one_that_was_offered_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offer = Offer(filename=FILENAME, version="1.0", digest=None, yanked=False)
    monkeypatch.setattr(wheelhouse, "look", lambda *_, **__: offer)
    monkeypatch.setattr(wheelhouse, "_one_wheel", lambda *_, **__: tmp_path / f"other-{FILENAME}")
    with pytest.raises(IntegrityError) as caught:
        Wheelhouse(tmp_path, cache=tmp_path / "cache", offline=False).find(
            project="demo", version=None, like=None
        )
    assert caught.value.message == (
        f"wheel demo: pip offers {FILENAME!r} and brings 'other-{FILENAME}'"
    )


def test_a_project_of_pre_releases_alone_has_no_release(
    tmp_path: Path, index: StandInIndex
) -> None:
    index.add("demo", f"demo-1.0rc2-{ANY}.whl", demo("1.0rc2"))
    with pytest.raises(GoneError) as caught:
        find(tmp_path)
    assert re.search("only pre-releases|No matching distribution", caught.value.message)
    assert find(tmp_path, "1.0rc2").version == "1.0rc2"


@pytest.mark.parametrize(
    ("status", "kind"),
    [(401, AuthError), (503, NetworkError)],
)
def test_what_an_index_answers_is_told_as_what_it_is(
    tmp_path: Path, index: StandInIndex, status: int, kind: type[BuilderError]
) -> None:
    index.status = status
    with pytest.raises(BuilderError) as caught:
        find(tmp_path, "1.0")
    assert type(caught.value) is kind
    assert caught.value.message.startswith("wheel demo==1.0: ")
    assert "sesame" not in caught.value.message


def test_bytes_that_are_not_what_the_link_says_are_an_integrity_error(
    tmp_path: Path, index: StandInIndex
) -> None:
    index.add("demo", f"demo-1.0-{ANY}.whl", demo("1.0"), fragment=f"#sha256={'0' * 64}")
    with pytest.raises(IntegrityError, match="DO NOT MATCH THE HASHES"):
        find(tmp_path)


def test_offline_and_odd_words_are_refused_before_pip(tmp_path: Path) -> None:
    with pytest.raises(OfflineError) as caught:
        house(tmp_path, offline=True).find(project="demo", version=None, like=None)
    assert caught.value.message == "wheel demo: the index cannot be asked, --offline is set"
    for project, version in [("-r", None), ("demo", "1.0 --pre"), ("a\nb", None), ("", None)]:
        with pytest.raises(ProjectError, match=r": not a (project|version): "):
            house(tmp_path).find(project=project, version=version, like=None)
    with pytest.raises(ProjectError, match="not the file name of a wheel"):
        find(tmp_path, like="demo.whl")
    assert not (tmp_path / "cache").exists()


def test_an_old_pip_is_told_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "python"
    old.write_text("#!/bin/sh\necho 'no such option: --report' >&2\nexit 2\n")
    old.chmod(0o755)
    monkeypatch.setattr("sys.executable", str(old))
    with pytest.raises(EnvironmentFault) as caught:
        find(tmp_path)
    assert caught.value.message == "wheel demo: no such option: --report"
    assert caught.value.hint == "upgrade pip in this Python: pip install -U pip"


def report(**fields: object) -> dict[str, object]:
    url = "https://files.test/demo-1.0-py3-none-any.whl"
    item: dict[str, object] = {
        "download_info": {"url": url, "archive_info": {"hash": f"sha256={'a' * 64}"}},
        "metadata": {"name": "demo", "version": "1.0"},
    }
    return {"version": "1", "install": [item | fields]}


def place(url: str, **archive_info: object) -> dict[str, object]:
    return {"url": url, "archive_info": archive_info}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        pytest.param({}, "is not of one wheel: KeyError: 'install'", id="nothing"),
        pytest.param([], "is not of one wheel: TypeError: ", id="a list"),
        pytest.param({"install": []}, "is not of one wheel: ValueError: ", id="no wheel"),
        pytest.param(report(metadata={"version": "?"}), "InvalidVersion: ", id="no version"),
        pytest.param(report(metadata=None), "TypeError: ", id="no metadata"),
        pytest.param(report(download_info={"url": "x"}), "KeyError: ", id="a repository"),
        pytest.param(
            report(metadata={"version": "2.0"}),
            "pip offers 'demo-1.0-py3-none-any.whl', which says of itself that it is version '2.0'",
            id="another version",
        ),
        pytest.param(
            report(download_info=place("file:///evil-1.0-py3-none-any.whl")),
            "pip offers 'evil-1.0-py3-none-any.whl', which says of itself that it is version '1.0'",
            id="another project",
        ),
        pytest.param(
            report(download_info=place("https://x/demo-1.0.tar.gz")),
            "pip offers 'demo-1.0.tar.gz': not the file name of a wheel",
            id="no wheel's name",
        ),
        pytest.param(
            report(
                download_info=place(
                    "https://x/demo-1.0-py3-none-any.whl", hashes={"sha256": "beef"}
                )
            ),
            "sha256 takes 64 hex digits, got 4: 'beef'",
            id="a short digest",
        ),
    ],
)
def test_an_odd_report_of_pip_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, document: object, message: str
) -> None:
    def pip(command: str, *arguments: str, at: str) -> str:
        Path(arguments[arguments.index("--report") + 1]).write_text(json.dumps(document))
        return ""

    monkeypatch.setattr(wheel_index, "pip", pip)
    with pytest.raises(IntegrityError) as caught:
        find(tmp_path)
    assert caught.value.message.startswith("wheel demo: ")
    assert message in caught.value.message


# --- which tags pip is told ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tags", "python", "abis", "first"),
    [
        ("py3-none-any", "cp 3.12", ["cp312"], "manylinux_2_35_x86_64"),
        ("py2.py3-none-any", "cp 3.12", ["cp312"], "manylinux_2_35_x86_64"),
        ("py314-none-any", "cp 3.14", ["cp314"], "manylinux_2_35_x86_64"),
        ("cp38-abi3-manylinux_2_35_x86_64", "cp 3.12", ["cp312"], "manylinux_2_35_x86_64"),
        ("cp38-abi3-manylinux1_x86_64", "cp 3.12", ["cp312"], "manylinux_2_35_x86_64"),
        ("cp313-abi3-manylinux_2_39_x86_64", "cp 3.13", ["cp313"], "manylinux_2_39_x86_64"),
        ("cp310-none-any", "cp 3.10", ["cp310"], "manylinux_2_35_x86_64"),
        ("cp311-cp311-linux_aarch64", "cp 3.11", ["cp311"], "manylinux_2_35_aarch64"),
        ("cp314-cp314t-win_amd64", "cp 3.14", ["cp314t"], "win_amd64"),
        ("cp312-cp312-musllinux_1_1_x86_64", "cp 3.12", ["cp312"], "musllinux_1_2_x86_64"),
        ("pp310-pypy310_pp73-macosx_11_0_arm64", "pp 3.10", ["pypy310_pp73"], "macosx_11_0_arm64"),
    ],
)
def test_a_target_is_as_wide_as_the_tags_allow(
    tags: str, python: str, abis: list[str], first: str
) -> None:
    target = target_of(WheelName.parse(f"demo-1-{tags}.whl").tags)
    assert f"{target.implementation} {target.python}" == python
    assert list(target.abis) == abis
    assert target.platforms[0] == first


def test_the_usual_target_lists_every_glibc_and_the_old_names() -> None:
    assert usual() == target_of(frozenset())
    platforms = usual().platforms
    assert len(platforms) == 35
    assert [name for name in platforms if not name.startswith("manylinux_2_")] == [
        "manylinux2014_x86_64",
        "manylinux2010_x86_64",
        "manylinux1_x86_64",
        "linux_x86_64",
    ]


_WORD = st.text("abcpy_0123459", min_size=1, max_size=9)
_KNOWN = st.sampled_from(
    [
        "py3",
        "py2",
        "cp312",
        "cp3",
        "cp27",
        "none",
        "abi3",
        "any",
        "manylinux_2_99999999999_x86_64",
        "manylinux2014_ppc64le",
    ]
)


@given(st.sets(st.builds(Tag, _WORD | _KNOWN, _WORD | _KNOWN, _WORD | _KNOWN), max_size=5))
def test_any_tags_give_a_target_that_pip_can_be_told(tags: set[Tag]) -> None:
    target = target_of(frozenset(tags))
    assert target.platforms
    assert len(target.platforms) < 500
    assert re.fullmatch(r"3\.\d{1,3}", target.python)
    assert not any(word.startswith("-") for word in target.options()[1::2])
