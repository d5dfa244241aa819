"""The Engine port over the Docker Engine's API."""

import re
from collections.abc import Iterable, Iterator
from contextlib import closing, contextmanager
from http import HTTPStatus
from typing import Any

from builder.digest import Digest
from builder.errors import (
    AuthError,
    BuilderError,
    EnvironmentFault,
    GoneError,
    IntegrityError,
    NetworkError,
    RateLimitError,
)
from builder.reference import Reference

_HOUR = 3600
"""How long the engine may be silent: it says nothing while it unpacks a large layer."""


class _NotThereError(Exception):
    """The engine answers that it has no such image."""


class DockerEngine:
    """A Docker Engine at ``base_url``, or where the user's environment says (``DOCKER_HOST``).

    Nothing is asked before the first call. Every method raises EnvironmentFault where the engine
    cannot be reached or refuses.
    """

    def __init__(self, base_url: str | None) -> None:
        self._base_url = base_url

    def has_image(self, image_id: Digest) -> bool:
        """See :meth:`builder.ports.Engine.has_image`. Engines with the containerd image store name
        images by manifest, and have none by this name."""
        return self._inspect(image_id) is not None

    def diff_ids(self, image_id: Digest) -> tuple[Digest, ...]:
        """The layers of an image that is there, bottom first.

        Raises:
            EnvironmentFault: It is not there.
        """
        found = self._inspect(image_id)
        if found is None:
            raise EnvironmentFault(f"docker: has no image {image_id}", hint="pull or load it first")
        layers = found["RootFS"].get("Layers") or ()
        return tuple(
            Digest.parse(text, at="docker: RootFS.Layers", refusal=IntegrityError)
            for text in layers
        )

    def keeps_layers(self) -> bool:
        """Whether an archive may leave out the layers that the engine has: not where it uses the
        containerd image store, which opens every layer of an archive."""
        with self._asking("info") as api:
            status = api.info().get("DriverStatus") or ()
        return not any("containerd" in str(value) for _, value in status)

    def pull(self, reference: Reference) -> None:
        """Pull by digest, with the credentials of the user's Docker configuration.

        Raises:
            GoneError, AuthError, RateLimitError, NetworkError: What the engine says of the
                registry.
        """
        if reference.digest is None:
            raise RuntimeError(f"a pull needs a digest: {reference}")
        with self._asking(f"pull {reference}", fault=_pull_fault) as api:
            said = api.pull(reference.name, tag=str(reference.digest), stream=True, decode=True)
            _finish(said, fault=lambda text: _pull_fault(f"docker: pull {reference}: {text}"))

    def load(self, archive: Iterator[bytes], *, expected: Digest | None = None) -> None:
        """Load a docker-archive stream. With ``expected``, the image of that id is there after.

        Raises:
            IntegrityError: The archive is not what its config says, or gave another image.
            EnvironmentFault: The archive leaves out a layer that the engine does not have.
        """
        with self._asking("load") as api:
            _finish(api.load_image(archive), fault=_load_fault)
        if expected is not None and not self.has_image(expected):
            raise IntegrityError(
                f"docker: load: expected image {expected}, and it is not there",
                hint="an engine with the containerd image store names images by manifest",
            )

    def tag(self, image_id: Digest, name: str) -> None:
        """See :meth:`builder.ports.Engine.tag`. A name that another image has moves to this one.

        Raises:
            UsageError: Not an image name.
        """
        reference = Reference.parse(name, at="image name")
        with self._asking("tag") as api:
            api.tag(str(image_id), reference.name, tag=reference.tag or "latest", force=True)

    def _inspect(self, image_id: Digest) -> dict[str, Any] | None:
        try:
            with self._asking("inspect") as api:
                found: dict[str, Any] = api.inspect_image(str(image_id))
        except _NotThereError:
            return None
        return found if found.get("Id") == str(image_id) else None

    @contextmanager
    def _asking(self, what: str, *, fault: Any = None) -> Iterator[Any]:
        """The API client; what goes wrong with it is told as an error of ours."""
        import docker  # noqa: PLC0415 - 140 ms that only the commands which need it pay
        import requests  # noqa: PLC0415 - as docker

        try:
            client = (
                docker.DockerClient(base_url=self._base_url, timeout=_HOUR)
                if self._base_url
                else docker.from_env(timeout=_HOUR)
            )
            with closing(client):
                yield client.api
        except docker.errors.APIError as error:
            if what == "inspect" and error.status_code == HTTPStatus.NOT_FOUND:
                raise _NotThereError from error
            text = f"docker: {what}: {error.explanation or error}"
            raise fault(text) if fault else EnvironmentFault(text) from error
        except (docker.errors.DockerException, requests.RequestException, OSError) as error:
            where = self._base_url or "the default place"
            raise EnvironmentFault(
                f"docker: {what}: no answer from the Docker Engine at {where}: {error}",
                hint="is dockerd running, may this user talk to it, and is DOCKER_HOST right?",
            ) from error


def _finish(said: Iterable[Any], *, fault: Any) -> None:
    """Read the engine's stream to its end. A failure stands in it, after the status 200."""
    failures = [
        str((message.get("errorDetail") or {}).get("message") or message.get("error"))
        for message in said
        if isinstance(message, dict) and ("error" in message or "errorDetail" in message)
    ]
    if failures:
        raise fault(failures[0])


def _load_fault(text: str) -> BuilderError:
    if re.search(r"layer\.tar: no such file or directory|layer \S+ not found", text):
        return EnvironmentFault(
            f"docker: load: the engine lacks a layer that the archive leaves out: {text}",
            hint="load or pull the base first, or load the full archive",
        )
    if "no space left" in text:
        return EnvironmentFault(f"docker: load: {text}", hint="free some space: docker system df")
    return IntegrityError(
        f"docker: load: the engine refuses the archive: {text}",
        hint="builder store verify tells whether our layers are whole; the engine's log says more",
    )


def _pull_fault(text: str) -> BuilderError:
    # As a word: the text has the digest and, where there is one, the port.
    if re.search(r"toomanyrequests|\b429\b", text):
        return RateLimitError(text, hint="log in with docker login, or wait")
    if re.search(r"manifest unknown|not found|does not exist", text):
        return GoneError(
            text, hint="push a copy of the base to a registry of yours while you have it"
        )
    if re.search(r"unauthorized|denied|authentication required|no basic auth", text):
        return AuthError(text, hint="log in with docker login")
    return NetworkError(text)
