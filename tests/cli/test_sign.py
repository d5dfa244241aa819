"""``builder sign`` and ``verify`` through the command line, on a layout: no network, no peer."""

import json
import shutil
from pathlib import Path

import pytest

from builder.adapters.store import FileStore
from builder.cli.places import Spot
from builder.cli.signing import Signed
from builder.digest import Digest
from builder.oci import Descriptor, Manifest
from builder.signatures.publish import Published
from builder.sigstore import carriers
from tests.cli.conftest import Builder, tree
from tests.registry.images import tiny_image
from tests.signatures.memory_place import MemoryPlace
from tests.signers import ed, p256


@pytest.fixture
def key(tmp_path: Path) -> Path:
    """A private key without a password, and beside it its public half."""
    file = tmp_path / "key.pem"
    file.write_bytes(p256().pem)
    file.chmod(0o600)
    (tmp_path / "key.pub").write_bytes(p256().public.pem)
    (tmp_path / "other.pub").write_bytes(ed().public.pem)
    return file


def signed(builder: Builder, layout: Path, key: Path) -> dict[str, object]:
    ran = builder("sign", "hello", f"oci:{layout}", "--key", key, "--allow-plaintext", "--json")
    assert ran.status == 0, ran.err
    document: dict[str, object] = ran.json
    return document


def verified(builder: Builder, layout: Path, key: Path, *more: str) -> tuple[int, str]:
    ran = builder("verify", f"oci:{layout}", "--key", key, *more)
    return ran.status, ran.err or ran.out


def test_what_is_signed_is_verified(builder: Builder, layout: Path, key: Path) -> None:
    document = signed(builder, layout, key)
    assert document["key"] == p256().public.fingerprint
    assert len(document["added"]) == 8  # type: ignore[arg-type]  # a list
    assert document["doubt"] is None, "where there is no policy, nobody doubts"
    ran = builder("verify", f"oci:{layout}", "--key", key.with_suffix(".pub"), "--json")
    assert ran.status == 0, ran.err
    assert set(ran.json["claims"]) == {"image", "manifest", "provenance", "sbom"}
    assert {tuple(keys) for keys in ran.json["claims"].values()} == {(p256().public.fingerprint,)}
    assert ran.json["files"] > 0
    assert ran.json["remarks"] == []


def test_a_key_without_a_password_is_taken_by_build_where_that_is_said(
    builder: Builder, layout: Path, key: Path, tmp_path: Path
) -> None:
    """The refusal names an option, and the command has it."""
    build = ("build", "hello", "--out", tmp_path / "signed", "--sign", key)
    ran = builder(*build)
    assert (ran.status, ran.out) == (5, "")
    assert "; --allow-plaintext takes it as it is\n" in ran.err
    assert not (tmp_path / "signed").exists()
    assert builder(*build, "--allow-plaintext").status == 0
    place = f"oci:{tmp_path / 'signed'}"
    assert builder("verify", place, "--key", key.with_suffix(".pub")).status == 0
    ran = builder("build", "hello", "--allow-plaintext")
    assert ran.status == 2
    assert ran.err == (
        "builder: error: --allow-plaintext is for --sign\n  hint: add --sign KEY, or leave it out\n"
    )


def test_to_sign_again_adds_nothing(builder: Builder, layout: Path, key: Path) -> None:
    signed(builder, layout, key)
    before = tree(layout)
    again = signed(builder, layout, key)
    assert (again["added"], again["present"]) == ([], 8)
    assert tree(layout) == before


def test_an_image_that_nobody_signed_is_not_found(
    builder: Builder, layout: Path, key: Path
) -> None:
    status, said = verified(builder, layout, key.with_suffix(".pub"))
    assert (status, "nobody signed it" in said) == (13, True)
    assert said.startswith(f"builder: error: layout '{layout}': sha256:")
    assert said.endswith("signs what was built here; skopeo copy leaves signatures behind\n")


