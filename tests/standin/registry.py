"""A registry that does as it is told, also what no good registry does.

Left alone it is a small, correct registry in memory. :meth:`StandIn.on` puts answers before that,
and every call is kept, so that a test can say what was asked and what was not. It serves as the
storage and the token service of others just as well.
"""

import json
import re
import ssl
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, TypeAlias, TypeVar
from urllib.parse import parse_qs, urlencode, urlsplit

from builder.digest import Digest
from builder.oci import Descriptor


@dataclass(frozen=True, kw_only=True)
class Call:
    """One request as it came in."""

    method: str
    path: str
    query: dict[str, list[str]]
    headers: dict[str, str]
    """Names in lower case."""
    body: bytes

    def __str__(self) -> str:
        return f"{self.method} {self.path}"


@dataclass(frozen=True, kw_only=True)
class Reply:
    """One answer. ``announce`` is the Content-Length to claim (``None``: the truth, -1: none at
    all); ``cut`` is how many bytes of the body are sent before the connection is closed."""

    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    announce: int | None = None
    cut: int | None = None


Answer: TypeAlias = "Reply | Callable[[Call], Reply | None]"


@dataclass
class _Rule:
    method: str
    path: re.Pattern[str]
    answers: list[Answer]
    forever: bool


class StandIn:
    """What the server holds, what it was asked, and what it is told to answer."""

    def __init__(self) -> None:
        self.host = ""
        self.calls: list[Call] = []
        self.connections = 0
        self.page_size = 100
        """The most tags that it lists at a time, whatever is asked for."""
        self.blobs: dict[tuple[str, Digest], bytes] = {}
        self.manifests: dict[tuple[str, str], tuple[str, bytes]] = {}
        self.uploads: dict[str, bytearray] = {}
        self._rules: list[_Rule] = []
        self._lock = threading.Lock()
        self._started = 0

    def on(self, method: str, path: str, *answers: Answer, forever: bool = False) -> None:
        """Answer the next calls of ``method`` whose path matches, one answer each; ``forever``
        repeats the last one. An answer that gives ``None`` leaves the call to the registry."""
        self._rules.append(_Rule(method, re.compile(path), list(answers), forever))

    def add_blob(self, repository: str, data: bytes) -> Descriptor:
        """Hold a blob."""
        digest = Digest.of(data)
        self.blobs[repository, digest] = data
        return Descriptor(media_type="application/octet-stream", digest=digest, size=len(data))

    def add_manifest(self, repository: str, data: bytes, *, media_type: str, tag: str) -> Digest:
        """Hold a manifest under its digest and a tag."""
        digest = Digest.of(data)
        for name in (tag, str(digest)):
            self.manifests[repository, name] = (media_type, data)
        return digest

    def asked(self) -> list[str]:
        """The calls so far as ``METHOD path``."""
        return [str(call) for call in self.calls]

    def reply(self, call: Call) -> Reply:
        """What is answered to a call."""
        with self._lock:
            self.calls.append(call)
            for rule in self._rules:
                if rule.method == call.method and rule.path.fullmatch(call.path) and rule.answers:
                    last = rule.forever and len(rule.answers) == 1
                    answer = rule.answers[0] if last else rule.answers.pop(0)
                    reply = answer if isinstance(answer, Reply) else answer(call)
                    if reply is not None:
                        return reply
            return self._good(call)

    def _good(self, call: Call) -> Reply:
        if listed := re.fullmatch(r"/v2/(?P<name>.+)/tags/list", call.path):
            return self._tags(call, listed["name"])
        found = re.fullmatch(r"/v2/(?P<name>.+?)/(?P<kind>manifests|blobs)/(?P<rest>.*)", call.path)
        if not found:
            return Reply(status=404)
        name, rest = found["name"], found["rest"]
        if found["kind"] == "manifests":
            return self._manifest(call, name, rest)
        if rest.startswith("uploads/"):
            return self._upload(call, name, rest.removeprefix("uploads/"))
        data = self.blobs.get((name, Digest.parse(rest)))
        if data is None:
            return _error(404, "BLOB_UNKNOWN", "blob unknown to registry")
        return ranged(call, data, headers={"Docker-Content-Digest": rest})

    def _tags(self, call: Call, name: str) -> Reply:
        """A page of tags, of ``page_size`` at most."""
        mine = sorted(tag for repository, tag in self.manifests if repository == name)
        if not mine:
            return _error(404, "NAME_UNKNOWN", "repository name not known to registry")
        last = call.query.get("last", [""])[0]
        rest = [tag for tag in mine if tag > last and ":" not in tag]
        count = min(int(call.query.get("n", ["100"])[0]), self.page_size)
        headers = {"Content-Type": "application/json"}
        if rest[count:]:
            query = urlencode({"last": rest[count - 1], "n": count})
            headers["Link"] = f'<{call.path}?{query}>; rel="next"'
        body = json.dumps({"name": name, "tags": rest[:count]}).encode()
        return Reply(headers=headers, body=body)

    def _manifest(self, call: Call, name: str, reference: str) -> Reply:
        if call.method == "PUT":
            digest = self.add_manifest(
                name, call.body, media_type=call.headers["content-type"], tag=reference
            )
            return Reply(status=201, headers={"Docker-Content-Digest": str(digest)})
        if (name, reference) not in self.manifests:
            return _error(404, "MANIFEST_UNKNOWN", "manifest unknown")
        media_type, data = self.manifests[name, reference]
        headers = {"Content-Type": media_type, "Docker-Content-Digest": str(Digest.of(data))}
        return Reply(headers=headers, body=data)

    def _upload(self, call: Call, name: str, session: str) -> Reply:
        if call.method == "POST":
            return self._start(call, name)
        data = self.uploads.get(session)
        if data is None:
            return _error(404, "BLOB_UPLOAD_UNKNOWN", "blob upload unknown to registry")
        if call.method == "DELETE":
            del self.uploads[session]
            return Reply(status=204)
        first = call.headers.get("content-range", f"{len(data)}-").partition("-")[0]
        if int(first) != len(data):
            return Reply(status=416, headers=self._standing(call.path, data))
        data += call.body
        if call.method in ("GET", "PATCH"):
            status = 204 if call.method == "GET" else 202
            return Reply(status=status, headers=self._standing(call.path, data))
        del self.uploads[session]
        digest = Digest.of(bytes(data))
        if call.query.get("digest") != [str(digest)]:
            return _error(400, "DIGEST_INVALID", "provided digest did not match uploaded content")
        self.blobs[name, digest] = bytes(data)
        return Reply(status=201, headers={"Docker-Content-Digest": str(digest)})

    def _start(self, call: Call, name: str) -> Reply:
        if "mount" in call.query:
            digest = Digest.parse(call.query["mount"][0])
            data = self.blobs.get((call.query["from"][0], digest))
            if data is not None:
                self.blobs[name, digest] = data
                return Reply(status=201, headers={"Docker-Content-Digest": str(digest)})
        self._started += 1
        session = f"u{self._started}"
        self.uploads[session] = bytearray()
        return Reply(status=202, headers={"Location": f"/v2/{name}/blobs/uploads/{session}"})

    @staticmethod
    def _standing(path: str, data: bytearray) -> dict[str, str]:
        return {"Location": path, "Range": f"0-{max(0, len(data) - 1)}"}


