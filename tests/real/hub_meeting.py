"""Our side and the hub's own library at one hub: a model whose names and sizes are odd, a project
that locks it, and what each of both says when it is asked."""

import json
import random
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from builder.adapters.hub import HubClient
from builder.adapters.hub_settings import HubSettings
from builder.errors import BuilderError
from tests.commands import ROOT, Builder, clean_environment, run
from tests.models.worlds import lay, safetensors, tiny
from tests.standin.hub import StandInHub

VARIANT = b"version: 1\nbase: scratch\nsteps: []\nmodels: [odd]\n"
NAME, WEIGHTS = "Team/Odd", "weights/deep/one.safetensors"
_PROGRAM = Path(__file__).with_name("hub_program.py")
_OF_THE_USER = frozenset({"HF_TOKEN", "HF_HUB_OFFLINE", "HF_TOKEN_PATH", "HF_HUB_CACHE"})


def _odd_files() -> dict[str, bytes]:
    """A model whose files have all that makes a path or a size odd."""
    return {
        **tiny(),
        WEIGHTS: safetensors({"t": random.Random(6).randbytes(100_000)}),
        "ünï cödé/a b#c?d%e+f.json": b"{}",
        "empty.txt": b"",
        "same.txt": b"{}",
        "README.md": b"# not pinned by default\n",
    }


class Meeting:
    """Both programs, the hub with a model of many shapes, and a project that locks it."""

    def __init__(self, place: Path, hub: StandInHub, python: Path) -> None:
        self.place, self.hub, self._python = place, hub, python
        self.files = _odd_files()
        self.model = hub.model(NAME, self.files)
        self.commit = self.model.refs["main"]
        self.model.refs["v1.0"] = self.commit
        self.model.commit({"config.json": b"[]"}, ref="refs/pr/1")
        hub.model("Team/Gated", tiny()).gated = True
        hub.model("Team/Private", tiny()).private = True
        hub.renamed["Old/Odd"] = NAME
        hub.tokens = {"hf_friend": {"Team/Gated"}, "hf_stranger": set()}
        hub.page = 3
        environment = clean_environment(
            HOME=str(place), HF_ENDPOINT=hub.endpoint, NO_PROXY="127.0.0.1", no_proxy="127.0.0.1"
        )
        self._environment = {k: v for k, v in environment.items() if k not in _OF_THE_USER} | {
            "HF_HOME": str(place / "home"),
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
        }
        project = lay(place / "project", {"variants/mine.yaml": VARIANT})
        self.builder = Builder(
            store=place / "store",
            project=project,
            environment=self._environment | {"PYTHONPATH": str(ROOT)},
        )
        self.builder.run("add", "model", NAME, "--name", "odd", "--include", "*")

    def library(self, *jobs: tuple[str, Mapping[str, Any]], **variables: str) -> list[Any]:
        """What the library makes of jobs: values, or the names of errors. It warns of
        nothing: a warning is an error here."""
        line = (self._python, "-W", "error::UserWarning", _PROGRAM)
        environment = self._environment | variables
        done = run(line, environment=environment, given=json.dumps(jobs).encode())
        said = [json.loads(line) for line in done.text.splitlines()]
        return [one["error"] if "error" in one else one["value"] for one in said]

    def ours(self, ask: Callable[[HubClient], Any], *, token: str | None = None) -> Any:
        """What our client makes of a question: a value, or the name of the error."""
        client = HubClient(HubSettings(endpoint=self.hub.endpoint, token=token))
        try:
            return ask(client)
        except BuilderError as error:
            return type(error).__name__
        finally:
            client.close()

    def fetch(self, directory: Path, *options: str) -> int:
        """``builder models fetch``; how many requests it took for files."""
        before = len(self.hub.calls)
        self.builder.run("models", "fetch", "mine", "--dir", directory, *options)
        return sum("/resolve/" in call.path for call in self.hub.calls[before:])

    def verify(self, directory: Path) -> dict[str, int]:
        """``builder models verify``: how many files are in which state."""
        document, _ = self.builder.ask("models", "verify", "mine", "--dir", directory)
        counts = document["models"][0]["counts"].items()
        return {state: count for state, count in counts if count}
