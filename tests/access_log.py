"""What was asked of a registry, by its own account: the witness for "nothing was read"."""

import re
import urllib.parse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_LINE = re.compile(r'"(?P<method>[A-Z]+) (?P<path>\S+) HTTP/[0-9.]+" (?P<status>\d+) (?P<sent>\d+)')


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """One request and how it was answered; ``sent`` counts the bytes of the answer's body."""

    method: str
    path: str
    status: int
    sent: int

    @property
    def uploaded(self) -> str | None:
        """The digest of the blob that this request made, if it is the last of an upload; a mount
        is none."""
        query = urllib.parse.parse_qs(self.path.partition("?")[2])
        if self.method == "PUT" and self.status == 201 and "/blobs/uploads/" in self.path:
            return query["digest"][0]
        return None


class AccessLog:
    """The requests since the last look."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._offset = 0

    def requests(self) -> tuple[Request, ...]:
        """What was asked since the last call."""
        with self._path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        whole = data[: data.rfind(b"\n") + 1]  # the last line may be half written
        self._offset += len(whole)
        return tuple(parse(whole.decode()))


def parse(text: str) -> Iterator[Request]:
    """The requests of a log in Apache's combined format.

    >>> list(parse('::1 - - [x] "GET /v2/a/blobs/sha256:0 HTTP/1.1" 200 17 "" "curl"'))
    [Request(method='GET', path='/v2/a/blobs/sha256:0', status=200, sent=17)]
    """
    for found in _LINE.finditer(text):
        yield Request(
            method=found["method"],
            path=found["path"],
            status=int(found["status"]),
            sent=int(found["sent"]),
        )


def read_from(requests: tuple[Request, ...], repository: str) -> int:
    """The bytes that were read of a repository: its manifests, configs and layers."""
    return sum(
        item.sent
        for item in requests
        if item.method == "GET" and item.path.startswith(f"/v2/{repository}/") and item.status < 300
    )
