"""Other programs that make an image out of a base and some files, each in its own usual way."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.bench.base import PACKAGES
from tests.commands import CommandError, clean_environment, run

Files = Mapping[str, bytes]
"""By path in the image's Python packages."""


def write_files(directory: Path, files: Files) -> None:
    """Lay files into a build context."""
    for path, data in files.items():
        target = directory / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Docker:
    """``docker build`` and ``docker push`` against an engine of our own."""

    program: str
    host: str
    buildkit: bool
    scratch: Path

    def build(self, base: str, tag: str, layers: tuple[Files, ...]) -> float:
        """Build ``tag`` with one layer for each set of files, as a user who edits them does."""
        context = self.scratch / "context"
        lines = [f"FROM {base}\n"]
        for number, files in enumerate(layers):
            write_files(context / str(number), files)
            lines.append(f"COPY {number}/ /{PACKAGES}/\n")
        (context / "Dockerfile").write_text("".join(lines))
        return self._docker("build", "--quiet", "--tag", tag, str(context))

    def push(self, tag: str) -> float:
        """Push it."""
        return self._docker("push", "--quiet", tag)

    def forget(self) -> None:
        """Drop all images and all that builds have cached."""
        if ids := run((self.program, "images", "--all", "--quiet"), environment=self._own).text:
            self._docker("rmi", "--force", *dict.fromkeys(ids.split()))
        self._docker("builder", "prune", "--all", "--force")

    @property
    def _own(self) -> dict[str, str]:
        home = {"HOME": str(self.scratch), "DOCKER_CONFIG": str(self.scratch)}
        buildkit = "1" if self.buildkit else "0"
        return clean_environment(DOCKER_HOST=self.host, DOCKER_BUILDKIT=buildkit, **home)

    def _docker(self, *arguments: str) -> float:
        return run((self.program, *arguments), environment=self._own).seconds


def docker_with_buildkit(host: str, scratch: Path) -> Docker | None:
    """A docker command whose BuildKit works: newer ones want a plugin for it, Debian's does not."""
    for program in ("/usr/bin/docker", shutil.which("docker")):
        if program is not None:
            docker = Docker(program=program, host=host, buildkit=True, scratch=scratch)
            try:
                docker.build("scratch", "probe", ({"probe": b""},))
            except CommandError:
                continue
            return docker
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Umoci:
    """``skopeo copy`` and ``umoci insert`` on an OCI layout."""

    layout: Path
    scratch: Path

    def fetch(self, base: str) -> float:
        """Copy the whole base into the layout: umoci knows no registry."""
        return self._skopeo(f"docker://{base}", f"oci:{self.layout}:base")

    def insert(self, files: Files, *, onto: str, tag: str) -> float:
        """One layer for each file, as umoci has it."""
        write_files(self.scratch / "insert", files)
        seconds = 0.0
        for path in files:
            image = ("umoci", "insert", "--image", f"{self.layout}:{onto}", "--tag", tag)
            done = run((*image, self.scratch / "insert" / path, f"/{PACKAGES}/{path}"))
            seconds, onto = seconds + done.seconds, tag
        return seconds

    def push(self, tag: str, target: str) -> float:
        """Copy to a registry."""
        return self._skopeo(f"oci:{self.layout}:{tag}", f"docker://{target}")

    def _skopeo(self, source: str, target: str) -> float:
        plain = ("--src-tls-verify=false", "--dest-tls-verify=false")
        return run(
            ("skopeo", "copy", "--quiet", "--insecure-policy", *plain, source, target)
        ).seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class Buildah:
    """``buildah from``, ``copy`` and ``commit``, in an empty storage of its own."""

    scratch: Path

    def bake(self, base: str, target: str, files: Files) -> float:
        """From the registry and back to it."""
        storage = self.scratch / "buildah"
        write_files(self.scratch / "copy", files)
        own = ("buildah", "--root", storage / "root", "--runroot", storage / "run")
        plain = "--tls-verify=false"
        try:
            begun = run((*own, "from", "--quiet", plain, base))
            container = begun.text.splitlines()[-1]
            copied = run((*own, "copy", container, self.scratch / "copy", f"/{PACKAGES}/"))
            pushed = run((*own, "commit", "--quiet", plain, container, f"docker://{target}"))
            return begun.seconds + copied.seconds + pushed.seconds
        finally:
            run((*own, "rm", "--all"))
            run(("rm", "-rf", storage))
