"""The policy in the words of other tools. What skopeo, cosign and the schemas of Kyverno make of it
is in tests/real."""

import json
import re
import subprocess
import tomllib
from base64 import b64decode
from datetime import date, timedelta
from itertools import combinations
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.digest import Digest
from builder.errors import PolicyError
from builder.reference import Reference
from builder.trust.codec import read_policy
from builder.trust.export.chosen import Export
from builder.trust.export.containerd import containerd
from builder.trust.export.containers import containers
from builder.trust.export.cosign import cosign
from builder.trust.export.kyverno import kyverno
from builder.trust.model import Policy
from builder.trust.scope import covers
from tests.trust.keys import NAMES, TODAY, key_entry, policy_text, public


def policy(
    keys: str = "carol, dan",
    threshold: int = 1,
    *,
    patterns: str = '"registry.example/acme/*"',
    **entries: str,
) -> Policy:
    listed = "".join(entries.get(name) or key_entry(name) for name in NAMES)
    return read_policy(
        policy_text(
            keys=listed,
            roles=f"  image: {{keys: [{keys}], threshold: {threshold}}}\n",
            scopes=f"  - {{repositories: [{patterns}], role: image}}\n",
        ).encode()
    )


HOSTS = ("", "index.", "registry-1.")
"""Docker Hub's hosts, as they begin."""


def document(export: Export) -> Any:
    return json.loads(export.files["policy.json"])


def alternatives(requirement: dict[str, Any]) -> set[bytes]:
    """The keys of one requirement, any of which will do."""
    data = requirement.get("keyDatas") or [requirement["keyData"]]
    return {b64decode(item) for item in data}


@settings(max_examples=40)
@given(st.integers(1, 4), st.integers(1, 4))
def test_requirements_are_met_by_exactly_those_sets_of_keys_that_reach_the_threshold(
    count: int, threshold: int
) -> None:
    if threshold > count:
        return
    names = NAMES[:count]
    made = document(containers(policy(", ".join(names), threshold), today=TODAY, reject=True))
    requirements = made["transports"]["docker"]["registry.example/acme"]
    for size in range(count + 1):
        for who in combinations(names, size):
            pems = {public(name).pem for name in who}
            met = all(alternatives(requirement) & pems for requirement in requirements)
            assert met is (size >= threshold)


def test_policy_json_names_places_as_containers_does() -> None:
    patterns = '"registry.example/acme/*", "localhost:5000/a", docker.io/library/python'
    export = containers(policy(patterns=patterns), today=TODAY, reject=True)
    made = document(export)
    assert made["default"] == [{"type": "reject"}]
    hub = {f"{host}docker.io/library/python" for host in HOSTS}
    places = {"registry.example/acme", "localhost:5000/a", *hub}
    assert set(made["transports"]["docker"]) == places
    (requirement,) = made["transports"]["docker"]["registry.example/acme"]
    assert requirement["type"] == "sigstoreSigned"
    assert requirement["signedIdentity"] == {"type": "matchRepository"}
    registries = yaml.safe_load(export.files["registries.d/builder.yaml"])
    assert registries == {"docker": {place: {"use-sigstore-attachments": True} for place in places}}


def test_what_no_scope_has_passes_unless_it_is_to_be_refused() -> None:
    made = document(containers(policy(), today=TODAY, reject=False))
    assert made["default"] == [{"type": "insecureAcceptAnything"}]


def test_a_scope_of_everything_is_all_of_the_registries_and_no_file_on_this_disk() -> None:
    export = containers(policy(patterns='"*"'), today=TODAY, reject=True)
    made = document(export)
    assert set(made["transports"]["docker"]) == {""}
    assert made["transports"]["docker"][""][0]["type"] == "sigstoreSigned"
    for local in ("oci", "containers-storage", "docker-daemon"):
        assert made["transports"][local] == {"": [{"type": "insecureAcceptAnything"}]}
    assert yaml.safe_load(export.files["registries.d/builder.yaml"]) == {
        "default-docker": {"use-sigstore-attachments": True}
    }


def test_a_threshold_that_would_take_too_many_requirements_is_refused() -> None:
    names = [f"k{number}" for number in range(12)]
    many = read_policy(
        policy_text(
            keys="".join(map(key_entry, (*NAMES, *names))),
            roles=f"  image: {{keys: [{', '.join(names)}], threshold: 6}}\n",
        ).encode()
    )
    with pytest.raises(PolicyError, match="6 of 12 keys are 792 requirements"):
        containers(many, today=TODAY, reject=True)


