"""Compose files that people deploy, through ``builder compose pin``; and our own, through Docker
Compose.

The deployments are read from a local copy that ``BUILDER_MIRRORS`` names. What changed is told by
comparing lines, which knows nothing of YAML, and by what Docker Compose makes of each file before
and after.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.claims import Claims
from tests.commands import ROOT, Builder, CommandError, clean_environment, run
from tests.real.debian_tool import debian_tool
from tests.real.genesis_facts import DEPLOYED, DEPLOYMENTS, copy

DIGEST = f"sha256:{'5' * 64}"
PLACE = "vllm/vllm-openai:pinned"
PINNED = f"docker.io/{PLACE}@{DIGEST}"
SPELT = frozenset({PINNED, f"{PLACE}@{DIGEST}"})
"""What an image shall be: a repository that is the right one stays as it was spelt."""

_IMAGE = re.compile(rb"(\s*image:\s*[\"']?)(\S*?)([\"']?\s*(?:\s#.*)?)")
_VARIABLE = re.compile(r"\$\{([A-Z_][A-Z0-9_]*):?\?")


def prove(claims: Claims) -> None:
    """Check it all."""
    compose = docker_compose(claims)
    repository = copy(DEPLOYMENTS)
    with tempfile.TemporaryDirectory(prefix="builder-composes-") as name:
        if compose is not None:
            _ours(claims, compose)
            _features(claims, compose, Path(name))
        if repository is None:
            claim = "compose pin on every compose file of club-3090"
            claims.not_run(claim, "no copy at hand", wants=DEPLOYMENTS)
            return
        project = Path(name) / "project"
        _deployments(claims, compose, project, taken(repository, project))


def docker_compose(claims: Claims) -> Path | None:
    """Debian's Docker Compose, or ``None`` where it cannot be had, which is told."""
    try:
        path = debian_tool(
            "docker-compose", "trixie", "usr/libexec/docker/cli-plugins/docker-compose"
        )
        claims.noted("Docker Compose", True, run((path, "version", "--short")).text)
    except CommandError as error:
        claims.not_run("what Docker Compose makes of pinned files", error.said or str(error))
        return None
    return path


def _resolved(compose: Path, file: Path) -> dict[str, Any]:
    """What Docker Compose makes of a file; variables that it demands have a value.

    Raises:
        CommandError: It refuses.
    """
    demanded = dict.fromkeys(_VARIABLE.findall(file.read_text()), "/demanded")
    command = (compose, "-f", file, "--profile", "*", "config", "--format", "json")
    found: dict[str, Any] = json.loads(
        run(command, environment=clean_environment(**demanded)).stdout
    )
    return found


def _images(resolved: Mapping[str, Any]) -> dict[str, str]:
    return {name: item.get("image", "") for name, item in resolved["services"].items()}


def _without_images(resolved: Mapping[str, Any]) -> dict[str, Any]:
    services = {
        name: {key: value for key, value in item.items() if key != "image"}
        for name, item in resolved["services"].items()
    }
    return {**resolved, "services": services}


def _ours(claims: Claims, compose: Path) -> None:
    """The compose files of this repository."""
    with claims.group("Docker Compose resolves composes/demo.yml to the accepted digest"):
        images = _images(_resolved(compose, ROOT / "composes/demo.yml"))
        accepted = yaml.safe_load((ROOT / "lockfiles/images/demo.yaml").read_text())
        digest = accepted["results"]["linux/amd64"]["digest"]
        claims.equal(
            "Docker Compose resolves composes/demo.yml to the accepted digest",
            images,
            {"vllm-demo": f"registry.example.invalid/builder/vllm:demo@{digest}"},
        )
    with claims.group("Docker Compose resolves composes/tq3-mtp-genesis.yml"):
        resolved = _resolved(compose, ROOT / "composes/tq3-mtp-genesis.yml")
        variant = yaml.safe_load((ROOT / "variants/tq3-mtp-genesis.yaml").read_text())
        (service,) = resolved["services"].values()
        claims.holds(
            "composes/tq3-mtp-genesis.yml resolves to the arguments of the image, and to port 8015",
            service["command"] == variant["image"]["command"]
            and service["ports"][0]["published"] == "8015",
        )


