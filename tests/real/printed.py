"""The commands that ``builder sign`` prints, run as they stand: by cosign with the key that signed
and with another one, by skopeo under what ``trust export`` wrote."""

import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from builder.cli.start import start_project
from tests.claims import Claims
from tests.commands import ROOT, Builder, CommandError, clean_environment, run
from tests.plugins.requires import missing
from tests.real.debian_tool import STABLE, debian_packages, with_libraries
from tests.services import running_registry

_CLAIM = "the commands that sign prints"
_SKOPEO = ("skopeo", "libc6", "libgpgme11t64", "libassuan9", "libgpg-error0", "libsqlite3-0")
_PLAIN = {
    "cosign": ("--allow-insecure-registry", "--allow-http-registry"),
    "skopeo": ("--src-tls-verify=false",),
}
"""What each tool wants beside what is printed, for a registry without TLS."""
Programs = Mapping[str, Sequence[str | Path]]


def prove(claims: Claims) -> None:
    """Sign an image in a registry, and do what it says."""
    if why := missing("docker-registry"):
        claims.not_run(_CLAIM, why)
        return
    try:
        unpacked = debian_packages(("cosign", *_SKOPEO), STABLE)
        programs = {
            "cosign": (unpacked["cosign"] / "usr/bin/cosign",),
            "skopeo": with_libraries(unpacked, "skopeo", "usr/bin/skopeo"),
        }
    except CommandError as error:
        claims.not_run(_CLAIM, error.said or str(error))
        return
    with claims.group(_CLAIM), TemporaryDirectory(prefix="builder-printed-") as name:
        place = Path(name)
        (place / "registry").mkdir()
        with running_registry(place / "registry") as registry:
            printed = _signed(place, f"{registry.host}/team/hello")
            _ask(place, printed, programs, claims)


def _signed(place: Path, repository: str) -> list[str]:
    """What is printed of a signed image of a project that has a policy."""
    environment = clean_environment(
        HOME=str(place),
        PYTHONPATH=str(ROOT),
        BUILDER_KEYS=str(place / "keys"),
        BUILDER_KEY_PASSWORD="of no worth",
    )
    project, image = place / "project", f"{repository}:t"
    start_project(project)
    builder = Builder(store=place / "store", project=project, environment=environment)
    for key in ("mine", "other"):
        builder.run("key", "generate", key)
    builder.run("trust", "new", "--key=mine", "--repository", repository)
    builder.run("trust", "sign", "--key", "mine")
    builder.run("trust", "init", "--accept-first")
    builder.run(
        "trust", "export", "--format", "containers", "--reject", "--out", place / "containers"
    )
    builder.run("build", "hello", "--push", image)
    document, _ = builder.ask("sign", "hello", image, "--key", "mine")
    return [*document["commands"], *document["policy_commands"]]


def _ask(place: Path, printed: Sequence[str], programs: Programs, claims: Claims) -> None:
    lines = [shlex.split(line) for line in printed]
    asked = [line for line in lines if line[0] in programs]
    tools = [line[0] for line in asked]
    claims.equal(f"{_CLAIM}: of whom", tools, ["cosign", "cosign", "skopeo"])
    for key, right in (("mine", True), ("other", False)):
        own, given = (str(place / f"keys/{name}.pub") for name in ("mine", key))
        for tool, *words in asked:
            arguments = [given if word == own else word for word in words]
            if tool == "skopeo" and not right:
                continue  # its keys are those of the policy
            done = _passes((*programs[tool], *arguments, *_PLAIN[tool]), place)
            told = f"{tool} {'takes' if right else 'refuses'} it by {shlex.join(arguments[:2])}"
            claims.holds(f"{_CLAIM}: {told}, key {key!r}", done is right)


def _passes(command: Sequence[str | Path], place: Path) -> bool:
    try:
        run(command, directory=place, environment=clean_environment(HOME=str(place)))
    except CommandError:
        return False
    return True