@pytest.mark.parametrize(
    "entry",
    [
        key_entry("dan", state="revoked"),
        key_entry("dan", state="retired"),
        key_entry("dan", f"until: {TODAY - timedelta(days=1)}"),
        key_entry("dan", f"since: {TODAY + timedelta(days=1)}"),
    ],
    ids=["revoked", "retired", "over", "not begun"],
)
def test_a_key_that_does_not_count_today_is_in_no_export(entry: str) -> None:
    left = policy(dan=entry)
    exports = [
        containers(left, today=TODAY, reject=True),
        kyverno(left, today=TODAY, reject=True),
        cosign(left, today=TODAY),
    ]
    needle = public("dan").pem.decode().splitlines()[1]
    for export in exports:
        for data in export.files.values():
            plain = data.decode() + "".join(
                b64decode(item).decode()
                for item in data.decode().split('"')
                if item.startswith("LS0t")
            )
            assert needle not in plain
        assert any("'dan' is left out" in remark for remark in export.remarks)
    with pytest.raises(PolicyError, match="0 keys count today, and 1 have to sign"):
        kyverno(policy("dan", dan=entry), today=TODAY, reject=True)


def test_what_no_copy_can_say_is_told() -> None:
    until = TODAY + timedelta(days=9)
    (told, days) = cosign(policy(dan=key_entry("dan", f"until: {until}")), today=TODAY).remarks[:2]
    assert told == "a copy of version 1: it still holds when that expires, 2027-12-31"
    assert days == f"key 'dan' counts to {until}, and in the copy for good"


def rules(*patterns: str, reject: bool = False) -> list[Any]:
    """The rules of a policy for Kyverno."""
    listed = ", ".join(f'"{item}"' for item in patterns)
    export = kyverno(policy(threshold=2, patterns=listed), today=TODAY, reject=reject)
    made = yaml.safe_load(export.files["clusterpolicy.yaml"])
    assert (made["apiVersion"], made["kind"]) == ("kyverno.io/v1", "ClusterPolicy")
    assert made["spec"]["validationFailureAction"] == "Enforce"
    found: list[Any] = made["spec"]["rules"]
    return found


def test_kyverno_gets_a_rule_a_place_with_the_threshold_as_its_count() -> None:
    made = rules("r.example/a/*", "r.example/b")
    assert [rule["name"] for rule in made] == ["image-1", "image-2"]
    (verify,) = made[0]["verifyImages"]
    assert (verify["required"], verify["verifyDigest"]) == (True, True)
    (attestor,) = verify["attestors"]
    assert attestor["count"] == 2
    listed = {entry["keys"]["publicKeys"].encode() for entry in attestor["entries"]}
    assert listed == {public("carol").pem, public("dan").pem}


def kyvernos(pattern: str, text: str) -> bool:
    """Whether Kyverno's wildcards match the whole of a text."""
    any_text = {"*": ".*", "?": ".?"}
    return bool(re.fullmatch("".join(any_text.get(c) or re.escape(c) for c in pattern), text))


def kyvernos_name(image: str) -> str:
    """How Kyverno has an image before it looks at its patterns: with docker.io where there is no
    registry, and ``latest`` where there is no tag; a digest takes the place of a tag."""
    head, slash, _ = image.partition("/")
    if not slash or (not set(head) & set(".:") and head != "localhost"):
        image = f"docker.io/{image}"
    name, at, digest = image.partition("@")
    host, _, path = name.partition("/")
    path, _, tag = path.partition(":")
    return f"{host}/{path}@{digest}" if at else f"{host}/{path}:{tag or 'latest'}"


ENDS = ("", ":v1", f"@sha256:{'1' * 64}", f":v1@sha256:{'1' * 64}")
IMAGES = (
    "r.example/b",
    "r.example/b/c",
    "r.example/bc",
    "r.example/a/x",
    "r.example/a/x/y",
    "r.example/ab",
    "other.example/r.example/b",
    "localhost:5000/b",
    "docker.io/acme/vllm",
    "index.docker.io/acme/vllm",
    "registry-1.docker.io/acme/vllm",
    "acme/vllm",
    "acme/vllm-evil",
    "docker.io/library/python",
    "index.docker.io/python",
    "library/python",
    "python",
)