def test_a_key_that_somebody_else_keeps_is_no_key_of_a_build(
    builder: Builder, tmp_path: Path
) -> None:
    ran = builder("build", "hello", "--out", tmp_path / "image", "--sign", "exec:true")
    assert (ran.status, ran.out) == (2, "")
    assert ran.err == (
        "builder: error: --sign has no place for the public half that exec: wants\n"
        "  hint: leave it out, then: builder sign VARIANT REF --key exec:COMMAND --public FILE\n"
    )
    assert not (tmp_path / "image").exists()


def test_another_key_is_not_trusted(builder: Builder, layout: Path, key: Path) -> None:
    signed(builder, layout, key)
    status, said = verified(builder, layout, key.with_name("other.pub"))
    assert (status, "of a key that is trusted" in said) == (11, True)
    ran = builder("verify", f"oci:{layout}", "--key", key.with_name("other.pub"), "--key",
                  key.with_suffix(".pub"))  # fmt: skip
    assert ran.status == 0, "any of several"


def test_a_key_is_demanded(builder: Builder, layout: Path) -> None:
    ran = builder("verify", f"oci:{layout}")
    assert (ran.status, "no key is trusted" in ran.err) == (2, True)


def test_another_image_under_the_name_is_not_the_signed_one(
    builder: Builder, layout: Path, key: Path
) -> None:
    signed(builder, layout, key)
    store = FileStore(layout)
    old = store.references()["hello"]
    manifest = json.loads(store.read(old.digest))
    manifest["annotations"] = {"evil": "yes"}
    raw = json.dumps(manifest).encode()
    store.put(raw)
    new = Descriptor(media_type=old.media_type, digest=Digest.of(raw), size=len(raw))
    store.set_reference("hello", new)
    status, said = verified(builder, layout, key.with_suffix(".pub"))
    assert (status, "nobody signed it" in said) == (13, True)
    # The attacker brings the signatures along: they are about another image.
    for tag in (carriers.signature_tag, carriers.attestation_tag, carriers.referrers_tag):
        store.set_reference(tag(new.digest), store.references()[tag(old.digest)])
    status, said = verified(builder, layout, key.with_suffix(".pub"))
    assert (status, "another image" in said) == (10, True)


