"""Provenance and SBOM of a build that has one of everything; the bytes of all statements."""

import dataclasses
import json
import re
from typing import Any

import pytest

from builder import canonical
from builder.attest.statement import Statement, envelope
from builder.attest.statement import parse as parse_statement
from builder.digest import Digest, directory_digest
from builder.statements import PREDICATE_TYPES, Kind, provenance, sbom, statement, statements
from builder.statements.said import purl
from tests.plugins.golden import Golden
from tests.statements.rich import (
    LOCK,
    PACKAGES,
    VARIANT,
    base,
    build,
    commit,
    digest,
    document,
    record,
)


def predicate(kind: Kind, value: dict[str, Any] | None = None) -> Any:
    """The predicate as JSON."""
    said = statement(record(value), kind, name="x")
    return json.loads(canonical.encode(said.predicate))


@pytest.mark.parametrize("kind", Kind)
def test_a_statement_says_what_it_said_before(kind: Kind, golden: Golden) -> None:
    """A change of these files changes what is signed of every image: the commit says why."""
    text = json.dumps(predicate(kind), indent=2, ensure_ascii=False, sort_keys=True)
    golden(f"statements/{kind}.json", f"{text}\n")


def test_there_is_one_statement_of_each_kind_about_the_image() -> None:
    made = record()
    said = statements(made, name="registry.example/acme/vllm")
    assert [item.predicate_type for item in said] == [
        "urn:vllm-image-builder:manifest:v1",
        "https://slsa.dev/provenance/v1",
        "https://cyclonedx.org/bom",
    ]
    assert [item.predicate_type for item in said] == [PREDICATE_TYPES[kind] for kind in Kind]
    for item in said:
        (subject,) = item.subjects
        assert (subject.name, subject.digest) == ("registry.example/acme/vllm", made.digest)
        assert item.about(made.digest)


def test_the_name_of_the_subject_is_in_no_predicate() -> None:
    one, two = statements(record(), name="one"), statements(record(), name="two")
    assert [item.predicate for item in one] == [item.predicate for item in two]
    assert [item.subjects for item in one] != [item.subjects for item in two]


def test_what_is_signed_is_read_back_as_it_was_said() -> None:
    for said in statements(record(), name="registry.example/acme/vllm"):
        wrapped = envelope(said)
        read = parse_statement(wrapped, at="x")
        assert isinstance(read, Statement)
        assert envelope(read) == wrapped
        assert canonical.encode(json.loads(wrapped.payload)) == wrapped.payload


def _reversed(value: Any) -> Any:
    """The same document, every object in another order."""
    if isinstance(value, dict):
        return {key: _reversed(value[key]) for key in reversed(list(value))}
    return [_reversed(item) for item in value] if isinstance(value, list) else value


def test_the_order_of_the_record_is_no_matter() -> None:
    from builder.build_record.read import _record

    one = statements(_record(document()), name="x")
    two = statements(_record(_reversed(document())), name="x")
    assert [envelope(item) for item in one] == [envelope(item) for item in two]


def test_another_sandbox_changes_no_byte() -> None:
    made = build()
    steps = tuple(
        dataclasses.replace(item, output=dataclasses.replace(item.output, sandbox="container"))
        for item in made.steps
    )
    other = document(dataclasses.replace(made, steps=steps))
    assert other != document()
    assert [envelope(item) for item in statements(record(other), name="x")] == [
        envelope(item) for item in statements(record(), name="x")
    ]


def test_a_pin_for_another_variant_changes_no_byte() -> None:
    files = {**document()["files"], "lockfiles/pulls.yaml": str(digest("more pulls"))}
    for kind in Kind:
        assert predicate(kind, {**document(), "files": files}) == predicate(kind)


# --- provenance ------------------------------------------------------------------------------


def resources(value: dict[str, Any] | None = None) -> dict[str, Any]:
    found = predicate(Kind.PROVENANCE, value)["buildDefinition"]["resolvedDependencies"]
    named = {item["name"]: item for item in found}
    assert len(named) == len(found)
    return named


