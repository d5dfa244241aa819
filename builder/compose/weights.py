"""The words of a container to the models that they name.

Known are the options of vLLM, SGLang, llama.cpp and text-generation-inference; ``vllm serve
MODEL``; the draft model in vLLM's JSON. A shell's variables count where the script gives
them one value.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from builder import json_text
from builder.compose.container import Container
from builder.compose.interpolation import unset

_MODEL = frozenset({"--model", "--model-path", "--model-id"})
_OTHERS = frozenset(
    {
        "--tokenizer",
        "--tokenizer-path",
        "--hf-config-path",
        "--speculative-model",
        "--speculative-draft-model-path",
        "--speculative-draft-model",
        "--spec-draft-model",
        "--model-draft",
        "-md",
        "--mmproj",
        "--lora",
    }
)
_JSON = frozenset({"--speculative-config", "--speculative-config.model", "-sc"})
_REVISIONS = {
    "--revision": "",
    "--tokenizer-revision": "--tokenizer",
    "--code-revision": "--code-revision",
    "--speculative-config.revision": "--speculative-config",
    "--speculative-draft-model-revision": "--speculative-draft-model-path",
}
"""Options that give a revision, and of which option's model: of none, the first model's."""
_LORAS = "--lora-modules"
_FILE = "--config"
_ENGINE = re.compile(r"(?:^|/)vllm$|^(?:vllm|sglang)\.")
_VARIABLES = ("LLAMA_ARG_MODEL", "LLAMA_ARG_MMPROJ", "LLAMA_ARG_MODEL_DRAFT", "MODEL_ID")
_NONE = frozenset({"ngram", "[ngram]", "auto", "None", "null", "suffix"})
"""What stands where a model could, and is none."""
_PUNCTUATION = frozenset("();|&")
_SHELL = re.compile(r"\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)(?::?[-=]([^{}]*))?\}|.?)")
_RUN_TIME = re.compile("[$\0]")
"""What a script, or a variable that is not set, still puts something in the place of."""
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+", re.ASCII)


@dataclass(frozen=True, slots=True, kw_only=True)
class Named:
    """A model that a container is told to load: a path in it, or a name at the hub with a revision.
    ``option`` is what it is given by. ``unknown`` says why it cannot be known what it is."""

    option: str
    text: str
    revision: str | None = None
    unknown: str | None = None

    @property
    def is_path(self) -> bool:
        """Whether it is a path; otherwise a name at the hub."""
        return self.text.startswith("/")


def named_models(container: Container) -> tuple[Named, ...]:
    """The models that a container loads, each once, in the order of its command line."""
    found = list(_found(container))
    given = [(option, text) for option, text in found if option not in _REVISIONS]
    # argparse takes the last
    revisions = {_REVISIONS[option]: text for option, text in found if option in _REVISIONS}
    if not any(option in _MODEL for option, _ in given):
        given = [*_positional(container), *given]
    given += _again(given, revisions)
    models: dict[tuple[str, str | None], Named] = {}
    for option, text in given:
        value, lacking = _shell_value(text, container)
        if value in _NONE and not lacking:
            continue
        revision, unsure = None, None
        if (asked := revisions.get("" if _is_main(option) else option)) is not None:
            revision, unsure = _shell_value(asked, container)
            lacking = lacking or unsure
        elif any(value == known for known, _ in models):
            continue  # vLLM and SGLang take the tokenizer at the model's revision
        models.setdefault(
            (value, revision),
            Named(
                option=option,
                text=value,
                revision=revision,
                unknown=_unknown(value, revision or "", lacking),
            ),
        )
    return (*models.values(), *_options_elsewhere(container, bool(given)))


def _options_elsewhere(container: Container, loads: bool) -> Iterator[Named]:
    """The file of options that a server of models is given."""
    engine = any(_ENGINE.search(word) for word in container.words)
    for number, word in enumerate(container.words):
        option, equals, value = word.partition("=")
        if option == _FILE and (loads or engine):
            text = value if equals else "".join(container.words[number + 1 : number + 2])
            yield Named(option=_FILE, text=text, unknown="it is a file of options, and not read")


def _is_main(option: str) -> bool:
    return option in _MODEL or option in _VARIABLES or option == "vllm serve"


def _again(
    given: Iterable[tuple[str, str]], revisions: Mapping[str, str]
) -> Iterator[tuple[str, str]]:
    """The first model for its tokenizer and its code, where these are of another revision."""
    first = next((text for option, text in given if _is_main(option)), "")
    for option in ("--tokenizer", "--code-revision"):
        if option in revisions and not first.startswith("/") and option not in dict(given):
            yield option, first


def is_hub_id(text: str) -> bool:
    """Whether a text is a name at the hub: ``owner/name``."""
    return _HUB_ID.fullmatch(text) is not None


def _found(container: Container) -> Iterator[tuple[str, str]]:
    words = container.words
    for number, word in enumerate(words):
        option, equals, value = word.partition("=")
        option = option.replace("_", "-") if option.startswith("--") else option
        following = words[number + 1] if number + 1 < len(words) else ""
        value = value if equals else following
        if not equals and following and set(following) <= _PUNCTUATION:
            continue  # a pattern of a script's case, not an option
        before = words[number - 1].rpartition("/")[2] if number else ""
        if option == "-m" and not before.startswith("python"):
            yield "--model", value
        elif option in _MODEL or option in _OTHERS or option in _REVISIONS:
            yield option, value
        elif option in _JSON:
            yield from (("--speculative-config", it) for it in _in_json(value))
            yield from (("--speculative-config.revision", it) for it in _in_json_revision(value))
        elif option == _LORAS:
            after = (words[at] for at in range(number + 1, len(words)))
            yield from _loras((value,) if equals else after)
    for name in _VARIABLES:
        if name in container.environment:
            yield name, container.environment[name]


def _in_json(text: str) -> Iterator[str]:
    """The draft model in JSON that a script may still put numbers into."""
    if not text.lstrip().startswith("{"):
        yield text
        return
    try:
        value = json_text.loads(text.encode())
    except ValueError:
        found = re.findall(r'"model"\s*:\s*"([^"]*)"', text)
        yield from found or ([] if _RUN_TIME.search(text) else [text])
        return
    model = value.get("model") if isinstance(value, dict) else None
    if model is not None:
        yield model if isinstance(model, str) else json.dumps(model)


def _in_json_revision(text: str) -> Iterator[str]:
    yield from re.findall(r'"revision"\s*:\s*"([^"]*)"', text)


def _loras(words: Iterable[str]) -> Iterator[tuple[str, str]]:
    for word in words:
        if word.startswith("-") or set(word) <= _PUNCTUATION:
            return
        if word.startswith("{"):
            yield from (
                (_LORAS, it) for it in re.findall(r'"path"\s*:\s*"([^"]*)"', word) or [word]
            )
        else:
            yield _LORAS, word.partition("=")[2] or word


def _positional(container: Container) -> Iterator[tuple[str, str]]:
    """``vllm serve MODEL``, of which the image's entrypoint may say the first words."""
    words = container.words
    for number, word in enumerate(words[:-1]):
        if word == "serve" and (number == 0 or words[number - 1].rpartition("/")[2] == "vllm"):
            after = words[number + 1]
            if not after.startswith(("-", "$@", "$*", "${")) and not set(after) <= _PUNCTUATION:
                yield "vllm serve", after
    first = words[0] if words and not container.has_entrypoint else ""
    mounted = any(first.startswith(f"{mount.target}/") for mount in container.mounts)
    if is_hub_id(first) or (first.startswith("/") and mounted):
        yield "vllm serve", first


