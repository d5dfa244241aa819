"""Compose files as text, and what their names stand for."""

from builder.compose.document import read
from builder.compose.judge import Judgement, judge
from builder.compose.pin import Pinned, pin
from builder.compose.service import Service, services
from builder.compose.target import Source, Target
from builder.digest import Digest
from builder.errors import ProjectError
from builder.reference import Reference

ONE = Digest.parse(f"sha256:{'1' * 64}")
TWO = Digest.parse(f"sha256:{'2' * 64}")
FILE = "compose.yml"

DEMO = f"registry.example/acme/vllm:demo@{ONE}"
"""What ``demo`` stands for."""
BASE = f"vllm/vllm-openai:nightly@{TWO}"
"""What ``base`` stands for, spelt as Docker does."""

TARGETS = {
    "demo": Target(
        name="demo",
        kind="variant",
        place=Reference.parse("registry.example/acme/vllm:demo"),
        digest=ONE,
        source=Source.ACCEPTED,
    ),
    "base": Target(
        name="base",
        kind="base",
        place=Reference.parse("vllm/vllm-openai:nightly"),
        digest=TWO,
        source=Source.LOCKED,
    ),
    "address": Target(
        name="address",
        kind="base",
        place=Reference.parse("[::1]:5000/me/vllm:mine"),
        digest=TWO,
        source=Source.LOCKED,
    ),
    "unsaid": Target(
        name="unsaid",
        kind="variant",
        place=None,
        digest=ONE,
        source=Source.BUILT,
        foreign=Reference.parse("docker.io/vllm/vllm-openai:nightly"),
    ),
    "unbaked": Target(name="unbaked", kind="variant", place=None, digest=None, source=None),
}


def look_up(service: Service) -> Target:
    found = TARGETS.get(service.runs or "")
    if found is None:
        raise ProjectError(f"no variant and no pinned base {service.runs!r}")
    return found


def pinned(
    data: bytes | str, mapped: dict[str, str] | None = None, *, keep_override: bool = False
) -> tuple[bytes, tuple[Pinned, ...]]:
    """A compose file through ``pin``."""
    document = read(data if isinstance(data, bytes) else data.encode(), file=FILE)
    found = services(document, mapped or {})
    return pin(document, found, look_up, keep_override=keep_override)


def judged(data: str, mapped: dict[str, str] | None = None) -> tuple[Judgement, ...]:
    """A compose file through ``judge``."""
    document = read(data.encode(), file=FILE)
    return judge(document, services(document, mapped or {}), look_up)
