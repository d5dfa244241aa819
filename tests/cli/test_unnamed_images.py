"""Images of a layout that have no name: signed and verified by digest."""

import json
import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from builder import artifact
from builder.adapters.store import images
from builder.digest import Digest
from builder.oci import DOCKER_MANIFEST, OCI_EMPTY, OCI_INDEX, OCI_MANIFEST, Manifest
from tests.cli.conftest import Builder, Ran, tree
from tests.cli.signed_world import index_of
from tests.signers import p256


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A private key without a password, and beside it its public half."""
    file = tmp_path / "key.pem"
    file.write_bytes(p256().pem)
    file.chmod(0o600)
    (tmp_path / "key.pub").write_bytes(p256().public.pem)
    return file


class Layout:
    """The image of the project in a layout, with an index.json that can be rewritten."""

    def __init__(self, path: Path) -> None:
        self.path = path
        (self.entry,) = self.entries
        del self.entry["annotations"]
        self.entries = [self.entry]

    @property
    def entries(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = json.loads((self.path / "index.json").read_bytes())[
            "manifests"
        ]
        return found

    @entries.setter
    def entries(self, entries: Sequence[dict[str, Any]]) -> None:
        document = {"schemaVersion": 2, "mediaType": OCI_INDEX, "manifests": list(entries)}
        (self.path / "index.json").write_text(json.dumps(document))

    @property
    def image(self) -> str:
        return str(self.entry["digest"])

    def blob(self, digest: str) -> Path:
        return self.path / "blobs/sha256" / digest.removeprefix("sha256:")

    def put(self, document: object, media_type: str = OCI_MANIFEST) -> dict[str, Any]:
        """A blob, and the entry for it."""
        raw = document if isinstance(document, bytes) else json.dumps(document).encode()
        digest = str(Digest.of(raw))
        self.blob(digest).write_bytes(raw)
        return {"mediaType": media_type, "digest": digest, "size": len(raw)}

    def changed(self, **fields: object) -> dict[str, Any]:
        """The entry of a manifest that differs from the image's in these fields."""
        return self.put(json.loads(self.blob(self.image).read_bytes()) | fields)

    @property
    def manifest(self) -> Manifest:
        return Manifest.parse(self.blob(self.image).read_bytes())


def named(entry: dict[str, Any], name: str) -> dict[str, Any]:
    return {**entry, "annotations": {"org.opencontainers.image.ref.name": name}}


@pytest.fixture
def unnamed(layout: Path) -> Layout:
    return Layout(layout)


def sign(builder: Builder, where: str, key: Path) -> Ran:
    return builder("sign", "hello", where, "--key", key, "--allow-plaintext", "--json")


def verify(builder: Builder, where: object, key: Path, *more: str) -> Ran:
    return builder("verify", str(where), "--key", key.with_suffix(".pub"), *more)


def refused(ran: Ran, status: int, *lines: str) -> None:
    assert (ran.status, tuple(ran.err.splitlines())) == (status, lines)


def test_the_only_image_needs_no_name(builder: Builder, unnamed: Layout, key: Path) -> None:
    where = f"oci:{unnamed.path}@{unnamed.image}"
    ran = sign(builder, f"oci:{unnamed.path}", key)
    assert ran.status == 0, ran.err
    assert ran.json["reference"] == where
    assert str(unnamed.path) not in str(sorted(tree(unnamed.path)))
    for written in (where, unnamed.path, f"{unnamed.path}@{unnamed.image}"):
        ran = verify(builder, written, key, "--json")
        assert (ran.status, ran.json["reference"], ran.json["image"]) == (0, where, unnamed.image)
    before = tree(unnamed.path)
    again = sign(builder, where, key).json
    assert (again["added"], again["present"], tree(unnamed.path)) == ([], 8, before)


@pytest.mark.requires("skopeo")
def test_what_skopeo_copied_without_a_name_is_signed_and_verified(
    builder: Builder, layout: Path, key: Path, tmp_path: Path
) -> None:
    copied = tmp_path / "copied"
    command = ["skopeo", "copy", "-q", "--preserve-digests", f"oci:{layout}:hello"]
    subprocess.run([*command, f"oci:{copied}"], check=True, capture_output=True)
    assert sign(builder, f"oci:{copied}", key).status == 0
    assert verify(builder, copied, key).status == 0