def _shell_value(text: str, container: Container) -> tuple[str, str | None]:
    """A word with its shell's variables put in; and one that cannot be known."""
    lacking: list[str] = []

    def put(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        value = _variable(name, container) if name else None
        if value is None and name and match[3] and name not in container.assigned:
            value = match[3]
        if value is None or "$" in value:
            lacking.append(name or match[0])
            return match[0]
        return value

    return _SHELL.sub(put, text), next(iter(lacking), None)


def _variable(name: str, container: Container) -> str | None:
    assigned: Mapping[str, frozenset[str]] = container.assigned
    if name in assigned:
        return next(iter(assigned[name])) if len(assigned[name]) == 1 else None
    return container.environment.get(name) or None


def _unknown(value: str, revision: str, lacking: str | None) -> str | None:
    if names := unset(value + revision):
        return f"{names[0]} is not set, and has no default"
    if lacking is not None:
        return f"only its shell knows what {lacking!r} is"
    if not value.startswith("/") and not is_hub_id(value):
        return "neither an absolute path nor OWNER/NAME"
    return None


def cache_of(container: Container) -> str:
    """Where the hub's cache is in a container, by the rules of huggingface_hub (and vLLM's
    ``--download-dir``)."""
    words = container.words
    for number, word in reversed([*enumerate(words)]):  # argparse takes the last
        option, equals, value = word.partition("=")
        if option.replace("_", "-") == "--download-dir":
            return value if equals else words[min(number + 1, len(words) - 1)]
    environment = container.environment
    for name in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if environment.get(name):
            return environment[name]
    cache = environment.get("XDG_CACHE_HOME") or f"{environment.get('HOME') or '/root'}/.cache"
    return f"{environment.get('HF_HOME') or f'{cache}/huggingface'}/hub"
