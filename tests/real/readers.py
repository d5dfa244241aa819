"""How other programs read our images: each gives the content of files as it sees them."""

import io
import tarfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import docker
import docker.errors
from docker.models.containers import Container

from tests.commands import CommandError, run
from tests.plugins.requires import which

PACKAGES = "usr/local/lib/python3.12/dist-packages"
"""Where the wheel's files are in the image."""


def skopeo_digest(reference: str) -> str:
    """The digest that skopeo computes of what a registry serves.

    Raises:
        CommandError: It does not accept the image.
    """
    command = ("skopeo", "inspect", "--tls-verify=false", "--format={{.Digest}}")
    return run((*command, f"docker://{reference}")).text


class EngineReader:
    """A Docker Engine, through its API."""

    def __init__(self, host: str) -> None:
        self._client = docker.DockerClient(base_url=host, timeout=300)

    def pull(self, repository: str, digest: str) -> str:
        """Pull by digest; returns the image's id.

        Raises:
            CommandError: The engine refuses.
        """
        try:
            return str(self._client.images.pull(repository, tag=digest).id)
        except docker.errors.DockerException as error:
            raise CommandError(f"docker pull {repository}@{digest}: {error}") from error

    def files(self, image: str, paths: Sequence[str]) -> dict[str, bytes]:
        """What ``docker cp`` takes out of a container that was made and never started."""
        container = self._client.containers.create(image, ["/none"])
        try:
            return {path: _cp(container, f"/{PACKAGES}/{path}") for path in paths}
        finally:
            container.remove()

    def sums(self, image: str, paths: Sequence[str]) -> dict[str, str]:
        """What ``docker run`` sees: sha256 by path. The image has no program of its own, so that
        a static busybox is mounted into the container."""
        output = self._client.containers.run(
            image,
            ["/busybox", "sha256sum", *(f"/{PACKAGES}/{path}" for path in paths)],
            entrypoint=[],
            volumes={which("busybox") or "busybox": {"bind": "/busybox", "mode": "ro"}},
            network_mode="none",
            remove=True,
        )
        rows = (line.split() for line in output.decode().splitlines())
        return {path.removeprefix(f"/{PACKAGES}/"): digest for digest, path in rows}

    def close(self) -> None:
        """Close the connection."""
        self._client.close()


def _cp(container: Container, path: str) -> bytes:
    chunks, _ = container.get_archive(path)
    with tarfile.open(fileobj=io.BytesIO(b"".join(chunks))) as archive:
        member = archive.extractfile(archive.getmembers()[0])
        assert member is not None
        return member.read()


@contextmanager
def umoci_rootfs(layout: Path, name: str, scratch: Path) -> Iterator[Path]:
    """The root directory that umoci unpacks from a layout.

    Raises:
        CommandError: It does not accept the image.
    """
    bundle = scratch / "bundle"
    try:
        run(("umoci", "unpack", "--rootless", "--image", f"{layout}:{name}", bundle))
        yield bundle / "rootfs"
    finally:
        run(("rm", "-rf", bundle))


@contextmanager
def podman_rootfs(reference: str, scratch: Path) -> Iterator[Path]:
    """The root directory that podman mounts, in a storage of its own.

    Raises:
        CommandError: It does not accept the image.
    """
    storage = scratch / "podman"
    own = ("podman", "--root", storage / "root", "--runroot", storage / "run")
    podman = (*own, "--storage-driver", "vfs")
    try:
        run((*podman, "pull", "--quiet", "--tls-verify=false", reference))
        yield Path(run((*podman, "image", "mount", reference)).text)
    finally:
        run((*podman, "image", "umount", "--all"))
        run(("rm", "-rf", storage))
