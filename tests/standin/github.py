"""GitHub's API of pull requests, as far as it is asked: on top of the server that does as told."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from tests.standin.registry import Call, Reply, StandIn, stand_in

JSON = {"Content-Type": "application/json; charset=utf-8"}


@dataclass
class GitHub:
    """Repositories by ``owner/name`` with the documents of their pull requests by number.

    ``moved`` has old names and the numeric id that they lead to now; ``tokens`` are those that are
    known, and another one is refused.
    """

    server: StandIn
    pulls: dict[tuple[str, int], dict[str, Any]] = field(default_factory=dict)
    moved: dict[str, int] = field(default_factory=dict)
    ids: dict[int, str] = field(default_factory=dict)
    tokens: set[str] = field(default_factory=set)
    queued: list[Reply] = field(default_factory=list)

    @property
    def api(self) -> str:
        return f"http://{self.server.host}"

    @property
    def sent_tokens(self) -> list[str | None]:
        """``Authorization`` of each call."""
        return [call.headers.get("authorization") for call in self.server.calls]

    def first(self, *answers: Reply) -> None:
        """Answer the next calls so, one answer each."""
        self.queued.extend(answers)

    def answer(self, call: Call) -> Reply:
        """What is answered to a call."""
        if self.queued:
            return self.queued.pop(0)
        token = call.headers.get("authorization", "").removeprefix("Bearer ")
        if token and token not in self.tokens:
            return told(401, "Bad credentials")
        kind, *rest = call.path.strip("/").split("/")
        if kind == "repositories":
            owner, name = self.ids[int(rest.pop(0))].split("/")
        else:
            owner, name, *rest = rest
        if moved := self.moved.get(f"{owner}/{name}"):
            place = f"{self.api}/repositories/{moved}/{'/'.join(rest)}"
            return Reply(status=301, headers=JSON | {"Location": place}, body=b"{}")
        document = self.pulls.get((f"{owner}/{name}", int(rest[1])))
        if document is None or rest[0] != "pulls":
            return told(404, "Not Found")
        return Reply(headers=JSON, body=json.dumps(document).encode())


def told(status: int, message: str, **headers: str) -> Reply:
    """An error as GitHub words it; headers by name with underscores."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = json.dumps({"message": message, "documentation_url": "https://docs.example"})
    return Reply(status=status, headers=JSON | named, body=body.encode())


def pull_document(number: int, *, head: str, **fields: Any) -> dict[str, Any]:
    """A pull request that is open, as the API has it, down to what we read and some more."""
    return {
        "number": number,
        "title": "Fix it",
        "state": "open",
        "merged": False,
        "merge_commit_sha": "f" * 40,  # of a trial merge, while it is open
        "head": {"sha": head, "ref": "fix", "repo": None},
        "base": {"sha": "e" * 40, "ref": "main"},
        "draft": False,
        **fields,
    }


@contextmanager
def github() -> Iterator[GitHub]:
    """Serve one on a free loopback port."""
    with stand_in() as server:
        hub = GitHub(server)
        server.on("GET", "/(repos|repositories)/.*", hub.answer, forever=True)
        yield hub