FEATURES = {
    "merge.yml": "x-e: &e {image: vllm:v1, labels: [builder.variant=demo]}\nservices:\n"
    "  a: {<<: *e, command: x}\n  b: {<<: [*e]}\n",
    "alias.yml": "x-i: &i vllm:v1\nservices:\n  a:\n    image: *i # builder: demo\n",
    "extends.yml": "services:\n  a: {extends: b}\n  b: {extends: {service: c}}\n"
    "  c:\n    image: '${A:-x:${B}}'\n    labels: {builder.variant: demo}\n",
    "documents.yml": "services:\n  a:\n    image: x:1\n    labels: {builder.variant: demo}\n"
    "---\nservices:\n  a: {image: !!str 'x:2', ports: !reset []}\n",
    "block.yml": "services:\n  a:\n    image: >-  # builder: demo\n      x:1\n    command: x\n",
    "anchors.yml": "x-a: &a {image: x:1}\nx-b: &a {image: x:2}\nservices:\n  a:\n"
    "    <<: *a\n    labels: {builder.variant: demo}\n    profiles: [p]\n",
    "tabs.yml": "services:\n  a:\n    image:\tx:1\t# builder: demo\n    command: $${X:-0}\n",
}
"""What Compose has for services to share an image, and how scalars may stand."""


def _features(claims: Claims, compose: Path, scratch: Path) -> None:
    """Our reading of compose files against Docker Compose's: every service has the digest."""
    project = scratch / "features"
    for name in ("variants", "lockfiles", "overlays", "demo"):
        shutil.copytree(ROOT / name, project / name)
    (project / "builder.yaml").write_text("version: 1\npublish: registry.example/me/vllm\n")
    for name, text in FEATURES.items():
        (project / name).write_text(text)
        (project / f"crlf-{name}").write_bytes(
            b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()
        )
    builder = Builder(store=scratch / "store", project=project)
    files = sorted(path.name for path in project.glob("*.yml"))
    with claims.group("Docker Compose reads what services share as we do"):
        done, _ = builder.ask("compose", "pin", *files)
        wanted = {item["image"] for file in done["files"] for item in file["services"]}
        images = [
            image
            for file in files
            for image in _images(_resolved(compose, project / file)).values()
        ]
        claims.holds(
            "Docker Compose reads what services share as we do",
            len(wanted) == 1 and set(images) == wanted,
            f"{len(images)} services of {len(files)} files",
        )


def taken(repository: Path, project: Path) -> tuple[str, ...]:
    """The compose files, and a project with a pin that every service of theirs runs."""
    listed = run(("git", "-C", repository, "ls-tree", "-r", "--name-only", DEPLOYED)).text
    files = [
        name
        for name in listed.splitlines()
        if "/compose/" in name and name.endswith((".yml", ".yaml"))
    ]
    mapping: dict[str, dict[str, str]] = {}
    for file in files:
        data = run(("git", "-C", repository, "show", f"{DEPLOYED}:{file}")).stdout
        services = (yaml.safe_load(data) or {}).get("services")
        if services:  # a configuration beside them is no compose file
            (project / file).parent.mkdir(parents=True, exist_ok=True)
            (project / file).write_bytes(data)
            mapping[file] = dict.fromkeys(services, "pinned")
    (project / "variants").mkdir()
    (project / "lockfiles").mkdir()
    image, _, tag = PLACE.partition(":")
    (project / "lockfiles/vllm.yaml").write_text(
        f"version: 1\nvllm:\n  pinned:\n    follows: {{image: docker.io/{image}, tag: {tag}}}\n"
        f"    index: {DIGEST}\n"
    )
    (project / "builder.yaml").write_text(json.dumps({"version": 1, "composes": mapping}))
    return tuple(mapping)


