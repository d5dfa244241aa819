"""A real model from a hub to a disk: locked, fetched, verified, and a flipped bit of it found. The
hub is a stand-in for the API, its bytes are the model's."""

from pathlib import Path
from tempfile import TemporaryDirectory

from builder.digest import Digest
from builder.errors import EnvironmentFault, GoneError, NetworkError
from builder.lock.codec import read_models
from builder.models.selection import DEFAULT, selected
from tests.claims import Claims
from tests.commands import ROOT, Builder, CommandError, clean_environment
from tests.models.worlds import lay
from tests.real.minilm import VARIANT, minilm
from tests.standin.hub import stand_in_hub

_CLAIM = "a real model, from a hub to a disk"
_WEIGHTS = "model.safetensors"


def prove(claims: Claims) -> None:
    """Take it all the way, and flip a bit."""
    try:
        files = minilm()
    except (EnvironmentFault, GoneError, NetworkError) as error:
        claims.not_run(_CLAIM, f"not here: {error}")
        return
    with (
        claims.group(_CLAIM),
        TemporaryDirectory(prefix="builder-weights-") as name,
        stand_in_hub() as hub,
    ):
        place = Path(name)
        commit = hub.model("Team/MiniLM", files).refs["main"]
        project = lay(place / "project", {"variants/mine.yaml": VARIANT})
        environment = clean_environment(
            HOME=str(place), PYTHONPATH=str(ROOT), HF_ENDPOINT=hub.endpoint
        )
        builder = Builder(store=place / "store", project=project, environment=environment)
        builder.run("add", "model", "Team/MiniLM", "--name", "minilm")
        _locked(project / "lockfiles/models.yaml", commit, files, claims)
        _fetched(builder, place / "model", files, claims)


def _locked(lock: Path, commit: str, files: dict[str, bytes], claims: Claims) -> None:
    pin = read_models(lock.read_bytes())["minilm"]
    claims.equal("a real model is locked by commit", pin.commit.hex, commit)
    wanted = {path: Digest.of(files[path]) for path in selected(sorted(files), DEFAULT)}
    got = {file.path: file.digest for file in pin.files}
    claims.holds("a real model is locked by the sha256 of each file", got == wanted, len(got))


def _fetched(builder: Builder, model: Path, files: dict[str, bytes], claims: Claims) -> None:
    where = ("mine", "--dir", model)
    builder.run("models", "fetch", *where)
    weights = model / _WEIGHTS
    claims.holds(
        "a real model is fetched",
        weights.read_bytes() == files[_WEIGHTS],
        f"{weights.stat().st_size} bytes",
    )
    document, _ = builder.ask("models", "verify", *where)
    states = {state for state, count in document["models"][0]["counts"].items() if count}
    claims.equal("a real model is verified", states, {"ok"})
    with weights.open("r+b") as file:
        file.seek(-1000, 2)
        (byte,) = file.read(1)
        file.seek(-1000, 2)
        file.write(bytes([byte ^ 1]))
    try:
        builder.run("models", "verify", *where)
    except CommandError as error:
        found = (error.status, error.said)
    else:
        found = (0, "it is verified")
    claims.equal("a flipped bit of it is found", found, (4, "models: minilm: not what was locked"))
    builder.run("models", "fetch", *where)
    claims.equal("and mended", weights.read_bytes() == files[_WEIGHTS], True)