def test_of_several_it_says_what_to_write(builder: Builder, unnamed: Layout, key: Path) -> None:
    other = unnamed.changed(annotations={"of": "another"})
    unnamed.entries = [unnamed.entry, other, named(other, "it"), named(other, "sha256-x.sig")]
    lines = (
        f"builder: error: REF: which image of '{unnamed.path}'? It has 2",
        f"  hint: write one of oci:{unnamed.path}:it, oci:{unnamed.path}@{unnamed.image}",
    )
    before = tree(unnamed.path)
    refused(verify(builder, unnamed.path, key), 2, *lines)
    ran = builder("sign", "hello", unnamed.path, "--key", key, "--allow-plaintext")
    refused(ran, 2, *lines)
    assert tree(unnamed.path) == before
    where = f"oci:{unnamed.path}@{unnamed.image}"
    assert (sign(builder, where, key).status, verify(builder, where, key).status) == (0, 0)
    assert verify(builder, f"oci:{unnamed.path}:it", key).status == 13


def test_of_very_many_it_names_some(builder: Builder, unnamed: Layout, key: Path) -> None:
    unnamed.entries = [unnamed.changed(annotations={"n": str(n)}) for n in range(30)]
    ran = verify(builder, unnamed.path, key)
    assert (ran.status, ran.err.count("@sha256:"), "and 20 more" in ran.err) == (2, 10, True)


def test_what_lies_beside_an_image_is_none(builder: Builder, unnamed: Layout, key: Path) -> None:
    """Other tools enter signatures and SBOMs without a name: they refer to the image, or have no
    config of an image."""
    size = unnamed.entry["size"]
    subject = {"mediaType": OCI_MANIFEST, "digest": unnamed.image, "size": size}
    empty = unnamed.put(artifact.EMPTY, OCI_EMPTY)
    unnamed.entries = [
        unnamed.changed(subject=subject),
        unnamed.changed(config=empty, artifactType="application/x"),
        {**empty, "mediaType": "application/octet-stream"},
        unnamed.entry,
        unnamed.entry,
    ]
    assert sign(builder, f"oci:{unnamed.path}", key).status == 0
    assert verify(builder, unnamed.path, key).status == 0
    unnamed.entries = unnamed.entries[:3]
    ran = verify(builder, unnamed.path, key)
    assert ran.err.splitlines()[0] == (
        f"builder: error: REF: there is no image in '{unnamed.path}'"
    )
    assert ran.status == 2
    nothing = f"oci:{unnamed.path}:no"
    refused(
        verify(builder, nothing, key),
        7,
        f"builder: error: {nothing}: there is no such image",
        "  hint: builder build V --out DIR puts one there",
    )


@pytest.mark.parametrize("name", ["", "both"])
@pytest.mark.parametrize("depth", [1, 2])
def test_a_member_of_an_index_is_found(
    name: str, depth: int, builder: Builder, unnamed: Layout, key: Path
) -> None:
    entry = unnamed.entry
    for _ in range(depth):
        entry = unnamed.put(index_of(_descriptor(entry)), OCI_INDEX)
    unnamed.entries = [named(entry, name) if name else entry]
    where = f"oci:{unnamed.path}{name and f':{name}'}@{unnamed.image}"
    assert sign(builder, where, key).json["images"] == [unnamed.image]
    ran = verify(builder, where, key, "--json")
    assert (ran.status, ran.json["image"]) == (0, unnamed.image)
    assert verify(builder, unnamed.path, key).status == 13, "nobody signed the index"


def _descriptor(entry: dict[str, Any]) -> Any:
    from builder.oci import Descriptor

    return Descriptor.parse(entry, at="entry")


