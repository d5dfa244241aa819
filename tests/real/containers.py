"""What a container gets, by our reading and by Docker Compose's: deployments of others.

Held to one another for every service: mounts with their sources, environment, and the models that
their command lines name. Commands are compared as models, because ours are words of a script.
"""

import json
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from builder.compose.container import Container, Kind, Mount, container
from builder.compose.document import read
from builder.compose.interpolation import without_unset
from builder.compose.weights import named_models
from tests.claims import Claims
from tests.commands import CommandError, clean_environment, run
from tests.real.composes import docker_compose, taken
from tests.real.genesis_facts import DEPLOYMENTS, copy

_GIVEN = {"MODEL_DIR": "/srv/models", "HOME": "/home/me", "HF_TOKEN": "t"}


def prove(claims: Claims) -> None:
    """Check it all."""
    said = "containers get what Docker Compose says, of every compose file of club-3090"
    repository = copy(DEPLOYMENTS)
    if repository is None:
        claims.not_run(said, "no copy at hand", wants=DEPLOYMENTS)
        return
    compose = docker_compose(claims)
    if compose is None:
        claims.not_run(said, "there is no Docker Compose")
        return
    with tempfile.TemporaryDirectory(prefix="builder-containers-") as name, claims.group(said):
        wrong, count, models = list[str](), 0, 0
        project = Path(name) / "project"
        for file in (project / path for path in taken(repository, project)):
            try:
                services = resolved(compose, file, environment=_GIVEN)["services"]
            except CommandError:
                continue  # it wants a file that is not in the repository
            for service, item in services.items():
                ours = _ours(file, service)
                count += 1
                models += len(named_models(ours))
                wrong += [f"{file.name}: {service}: {what}" for what in differing(ours, item)]
        claims.equal(said, wrong, [])
        claims.holds(f"{said}: there are some", count > 100 and models > 100, f"{count}, {models}")


def resolved(compose: Path, *files: Path, environment: Mapping[str, str]) -> dict[str, Any]:
    """What Docker Compose makes of files that are one project.

    Raises:
        CommandError: It refuses.
    """
    given = [word for file in files for word in ("-f", file)]
    command = (compose, *given, "--profile", "*", "config", "--format", "json")
    done = run(command, environment=clean_environment(**environment))
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _ours(file: Path, service: str) -> Container:
    document = read(file.read_bytes(), file=file.name)
    return container(
        document,
        service,
        variables=clean_environment(**_GIVEN),
        directory=str(file.parent),
        read=lambda path: Path(path).read_bytes() if Path(path).exists() else None,
    )


def differing(ours: Container, theirs: dict[str, Any]) -> list[str]:
    """What a service gets by our reading, and not by Docker Compose's."""
    mounts = sorted((mount.target, _source(mount)) for mount in ours.mounts)
    wanted = sorted((v["target"], v.get("source", "")) for v in theirs.get("volumes") or ())
    environment = {
        name: text.replace("$$", "$")
        for name, text in (theirs.get("environment") or {}).items()
        if text is not None
    }
    stated = {
        "entrypoint": theirs.get("entrypoint"),
        "command": theirs.get("command"),
        "environment": environment,
    }
    text = json.dumps({"services": {ours.name: stated}})
    again = container(
        read(text.encode(), file="theirs"),
        ours.name,
        variables={},
        directory="/",
        read=lambda _: None,
    )
    models = [(item.option, without_unset(item.text)) for item in named_models(ours)]
    said = [(item.option, item.text) for item in named_models(again)]
    return [
        f"{what}: {mine!r}, Docker Compose has {other!r}"
        for what, mine, other in (
            ("mounts", mounts, wanted),
            ("environment", dict(ours.environment), environment),
            ("models", models, said),
        )
        if mine != other
    ]


def _source(mount: Mount) -> str:
    return without_unset(mount.source) if mount.kind is Kind.BIND else mount.source
