"""Real git repositories, made from fast-import streams: the same ids on every machine."""

import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

Files = Mapping[str, bytes | tuple[str, bytes]]
"""Path to content, or to (mode, content); the content of mode 160000 is a commit id."""


def clean_environment(home: Path) -> dict[str, str]:
    """What the tests' own git runs with: nothing of the user's."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "LC_ALL": "C",
    }


def git(
    repository: Path, *arguments: str, data: bytes | None = None, config: tuple[str, ...] = ()
) -> str:
    """Run git on a repository of the test; the output, stripped."""
    done = subprocess.run(
        (
            *("git", f"--git-dir={repository}"),
            *(x for item in config for x in ("-c", item)),
            *arguments,
        ),
        input=data,
        stdout=subprocess.PIPE,
        stderr=sys.stderr,
        env=clean_environment(repository),
        check=True,
    )
    return done.stdout.decode().strip()


@dataclass(slots=True)
class Upstream:
    """A bare repository that the test writes history into."""

    path: Path
    commits: int = field(default=0)

    @classmethod
    def make(cls, path: Path) -> "Upstream":
        subprocess.run(
            ("git", "init", "--quiet", "--bare", "--initial-branch=main", str(path)),
            env=clean_environment(path.parent),
            check=True,
        )
        return cls(path)

    def commit(
        self,
        ref: str,
        files: Files,
        *,
        parent: str | None = None,
        merged: tuple[str, ...] = (),
        message: bytes | None = None,
    ) -> str:
        """Add a commit with exactly these files, point ``ref`` at it, and return its id.
        ``merged`` are its other parents."""
        self.commits += 1
        stamp = f"A <a@example.org> {1700000000 + self.commits} +0000"
        message = b"commit %d" % self.commits if message is None else message
        stream = b"commit %s\ncommitter %s\n" % (ref.encode(), stamp.encode())
        stream += b"data %d\n%s\n" % (len(message), message)
        stream += b"from %s\n" % parent.encode() if parent else b""
        stream += b"".join(b"merge %s\n" % other.encode() for other in merged)
        stream += b"deleteall\n"
        for name, content in files.items():
            mode, data = content if isinstance(content, tuple) else ("100644", content)
            if mode == "160000":
                stream += b"M 160000 %s %s\n" % (data, name.encode())
            else:
                stream += b"M %s inline %s\n" % (mode.encode(), name.encode())
                stream += b"data %d\n%s\n" % (len(data), data)
        git(self.path, "fast-import", "--quiet", "--force", data=stream)
        return git(self.path, "rev-parse", ref)

    def graph(self, graph: Sequence[tuple[int, ...]], times: Sequence[int]) -> list[str]:
        """Add commits without files in one go: each by its parents, which come before it."""
        stream = b""
        for number, (parents, time) in enumerate(zip(graph, times, strict=True)):
            # A ref each: without "from" a commit on a ref goes on from what is there.
            stream += b"commit refs/made/%d\nmark :%d\n" % (number, number + 1)
            stream += b"committer A <a@example.org> %d +0000\n" % time
            stream += b"data <<.\ncommit %d\n.\n" % number
            for index, parent in enumerate(parents):
                stream += b"%s :%d\n" % (b"merge" if index else b"from", parent + 1)
        git(self.path, "fast-import", "--quiet", "--force", data=stream)
        listed = git(self.path, "for-each-ref", "--format=%(refname) %(objectname)", "refs/made/")
        ids = {int(name[10:]): made for name, made in map(str.split, listed.splitlines())}
        self.set_refs({f"refs/made/{number}": None for number in ids})
        return [ids[number] for number in range(len(ids))]

    def set_refs(self, refs: Mapping[str, str | None]) -> None:
        """Point refs at objects; ``None`` removes."""
        lines = (f"update {name} {to}" if to else f"delete {name}" for name, to in refs.items())
        git(self.path, "update-ref", "--stdin", data="".join(f"{x}\n" for x in lines).encode())

    def tag(self, name: str, target: str) -> str:
        """Add an annotated tag and return the id of the tag object."""
        kind = git(self.path, "cat-file", "-t", target)
        text = f"object {target}\ntype {kind}\ntag {name}\ntagger A <a@example.org> 1 +0000\n\nx\n"
        made = git(self.path, "hash-object", "-t", "tag", "-w", "--stdin", data=text.encode())
        git(self.path, "update-ref", f"refs/tags/{name}", made)
        return made


@dataclass(slots=True)
class Remote:
    """A git server on loopback. ``status`` answers every request with that status instead;
    ``old`` hides protocol version 2, so that only what a ref names is handed out."""

    url: str
    status: int | None = None
    old: bool = False
    cut: bool = False
    """Whether packs break off in the middle."""
    held: threading.Event = field(default_factory=threading.Event)
    """Packs wait until it is set, as it is from the start."""
    moved: tuple[str, str] | None = None
    """Requests that begin with the first are redirected to the second."""
    requests: list[str] = field(default_factory=list)


@contextmanager
def serving(root: Path) -> Iterator[Remote]:
    """Serve the repositories below ``root`` with ``git http-backend``, from this process."""
    remote = Remote(url="")
    remote.held.set()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(b"")

        def do_POST(self) -> None:
            self._answer(self._body())

        def _body(self) -> bytes:
            if "chunked" not in self.headers.get("Transfer-Encoding", ""):
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            body = b""
            while size := int(self.rfile.readline(), 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            return body

        def _answer(self, body: bytes) -> None:
            remote.requests.append(f"{self.command} {self.path}")
            if remote.status is not None:
                self.send_error(remote.status)
                return
            if remote.moved and self.path.startswith(remote.moved[0]):
                self.send_response(301)
                place = remote.moved[1] + self.path.removeprefix(remote.moved[0])
                self.send_header("Location", place)
                self.send_header("Content-Length", "0")
                self.end_headers()
                return
            path, _, query = self.path.partition("?")
            environment = clean_environment(root) | {
                "GIT_PROJECT_ROOT": str(root),
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
                "GIT_PROTOCOL": "" if remote.old else self.headers.get("Git-Protocol", ""),
            }
            done = subprocess.run(
                ("git", "http-backend"),
                input=body,
                capture_output=True,
                env=environment,
                check=False,
            )
            head, _, data = done.stdout.partition(b"\r\n\r\n")
            headers = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
            self.send_response(int(headers.pop("Status", "200").split()[0]))
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if b"PACK" in data:
                remote.held.wait(10)
            broken = remote.cut and b"PACK" in data
            self.wfile.write(data[: data.index(b"PACK") + 40] if broken else data)
            self.close_connection = broken

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing: ``requests`` has it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    remote.url = f"http://127.0.0.1:{server.server_port}/"
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield remote
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