def test_every_content_that_went_in_is_a_resource_with_its_digest() -> None:
    found = resources()
    given = {text for item in found.values() for text in item.get("digest", {}).values()}
    below = base()
    whole = {found[name]["digest"]["dirHash"] for name in ("overlay own", "model qwen")}
    assert {
        *(item.hex for item in (below.manifest.digest, below.manifest.config.digest)),
        *(layer.digest.hex for layer in below.manifest.layers),
        digest("index").hex,
        *(str(commit(digit)) for digit in "123456789"),
        *(item.digest.hex for item in LOCK.sources["club"].files[:3]),
        *(pin.digest.hex for pin in LOCK.wheels.values()),
    } == given - whole
    assert digest("unused").hex not in given


def test_a_digest_has_the_form_that_its_algorithm_has() -> None:
    for item in resources().values():
        for algorithm, text in item.get("digest", {}).items():
            length = {"sha256": 64, "dirHash": 64, "gitCommit": 40, "gitTree": 40}[algorithm]
            assert re.fullmatch(f"[0-9a-f]{{{length}}}", text), item


def test_every_resource_has_an_address_or_a_digest() -> None:
    """ResourceDescriptor: "at least one of uri, digest, content"."""
    assert all("uri" in item or "digest" in item for item in resources().values())


def test_a_twin_is_not_said_to_be_where_the_pinned_image_was() -> None:
    value = document()
    value["base"]["twin_of"] = str(digest("the pinned one"))
    item = resources(value)["base manifest"]
    assert "uri" not in item
    assert item["annotations"]["twin_of"] == str(digest("the pinned one"))


def test_the_digest_of_a_directory_is_that_of_sha256sum(tmp_path: Any) -> None:
    import subprocess

    files = {"b": b"1", "a/c": b"2", "a b": b"3", "é": b"4", "B": b""}
    for path, data in files.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes(data)
    done = subprocess.run(
        "find . -type f | cut -c3- | LC_ALL=C sort | xargs -r -d '\\n' sha256sum | sha256sum",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=True,
    )
    got = directory_digest({path: Digest.of(data) for path, data in files.items()})
    assert got.hex == done.stdout.split()[0]


def test_a_model_that_is_not_pinned_whole_has_no_digest_of_its_directory() -> None:
    value = document()
    del value["pins"]["models"]["qwen"]["files"]["config.json"]["digest"]
    assert resources(value)["model qwen"]["digest"] == {"gitCommit": str(commit("9"))}


# --- SBOM ------------------------------------------------------------------------------------


def components(value: dict[str, Any] | None = None) -> dict[str, Any]:
    found = predicate(Kind.SBOM, value)["components"]
    return {item["bom-ref"]: item for item in found}


def patches(component: dict[str, Any]) -> list[str]:
    return [item["type"] for item in component.get("pedigree", {}).get("patches", [])]


def test_the_patches_of_vllm_are_its_pedigree_and_the_others_that_of_the_image() -> None:
    vllm = components()["vllm"]
    # pr-1, own, own script, pinned script, and of the patch set what is in files and what is not.
    assert patches(vllm) == [
        *("cherry-pick", "unofficial", "unofficial", "unofficial"),
        *("unofficial", "monkey"),
    ]
    assert vllm["pedigree"]["commits"] == [{"uid": str(commit("c"))}]
    pull = vllm["pedigree"]["patches"][0]
    one, two = commit("1"), commit("2")
    assert pull["diff"] == {"url": f"https://github.com/acme/vllm/compare/{one}...{two}.diff"}
    assert pull["resolves"][0]["source"] == {"url": "https://github.com/acme/vllm/pull/1"}
    image = predicate(Kind.SBOM)["metadata"]["component"]
    assert patches(image) == ["unofficial"]
    told = {item["name"]: item["value"] for item in image["properties"]}
    assert told["vllm-image-builder:step:pr-2"] == "left out: already upstream"


def test_a_published_diff_is_a_backport_and_is_where_it_is_published() -> None:
    value = document()
    steps = {step["name"]: step for step in value["steps"]}
    steps["pr-2"]["output"] = steps["pr-1"]["output"]
    (patch,) = (
        item
        for item in components(value)["vllm"]["pedigree"]["patches"]
        if item["type"] == "backport"
    )
    place = f"git+https://github.com/acme/club@{commit('3')}#pr-2.patch"
    assert patch["diff"] == {"url": place}