def test_an_index_without_a_name_is_signed_with_its_members(
    builder: Builder, unnamed: Layout, key: Path
) -> None:
    index = unnamed.put(index_of(unnamed.manifest.descriptor), OCI_INDEX)
    unnamed.entries = [index]
    ran = sign(builder, f"oci:{unnamed.path}", key)
    assert ran.json["images"] == [index["digest"], unnamed.image]
    ran = verify(builder, f"oci:{unnamed.path}@{index['digest']}", key, "--json")
    assert (ran.status, ran.json["image"]) == (0, unnamed.image)


def test_a_name_that_stands_for_another_image_is_refused(
    builder: Builder, unnamed: Layout, key: Path
) -> None:
    other = unnamed.changed(annotations={"of": "another"})
    unnamed.entries = [named(other, "it"), unnamed.entry]
    ran = verify(builder, f"oci:{unnamed.path}:it@{unnamed.image}", key)
    first = f"expected {unnamed.image}, the name stands for {other['digest']}"
    assert (ran.status, first in ran.err.splitlines()[0]) == (4, True)
    ran = verify(builder, f"oci:{unnamed.path}:no@{unnamed.image}", key)
    refused(
        ran,
        7,
        f"builder: error: oci:{unnamed.path}:no@{unnamed.image}: there is no such image",
        f"  hint: the layout has: oci:{unnamed.path}:it, oci:{unnamed.path}@{unnamed.image}",
    )


def test_a_digest_that_nothing_leads_to_is_not_found(
    builder: Builder, unnamed: Layout, key: Path
) -> None:
    layer = unnamed.manifest.layers[0].digest
    lost = unnamed.changed(annotations={"of": "another"})["digest"]
    nothing = Digest.of(b"nothing")
    blob = "there is such a blob, but index.json leads to no manifest of that digest"
    there = f"the layout has: oci:{unnamed.path}@{unnamed.image}"
    for digest, hint in ((layer, blob), (lost, blob), (nothing, there)):
        where = f"oci:{unnamed.path}@{digest}"
        told = f"builder: error: {where}: there is no such image", f"  hint: {hint}"
        refused(verify(builder, where, key), 7, *told)
        ran = builder("sign", "hello", where, "--key", key, "--allow-plaintext")
        refused(ran, 7, *told)


def test_a_listed_blob_that_is_no_manifest_is_told(
    builder: Builder, unnamed: Layout, key: Path
) -> None:
    layer = unnamed.manifest.layers[0]
    for media_type in (OCI_MANIFEST, OCI_INDEX, layer.media_type):
        entry = {"mediaType": media_type, "digest": str(layer.digest), "size": layer.size}
        unnamed.entries = [entry]
        ran = verify(builder, f"oci:{unnamed.path}@{layer.digest}", key)
        assert (ran.status, str(layer.digest) in ran.err) == (4, True), ran.err


@pytest.mark.parametrize("member", [False, True], ids=["listed", "member"])
def test_a_listed_image_that_is_absent_or_altered_is_told(
    member: bool, builder: Builder, unnamed: Layout, key: Path
) -> None:
    where = f"oci:{unnamed.path}@{unnamed.image}"
    if member:
        index = unnamed.put(index_of(unnamed.manifest.descriptor), OCI_INDEX)
        unnamed.entries = [index]
    assert sign(builder, where, key).status == 0
    blob = unnamed.blob(unnamed.image)
    whole = blob.read_bytes()
    blob.write_bytes(whole[:-1] + b" ")
    ran = verify(builder, where, key)
    assert (ran.status, f"blob {unnamed.image}: the bytes are " in ran.err) == (4, True)
    assert "the layout is damaged: get it again" in ran.err
    blob.unlink()
    ran = verify(builder, where, key)
    assert (ran.status, f"{unnamed.image}: no such blob" in ran.err) == (7, True), ran.err


@pytest.mark.parametrize(
    "changes", [{"size": 7}, {"mediaType": DOCKER_MANIFEST}], ids=["size", "type"]
)
def test_an_entry_that_lies_about_the_image_is_refused(
    changes: dict[str, Any], builder: Builder, unnamed: Layout, key: Path
) -> None:
    unnamed.entries = [{**unnamed.entry, **changes}]
    assert verify(builder, f"oci:{unnamed.path}@{unnamed.image}", key).status == 4


