"""A stand-in for the pull requests of a repository at GitHub."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from builder.adapters.forge_hosts import ForgeRepository
from tests.standin.registry import Call, Reply, StandIn, stand_in

TOKEN = "ghs_0123456789"


@dataclass
class Forge:
    """What it holds, and what it was asked. ``writes`` has method and fields of each change."""

    server: StandIn
    pulls: list[dict[str, Any]] = field(default_factory=list)
    writes: list[tuple[str, dict[str, Any]]] = field(default_factory=list)

    @property
    def api(self) -> str:
        return f"http://{self.server.host}"

    @property
    def place(self) -> ForgeRepository:
        return ForgeRepository(host="forge.test", owner="acme", name="images", api=self.api)

    def add(self, head: str, title: str, **fields: Any) -> dict[str, Any]:
        number = len(self.pulls) + 1
        pull = {
            "number": number,
            "state": "open",
            "title": title,
            "body": None,
            "html_url": f"https://forge.test/acme/images/pull/{number}",
            "merged_at": None,
            "head": {"ref": head},
            "base": {"ref": "main"},
        } | fields
        self.pulls.append(pull)
        return pull

    def listed(self, call: Call) -> Reply:
        (state,), (head,) = call.query["state"], call.query["head"]
        owner, _, branch = head.partition(":")
        found = [
            pull
            for pull in reversed(self.pulls)
            if owner == "acme" and pull["head"]["ref"] == branch and state in ("all", pull["state"])
        ]
        return _json(found)

    def opened(self, call: Call) -> Reply:
        fields = json.loads(call.body)
        self.writes.append(("POST", fields))
        base = {"ref": fields["base"]}
        return _json(self.add(fields["head"], fields["title"], body=fields["body"], base=base), 201)

    def changed(self, call: Call) -> Reply:
        fields = json.loads(call.body)
        self.writes.append(("PATCH", fields))
        pull = self.pulls[int(call.path.rpartition("/")[2]) - 1]
        pull.update(fields)
        return _json(pull)


def _json(value: object, status: int = 200) -> Reply:
    headers = {"Content-Type": "application/json"}
    return Reply(status=status, headers=headers, body=json.dumps(value).encode())


@contextmanager
def running_forge() -> Iterator[Forge]:
    """Serve the pull requests of ``acme/images`` on loopback."""
    with stand_in() as server:
        forge = Forge(server)
        yield forge


def serve(forge: Forge) -> Forge:
    """Answer as a good host does; what a test puts before it comes first."""
    server, pulls = forge.server, "/repos/acme/images/pulls"
    server.on("GET", pulls, forge.listed, forever=True)
    server.on("POST", pulls, forge.opened, forever=True)
    server.on("PATCH", pulls + r"/\d+", forge.changed, forever=True)
    return forge