def test_a_wheel_of_the_project_is_not_what_an_index_has_under_its_name() -> None:
    found = components()
    assert found["wheel pandas"]["purl"] == "pkg:pypi/pandas-x@2.2.3%2Blocal"
    assert "purl" not in found["wheel ours"]


def test_the_vllm_of_a_wheel_is_the_wheel() -> None:
    value = document()
    value["pins"]["wheels"]["pandas"] |= {"project": "vLLM", "version": "0.22.0"}
    found = components(value)
    assert "vllm" not in found
    assert patches(found["wheel pandas"])
    assert list(found).count("wheel pandas") == 1


@pytest.mark.parametrize("version", [True, False])
def test_a_vllm_of_which_little_is_known_is_there_without_it(version: bool) -> None:
    value = document()
    if version:
        value["pins"]["vllm"]["nightly"]["vllm"] = {"version": "0.22.0"}
    else:
        del value["pins"]["vllm"]["nightly"]["vllm"]
    vllm = components(value)["vllm"]
    assert ("version" in vllm, "purl" in vllm) == (version, version)
    assert "commits" not in vllm["pedigree"]


def test_an_image_without_vllm_has_none() -> None:
    value = document()
    del value["pins"]["vllm"]["nightly"]["vllm"]
    for step in value["steps"]:
        for file in step["output"]["files"]:
            file["path"] = file["path"].replace(PACKAGES, "opt")
    assert "vllm" not in components(value)


def test_every_reference_of_the_bill_is_there_and_no_other() -> None:
    bill = predicate(Kind.SBOM)
    refs = [item["bom-ref"] for item in bill["components"]]
    assert len(set(refs)) == len(refs)
    assert [item["ref"] for item in bill["dependencies"]] == ["image", *refs]
    assert set(bill["dependencies"][0]["dependsOn"]) == set(refs) - {"model qwen"}


def test_the_serial_number_is_a_uuid_of_version_8_that_names_the_document() -> None:
    bill = predicate(Kind.SBOM)
    number = bill["serialNumber"]
    form = r"urn:uuid:[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert re.fullmatch(form, number)
    assert sbom.serial_number({k: v for k, v in bill.items() if k != "serialNumber"}) == number
    other = predicate(Kind.SBOM, {**document(), "digest": str(digest("another image"))})
    assert other["serialNumber"] != number


def test_no_document_has_a_time() -> None:
    for kind in Kind:
        text = canonical.encode(predicate(kind)).decode()
        found = re.findall(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(?:T[0-9:]+Z)?", text)
        assert set(found) <= {"2026-12-31"}, kind  # the end of the waiver, as the project says it
    assert "metadata" not in predicate(Kind.PROVENANCE)["runDetails"]
    assert "timestamp" not in predicate(Kind.SBOM)["metadata"]


@pytest.mark.parametrize(
    ("found", "wanted"),
    [
        (purl("pypi", "a", "1+b"), "pkg:pypi/a@1%2Bb"),
        (purl("huggingface", "Org/M X", "1"), "pkg:huggingface/Org/M%20X@1"),
        (
            purl("oci", "v", "sha256:ab", (("tag", ""), ("arch", "amd64"))),
            "pkg:oci/v@sha256:ab?arch=amd64",
        ),
        (
            purl("oci", "v", "sha256:ab", (("tag", "t"), ("repository_url", "l:5000/a/v"))),
            "pkg:oci/v@sha256:ab?repository_url=l:5000/a/v&tag=t",
        ),
    ],
)
def test_a_package_url_is_spelled_as_its_specification_says(found: str, wanted: str) -> None:
    assert found == wanted


def test_the_provenance_names_the_recipe_the_platform_and_the_builder() -> None:
    said = predicate(Kind.PROVENANCE)
    assert said["buildDefinition"]["buildType"] == provenance.BUILD_TYPE
    given = said["buildDefinition"]["externalParameters"]
    assert given["variant"] == VARIANT.name
    assert given["strict"] is True
    assert given["recipe"] == {
        "uri": "file:variants/rich.yaml",
        "digest": {"sha256": digest("recipe").hex},
    }
    assert said["runDetails"]["builder"]["id"] == provenance.BUILDER_ID
