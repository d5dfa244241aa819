"""A sandbox that is a container of a Docker Engine, local or not.

Its process 1 is the same as that of :mod:`builder.adapters.sandbox.namespaces`, and does the same
work, in the Python of the image. Job and answer pass through the attached streams: nothing is
mounted from this machine, and nothing is written to a disk of the engine. The container's root file
system is read-only, what a program can write to is memory. When our end of the stream closes,
however we end, process 1 ends, and the engine removes the container.
"""

import contextlib
import os
from collections.abc import Iterator
from typing import Any

from builder.adapters.sandbox.conversation import COMMAND, ask, hear, program
from builder.adapters.sandbox.inside import main, room, wire
from builder.errors import EnvironmentFault
from builder.sandbox import INPUTS, Finished, Job

_ASK = 60
"""Seconds that the engine may take to answer."""
_GRACE = 60
_OWN = 512 << 20
"""Bytes of memory for process 1, which keeps what it laid."""
_THREADS = 16
"""How many threads there may be for each process: the engine counts them alike."""
_STDOUT, _STDERR = 1, 2


class EngineSandbox:
    """Runs jobs in containers of ``image`` (an image id, or a reference by digest), which the
    engine has already, and which has Python 3.11 or later as ``python3``.

    ``base_url`` is where the engine is; by default where the user's environment says.
    """

    def __init__(self, image: str, *, base_url: str | None = None) -> None:
        self._image = image
        self._base_url = base_url

    @property
    def name(self) -> str:
        return "docker-engine"

    def run(self, job: Job) -> Finished:
        """See :meth:`builder.sandbox.Sandbox.run`. "This machine" is that of the engine."""
        with _asking(self._base_url) as api, _container(api, self._image, job) as name:
            attached = api.attach_socket(
                name, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            )
            streams = _Attached(attached, seconds=job.limits.seconds + _GRACE)
            with contextlib.closing(streams):
                api.start(name)
                return _talk(streams, job)


def _talk(source: "_Attached", job: Job) -> Finished:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):
        source.send(program(by_text=True) + wire.table(["container"]))
        for part in ask(job):
            source.send(part)
    try:
        return hear(source, job)
    except wire.CutError as error:
        raise EnvironmentFault(
            f"sandbox: docker-engine: process 1 did not start: {source.last_words!r}",
            hint="the image must have Python 3.11 or later as python3",
        ) from error
    except TimeoutError as error:
        raise EnvironmentFault("sandbox: docker-engine: process 1 does not answer") from error


@contextlib.contextmanager
def _container(api: Any, image: str, job: Job) -> Iterator[str]:
    """A container for one job; it is gone afterwards."""
    name = f"builder-sandbox-{os.urandom(8).hex()}"
    try:
        api.create_container(
            image,
            name=name,
            entrypoint=list(COMMAND),
            command=[],
            hostname="builder",
            user="0:0",
            working_dir="/",
            stdin_open=True,
            network_disabled=True,
            host_config=api.create_host_config(**_host_config(job)),
        )
        yield name
    finally:
        _remove(api, name)


def _remove(api: Any, name: str) -> None:
    import docker  # noqa: PLC0415 - as _asking

    # It is on its way out by itself (409), or already gone (404).
    with contextlib.suppress(docker.errors.NotFound):
        try:
            api.remove_container(name, force=True, v=True)
        except docker.errors.APIError as error:
            if error.status_code != 409:
                raise


def _host_config(job: Job) -> dict[str, Any]:
    laid = (len(file.data) for file in job.files if file.data is not None)
    size = main.places_size(laid, job.limits.disk)
    place = f"rw,nosuid,nodev,exec,uid={room.USER},gid={room.USER},mode=0755,size={size}"
    inputs = sum(len(file.data or b"") + 4096 for file in job.inputs)
    memory = job.limits.memory + size + inputs + _OWN
    return {
        "network_mode": "none",
        "read_only": True,
        "auto_remove": True,
        "privileged": False,
        # For process 1, which becomes an ordinary user before anything of the job is there.
        "cap_drop": ["ALL"],
        "cap_add": ["SETUID", "SETGID", "SETPCAP"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": job.limits.processes * _THREADS,
        "mem_limit": memory,
        "memswap_limit": memory,
        "oom_score_adj": 1000,
        "ipc_mode": "private",
        "log_config": {"type": "none", "config": {}},
        "tmpfs": {
            INPUTS: f"rw,nosuid,nodev,exec,mode=0755,size={inputs + (1 << 20)}",
            **{f"/{path}": place for path in ("tmp", *job.roots)},
        },
    }


class _Attached:
    """The streams of a container: bytes to its standard input, and the frames of its outputs."""

    def __init__(self, attached: Any, *, seconds: float) -> None:
        # docker-py gives the reader of a socket, or the socket, and keeps the response with it.
        self._attached = attached
        self._socket = getattr(attached, "_sock", attached)
        self._socket.settimeout(seconds)
        self._said = bytearray()
        self._errors = bytearray()

    @property
    def last_words(self) -> str:
        """The last line that process 1 wrote to its standard error."""
        lines = self._errors.decode("utf-8", "replace").strip().splitlines()
        return lines[-1] if lines else ""

    def close(self) -> None:
        """Leave: process 1 ends for it."""
        if (response := getattr(self._attached, "_response", None)) is not None:
            response.close()
        self._attached.close()
        self._socket.close()

    def send(self, data: bytes) -> None:
        """Write to the standard input."""
        self._socket.sendall(data)

    def read(self, size: int) -> bytes:
        """Up to ``size`` bytes of the standard output; fewer only at the end."""
        while len(self._said) < size and self._next():
            pass
        data = bytes(self._said[:size])
        del self._said[:size]
        return data

    def _next(self) -> bool:
        # Engine API, "Attach to a container": a byte that says which stream, three of padding, and
        # the size of what follows.
        header = self._exactly(8)
        if len(header) < 8:
            return False
        data = self._exactly(int.from_bytes(header[4:], "big"))
        {_STDOUT: self._said, _STDERR: self._errors}.get(header[0], bytearray()).extend(data)
        return True

    def _exactly(self, size: int) -> bytes:
        data = bytearray()
        while len(data) < size and (part := self._socket.recv(size - len(data))):
            data += part
        return bytes(data)


@contextlib.contextmanager
def _asking(base_url: str | None) -> Iterator[Any]:
    """The API client; what goes wrong with it is told as an error of ours."""
    import docker  # noqa: PLC0415 - 140 ms that only a sandbox of an engine pays
    import requests  # noqa: PLC0415 - as docker

    try:
        client = (
            docker.DockerClient(base_url=base_url, timeout=_ASK)
            if base_url
            else docker.from_env(timeout=_ASK)
        )
        with contextlib.closing(client):
            yield client.api
    except docker.errors.ImageNotFound as error:
        raise EnvironmentFault(
            f"sandbox: docker-engine: {error.explanation}", hint="docker pull it first"
        ) from error
    except docker.errors.APIError as error:
        text = f"sandbox: docker-engine: {error.explanation or error}"
        raise EnvironmentFault(text) from error
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        where = base_url or "the default place"
        raise EnvironmentFault(
            f"sandbox: docker-engine: no answer from the Docker Engine at {where}: {error}",
            hint="is dockerd running, may this user talk to it, and is DOCKER_HOST right?",
        ) from error
