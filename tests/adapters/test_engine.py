"""A real Docker Engine: loading with the base left out, pulling by digest, and what goes wrong."""

import gc
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from builder.adapters.engine import DockerEngine, _pull_fault
from builder.digest import Digest
from builder.docker_archive import archive
from builder.errors import (
    AuthError,
    BuilderError,
    EnvironmentFault,
    GoneError,
    IntegrityError,
    NetworkError,
    RateLimitError,
)
from builder.oci import DOCKER_MANIFEST
from builder.reference import Reference
from tests.adapters.images import config, layer, served
from tests.services_docker import running_dockerd

pytestmark = pytest.mark.requires("dockerd", "root")

BASE = layer("a", b"base")


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running_dockerd(tmp_path_factory.mktemp("docker")) as url:
        yield url


@pytest.fixture
def engine(host: str) -> DockerEngine:
    return DockerEngine(host)


def test_a_child_is_loaded_without_the_layers_that_the_engine_has(engine: DockerEngine) -> None:
    below, above = layer("a", b"base of this test"), layer("b", b"child")
    base, child = config(below), config(below, above)
    assert engine.keeps_layers()
    assert not engine.has_image(Digest.of(base))
    engine.load(archive(base, [(below.digest, below)]), expected=Digest.of(base))
    assert engine.diff_ids(Digest.of(base)) == (below.digest,)
    engine.load(
        archive(child, [(below.digest, None), (above.digest, above)], "demo:x"),
        expected=Digest.of(child),
    )
    assert engine.has_image(Digest.of(child))
    assert engine.diff_ids(Digest.of(child)) == (below.digest, above.digest)
    engine.tag(Digest.of(child), "demo:y")
    engine.tag(Digest.of(child), "localhost:5000/demo")


def test_an_archive_without_a_layer_that_the_engine_lacks_is_told_as_that(
    engine: DockerEngine,
) -> None:
    unknown = layer("c", b"unknown")
    with pytest.raises(EnvironmentFault) as caught:
        engine.load(archive(config(unknown), [(unknown.digest, None)]))
    assert caught.value.message.startswith(
        "docker: load: the engine lacks a layer that the archive leaves out: open "
    )
    assert not engine.has_image(Digest.of(config(unknown)))


def test_a_layer_that_is_not_its_diff_id_is_an_integrity_error(engine: DockerEngine) -> None:
    wanted, given = layer("d", b"wanted"), layer("d", b"other!")
    with pytest.raises(IntegrityError, match="refuses the archive: invalid diffID for layer 0"):
        engine.load(archive(config(wanted), [(wanted.digest, given)]))


def test_what_is_no_archive_is_refused_and_a_broken_source_keeps_its_error(
    engine: DockerEngine,
) -> None:
    with pytest.raises(IntegrityError, match="refuses the archive"):
        engine.load(iter([b"no tar" * 500]))

    def broken() -> Iterator[bytes]:
        yield b"\0" * 512
        raise IntegrityError("the store is damaged")

    with pytest.raises(IntegrityError) as caught:
        engine.load(broken())
    assert caught.value.message == "the store is damaged"


def test_an_image_that_did_not_come_of_a_load_is_an_error(engine: DockerEngine) -> None:
    other = Digest.of(b"other")
    with pytest.raises(IntegrityError) as caught:
        engine.load(archive(config(BASE), [(BASE.digest, BASE)]), expected=other)
    assert caught.value.message == f"docker: load: expected image {other}, and it is not there"


def test_an_image_that_is_not_there_has_no_layers_and_takes_no_name(engine: DockerEngine) -> None:
    nothing = Digest.of(b"nothing")
    with pytest.raises(EnvironmentFault) as caught:
        engine.diff_ids(nothing)
    assert caught.value.message == f"docker: has no image {nothing}"
    with pytest.raises(EnvironmentFault, match="docker: tag: No such image"):
        engine.tag(nothing, "demo:z")


@contextmanager
def registry(status: int | None = None) -> Iterator[tuple[Reference, bytes]]:
    """A registry on loopback with one image: its reference by digest, and its config."""
    manifest, blobs = served(layer("e", b"pulled"))
    blobs[str(Digest.of(manifest))] = manifest

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            name = self.path.rpartition("/")[2]
            if status is not None and name:
                self._answer(status, b'{"errors":[{"code":"%s"}]}' % _CODES[status])
            else:
                self._answer(200, blobs.get(name, b"{}"))

        do_HEAD = do_GET

        def _answer(self, code: int, body: bytes) -> None:
            self.send_response(code)
            self.send_header(
                "Content-Type", DOCKER_MANIFEST if body == manifest else "application/json"
            )
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    reference = Reference(registry=f"127.0.0.1:{server.server_port}", repository="acme/demo")
    own = json.loads(manifest)["config"]["digest"]
    try:
        yield reference.at(Digest.of(manifest)), blobs[own]
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


_CODES = {
    404: b"MANIFEST_UNKNOWN",
    401: b"UNAUTHORIZED",
    403: b"DENIED",
    429: b"TOOMANYREQUESTS",
    500: b"UNKNOWN",
}


def test_an_image_is_pulled_by_digest(engine: DockerEngine) -> None:
    with registry() as (reference, own):
        engine.pull(reference)
    assert engine.has_image(Digest.of(own))


@pytest.mark.parametrize(
    "status, kind",
    [
        (404, GoneError),
        (401, AuthError),
        (403, AuthError),
        (429, RateLimitError),
        (500, NetworkError),
        (None, NetworkError),
    ],
)
def test_what_a_registry_answers_is_told_as_what_it_is(
    engine: DockerEngine, status: int | None, kind: type[BuilderError]
) -> None:
    with registry(status) as (reference, _):
        if status is not None:
            with pytest.raises(BuilderError) as caught:
                engine.pull(reference)
    if status is None:  # nobody listens any more
        with pytest.raises(BuilderError) as caught:
            engine.pull(reference)
    assert type(caught.value) is kind  # type: ignore[possibly-undefined] # one of the two ran
    assert caught.value.message.startswith(f"docker: pull {reference}: ")


# The SDK (7.2) leaves a socket open where it cannot connect; it is collected here, not later.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning")
def test_an_engine_that_is_not_there_is_told_with_a_hint(tmp_path: Path) -> None:
    url = f"unix://{tmp_path}/none.sock"
    message = hint = None
    try:
        DockerEngine(url).has_image(Digest.of(b""))
    except EnvironmentFault as error:
        message, hint = error.message, error.hint
    gc.collect()
    assert message is not None
    assert message.startswith(f"docker: inspect: no answer from the Docker Engine at {url}: ")
    assert hint == "is dockerd running, may this user talk to it, and is DOCKER_HOST right?"


def test_the_environment_says_where_the_engine_is(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    assert DockerEngine(None).has_image(Digest.of(b"")) is False


def test_a_port_or_a_digest_that_looks_like_a_status_is_none() -> None:
    """The engine's words come with the address that it asked."""
    where = f"docker: pull 127.0.0.1:42939/a@sha256:{'429' + 61 * '0'}: Get http://127.0.0.1:42939/"
    assert type(_pull_fault(f"{where}: connection refused")) is NetworkError
    assert type(_pull_fault(f"{where}: unexpected status: 429 Too Many")) is RateLimitError