@pytest.mark.parametrize(
    "pattern",
    [
        "r.example/b",
        "r.example/a/*",
        "r.example/*",
        "localhost:5000/b",
        "docker.io/acme/vllm",
        "docker.io/acme/*",
        "docker.io/*",
        "docker.io/library/python",
        "*",
    ],
)
def test_kyverno_holds_an_image_to_the_policy_however_its_name_is_spelt(pattern: str) -> None:
    rule, *others = rules(pattern, reject=True)
    (verify,) = rule["verifyImages"]
    for name in IMAGES:
        for end in ENDS:
            image = f"{name}{end}"
            covered = covers(pattern, Reference.parse(image))
            seen = kyvernos_name(image)
            # Where it is configured to add no registry.
            bare = seen if image.startswith(seen.split("/")[0]) else seen.partition("/")[2]
            for told in {seen, seen if pattern == "docker.io/*" else bare}:
                matched = any(kyvernos(item, told) for item in verify["imageReferences"])
                assert matched is covered, told
            for other in others:  # which reads what the pod has
                spec = other["validate"]["pattern"]["spec"]
                (container,) = spec["containers"]
                assert spec["=(initContainers)"] == spec["=(ephemeralContainers)"] == [container]
                told = seen if pattern == "docker.io/*" else image
                passes = any(kyvernos(item, told) for item in container["image"].split(" | "))
                assert passes is covered, told
    assert [rule["name"] for rule in others] == ([] if pattern == "*" else ["others"])


def test_what_kyverno_cannot_tell_apart_is_refused_and_what_it_takes_for_another_is_told() -> None:
    with pytest.raises(PolicyError, match=r"'docker.io/library/\*': Kyverno takes an image NAME"):
        rules("docker.io/library/*")
    for export in (kyverno, containers):
        loose, strict = (export(policy(), today=TODAY, reject=it).remarks for it in (False, True))
        (told,) = set(loose) - set(strict)
        assert told.endswith("pass unseen: --reject refuses them")


FAKE_COSIGN = """\
#!/bin/sh
# Verifies if the key is in the file of those that signed.
test "$1 $2 $4" = "verify --key --insecure-ignore-tlog=true" || exit 3
grep -qx "$(basename "$3" .pub)" "$SIGNED"
"""


@pytest.mark.parametrize(
    ("signed", "image", "status"),
    [
        ("carol dan", "registry.example/acme/vllm", 0),
        ("carol", "registry.example/acme/vllm", 1),
        ("carol mallory", "registry.example/acme/vllm", 1),
        ("carol", "registry.example/acme/loose", 0),
        ("carol", "registry.example/acme/x", 0),
        ("carol", "registry.example/acme/y", 1),
        ("carol dan", "registry.example/acme-evil/vllm", 1),
        ("carol dan", "other.example/registry.example/acme/vllm", 1),
    ],
)
def test_the_script_counts_keys_and_takes_the_narrowest_place(
    tmp_path: Path, signed: str, image: str, status: int
) -> None:
    roles = "  image: {keys: [carol, dan], threshold: 2}\n  loose: {keys: [carol], threshold: 1}\n"
    scopes = (
        '  - {repositories: ["registry.example/acme/*"], role: image}\n'
        "  - {repositories: [registry.example/acme/loose, registry.example/acme/x], role: loose}\n"
    )
    export = cosign(read_policy(policy_text(roles=roles, scopes=scopes).encode()), today=TODAY)
    for name, data in export.files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
    fake = tmp_path / "bin" / "cosign"
    fake.parent.mkdir()
    fake.write_text(FAKE_COSIGN)
    fake.chmod(0o755)
    (tmp_path / "signed").write_text("\n".join(signed.split()) + "\n")
    digest = "sha256:" + "0" * 64
    done = subprocess.run(
        ["sh", tmp_path / "verify.sh", f"{image}@{digest}"],
        env={"PATH": f"{fake.parent}:/usr/bin:/bin", "SIGNED": str(tmp_path / "signed")},
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr if status == 0 else b"") == (status, b"")