def test_an_index_that_cannot_be_read_hides_no_other_image(
    builder: Builder, unnamed: Layout, key: Path
) -> None:
    absent = {"mediaType": OCI_INDEX, "digest": str(Digest.of(b"absent")), "size": 6}
    index = unnamed.put(index_of(unnamed.manifest.descriptor), OCI_INDEX)
    where = f"oci:{unnamed.path}@{unnamed.image}"
    unnamed.entries = [absent, index]
    assert (sign(builder, where, key).status, verify(builder, where, key).status) == (0, 0)
    unnamed.entries = [absent]
    ran = verify(builder, where, key)
    assert (ran.status, f"{absent['digest']}: no such blob" in ran.err) == (7, True)


def test_there_is_an_end_to_what_is_looked_through(
    builder: Builder, unnamed: Layout, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    listed = [unnamed.put(index_of(), OCI_INDEX)]
    for _ in range(5):
        raw = json.dumps({"schemaVersion": 2, "manifests": listed * 2, "x": len(listed)})
        listed = [*listed, unnamed.put(raw.encode(), OCI_INDEX)]
    unnamed.entries = listed
    where = f"oci:{unnamed.path}@{unnamed.image}"
    assert verify(builder, where, key).status == 7, "each is read once"
    monkeypatch.setattr(images, "TOTAL_LIMIT", 1000)
    ran = verify(builder, where, key)
    assert (ran.status, "over 1000 bytes of manifests to look through" in ran.err) == (4, True)


def test_a_digest_is_never_taken_for_a_part_of_a_name(
    builder: Builder, unnamed: Layout, key: Path
) -> None:
    """Who pins by digest must not get what somebody gave a name with that digest in it."""
    other = unnamed.changed(annotations={"of": "another"})
    unnamed.entries = [named(other, f"it@{unnamed.image}"), named(other, "it"), unnamed.entry]
    assert verify(builder, f"oci:{unnamed.path}:it@{unnamed.image}", key).status == 4


def test_paths_with_colons_and_at_signs_are_found(
    builder: Builder, unnamed: Layout, key: Path, tmp_path: Path
) -> None:
    assert sign(builder, f"oci:{unnamed.path}", key).status == 0
    for name in ("a@b", "a:b", "it's here", "a@sha:b", "x:@0"):
        moved = unnamed.path.rename(tmp_path / name)
        for written in (f"oci:{moved}", f"oci:{moved}@{unnamed.image}", f"{moved}@{unnamed.image}"):
            ran = verify(builder, written, key, "--json")
            assert ran.status == 0, (written, ran.err)
            assert ran.json["reference"] == f"oci:{moved}@{unnamed.image}"
        unnamed.path = moved


def test_who_forgets_the_prefix_is_told(
    builder: Builder, unnamed: Layout, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(unnamed.path.parent)
    refused(
        verify(builder, "layout", key),
        2,
        "builder: error: REF: 'layout' names neither a tag nor a digest",
        "  hint: for the layout in that directory write oci:layout",
    )
    unnamed.path.rename("My.Layout")
    for written in ("My.Layout", f"My.Layout@{unnamed.image}", "My.Layout:no"):
        ran = verify(builder, written, key)
        hint = f"  hint: for the layout in that directory write oci:{written}"
        assert (ran.status, ran.err.splitlines()[-1]) == (2, hint)


def test_an_empty_name_is_none(builder: Builder, unnamed: Layout, key: Path) -> None:
    unnamed.entries = [named(unnamed.entry, "")]
    where = f"oci:{unnamed.path}@{unnamed.image}"
    assert sign(builder, f"oci:{unnamed.path}", key).json["reference"] == where
    assert verify(builder, unnamed.path, key).status == 0


def test_a_name_that_stands_for_two_images_is_told_and_their_digests_are_taken(
    builder: Builder, unnamed: Layout, key: Path
) -> None:
    """As tools do that take the tag alone for the name."""
    other = unnamed.changed(annotations={"of": "another"})
    unnamed.entries = [named(unnamed.entry, "latest"), named(other, "latest")]
    digests = unnamed.image, other["digest"]
    where = [f"oci:{unnamed.path}@{digest}" for digest in digests]
    ran = verify(builder, unnamed.path, key)
    assert ran.err.splitlines()[-1] == f"  hint: write one of {', '.join(where)}"
    ran = verify(builder, f"oci:{unnamed.path}:latest", key)
    assert ran.status == 4
    assert f"latest: the name stands for {' and '.join(digests)}\n" in ran.err
    assert sign(builder, where[0], key).status == 0
    for written in (where[0], f"oci:{unnamed.path}:latest@{unnamed.image}"):
        assert verify(builder, written, key).status == 0
    assert verify(builder, where[1], key).status == 13


@pytest.mark.parametrize("name", ["it@sha256:" + "0" * 64, "@0", "a@", "red\x1b[31m", "two\nlines"])
def test_a_name_that_cannot_be_written_is_told_as_a_digest(
    name: str, builder: Builder, unnamed: Layout, key: Path
) -> None:
    unnamed.entries = [named(unnamed.entry, name)]
    where = f"oci:{unnamed.path}@{unnamed.image}"
    assert sign(builder, f"oci:{unnamed.path}", key).json["reference"] == where
    ran = verify(builder, unnamed.path, key)
    assert (ran.status, ran.out.partition(": ")[0]) == (0, where)
    ran = verify(builder, f"oci:{unnamed.path}:no", key)
    assert ran.err.splitlines()[-1] == f"  hint: the layout has: {where}"


@pytest.mark.parametrize("kind", ["directory", "fifo", "link"])
def test_a_blob_that_is_no_file_is_not_there(
    kind: str, builder: Builder, unnamed: Layout, key: Path, tmp_path: Path
) -> None:
    blob = unnamed.blob(unnamed.image)
    blob.rename(tmp_path / "moved")
    if kind == "directory":
        blob.mkdir()
    elif kind == "fifo":
        os.mkfifo(blob)
    else:
        blob.symlink_to(tmp_path / "moved")
    for written in (unnamed.path, f"oci:{unnamed.path}@{unnamed.image}"):
        ran = verify(builder, written, key)
        assert (ran.status, "expected a regular file" in ran.err) == (4, True), ran.err


def test_a_chain_of_indexes_without_end_is_looked_through_once(
    builder: Builder, unnamed: Layout, key: Path
) -> None:
    entry = unnamed.put(index_of(), OCI_INDEX)
    for _ in range(2000):
        entry = unnamed.put({"schemaVersion": 2, "manifests": [entry, entry]}, OCI_INDEX)
    unnamed.entries = [entry]
    assert verify(builder, f"oci:{unnamed.path}@{unnamed.image}", key).status == 7


def test_an_entry_that_is_no_descriptor_is_told(
    builder: Builder, unnamed: Layout, key: Path
) -> None:
    wrong = [
        {**unnamed.entry, "digest": "sha512:" + "0" * 128},
        {**unnamed.entry, "digest": unnamed.image.upper()},
        {**unnamed.entry, "size": -1},
        {**unnamed.entry, "size": "1"},
        {"digest": unnamed.image, "size": unnamed.entry["size"]},
    ]
    for entry in wrong:
        unnamed.entries = [unnamed.entry, entry]
        for written in (unnamed.path, f"oci:{unnamed.path}@{unnamed.image}"):
            ran = verify(builder, written, key)
            assert (ran.status, "index.json.manifests[1]" in ran.err) == (4, True), ran.err


def test_what_sign_shows_can_be_run_though_the_path_has_spaces(
    builder: Builder, unnamed: Layout, key: Path, tmp_path: Path
) -> None:
    moved = unnamed.path.rename(tmp_path / "it's here")
    (command,) = sign(builder, f"oci:{moved}", key).json["commands"]
    (tmp_path / "cosign.pub").write_bytes(p256().public.pem)
    words = shlex.split(command.replace("cosign.pub", shlex.quote(str(tmp_path / "cosign.pub"))))
    assert words[2] == f"oci:{moved}@{unnamed.image}"
    assert builder(*words[1:]).status == 0