def _deployments(
    claims: Claims, compose: Path | None, project: Path, files: tuple[str, ...]
) -> None:
    before = {file: (project / file).read_bytes() for file in files}
    seen = _all_resolved(compose, project, files)
    builder = Builder(store=project.parent / "store", project=project)
    done, seconds = builder.ask("compose", "pin", *files)
    images = sum(len(item["services"]) for item in done["files"])
    after = {file: (project / file).read_bytes() for file in files}
    odd = [file for file in files if not _only_images(before[file], after[file])]
    claims.equal("files in which a byte outside of an image changed", odd, [])
    claims.holds(
        "compose pin on every compose file of club-3090",
        len(files) > 60 and all(item["changed"] for item in done["files"]),
        f"{len(files)} files, {images} images, {seconds:.2f} s",
    )
    again, _ = builder.ask("compose", "pin", *files)
    claims.holds(
        "a second time nothing changes", not any(item["changed"] for item in again["files"])
    )
    checked, _ = builder.ask("compose", "check", *files)
    states = {item["state"] for item in checked["images"]}
    claims.equal("compose check agrees", (checked["findings"], states), ([], {"pinned"}))
    _compared(claims, seen, _all_resolved(compose, project, files))
    _kept(claims, builder, project, before)


def _kept(claims: Claims, builder: Builder, project: Path, before: Mapping[str, bytes]) -> None:
    """With ``--keep-override``, where an image is one variable with a default."""
    whole = re.compile(rb"^\s*image:\s*[\"']?\$\{[A-Z0-9_]+:?-.*\}[\"']?\s*(#.*)?$", re.MULTILINE)
    image = re.compile(rb"^\s*image:.*$", re.MULTILINE)
    files = []
    for file, data in before.items():
        (project / file).write_bytes(data)
        if len(whole.findall(data)) == len(image.findall(data)):
            files.append(file)
    done, _ = builder.ask("compose", "pin", "--keep-override", *files)
    services = [item for file in done["files"] for item in file["services"]]
    names = sorted({item["override"] for item in services})
    intact = all(_only_images(before[file], (project / file).read_bytes()) for file in files)
    kept = all(
        item["image"].startswith(f"${{{item['override']}") and item["image"].endswith(f"{DIGEST}}}")
        for item in services
    )
    claims.holds(
        "--keep-override edits the default alone",
        bool(services) and intact and kept,
        f"{len(services)} images of {', '.join(names)}",
    )


def _only_images(before: bytes, after: bytes) -> bool:
    """Whether only what stands for an image differs, line by line."""
    old, new = before.split(b"\n"), after.split(b"\n")
    if len(old) != len(new):
        return False
    for one, other in zip(old, new, strict=True):
        if one != other:
            was, is_now = _IMAGE.fullmatch(one), _IMAGE.fullmatch(other)
            if was is None or is_now is None or was.group(1, 3) != is_now.group(1, 3):
                return False
    return True


def _all_resolved(
    compose: Path | None, project: Path, files: tuple[str, ...]
) -> dict[str, dict[str, Any]]:
    """What Docker Compose makes of each file that it can resolve."""
    found = {}
    for file in files if compose is not None else ():
        assert compose is not None
        try:
            found[file] = _resolved(compose, project / file)
        except CommandError:
            continue
    return found


def _compared(
    claims: Claims, before: Mapping[str, dict[str, Any]], after: Mapping[str, dict[str, Any]]
) -> None:
    if not before:
        return
    claims.holds(
        "Docker Compose resolves the same files before and after",
        [*after] == [*before],
        f"{len(after)} and {len(before)}",
    )
    images = [image for item in after.values() for image in _images(item).values()]
    claims.holds(
        "Docker Compose resolves every image to the pinned digest",
        all(image in SPELT for image in images),
        f"{len(images)} images of {len(after)} files",
    )
    odd = [
        file
        for file in before
        if _without_images(before[file]) != _without_images(after.get(file, {"services": {}}))
    ]
    claims.equal("files of which Docker Compose makes anything else than before", odd, [])