def test_a_layer_that_is_damaged_is_found(builder: Builder, layout: Path, key: Path) -> None:
    signed(builder, layout, key)
    store = FileStore(layout)
    manifest = Manifest.parse(store.read(store.references()["hello"].digest))
    blob = layout / "blobs" / "sha256" / manifest.layers[-1].digest.hex
    data = bytearray(blob.read_bytes())
    data[len(data) // 2] ^= 1
    blob.chmod(0o644)
    blob.write_bytes(data)
    assert verified(builder, layout, key.with_suffix(".pub"))[0] == 4


def test_less_than_what_is_demanded_is_refused(builder: Builder, layout: Path, key: Path) -> None:
    """Only the older form is left: the image is signed, and nothing is said of it."""
    signed(builder, layout, key)
    store = FileStore(layout)
    image = store.references()["hello"].digest
    document = json.loads((layout / "index.json").read_text())
    keep = {"hello", carriers.signature_tag(image)}
    name = "org.opencontainers.image.ref.name"
    document["manifests"] = [m for m in document["manifests"] if m["annotations"][name] in keep]
    (layout / "index.json").write_text(json.dumps(document))
    status, said = verified(builder, layout, key.with_suffix(".pub"))
    assert (status, "no manifest statement" in said) == (13, True)


def test_it_is_baked_again_and_compared(
    builder: Builder, layout: Path, project: Path, key: Path
) -> None:
    signed(builder, layout, key)
    public = key.with_suffix(".pub")
    status, said = verified(builder, layout, public, "--rebuild")
    assert (status, "rebuilt here: the same image" in said) == (0, True)
    file = project / "overlays/greeting/files/limits.py"
    file.write_text(file.read_text() + "# another day\n")
    status, said = verified(builder, layout, public, "--rebuild")
    assert (status, "baking 'hello' here gives" in said) == (4, True)
    assert "builder explain" in said


def test_what_is_published_must_be_what_was_built(
    builder: Builder, layout: Path, project: Path, key: Path
) -> None:
    file = project / "overlays/greeting/files/limits.py"
    file.write_text(file.read_text() + "# another day\n")
    assert builder("build", "hello").status == 0
    before = tree(layout)
    ran = builder("sign", "hello", f"oci:{layout}", "--key", key, "--allow-plaintext")
    assert (ran.status, "is not in it" in ran.err) == (4, True)
    assert tree(layout) == before


def test_a_layout_of_several_images_wants_a_name(builder: Builder, layout: Path, key: Path) -> None:
    signed(builder, layout, key)
    store = FileStore(layout)
    store.set_reference("again", store.references()["hello"])
    status, said = verified(builder, layout, key.with_suffix(".pub"))
    names = f"write one of oci:{layout}:hello, oci:{layout}:again"
    assert (status, names in said) == (2, True)
    assert builder("verify", f"oci:{layout}:again", "--key", key.with_suffix(".pub")).status == 0


def test_no_key_no_layout_no_image(builder: Builder, layout: Path, key: Path) -> None:
    shutil.rmtree(layout)
    assert builder("verify", f"oci:{layout}", "--key", key.with_suffix(".pub")).status == 3
    assert builder("sign", "nobody", f"oci:{layout}", "--key", key).status == 3


def test_without_a_key_the_policy_of_the_project_says_who_may_sign(
    builder: Builder, layout: Path, project: Path, key: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One key signs images here; another one's signature is good, and is not what is wanted."""
    monkeypatch.setenv("BUILDER_KEYS", str(key.with_name("keys")))
    monkeypatch.setenv("BUILDER_KEY_PASSWORD", "of no worth")
    monkeypatch.setenv("XDG_STATE_HOME", str(key.with_name("state")))
    for name in ("mine", "other"):
        assert builder("key", "generate", name).status == 0
    assert builder("trust", "new", "--key", "mine", "--repository", "*").status == 0
    assert builder("trust", "sign", "--key", "mine").status == 0
    assert builder("verify", f"oci:{layout}").status == 11, "nobody accepted the policy"
    assert builder("trust", "init", "--accept-first").status == 0
    assert builder("verify", f"oci:{layout}").status == 13
    assert builder("sign", "hello", f"oci:{layout}", "--key", "other").status == 0
    assert builder("verify", f"oci:{layout}").status == 11
    assert builder("sign", "hello", f"oci:{layout}", "--key", "mine").status == 0
    assert builder("verify", f"oci:{layout}").status == 0
    file = project / "trust.yaml"
    file.write_text(file.read_text().replace("owner: mine", "owner: somebody"))
    assert builder("verify", f"oci:{layout}").status == 11, "it is not what was accepted"


def test_every_tool_that_reads_registries_is_given_its_commands() -> None:
    image = tiny_image(b"signed").manifest
    spot = Spot(
        reference="registry.example/acme/hello:t",
        repository="registry.example/acme/hello",
        name="registry.example/acme/hello:t",
        open=MemoryPlace,
        top=lambda: image,
    )
    done = Signed(
        spot=spot,
        images=(image.descriptor,),
        signer=p256(),
        published=Published(added=(), present=8),
    )
    name = f"registry.example/acme/hello@{image.digest}"
    by_key, offline = "--key cosign.pub", "--insecure-ignore-tlog=true"
    assert done.commands() == (
        f"builder verify {name} {by_key}",
        f"cosign verify {by_key} {offline} {name}",
        f"cosign verify-attestation {by_key} --type slsaprovenance1 {offline} {name}",
    )
    by_policy = done.policy_commands()
    assert done.document()["policy_commands"] == list(by_policy)
    exported = "--policy containers/policy.json --registries.d containers/registries.d"
    assert by_policy == (
        "builder trust export --format containers --reject --out containers",
        f"skopeo {exported} copy --remove-signatures docker://{name} dir:copy",
        "cp containers/registries.d/builder.yaml /etc/containers/registries.d/",
        f"podman pull --signature-policy containers/policy.json {name}",
        "builder trust export --format containerd --out containerd",
        f"cp containerd/bin/builder /opt/containerd/image-verifier/bin/ && ctr image pull {name}",
    )
