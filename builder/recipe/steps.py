"""The steps of a variant, one reader a kind."""

import re

from builder.digest import Digest
from builder.node import (
    Cursor,
    any_text,
    digest,
    file_path,
    integer,
    mapping_of,
    mode,
    name,
    sequence_of,
    shortened,
    some_of,
    target_directory,
    target_path,
    text,
    unique,
    word,
)
from builder.recipe.known import Names
from builder.strict_yaml import MappingNode, ScalarNode
from builder.variant import (
    PLANNED,
    GenesisStep,
    OverlayStep,
    Placement,
    PullStep,
    ScriptFile,
    ScriptStep,
    SourceStep,
    Step,
    WheelsStep,
)

# These are compiled when they are first asked for: few variants have such steps.
# The shell's names, with the dot and the dash that some base images use.
_VARIABLE = r"[A-Za-z_][A-Za-z0-9_.-]*"
_PLATFORM = r"cuda-[0-9]{1,2}\.[0-9]|(?:rocm|xpu)(?:-[0-9]{1,2}\.[0-9]{1,2})?|cpu"
_OURS = "BUILDER_"
_FIXED = frozenset({"HOME", "TMPDIR", "TZ"})
"""How the variables begin that a step sets by itself."""


class StepReader:
    """Reads the steps of one variant. ``names`` knows what they can name."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._kinds = {
            "pull": self._pull,
            "overlay": self._overlay,
            "source": self._source,
            "wheels": self._wheels,
            "genesis": self._genesis,
            "script": self._script,
        }

    def steps(self, node: Cursor) -> tuple[Step, ...]:
        """All of them, with names and rules that hold between them."""
        steps: dict[str, Step] = {}
        baked: Step | None = None
        for item in node.elements():
            step = self._step(item)
            if (first := steps.setdefault(step.name, step)) is not step:
                raise item.error(
                    f"a second step with the name {step.name!r}, the first is {first.at}",
                    hint="give one of them another name with 'name'",
                )
            if isinstance(step, GenesisStep) and baked is not None:
                raise item.error(
                    f"a second genesis step, the first is {baked.at}: patches look at what others"
                    " wrote, so that two runs give another tree than one",
                    hint="bake all patches in one step: the flags in image.env choose them",
                )
            baked = step if isinstance(step, GenesisStep) else baked
        return tuple(steps.values())

    def _step(self, node: Cursor) -> Step:
        keys = node.node.entries if isinstance(node.node, MappingNode) else ()
        for planned in filter(PLANNED.get, keys):
            raise node.error(f"there is no step {planned!r} yet", hint=PLANNED[planned])
        step = self._kinds[node.choice(*self._kinds)](node)
        node.done()
        return step

    def _pull(self, node: Cursor) -> Step:
        pull = node.take("pull", self._names.pull)
        return PullStep(
            name=node.default("name", name, pull),
            pull=pull,
            ignore=node.default("ignore", sequence_of(text), ()),
            root=node.optional("root", target_directory),
            strip=node.optional("strip", integer),
            until_upstream=_until_upstream(node),
            at=node.at,
        )

    def _overlay(self, node: Cursor) -> Step:
        overlay = node.take("overlay", self._names.overlay)
        return OverlayStep(
            name=node.default("name", name, overlay),
            overlay=overlay,
            until_upstream=_until_upstream(node),
            at=node.at,
        )

    def _source(self, node: Cursor) -> Step:
        source = node.take("source", self._names.source)
        return SourceStep(
            name=node.default("name", name, source),
            source=source,
            files=node.take("files", some_of(lambda child: self._placement(child, source))),
            until_upstream=_until_upstream(node),
            at=node.at,
        )

    def _placement(self, node: Cursor, source: str) -> Placement:
        placement = Placement(
            source=node.take("from", self._names.file_of(source)),
            target=node.take("to", target_path),
            replaces=node.take("replaces", replaces),
            mode=node.optional("mode", mode),
            at=node.at,
        )
        node.done()
        return placement

    def _wheels(self, node: Cursor) -> Step:
        return WheelsStep(
            name=node.default("name", name, "wheels"),
            wheels=node.take("wheels", unique(some_of(self._names.wheel))),
            at=node.at,
        )

    def _genesis(self, node: Cursor) -> Step:
        genesis = node.take("genesis", self._names.genesis)
        return GenesisStep(
            name=node.default("name", name, genesis),
            genesis=genesis,
            platform=node.take("platform", _platform),
            speculative=node.optional("speculative", name),
            at=node.at,
        )

    def _script(self, node: Cursor) -> Step:
        script = node.take("script", self._script_file)
        return ScriptStep(
            name=node.default("name", name, script.overlay or script.source or ""),
            script=script,
            interpreter=node.take("interpreter", word("python", "sh", "bash")),
            touches=node.take("touches", unique(some_of(target_path))),
            arguments=node.default("arguments", sequence_of(any_text), ()),
            environment=node.default("environment", mapping_of(_own_variable, any_text), ()),
            at=node.at,
        )

    def _script_file(self, node: Cursor) -> ScriptFile:
        if node.choice("overlay", "source") == "overlay":
            overlay = node.take("overlay", self._names.overlay)
            file = ScriptFile(overlay=overlay, path=node.take("path", file_path))
        else:
            source = node.take("source", self._names.source)
            file = ScriptFile(source=source, path=node.take("path", self._names.file_of(source)))
        node.done()
        return file


def replaces(node: Cursor) -> Digest | None:
    """The pre-image of a file, or the word ``nothing``: there must be no such file."""
    if isinstance(node.node, ScalarNode) and node.node.text == "nothing":
        return None
    if isinstance(node.node, ScalarNode) and not node.node.text.startswith("sha256:"):
        word("nothing", "sha256:...")(node)
    return digest(node)


def variable(node: Cursor) -> str:
    """The name of an environment variable."""
    value = text(node)
    if not re.fullmatch(_VARIABLE, value):
        raise node.error(f"{value!r} is not the name of an environment variable")
    return value


def _own_variable(node: Cursor) -> str:
    value = variable(node)
    if value.startswith(_OURS):
        raise node.error(f"{value!r}: what starts with {_OURS!r} is set by builder")
    if value in _FIXED:
        raise node.error(f"{value!r} is the same for every program in the sandbox")
    return value


def _platform(node: Cursor) -> str:
    value = text(node)
    if not re.fullmatch(_PLATFORM, value):
        raise node.error(
            f"expected a platform that vLLM runs on, got {shortened(value)!r}",
            hint="for example cuda-8.6: cuda takes the compute capability, rocm and xpu may have"
            " one, cpu has none",
        )
    return value


def _until_upstream(node: Cursor) -> bool:
    return node.optional("until", word("upstream")) is not None
