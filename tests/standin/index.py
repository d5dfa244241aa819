"""An index of Python packages (PEP 503) on loopback, which says of its files what it is told."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from hashlib import md5, sha256
from html import escape
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import quote, unquote


@dataclass(frozen=True, kw_only=True)
class Offered:
    """One file. ``fragment`` is what its link ends with: ``{sha256}`` and ``{md5}`` are filled
    in; ``attributes`` go into the link's tag (``data-yanked``)."""

    data: bytes
    fragment: str = "#sha256={sha256}"
    attributes: str = ""


@dataclass
class StandInIndex:
    """What the index holds, by project and file name, and what it was asked."""

    projects: dict[str, dict[str, Offered]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    url: str = ""
    status: int = 200
    """What everything is answered with."""

    def add(self, project: str, filename: str, data: bytes, **said: str) -> None:
        """Offer a file."""
        self.projects.setdefault(project, {})[filename] = Offered(data=data, **said)

    def answer(self, path: str) -> bytes | None:
        """The body for a path; ``None`` is a 404."""
        kind, _, rest = unquote(path).strip("/").partition("/")
        if kind == "simple" and rest in self.projects:
            return self._page(rest).encode()
        if kind == "files":
            project, _, filename = rest.partition("/")
            offered = self.projects.get(project, {}).get(filename)
            return None if offered is None else offered.data
        return None

    def _page(self, project: str) -> str:
        links = []
        for filename, offered in self.projects[project].items():
            fragment = offered.fragment.format(
                sha256=sha256(offered.data).hexdigest(),
                md5=md5(offered.data, usedforsecurity=False).hexdigest(),
            )
            target = f"/files/{project}/{quote(filename)}{fragment}"
            links.append(f'<a href="{target}" {offered.attributes}>{escape(filename)}</a><br>')
        return f"<!DOCTYPE html><html><body>{''.join(links)}</body></html>"


@contextmanager
def stand_in_index() -> Iterator[StandInIndex]:
    """Serve one on a free loopback port; ``url`` holds credentials that no message may show."""
    index = StandInIndex()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            index.asked.append(self.path)
            body = index.answer(self.path) if index.status == 200 else None
            if body is None:
                self.send_error(404 if index.status == 200 else index.status)
                return
            self.send_response(200)
            html = self.path.startswith("/simple/")
            self.send_header("Content-Type", "text/html" if html else "application/octet-stream")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    index.url = f"http://user:sesame@127.0.0.1:{server.server_port}/simple"
    try:
        yield index
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
