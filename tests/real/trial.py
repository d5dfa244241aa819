"""A project of its own for one patch set on the wheel of vLLM 0.20.2."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.commands import Builder, CommandError
from tests.real.workshop import Workshop

PIN = "genesis-v7.72.2"
WHEEL = "vllm-0.20.2"
TRIAL, BASE = "trial", "without-genesis"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """A project of its own: this one's pins, and one variant on a base made of the wheel."""

    shop: Workshop = field(repr=False)
    builder: Builder
    environment: Mapping[str, str] = field(repr=False)

    @property
    def root(self) -> Path:
        return self.builder.project

    def write(self, *, speculative: str | None = "mtp", **flags: str | None) -> None:
        """Write the variant; ``flags`` change its environment, ``None`` takes one away."""
        step: dict[str, Any] = {"genesis": PIN, "platform": "cuda-8.6"}
        if speculative is not None:
            step["speculative"] = speculative
        env = {**self.environment, **flags}
        recipe: dict[str, Any] = {
            "version": 1,
            "base": "scratch",
            "python": {
                "version": "3.12",
                "packages": "usr/local/lib/python3.12/dist-packages",
            },
            "steps": [{"wheels": [WHEEL]}, step],
            "image": {"env": {name: value for name, value in env.items() if value is not None}},
        }
        (self.root / "variants" / f"{TRIAL}.yaml").write_text(json.dumps(recipe, indent=1))
        recipe["steps"].pop()
        (self.root / "variants" / f"{BASE}.yaml").write_text(json.dumps(recipe, indent=1))

    def refusal(self) -> CommandError | None:
        """How ``builder build`` refuses; ``None`` where it does not."""
        try:
            self.builder.run("build", TRIAL, "--quiet")
        except CommandError as error:
            return error
        return None