ServedT = TypeVar("ServedT", bound=StandIn)


def ranged(call: Call, data: bytes, *, headers: dict[str, str] | None = None) -> Reply:
    """``data``, or the part of it that the call asks for."""
    found = re.fullmatch(r"bytes=(\d+)-(\d*)", call.headers.get("range", ""))
    if not found:
        return Reply(headers=headers or {}, body=data)
    first, last = int(found[1]), min(int(found[2] or len(data) - 1), len(data) - 1)
    if first >= len(data):
        return Reply(status=416, headers={"Content-Range": f"bytes */{len(data)}"})
    span = {"Content-Range": f"bytes {first}-{last}/{len(data)}"}
    return Reply(status=206, headers=(headers or {}) | span, body=data[first : last + 1])


def _error(status: int, code: str, message: str) -> Reply:
    return Reply(
        status=status,
        headers={"Content-Type": "application/json"},
        body=b'{"errors":[{"code":"%s","message":"%s"}]}' % (code.encode(), message.encode()),
    )


@contextmanager
def stand_in(tls: ssl.SSLContext | None = None) -> Iterator[StandIn]:
    """Serve one on a free loopback port."""
    with serving(StandIn(), tls) as registry:
        yield registry


class _Server(ThreadingHTTPServer):
    """One that does not print that whoever asked had enough."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


@contextmanager
def serving(registry: ServedT, tls: ssl.SSLContext | None = None) -> Iterator[ServedT]:
    """Serve what is given on a free loopback port."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            registry.connections += 1

        def answer(self) -> None:
            parts = urlsplit(self.path)
            call = Call(
                method=self.command,
                path=parts.path,
                query=parse_qs(parts.query, keep_blank_values=True),
                headers={name.lower(): value for name, value in self.headers.items()},
                body=self.rfile.read(int(self.headers.get("Content-Length", 0))),
            )
            self._send(registry.reply(call))

        def _send(self, reply: Reply) -> None:
            self.send_response_only(reply.status)
            if "Date" not in reply.headers:
                self.send_header("Date", self.date_time_string())
            for name, value in reply.headers.items():
                self.send_header(name, value)
            length = len(reply.body) if reply.announce is None else reply.announce
            if length >= 0 and reply.status != 204:
                self.send_header("Content-Length", str(length))
            else:
                self.close_connection = reply.status != 204
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(reply.body[: reply.cut])
                if reply.cut is not None or reply.announce is not None:
                    self.close_connection = True

        do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = answer

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = _Server(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    registry.host = f"127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield registry
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