@pytest.mark.parametrize(
    ("fake", "status", "message"),
    [
        (None, 3, "cosign is not in PATH: nothing was verified\n"),
        (
            "#!/bin/sh\necho connection refused >&2\nexit 1\n",
            1,
            "carol: connection refused\ndan: connection refused\n",
        ),
    ],
)
def test_the_script_says_why_nothing_passed(
    tmp_path: Path, fake: str | None, status: int, message: str
) -> None:
    script = tmp_path / "verify.sh"
    script.write_bytes(cosign(policy(), today=TODAY).files["verify.sh"])
    bin_ = tmp_path / "bin"
    bin_.mkdir()
    (bin_ / "dirname").symlink_to("/usr/bin/dirname")
    if fake:
        (bin_ / "cosign").write_text(fake)
        (bin_ / "cosign").chmod(0o755)
    done = subprocess.run(
        ["/bin/sh", script, f"registry.example/acme/x@sha256:{'0' * 64}"],
        env={"PATH": str(bin_)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (status, message)


@pytest.mark.parametrize(
    ("image", "message"),
    [
        ("registry.example/acme/vllm:tag", "name the image by digest"),
        ("registry.example/acme/vllm:tag@", "name the image without a tag"),
        ("registry.example:5000/acme/vllm:tag@", "name the image without a tag"),
        ("REGISTRY.example/acme/vllm@", "write the image in lower case"),
        ("registry.example:443/acme/vllm@", "write the registry without :443 or :0..."),
        ("registry.example:05000/acme/vllm@", "write the registry without :443 or :0..."),
        ("[::1]:443/acme/vllm@", "write the registry without :443 or :0..."),
        ("index.docker.io/acme/vllm@", "write docker.io"),
        ("registry-1.docker.io/acme/vllm@", "write docker.io"),
        ("docker.io/python@", "write docker.io/library"),
        ("acme/vllm@", "name the image with its registry"),
        ("python@", "name the image with its registry"),
        ("acme/v1.2/vllm@", "name the image with its registry"),
        ("localhost.acme@", "name the image with its registry"),
        ("registry.example./acme/vllm@", "write the registry without a dot at its end"),
        ("registry.example.:5000/acme/vllm@", "write the registry without a dot at its end"),
        ("docker.io./acme/vllm@", "write the registry without a dot at its end"),
    ],
)
def test_the_script_takes_one_spelling_of_an_image_or_a_wider_scope_would_have_it(
    tmp_path: Path, image: str, message: str
) -> None:
    (tmp_path / "verify.sh").write_bytes(
        cosign(policy(patterns='"*"'), today=TODAY).files["verify.sh"]
    )
    asked = f"{image}sha256:{'0' * 64}" if image.endswith("@") else image
    done = subprocess.run(
        ["sh", tmp_path / "verify.sh", asked],
        env={"PATH": f"{cosign_that_takes_all(tmp_path)}:/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, f"{message}: {asked}\n")


def cosign_that_takes_all(directory: Path) -> Path:
    """A directory for PATH."""
    (directory / "bin").mkdir()
    (directory / "bin/cosign").write_text("#!/bin/sh\n")
    (directory / "bin/cosign").chmod(0o755)
    return directory / "bin"


def test_a_registry_that_is_an_address_is_no_set_of_letters_to_the_script(tmp_path: Path) -> None:
    (tmp_path / "verify.sh").write_bytes(
        cosign(policy(patterns='"[::0]:5000/acme/*"'), today=TODAY).files["verify.sh"]
    )
    path = f"{cosign_that_takes_all(tmp_path)}:/usr/bin:/bin"
    for image, status in (("[::0]:5000/acme/x", 0), ("0:5000/acme/x", 1)):
        argv = ["sh", str(tmp_path / "verify.sh"), f"{image}@sha256:{'0' * 64}"]
        done = subprocess.run(argv, env={"PATH": path}, capture_output=True, check=False)
        assert done.returncode == status, image


def two_roles(loose: str, tight: str) -> Policy:
    """``loose`` wants one signature, ``tight`` two."""
    return read_policy(
        policy_text(
            roles="  loose: {keys: [carol, dan], threshold: 1}\n"
            "  tight: {keys: [carol, dan], threshold: 2}\n",
            scopes=f'  - {{repositories: ["{loose}"], role: loose}}\n'
            f'  - {{repositories: ["{tight}"], role: tight}}\n',
        ).encode()
    )


@pytest.mark.parametrize(
    ("loose", "tight"),
    [
        ("registry.example/acme/*", "registry.example/acme"),
        ("registry.example/acme", "registry.example/acme/*"),
        ("registry.example/acme/*", "registry.example/*"),
    ],
)
def test_a_place_is_not_written_where_the_repository_of_its_name_has_another_role(
    loose: str, tight: str
) -> None:
    with pytest.raises(PolicyError, match=r"written 'registry.example/acme' in policy.json"):
        containers(two_roles(loose, tight), today=TODAY, reject=True)


def test_that_a_place_has_the_repository_of_its_name_in_policy_json_is_told() -> None:
    (told,) = containers(policy(), today=TODAY, reject=True).remarks[1:2]
    assert told == "the repository 'registry.example/acme' itself is held to 'image' there, too"
    for pattern in ("registry.example/*", "docker.io/acme/*", "registry.example/acme"):
        export = containers(policy(patterns=f'"{pattern}"'), today=TODAY, reject=True)
        assert not any("itself" in remark for remark in export.remarks)


@pytest.mark.parametrize("tight", ["registry.example/acme/*", "*"])
def test_a_repository_is_not_written_where_what_is_below_it_wants_more(tight: str) -> None:
    """policy.json holds .../dev/evil to what stands for .../dev."""
    made = two_roles("registry.example/acme/dev", tight)
    with pytest.raises(PolicyError, match=r"acme/dev' is also all that is below it"):
        containers(made, today=TODAY, reject=True)


@pytest.mark.parametrize("more", ["registry.example/acme/*", "*", None])
def test_that_a_repository_has_what_is_below_it_in_policy_json_is_told(more: str | None) -> None:
    name = "registry.example/acme/dev"
    made = two_roles(more, name) if more else policy(patterns=f'"{name}"')
    told = f"what is below {name!r} is held to {'tight' if more else 'image'!r} there, too"
    assert told in containers(made, today=TODAY, reject=True).remarks


def test_what_is_below_a_repository_and_of_its_role_needs_no_word() -> None:
    patterns = '"registry.example/acme/*", registry.example/acme/dev, registry.example/acme/dev/a'
    export = containers(policy(patterns=patterns), today=TODAY, reject=True)
    assert not any("below" in remark for remark in export.remarks)


@pytest.mark.parametrize(
    ("pattern", "name"),
    [
        ("docker.io/library/acme/*", "docker.io/acme/*"),
        ("docker.io/library/acme/vllm", "docker.io/acme/vllm:*"),
        ("docker.io/acme.example/*", "acme.example/*"),
        ("docker.io/acme.example/vllm", "acme.example/vllm:*"),
        ("docker.io/localhost/vllm", "localhost/vllm:*"),
    ],
)
def test_a_place_of_the_hub_is_no_other_place_to_kyverno(pattern: str, name: str) -> None:
    """library/ stands before names alone, and what could be a registry is one."""
    made = kyverno(policy(patterns=f'"{pattern}"'), today=TODAY, reject=True)
    rule = yaml.safe_load(made.files["clusterpolicy.yaml"])["spec"]["rules"][0]
    images = rule["verifyImages"][0]["imageReferences"]
    assert name not in images
    assert any(image.startswith(pattern) for image in images)


def test_policy_json_has_all_hosts_of_the_hub_for_a_narrow_scope() -> None:
    export = containers(two_roles("*", "docker.io/library/python"), today=TODAY, reject=True)
    docker = document(export)["transports"]["docker"]
    for host in ("docker.io", "index.docker.io", "registry-1.docker.io"):
        assert len(docker[f"{host}/library/python"]) == 2
    assert len(docker[""]) == 1


@pytest.mark.parametrize("turned", [False, True])
def test_an_official_image_is_not_the_place_of_its_name(turned: bool) -> None:
    place, image = "docker.io/python/*", "docker.io/library/python"
    made = two_roles(image, place) if turned else two_roles(place, image)
    docker = document(containers(made, today=TODAY, reject=True))["transports"]["docker"]
    assert (len(docker["docker.io/python"]), len(docker[image])) == ((2, 1) if turned else (1, 2))


def test_where_everything_has_what_is_spelt_otherwise_that_is_told() -> None:
    for export in (kyverno, containers):
        remarks = export(two_roles("*", "r.example/a"), today=TODAY, reject=True).remarks
        assert any(remark.endswith("are held to '*' alone") for remark in remarks)
        alone = export(policy(patterns='"*"'), today=TODAY, reject=True).remarks
        assert not any("spelt" in remark for remark in alone)


def test_containerd_gets_a_program_that_asks_builder() -> None:
    export = containerd(
        policy(),
        program=PurePosixPath("/opt/x y/bin/builder"),
        project=PurePosixPath("/srv/a b"),
        anchor=Digest.of(b"v"),
        today=date(2027, 1, 1),
    )
    assert (
        export.files["bin/builder"]
        == (
            f"#!/bin/sh\nexport BUILDER_TRUST={Digest.of(b'v')}\n"
            "exec '/opt/x y/bin/builder' -C '/srv/a b' image-verifier \"$@\"\n"
        ).encode()
    )
    settings = tomllib.loads(export.files["config.toml"].decode())
    plugin = settings["plugins"]["io.containerd.image-verifier.v1.bindir"]
    # Else a program whose name comes first would be asked alone.
    assert plugin["max_verifiers"] == -1
