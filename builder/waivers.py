"""Exceptions that people made, and what they hold for. Pure: today is an argument.

A waiver is for one vLLM build under one commit of a patch set. Another commit or another build is
another thing, however near it is.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from datetime import date, timedelta

from builder.digest import ObjectId
from builder.lock.codec_waivers import GENESIS_ALLOWLIST, day
from builder.lock.model import VllmBuild, Waiver
from builder.node.readers import NAME_LIMIT

LONGEST = timedelta(days=366)
"""How long an exception may be made for at once."""

_JOINED = re.compile(r"[^a-z0-9]+")


def identity(build: VllmBuild) -> str:
    """What a waiver calls a build: its full commit, or the version where no commit is known."""
    return build.version if build.commit is None else str(build.commit)


def ended(waiver: Waiver, today: date) -> bool:
    """Whether its last day is over. ``until`` is the last day on which it holds."""
    last = day(waiver.until)
    return last is None or last < today


def waiver_for(waivers: Iterable[Waiver], genesis: ObjectId, build: VllmBuild) -> Waiver | None:
    """The waiver for this build under this commit; of several, the one that ends last."""
    thing = (GENESIS_ALLOWLIST, genesis, identity(build))
    own = [item for item in waivers if _thing(item) == thing]
    return max(own, key=lambda item: (item.until, item.name), default=None)


def near_misses(
    waivers: Iterable[Waiver], genesis: ObjectId, build: VllmBuild
) -> tuple[Waiver, ...]:
    """Those that are for something else but share the commit or the build: somebody may take them
    for this one's."""
    thing = (GENESIS_ALLOWLIST, genesis, identity(build))
    builds = {identity(build), build.version}
    return tuple(
        item
        for item in waivers
        if _thing(item) != thing and (item.genesis == genesis or item.vllm in builds)
    )


def recorded(waivers: Mapping[str, Waiver], new: Waiver) -> Mapping[str, Waiver]:
    """``waivers`` with ``new`` among them, in place of what there was for the same thing; its name
    is free, or that of what it replaces."""
    same = [name for name, item in waivers.items() if _thing(item) == _thing(new)]
    others = {name: item for name, item in waivers.items() if name not in same}
    name = same[0] if same else _free(new.name, others)
    return others | {name: replace(new, name=name)}


def name_of(genesis: ObjectId, vllm: str) -> str:
    """The usual name of a waiver, for ``lockfiles/waivers.yaml``.

    >>> name_of(ObjectId(40 * "7"), "0.20.2rc1.dev9+g01d4d1ad3")
    'genesis-777777777777-vllm-0.20.2rc1.dev9-g01d4d1ad3'
    """
    return f"genesis-{genesis.short}-vllm-{_plain(shown_build(vllm))}"


def shown_build(vllm: str) -> str:
    """What a waiver's ``vllm`` looks like in a message: a commit by its first digits."""
    return vllm if "." in vllm else vllm[:12]


def _thing(waiver: Waiver) -> tuple[str, ObjectId, str]:
    return waiver.rule, waiver.genesis, waiver.vllm


def _plain(version: str) -> str:
    text = _JOINED.sub(lambda found: "." if found[0] == "." else "-", version.lower())
    return text[: NAME_LIMIT // 2].strip(".-")


def _free(name: str, taken: Mapping[str, Waiver]) -> str:
    numbered = (f"{name}-{number}" for number in range(2, len(taken) + 3))
    return next(item for item in (name, *numbered) if item not in taken)
