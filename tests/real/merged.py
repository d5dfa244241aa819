"""Compose files that are merged or included, by our reading and by Docker Compose's: made-up ones,
of every shape that two files can have with one another."""

import random
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from builder.compose.composition import Composition, Source
from builder.compose.container import contained
from builder.compose.document import read
from builder.compose.env_file import read_variables
from builder.compose.include import compose
from builder.errors import ProjectError
from tests.claims import Claims
from tests.commands import CommandError, clean_environment
from tests.real.composes import docker_compose
from tests.real.containers import differing, resolved

_CASES = 300
_GIVEN = {"X": "given", "HOME": "/home/me"}
_FILES = {
    "one.env": "A=file-one\nF=one\n",
    "sub/one.env": "A=sub-one\nF=sub\n",
    "two.env": "F=two\nG=${X}\n",
    "sub/two.env": "F=sub-two\n",
    "sub/.env": "Y=sub\nX=sub\n",
}
_PARTS = {
    "command": (
        "--model /m/{n}",
        "[--model, '/m/${{Y-{n}}}', '{n}']",
        '""',
        "[]",
        "null",
        "",
        "!reset null",
        "!reset [q]",
        "!override [--model, /o/{n}]",
        "*words",
    ),
    "entrypoint": ("[vllm, serve, /e/{n}]", "sh -c", "[]", "null", "!reset null", "!override [e]"),
    "environment": (
        '{{A: "{n}", B: "{n}"}}',
        "[A={n}, 'C=${{X}}']",
        "[A, X, B=]",
        "{{A: , X: null, C: ''}}",
        "null",
        "{{}}",
        "!reset null",
        '!override {{B: "{n}"}}',
        "!override [D={n}]",
        "{{A: !reset null}}",
        "{{<<: *env, B: '{n}'}}",
        "*env",
        "[A=1, A=2]",
    ),
    "env_file": ("one.env", "[two.env]", "[one.env, two.env]", "!override two.env", "!reset []"),
    "volumes": (
        "['./{n}:/m:ro']",
        "['./{n}:/m/', 'named:/n']",
        "[{{type: bind, source: './l{n}', target: /m}}, /anon]",
        "[]",
        "null",
        "!reset []",
        "!override ['/abs{n}:/o']",
        "['/a{n}:/m', '/b{n}:/m']",
        "['~/{n}:/h', './${{X}}/{n}:/x']",
    ),
    "extends": ("{base}", "{{service: {base}}}"),
}
"""What a part of a service may have for a key; ``{n}`` tells one place from another."""
_LATER = frozenset({"null", ""})
"""What Docker Compose takes only where something stands below it."""
_HEAD = "x-env: &env {K: merged, A: merged}\nx-words: &words [--model, /m/anchored]\n"
_HEAD += "volumes: {named: {}}\n"


