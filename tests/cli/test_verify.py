"""``builder verify`` where a registry is and no project, and ``builder image-verifier``: by the
stand-in's own account of what it was asked."""

import json
import shlex
import stat
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from builder.digest import Digest
from builder.oci import OCI_INDEX, Manifest
from tests.cli.conftest import DEMO, Builder, tree
from tests.registry.images import tiny_image
from tests.standin.referrers import ReferrersStandIn, referrers_stand_in
from tests.trust.keys import key_entry, policy_text, signatures

REPOSITORY = "team/hello"


@pytest.fixture
def registry() -> Iterator[ReferrersStandIn]:
    with referrers_stand_in() as stand_in:
        yield stand_in


@pytest.fixture
def key(builder: Builder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The public half of the key ``mine``."""
    monkeypatch.setenv("BUILDER_KEYS", str(tmp_path / "keys"))
    monkeypatch.setenv("BUILDER_KEY_PASSWORD", "of no worth")
    assert builder("key", "generate", "mine").status == 0
    return tmp_path / "keys" / "mine.pub"


@pytest.fixture
def pushed(builder: Builder, registry: ReferrersStandIn) -> str:
    """The project's image in the registry, not signed yet."""
    target = f"{registry.host}/{REPOSITORY}:t"
    ran = builder("build", "hello", "--push", target)
    assert ran.status == 0, ran.err
    return target


def manifest_of(registry: ReferrersStandIn) -> Manifest:
    """The one that the tag stands for."""
    return Manifest.parse(registry.manifests[REPOSITORY, "t"][1])


def put_index(registry: ReferrersStandIn, image: Manifest, *more: Manifest) -> Digest:
    """Have the tag stand for an index."""
    platforms = ["amd64", "arm64"]
    entries = [
        item.descriptor.record() | {"platform": {"os": "linux", "architecture": platforms[number]}}
        for number, item in enumerate((image, *more))
    ]
    document = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": entries}
    raw = json.dumps(document).encode()
    return registry.add_manifest(REPOSITORY, raw, media_type=OCI_INDEX, tag="t")


def test_who_runs_it_has_no_project_and_no_layer_is_asked_for(
    builder: Builder,
    registry: ReferrersStandIn,
    pushed: str,
    key: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert builder("sign", "hello", pushed, "--key", "mine").status == 0
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("BUILDER_STORE", str(tmp_path / "no store"))
    registry.calls.clear()
    ran = builder("verify", pushed, "--key", key, "--json")
    assert ran.status == 0, ran.err
    assert (len(ran.json["layers"]) > 0, ran.json["files"]) == (True, 0)
    asked = registry.asked()
    assert any("/blobs/" in call for call in asked)
    layers = [str(layer.digest) for layer in manifest_of(registry).layers]
    assert not [call for call in asked if any(layer in call for layer in layers)]
    assert tree(elsewhere) == {}
    assert not (tmp_path / "no store").exists(), "to look takes no store"


def test_without_a_project_there_is_no_policy_and_nothing_to_rebuild(
    builder: Builder, pushed: str, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert builder("sign", "hello", pushed, "--key", "mine").status == 0
    monkeypatch.chdir(tmp_path)
    ran = builder("verify", pushed)
    assert (ran.status, "there is no project here" in ran.err) == (2, True)
    assert builder("verify", pushed, "--key", key, "--rebuild").status == 3


def test_an_index_that_nobody_signed_is_refused_though_its_image_is_signed(
    builder: Builder, registry: ReferrersStandIn, pushed: str, key: Path
) -> None:
    assert builder("sign", "hello", pushed, "--key", "mine").status == 0
    image = manifest_of(registry)
    index = put_index(registry, image)
    ran = builder("verify", pushed, "--key", key)
    assert (ran.status, f"{index}: nobody signed it" in ran.err) == (13, True)
    member = f"{registry.host}/{REPOSITORY}@{image.digest}"
    assert builder("verify", member, "--key", key).status == 0
    ran = builder("sign", "hello", pushed, "--key", "mine", "--json")
    assert ran.json["images"] == [str(index), str(image.digest)]
    ran = builder("verify", pushed, "--key", key, "--json")
    assert (ran.status, ran.json["image"]) == (0, str(image.digest))


def test_what_somebody_added_to_the_index_gets_no_signature(
    builder: Builder, registry: ReferrersStandIn, pushed: str, key: Path
) -> None:
    put_index(registry, manifest_of(registry), tiny_image(b"evil").manifest)
    before = dict(registry.manifests)
    ran = builder("sign", "hello", pushed, "--key", "mine")
    assert (ran.status, "which was not built here" in ran.err) == (4, True)
    assert registry.manifests == before


def test_an_image_of_another_platform_in_the_index_gets_no_signature(
    builder: Builder, registry: ReferrersStandIn, pushed: str, key: Path, project: Path
) -> None:
    """Both were built here: whoever replaces the index puts an older one in the new one's place."""
    old = manifest_of(registry)
    file = project / "overlays/greeting/files/limits.py"
    file.write_text(file.read_text() + "# mended\n")
    assert builder("build", "hello", "--push", pushed).status == 0
    new = manifest_of(registry)
    assert old.digest != new.digest
    put_index(registry, old, new)
    before = dict(registry.manifests)
    ran = builder("sign", "hello", pushed, "--key", "mine")
    assert ran.status == 4
    assert f"lists {new.digest} for linux/arm64, and it was built for linux/amd64" in ran.err
    assert registry.manifests == before


def test_containerd_is_answered_by_what_is_exported_for_it(
    builder: Builder,
    registry: ReferrersStandIn,
    pushed: str,
    key: Path,
    project: Path,
    environment: dict[str, str],
    tmp_path: Path,
) -> None:
    assert key.exists()
    assert builder("key", "generate", "other").status == 0
    scope = f"{registry.host}/team/*"
    assert builder("trust", "new", "--key", "mine", "--repository", scope).status == 0
    assert builder("trust", "sign", "--key", "mine").status == 0
    assert builder("trust", "init", "--accept-first").status == 0
    assert (
        builder("trust", "export", "--format=containerd", f"--out={tmp_path / 'out'}").status == 0
    )
    program = tmp_path / "out/bin/builder"
    assert program.stat().st_mode & stat.S_IXUSR
    (tmp_path / "bin").mkdir()
    start = tmp_path / "bin/builder"
    start.write_text(f'#!/bin/sh\nexec {sys.executable} -m builder "$@"\n')
    start.chmod(0o755)

    def asked(name: str, digest: Digest) -> tuple[int, str]:
        """As the plugin io.containerd.image-verifier.v1.bindir starts it; nothing was accepted in
        that home, and nobody reads the manifest."""
        descriptor = ["-stdin-media-type", "application/vnd.oci.descriptor.v1+json"]
        done = subprocess.run(
            [program, "-name", name, "-digest", str(digest), *descriptor],
            env={
                "PATH": f"{start.parent}:{environment['PATH']}",
                "HOME": str(tmp_path),
                "PYTHONPATH": str(DEMO),
            },
            input=b"{}",
            capture_output=True,
            check=False,
            cwd="/",
        )
        return done.returncode, done.stdout.decode()

    image = manifest_of(registry).digest
    assert asked(pushed, image)[0] == 13
    assert builder("sign", "hello", pushed, "--key", "other").status == 0
    assert asked(pushed, image)[0] == 11
    assert builder("sign", "hello", pushed, "--key", "mine").status == 0
    status, reason = asked(pushed, image)
    assert (status, "is signed by SHA256:" in reason, reason.count("\n")) == (0, True, 1)
    assert asked(pushed, Digest.of(b"another"))[0] == 7
    assert asked(f"{registry.host}/elsewhere/hello:t", image)[0] != 0
    assert asked("no name", image)[0] == 2
    (project / "trust.yaml").write_text("version: 2\n")
    assert asked(pushed, image)[0] == 11


def test_a_key_goes_by_its_name_too(builder: Builder, pushed: str, key: Path) -> None:
    assert builder("sign", "hello", pushed, "--key", "mine").status == 0
    for name in ("mine", "mine.pub", str(key)):
        assert builder("verify", pushed, "--key", name).status == 0
    ran = builder("verify", pushed, "--key", "release.pub")
    assert ran.status == 2
    said = f"no file 'release.pub', and no key of that name in {key.parent}"
    assert said in ran.err
    assert "builder key list" in ran.err


def test_what_sign_shows_can_be_run_as_it_is(builder: Builder, pushed: str, key: Path) -> None:
    ran = builder("sign", "hello", pushed, "--key", "mine", "--json")
    assert ran.status == 0, ran.err
    command = shlex.split(ran.json["commands"][0])
    assert command[:2] == ["builder", "verify"]
    assert command[-2:] == ["--key", str(key)]
    assert builder(*command[1:]).status == 0


def test_layers_that_are_not_here_are_counted(
    builder: Builder, project: Path, key: Path, tmp_path: Path
) -> None:
    layout = tmp_path / "layout"
    assert builder("build", "hello", "--out", layout).status == 0
    assert builder("sign", "hello", f"oci:{layout}", "--key", "mine").status == 0
    whole = builder("verify", f"oci:{layout}", "--key", key, "--json")
    assert (whole.status, whole.json["absent"], whole.json["remarks"]) == (0, 0, [])
    own = [layer["digest"] for layer in whole.json["layers"] if layer["step"] is not None]
    (layout / "blobs/sha256" / own[-1].removeprefix("sha256:")).unlink()
    store = ("--store", tmp_path / "an empty one")
    ran = builder(*store, "verify", f"oci:{layout}", "--key", key, "--json")
    assert ran.status == 0, ran.err
    assert ran.json["absent"] == 1
    assert ran.json["files"] < whole.json["files"]
    count = len(whole.json["layers"])
    said = f"1 of {count} layers are not in the layout: nobody can run it"
    assert ran.json["remarks"] == [said]
    told = builder(*store, "verify", f"oci:{layout}", "--key", key).out
    assert f"1 of our {len(own)} layers are not here to be read" in told


def test_a_layout_is_signed_by_no_path_and_is_got_again_where_it_is_damaged(
    builder: Builder, project: Path, key: Path, tmp_path: Path
) -> None:
    layout, moved = tmp_path / "layout", tmp_path / "moved"
    assert builder("build", "hello", "--out", layout).status == 0
    assert builder("sign", "hello", f"oci:{layout}", "--key", "mine").status == 0
    written = b"".join(path.read_bytes() for path in (layout / "blobs/sha256").iterdir())
    assert str(tmp_path).encode() not in written
    layout.rename(moved)
    again = builder("sign", "hello", f"oci:{moved}:hello", "--key", "mine", "--json")
    assert (again.json["added"], again.json["present"]) == ([], 8)
    image = builder("verify", f"oci:{moved}", "--key", key, "--json").json["image"]
    (moved / "blobs/sha256" / image.removeprefix("sha256:")).write_bytes(b"{}")
    ran = builder("verify", f"oci:{moved}", "--key", key)
    assert ran.status == 4
    assert "hint: the layout is damaged: get it again" in ran.err


def test_what_the_policy_of_the_project_makes_of_it_is_told_at_once(
    builder: Builder, project: Path, pushed: str, key: Path
) -> None:
    raw = policy_text(
        keys="".join(map(key_entry, ("ada", "bob", "carol", "dan"))),
        root="{keys: [ada, bob], threshold: 2}",
        roles="  image: {keys: [carol, dan], threshold: 1}\n",
    ).encode()
    (project / "trust.yaml").write_bytes(raw)
    (project / "trust.yaml.sig.jsonl").write_bytes(signatures(raw, "ada", "bob") or b"")
    ran = builder("trust", "init", "--accept-first")
    assert ran.status == 0, ran.err
    ran = builder("sign", "hello", pushed, "--key", "mine", "--json")
    assert ran.status == 0, ran.err
    assert ran.json["doubt"].startswith(f"{pushed.rpartition(':')[0]}@")
    ran = builder("sign", "hello", pushed, "--key", "mine")
    assert "\nby trust.yaml it does not pass yet: " in ran.out


def test_a_variant_is_verified_where_the_project_publishes_it(
    builder: Builder, project: Path, registry: ReferrersStandIn, key: Path
) -> None:
    ran = builder("verify", "hello", "--key", key)
    assert ran.status == 2
    assert ran.err.splitlines()[0] == (
        "builder: error: REF: 'hello' is a variant, and builder.yaml does not say where it is"
        " published"
    )
    with (project / "builder.yaml").open("a") as settings:
        settings.write(f"publish: {registry.host}/{REPOSITORY}\n")
    place = f"{registry.host}/{REPOSITORY}:hello"
    assert builder("build", "hello", "--push", place).status == 0
    assert builder("verify", "hello", "--key", key).status == 13
    assert builder("sign", "hello", place, "--key", "mine").status == 0
    ran = builder("verify", "hello", "--key", key, "--json")
    assert (ran.status, ran.json["reference"]) == (0, place)
    ran = builder("verify", "hello", "--key", key, "--platform", "linux/arm64")
    assert (ran.status, f"{place}-linux-arm64: there is no such image" in ran.err) == (7, True)


def test_a_directory_that_can_be_no_reference_is_a_layout(
    builder: Builder, key: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert builder("build", "hello", "--out", tmp_path / "layout").status == 0
    assert builder("sign", "hello", tmp_path / "layout", "--key", "mine").status == 0
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for name in (tmp_path / "layout", "../layout", "../layout:hello"):
        ran = builder("verify", name, "--key", key)
        assert ran.status == 0, ran.err
    ran = builder("verify", "./layout", "--key", key)
    assert (ran.status, "not an OCI image layout" in ran.err) == (3, True)


def test_a_platform_is_checked_whatever_is_demanded(
    builder: Builder, pushed: str, key: Path
) -> None:
    assert builder("sign", "hello", pushed, "--key", "mine").status == 0
    other = ("verify", pushed, "--key", key, "--platform", "linux/arm64")
    assert builder(*other).status == 4
    ran = builder(*other, "--demand", "sbom")
    assert (ran.status, "--platform needs the manifest statement" in ran.err) == (2, True)
