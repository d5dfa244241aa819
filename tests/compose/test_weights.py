"""Which models a service loads, however its command line says it."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builder.compose.container import Container, Kind, container
from builder.compose.document import read
from builder.compose.weights import cache_of, named_models
from builder.errors import ProjectError

SHELL = """\
    entrypoint:
      - bash
      - -c
      - |
        # it's a comment with a quote
        DRAFT=/models/draft
        N="$${SPEC_N:-3}"
        case "$$a" in -md|--model-draft) skip=1 ;; esac
        SPEC=(--speculative-config "{\\"model\\":\\"$$DRAFT\\",\\"n\\":$$N}")
        exec vllm serve $${EAGER:+--enforce-eager} "$$@" "$${SPEC[@]}"
      - --
    command: [--model, "/models/${NAME:-main}"]
"""


def of(service: str, **variables: str) -> Container:
    text = f"services:\n  s:\n{service}"
    document = read(text.encode(), file="c.yml")
    return container(document, "s", variables=variables, directory="/here", read=lambda path: None)


def named(service: str, **variables: str) -> list[tuple[Any, ...]]:
    return [
        (item.option, item.text, *filter(None, (item.revision, item.unknown)))
        for item in named_models(of(service, **variables))
    ]


@pytest.mark.parametrize(
    ("service", "wanted"),
    [
        pytest.param("    command: [--model, /m/a]\n", [("--model", "/m/a")], id="a list"),
        pytest.param("    command: --model /m/a -x\n", [("--model", "/m/a")], id="a line"),
        pytest.param("    command: ['--model=/m/a']\n", [("--model", "/m/a")], id="one word"),
        pytest.param(
            "    command: [vllm, serve, /m/a, --config, /c.yaml]\n",
            [
                ("vllm serve", "/m/a"),
                ("--config", "/c.yaml", "it is a file of options, and not read"),
            ],
            id="options in a file",
        ),
        pytest.param(
            "    command: [python3, -m, sglang.launch_server, --config=/c.yaml]\n",
            [("--config", "/c.yaml", "it is a file of options, and not read")],
            id="all options in a file",
        ),
        pytest.param("    command: [--config, /litellm.yaml]\n", [], id="another server's file"),
        pytest.param(
            "    command: [--model, o/n, --revision, abc, --revision=def]\n",
            [("--model", "o/n", "def")],
            id="the last revision",
        ),
        pytest.param(
            """    command: [--model, o/n, -sc, '{"model":"o/d","revision":"abc"}']\n""",
            [("--model", "o/n"), ("--speculative-config", "o/d", "abc")],
            id="a draft's revision",
        ),
        pytest.param(
            "    command: [--model, o/n, --tokenizer-revision, abc, --code-revision, def]\n",
            [("--model", "o/n"), ("--tokenizer", "o/n", "abc"), ("--code-revision", "o/n", "def")],
            id="revisions of tokenizer and code",
        ),
        pytest.param("    command: [-m, /m/a.gguf]\n", [("--model", "/m/a.gguf")], id="llama.cpp"),
        pytest.param(
            "    command: [python3, -m, vllm.entrypoints.openai.api_server, --model, o/n]\n",
            [("--model", "o/n")],
            id="python's -m is none",
        ),
        pytest.param(
            "    command: [--model, o/n, --revision, abc, --tokenizer_path, o/t]\n",
            [("--model", "o/n", "abc"), ("--tokenizer-path", "o/t")],
            id="a revision is the model's",
        ),
        pytest.param(
            "    command: vllm serve /m/${SUB:-a} --omni\n",
            [("vllm serve", "/m/a")],
            id="vllm serve",
        ),
        pytest.param("    command: [serve, o/n]\n", [("vllm serve", "o/n")], id="serve alone"),
        pytest.param("    command: [o/n, -x]\n", [("vllm serve", "o/n")], id="the first word"),
        pytest.param(
            "    command: [--model, /m/a, --tokenizer, /m/a]\n",
            [("--model", "/m/a")],
            id="each once",
        ),
        pytest.param(
            "    command: [--model, o/n, --revision, abc, --tokenizer, o/n]\n",
            [("--model", "o/n", "abc")],
            id="each once, at the revision of the model",
        ),
        pytest.param(
            """    command: [--model, /m/a, --speculative-config, '{"model":"/m/d"}']\n""",
            [("--model", "/m/a"), ("--speculative-config", "/m/d")],
            id="a draft in JSON",
        ),
        pytest.param(
            """    command: [--model, /m/a, --speculative-config, '{"method":"mtp","n":3}']\n""",
            [("--model", "/m/a")],
            id="its own drafts",
        ),
        pytest.param(
            """    command: [--model, /m/a, --speculative-config, '{"model":"ngram"}']\n""",
            [("--model", "/m/a")],
            id="n-grams are no model",
        ),
        pytest.param(
            '    command: [--model, /m/a, --lora-modules, x=/l/x, \'{"path":"/l/y"}\', -z]\n',
            [("--model", "/m/a"), ("--lora-modules", "/l/x"), ("--lora-modules", "/l/y")],
            id="adapters",
        ),
        pytest.param(
            "    environment: {LLAMA_ARG_MODEL: /m/a.gguf}\n",
            [("LLAMA_ARG_MODEL", "/m/a.gguf")],
            id="by the environment",
        ),
        pytest.param(
            SHELL,
            [("--speculative-config", "/models/draft"), ("--model", "/models/main")],
            id="a script",
        ),
        pytest.param(
            "    entrypoint: [/bin/bash, -c]\n    command:\n      - |\n"
            "        exec python3 -m sglang.launch_server \\\n          --model-path /m/t \\\n"
            "          --speculative-draft-model-path /m/d \\\n          --tp 2\n",
            [("--model-path", "/m/t"), ("--speculative-draft-model-path", "/m/d")],
            id="a script over the lines",
        ),
        pytest.param("    command: [redis-server]\n", [], id="no model"),
        pytest.param("    image: x\n", [], id="no command"),
    ],
)
def test_models_are_found(service: str, wanted: list[tuple[str, ...]]) -> None:
    assert named(service) == wanted


@pytest.mark.parametrize(
    ("service", "why"),
    [
        ("    command: [--model, '/m/${NO}']\n", "NO is not set, and has no default"),
        ("    command: [--model, '/m/${NO:?set it}']\n", "NO is not set, and has no default"),
        ("    command: [bash, -c, 'vllm serve --model $$1 ']\n", "only its shell knows"),
        ("    command: [bash, -c, 'A=/x; A=/y; vllm serve --model $$A']\n", "only its shell knows"),
        ("    command: [--model]\n", "neither an absolute path nor OWNER/NAME"),
        ("    command: [--model, ./here]\n", "neither an absolute path nor OWNER/NAME"),
        ("    command: [--model, gpt2]\n", "neither an absolute path nor OWNER/NAME"),
        ("    command: [vllm, serve, $$M]\n", "only its shell knows"),
        ("    command: [--speculative-config, '{']\n", "neither an absolute path"),
        ("    command: [--speculative-config, \"{'model': '/m/x'}\"]\n", "neither an absolute"),
        ("    command: [--speculative-config, '{\"model\": 3}']\n", "neither an absolute path"),
        ('    command: [--lora-modules, \'{"name": "x"}\']\n', "neither an absolute path"),
    ],
)
def test_what_cannot_be_known_is_said(service: str, why: str) -> None:
    (found,) = named_models(of(service))
    assert why in str(found.unknown)


@pytest.mark.parametrize("number", ["3", "$$N", "${N}"])
def test_a_draft_without_a_model_names_none(number: str) -> None:
    draft = f'\'{{"method": "ngram", "num_speculative_tokens": {number}}}\''
    assert named(f"    command: [--speculative-config, {draft}]\n") == []


def test_a_shells_variable_is_that_of_the_service() -> None:
    service = "    environment: [M=/m/a]\n    command: [bash, -c, 'exec llama-server -m $$M ']\n"
    assert named(service) == [("--model", "/m/a")]


def test_what_overrides_goes_first_through_extends_and_documents() -> None:
    text = (
        "services:\n  base: {command: [--model, /m/old], environment: {A: 1, B: 1},"
        " volumes: ['/x:/m', '/y:/n']}\n"
        "  s: {extends: base, environment: {B: 2}, volumes: ['/z:/m']}\n"
        "---\nservices:\n  s: {command: [--model, /m/new]}\n"
    )
    found = container(
        read(text.encode(), file="c.yml"), "s", variables={}, directory="/", read=lambda _: None
    )
    assert found.words == ("--model", "/m/new")
    assert found.environment == {"A": "1", "B": "2"}
    assert [(mount.source, mount.target) for mount in found.mounts] == [("/z", "/m"), ("/y", "/n")]


def test_mounts_are_read_in_both_forms() -> None:
    service = (
        "    volumes:\n      - ${DIR:-../models}:/m:ro\n      - ~/hub:/hub\n      - named:/n/\n"
        "      - /anonymous\n      - $NO/x:/no\n"
        "      - {type: bind, source: ./y, target: /y}\n"
        "      - {type: volume, source: v, target: /v}\n      - {type: tmpfs, target: /t}\n"
    )
    assert [
        (mount.target, mount.source, mount.kind) for mount in of(service, HOME="/h").mounts
    ] == [
        ("/m", "/models", Kind.BIND),
        ("/hub", "/h/hub", Kind.BIND),
        ("/n", "named", Kind.VOLUME),
        ("/anonymous", "", Kind.VOLUME),
        ("/no", "/here/\0NO\0/x", Kind.BIND),
        ("/y", "/here/y", Kind.BIND),
        ("/v", "v", Kind.VOLUME),
        ("/t", "", Kind.OTHER),
    ]


@pytest.mark.parametrize(
    ("service", "wanted"),
    [
        ("    image: x\n", "/root/.cache/huggingface/hub"),
        ("    environment: {HF_HOME: /hf}\n", "/hf/hub"),
        ("    environment: [HF_HUB_CACHE=/c, HF_HOME=/hf]\n", "/c"),
        ("    environment: {HOME: /u, HF_HOME: ''}\n", "/u/.cache/huggingface/hub"),
        ("    environment: {XDG_CACHE_HOME: /x}\n", "/x/huggingface/hub"),
        ("    command: [--download-dir=/d]\n", "/d"),
        ("    command: [--download-dir, /a, --download_dir=/d]\n", "/d"),
        ("    command: [--download_dir, /d]\n", "/d"),
    ],
)
def test_the_hubs_cache_is_where_the_hubs_variables_say(service: str, wanted: str) -> None:
    assert cache_of(of(service)) == wanted


@pytest.mark.parametrize(
    ("service", "words"),
    [
        ("    extends: {service: a, file: b.yml}\n", "'extends'"),
        ("    volumes_from: [a]\n", "'volumes_from'"),
        ('    command: "vllm \'serve"\n', "cannot be read as words of a shell"),
        ("    command: [{a: b}]\n", "expected text"),
        ("    env_file: x.env\n", "'/here/x.env' is not there"),
        ("    command: ['${A']\n", "no end of"),
    ],
)
def test_what_would_be_a_guess_is_refused(service: str, words: str) -> None:
    with pytest.raises(ProjectError, match=words):
        of(service)


def test_files_of_variables_are_the_services_environment() -> None:
    text = (
        "services:\n  s:\n    env_file: [a.env, {path: none.env, required: false}]\n"
        "    environment: {B: own, PASSED: , NOT_SET: }\n"
    )
    found = container(
        read(text.encode(), file="c.yml"),
        "s",
        variables={"PASSED": "p", "D": "d"},
        directory="/here",
        read={"/here/a.env": b"A=$D\nB=file\n"}.get,
    )
    assert found.environment == {"A": "d", "B": "own", "PASSED": "p"}


@given(
    st.lists(
        st.sampled_from(
            ["--model", "-m", "--lora-modules", "serve", "vllm", "/m/a", "o/n", "$A", "${B", "(",
             "--speculative-config", '{"model":', "", "=", "--", "\n'", "\u2028", "--model="]
        ),
        max_size=8,
    )
)  # fmt: skip
def test_any_words_name_models_or_are_refused(words: list[str]) -> None:
    listed = ", ".join('"' + word.replace('"', '\\"').replace("\n", "\\n") + '"' for word in words)
    try:
        found = named_models(of(f"    command: [{listed}]\n"))
    except ProjectError:
        return
    assert len({item.text for item in found}) == len(found)


def test_a_revision_that_is_not_set_is_not_taken_for_main() -> None:
    (found,) = named_models(of("    command: [--model, o/n, --revision, '${REV}']\n"))
    assert found.unknown == "REV is not set, and has no default"
    (found,) = named_models(of("    command: [--model, o/n, --revision, '${REV:-v1}']\n"))
    assert (found.revision, found.unknown) == ("v1", None)