def prove(claims: Claims) -> None:
    """Make files, and compare what each of both says of them."""
    said = "several compose files, and what they include, are merged as Docker Compose does"
    program = docker_compose(claims)
    if program is None:
        claims.not_run(said, "there is no Docker Compose")
        return
    wrong, services, told, refused = [], 0, 0, 0
    chance = random.Random(6)
    for number in range(_CASES):
        with tempfile.TemporaryDirectory(prefix="builder-merged-") as name:
            files = _made(Path(name), chance)
            try:
                theirs = resolved(program, *files, environment=_GIVEN)["services"]
            except CommandError:
                refused += 1
                continue
            for service, item in _told_apart(files, theirs):
                services += 1
                told += item is None
                wrong += [f"case {number}: {service}: {what}" for what in item or ()]
    claims.equal(said, wrong, [])
    seen = f"{services} services, {told} told; Docker Compose refuses {refused} of {_CASES} cases"
    claims.holds(f"{said}: there are some", services > 200 and told < services // 4, seen)


def _told_apart(
    files: Sequence[Path], theirs: dict[str, Any]
) -> Iterator[tuple[str, list[str] | None]]:
    """Each service with what differs, or ``None`` where we say that we do not know."""
    try:
        composition = ours(files)
    except ProjectError:
        yield from ((name, None) for name in theirs)
        return
    if composition.services.keys() != theirs.keys():
        yield "all", [f"we have {sorted(composition.services)}, Docker Compose {sorted(theirs)}"]
        return
    for name, item in theirs.items():
        try:
            found = contained(composition.services[name], read=read_file)
        except ProjectError:
            yield name, None
            continue
        words = [*(item.get("entrypoint") or ()), *(item.get("command") or ())]
        plain = [word.replace("$$", "$") for word in words]
        same = list(found.words) == plain or any("\n" in word for word in plain)
        other = [] if same else [f"words: {found.words}, Docker Compose has {plain}"]
        if found.has_command != (item.get("command") is not None):
            other.append(f"has a command: {found.has_command}, {item.get('command')}")
        yield name, [*differing(found, item), *other]


def ours(files: Sequence[Path]) -> Composition:
    """The files as one project, as the command line reads them."""
    directory = str(files[0].parent)
    own = read_file(f"{directory}/.env")
    environment = clean_environment(**_GIVEN)
    variables = {} if own is None else read_variables(own, environment, file=".env")
    return compose(
        [
            Source(
                document=read(file.read_bytes(), file=str(file)),
                directory=directory,
                variables={**variables, **environment},
            )
            for file in files
        ],
        read=read_file,
    )


def read_file(path: str) -> bytes | None:
    """The bytes of a file that is there."""
    return Path(path).read_bytes() if Path(path).is_file() else None


def _made(place: Path, chance: random.Random) -> list[Path]:
    """A project of some files, and what they may refer to."""
    for name, text in _FILES.items():
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(text)
    if chance.random() < 0.3:
        (place / ".env").write_text("Y=top\n")
    made: list[Path] = []
    for number in range(chance.choice((1, 2, 2, 2, 3))):
        file = place / chance.choice(("", "", "sub")) / f"{number}.yml"
        base = made[0].parent if made else file.parent
        documents = [
            _document(chance, f"{number}{at}", base) for at in range(chance.choice((1, 1, 2)))
        ]
        file.write_text("---\n".join(documents))
        made.append(file)
    return made


def _document(chance: random.Random, label: str, base: Path) -> str:
    names = [name for name in "abc" if chance.random() < 0.6]
    tag = " !override" if chance.random() < 0.04 else ""
    lines = [_HEAD, f"services:{tag}\n" if names else ""]
    for number, name in enumerate(names):
        whole = chance.choice(("",) * 16 + (" !override", " !reset null"))
        lines.append(f"  {name}:{whole}\n")
        if "null" not in whole:
            lines += _part(chance, f"{name}{label}", names[number + 1 :])
    if chance.random() < 0.35:
        lines.append(_include(chance, label, base))
    return "".join(lines)


def _part(chance: random.Random, label: str, bases: Sequence[str]) -> Iterator[str]:
    """What stands of a service, which may extend one of ``bases``."""
    yield f"    image: {label}\n"
    for key, texts in _PARTS.items():
        if chance.random() > 0.45 or (key == "extends" and not bases):
            continue
        text = chance.choice(texts)
        if text not in _LATER or key in ("command", "entrypoint"):
            base = chance.choice(bases or "x")
            yield f"    {key}: {text.format(n=label, base=base)}\n"


def _include(chance: random.Random, label: str, base: Path) -> str:
    """Write a file that is included, and what includes it."""
    below = chance.choice(("sub/", ""))
    name = f"{below}inc{label}.yml"
    text = (
        f"services:\n  i{label}:\n    image: i\n    command: [--model, '/m/${{X}}-${{Y-unset}}']\n"
        f"    volumes: ['./r{label}:/r']\n    env_file: [{{path: one.env, required: false}}]\n"
    )
    (base / "sub").mkdir(exist_ok=True)
    (base / name).write_text(text)
    again = f"{below}inc{label}-again.yml"
    (base / again).write_text(f"services:\n  i{label}:\n    volumes: ['./again:/r', './s:/s']\n")
    return chance.choice(
        (
            f"include: [{name}]\n",
            f"include: ['${{NOTHING:-{name}}}']\n",
            f"include:\n- path: {name}\n  project_directory: .\n",
            f"include:\n- path: [{name}, {again}]\n",
            f"include:\n- path: {name}\n  env_file: two.env\n",
            f"include:\n- path: {name}\n  env_file: [one.env, two.env]\n  project_directory: sub\n",
        )
    )
