"""The images as other programs see them, compared with what sed, GNU patch and git make."""

import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from builder.digest import Digest
from builder.project import Project
from tests.claims import Claims
from tests.commands import ROOT, Builder, CommandError
from tests.plugins.requires import missing
from tests.real import oracles
from tests.real.bakery import BASE, PR40391, Baked
from tests.real.readers import PACKAGES, EngineReader, podman_rootfs, skopeo_digest, umoci_rootfs
from tests.real.workshop import Workshop
from tests.services_docker import running_dockerd

Files = Mapping[str, bytes]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """An image in the registry and the files in it that are not the wheel's, as they must be."""

    baked: Baked
    files: Files


def wanted(rows: Sequence[Baked], shop: Workshop, builder: Builder, claims: Claims) -> list[Wanted]:
    """What must be in the images, by tools that share nothing with ours."""
    wheel, _ = shop.fetch_wheel(Project(ROOT).wheels["vllm-0.22.0"])
    found = []
    for row in rows:
        if row.variant == BASE:
            continue
        if row.variant != PR40391:
            files: Files = oracles.guards(wheel, shop.scratch / "sed")
        else:
            answers = oracles.pr40391(wheel, _rebase(builder), shop.scratch / "oracles")
            files = answers["GNU patch"]
            claims.holds(
                "GNU patch and git apply agree on the wheel's files",
                answers["GNU patch"] == answers["git apply"],
                f"{len(files)} files",
            )
        found.append(Wanted(baked=row, files=files))
    return found


def _rebase(builder: Builder) -> oracles.Rebase:
    """The published diff out of builder's mirror, which git reads and checks by itself."""
    commit = Project(ROOT).sources["club-pr40391-v0.22.0"].commit
    for mirror in sorted((builder.store / "git").glob("*.git")):
        try:
            return oracles.fetch_rebase(mirror, str(commit))
        except CommandError:
            continue
    raise CommandError(f"no mirror has commit {commit}")


def by_skopeo(rows: Sequence[Baked], shop: Workshop, claims: Claims) -> None:
    """Skopeo computes the digests of what the registries serve."""
    if why := missing("skopeo"):
        claims.not_run("skopeo inspect", why)
        return
    for row in rows:
        with claims.group(f"skopeo inspect {row.variant}"):
            got = skopeo_digest(f"{shop.first.host}/{row.repository}:v0.22.0")
            claims.equal(f"skopeo inspect {row.variant}", got, row.digest)
    for row in rows[1:]:
        with claims.group(f"skopeo inspect {row.variant} of the second registry"):
            got = skopeo_digest(f"{shop.second.host}/team/vllm:{row.variant}")
            claims.equal(f"skopeo inspect {row.variant}, second registry", got, row.digest)


def by_engine(
    images: Sequence[Wanted], shop: Workshop, builder: Builder, claims: Claims, *, base: Baked
) -> None:
    """A Docker Engine takes the images, copies files out of them, and runs them."""
    if why := missing("dockerd", "busybox", "root"):
        claims.not_run("docker pull, cp and run; builder load", why)
        return
    with running_dockerd(shop.scratch) as host:
        reader = EngineReader(host)
        with claims.group("builder load"):
            reader.pull(f"{shop.first.host}/{base.repository}", base.digest)
            _load(images[0].baked, builder, host, claims)
        for image in images:
            with claims.group(f"docker pull {image.baked.variant}"):
                _pull(image, reader, shop, claims)
        reader.close()


def _load(baked: Baked, builder: Builder, host: str, claims: Claims) -> None:
    engine = replace(builder, environment={**builder.environment, "DOCKER_HOST": host})
    loaded, seconds = engine.ask("load", baked.variant)
    claims.equal(
        f"builder load {baked.variant} ({seconds:.1f} s): layers sent to an engine with the base",
        loaded["layers_moved"],
        len(baked.blobs),
    )


def _pull(image: Wanted, reader: EngineReader, shop: Workshop, claims: Claims) -> None:
    name = image.baked.variant
    pulled = reader.pull(f"{shop.first.host}/{image.baked.repository}", image.baked.digest)
    got = reader.files(pulled, list(image.files))
    _compare(f"docker pull {name} by digest, docker cp", got, image.files, claims)
    seen = reader.sums(pulled, list(image.files))
    claims.holds(
        f"docker run {name}: sha256sum in the container",
        seen == {path: Digest.of(data).hex for path, data in image.files.items()},
        f"{len(seen)} files",
    )


def by_umoci(images: Sequence[Wanted], shop: Workshop, builder: Builder, claims: Claims) -> None:
    """Umoci unpacks a layout that ``build --out`` wrote."""
    if why := missing("umoci"):
        claims.not_run("umoci unpack", why)
        return
    wheel, _ = shop.fetch_wheel(Project(ROOT).wheels["vllm-0.22.0"])
    layout = shop.scratch / "out"
    for image in images:
        name = image.baked.variant
        with claims.group(f"umoci unpack {name}"):
            builder.ask("build", name, "--out", layout)
            with umoci_rootfs(layout, name, shop.scratch) as rootfs:
                _compare_tree(f"umoci unpack {name} from --out", rootfs, image.files, claims)
                if image is images[-1]:
                    _compare_rest(f"umoci unpack {name}", rootfs, wheel, image.files, claims)


def by_podman(images: Sequence[Wanted], shop: Workshop, claims: Claims) -> None:
    """Podman pulls by digest and mounts."""
    if why := missing("podman", "root"):
        claims.not_run("podman pull", why, wants="podman")
        return
    image = images[-1]
    name = image.baked.variant
    with claims.group(f"podman pull {name}"):
        reference = f"{shop.first.host}/{image.baked.repository}@{image.baked.digest}"
        with podman_rootfs(reference, shop.scratch) as rootfs:
            _compare_tree(f"podman pull {name} by digest, mount", rootfs, image.files, claims)


def _compare_tree(claim: str, rootfs: Path, files: Files, claims: Claims) -> None:
    home = rootfs / PACKAGES
    _compare(claim, {path: (home / path).read_bytes() for path in files}, files, claims)


def _compare(claim: str, got: Files, files: Files, claims: Claims) -> None:
    """The changed files, byte for byte."""
    different = sorted(path for path in files if got.get(path) != files[path])
    evidence = f"{len(files)} changed files, byte for byte"
    claims.holds(claim, not different, f"differ: {', '.join(different)}" if different else evidence)


def _compare_rest(claim: str, rootfs: Path, wheel: Path, files: Files, claims: Claims) -> None:
    """All other files are the wheel's. Scripts and records are the installer's."""
    same, different = 0, []
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if member.is_dir() or member.filename in files or ".dist-info/" in member.filename:
                continue
            if (rootfs / PACKAGES / member.filename).read_bytes() == archive.read(member):
                same += 1
            else:
                different.append(member.filename)
    claims.holds(
        f"{claim}: every other file is the wheel's own",
        not different,
        f"differ: {', '.join(different[:5])}" if different else f"{same} files",
    )
