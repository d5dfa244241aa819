"""Requests: every field of a step is part of its question, or left out for a reason."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

from builder.digest import Digest, ObjectId
from builder.lock.model import (
    GenesisPin,
    PullPin,
    SourceDiff,
    SourceFile,
    SourcePin,
    Subtree,
    WheelPin,
)
from builder.oci import Platform
from builder.python_layout import PythonLayout
from builder.reference import Reference
from builder.steps.genesis import GenesisRequest
from builder.steps.overlay import OverlayRequest
from builder.steps.pull import PullRequest
from builder.steps.request import DiffRule, Request
from builder.steps.script import OwnScript, PinnedScript, ScriptRequest
from builder.steps.source import SourceRequest
from builder.steps.wheels import WheelsRequest
from builder.variant import (
    Action,
    Edit,
    EditRule,
    FileRule,
    Overlay,
    PatchRule,
    Placement,
    RemoveRule,
    Script,
)

ONE, TWO = Digest.of(b"1"), Digest.of(b"2")
ID = ObjectId("1" * 40)
PYTHON = PythonLayout(version="3.12", packages="p", prefix="usr", interpreter="/usr/bin/python3")

SOURCE = SourcePin(
    name="source",
    repository="https://git.example/a",
    commit=ID,
    tree=ID,
    files=(SourceFile(path="a", digest=ONE, size=1), SourceFile(path="b", digest=TWO, size=1)),
)
REQUESTS: dict[str, Request] = {
    "pull": PullRequest(
        pin=PullPin(name="pull", repository="https://git.example/a", pull=1, diff=ONE),
        rule=DiffRule(),
        python=PYTHON,
    ),
    "overlay": OverlayRequest(
        overlay=Overlay(
            name="overlay",
            files=(FileRule(target="f", file="f.py", data=b"f", replaces=ONE),),
            remove=(RemoveRule(target="r", replaces=ONE),),
            edits=(
                EditRule(target="e", edits=(Edit(anchor=b"a", action=Action.REPLACE, text=b"b"),)),
            ),
            patch=PatchRule(file="it.patch", data=b"diff"),
        ),
        python=PYTHON,
    ),
    "source": SourceRequest(
        pin=SOURCE, files=(Placement(source="a", target="t", replaces=None),), python=PYTHON
    ),
    "wheels": WheelsRequest(
        wheels=(
            WheelPin(
                name="wheel",
                project="it",
                version="1",
                filename="it-1-py3-none-any.whl",
                digest=ONE,
            ),
        ),
        platform=Platform("linux", "amd64"),
        python=PYTHON,
    ),
}
REQUESTS |= {
    "genesis": GenesisRequest(
        pin=GenesisPin(
            name="genesis",
            repository="https://git.example/a",
            commit=ID,
            tree=ID,
            payload=Subtree(path="vllm/_genesis", tree=ID),
        ),
        platform="cuda-8.6",
        python=PYTHON,
    ),
    "script of ours": ScriptRequest(
        script=OwnScript(overlay="it", script=Script(file="f.py", data=b"f")),
        interpreter="sh",
        touches=("t",),
        python=PYTHON,
    ),
    "pinned script": ScriptRequest(
        script=PinnedScript(source=SOURCE, path="a"),
        interpreter="python",
        touches=("t",),
        python=PYTHON,
    ),
}
INPUTS: Mapping[type, Mapping[str, Any]] = {
    PullRequest: {"until_upstream": True, "python": None},
    OverlayRequest: {"strict": True, "until_upstream": True, "python": None},
    SourceRequest: {"until_upstream": True, "python": None},
    WheelsRequest: {"python": None},
    GenesisRequest: {
        "platform": "cpu",
        "speculative": "mtp",
        "environment": (("A", "1"),),
        "python": None,
    },
    GenesisPin: {"plugin": Subtree(path="p", tree=ID)},
    Subtree: {"path": "sndr", "tree": ObjectId("2" * 40)},
    ScriptRequest: {
        "interpreter": "other",
        "touches": ("u",),
        "arguments": ("-v",),
        "environment": (("A", "1"),),
        "python": None,
    },
    OwnScript: {},
    PinnedScript: {"path": "b"},
    Script: {"data": b"g"},
    DiffRule: {"root": "/", "strip": 1, "ignore": ("x",), "strict": True},
    PullPin: {"diff": TWO},
    SourcePin: {},
    # The record has the digests of the files that are placed, looked up by their paths.
    SourceFile: {"digest": TWO},
    Placement: {"source": "b", "target": "u", "replaces": ONE, "mode": 0o755},
    WheelPin: {"filename": "it-2-py3-none-any.whl", "digest": TWO},
    Platform: {"os": "plan9", "architecture": "arm64", "variant": "v8"},
    PythonLayout: {"version": "3.13", "packages": "q", "prefix": "opt", "interpreter": "/python"},
    Overlay: {},
    FileRule: {"target": "g", "data": b"g", "replaces": None, "mode": 0o755},
    RemoveRule: {"target": "s", "replaces": TWO},
    EditRule: {"target": "d", "replaces": ONE},
    Edit: {"anchor": b"c", "action": Action.INSERT_AFTER, "text": b"d", "count": 2},
    PatchRule: {"data": b"other", "root": "/", "strip": 1, "ignore": ("x",)},
}
"""Another value of each field that is an input."""
NAMES = "a name, by which people and recipes call it; the content is what counts"
WHERE = "where the bytes come from, or may; they are named by their digest"
HISTORY = "what a newer pin would be looked for by, and when this one was"
AT = "the place in a file, for messages"
NO_INPUTS: Mapping[type, Mapping[str, str]] = {
    PullRequest: {},
    OverlayRequest: {"at": AT},
    SourceRequest: {"at": AT},
    WheelsRequest: {"at": AT},
    GenesisRequest: {"at": AT},
    GenesisPin: {
        "name": NAMES,
        "repository": WHERE,
        "follows": HISTORY,
        "commit": WHERE,
        "tree": WHERE,
        "reachable": HISTORY,
        "escrow": WHERE,
        "locked": HISTORY,
        "failing": HISTORY,
        "at": AT,
    },
    Subtree: {},
    ScriptRequest: {"at": AT},
    OwnScript: {"overlay": NAMES},
    PinnedScript: {},
    Script: {"file": NAMES},
    DiffRule: {"at": AT, "stated_at": AT},
    PullPin: {
        "name": NAMES,
        "repository": WHERE,
        "pull": WHERE,
        "base": WHERE,
        "head": WHERE,
        "published": WHERE,
        "raw": "the bytes of the diff in one of its dresses; the change is the input",
        "root": "the plan puts it into the rule, unless the variant says otherwise",
        "strip": "as root",
        "escrow": WHERE,
        "locked": HISTORY,
        "failing": HISTORY,
        "at": AT,
    },
    SourcePin: {
        "name": NAMES,
        "repository": WHERE,
        "follows": HISTORY,
        "commit": WHERE,
        "tree": WHERE,
        "escrow": WHERE,
        "locked": HISTORY,
        "failing": HISTORY,
        "at": AT,
    },
    SourceFile: {
        "path": "what a placement finds the digest by",
        "size": "of the bytes that the digest names",
    },
    Placement: {"at": AT},
    WheelPin: {
        "name": NAMES,
        "project": "stands in the file name, normalised",
        "version": "stands in the file name",
        "size": "of the bytes that the digest names",
        "path": WHERE,
        "escrow": WHERE,
        "locked": HISTORY,
        "failing": HISTORY,
        "at": AT,
    },
    Platform: {},
    PythonLayout: {},
    Overlay: {"name": NAMES, "scripts": "steps of another kind run them", "at": AT},
    FileRule: {"file": NAMES, "at": AT},
    RemoveRule: {"at": AT},
    EditRule: {"at": AT},
    Edit: {"at": AT},
    PatchRule: {"file": NAMES, "at": AT},
}
"""The fields that are none, each with its reason."""
OF_NO_ACCOUNT: Mapping[str, Any] = {
    "pull": 2,
    "size": 2,
    "strip": 3,
    "base": ID,
    "head": ID,
    "commit": ObjectId("2" * 40),
    "tree": ObjectId("2" * 40),
    "raw": TWO,
    "published": SourceDiff(source="s", path="p"),
    "escrow": (),
}


def fields_of(value: object, above: str = "") -> Iterator[tuple[str, type, str]]:
    """Every field that a request holds, however deep: its path, its class and its name."""
    for field in dataclasses.fields(value):  # type: ignore[arg-type]  # a dataclass, by its callers
        path = f"{above}{field.name}"
        found = getattr(value, field.name)
        items = found if isinstance(found, tuple) else (found,)
        inner = [item for item in items if dataclasses.is_dataclass(item)]
        if inner and not isinstance(inner[0], Digest | ObjectId | Reference):
            number = "0." if isinstance(found, tuple) else ""
            yield from fields_of(inner[0], f"{path}.{number}")
            if not isinstance(found, tuple) and not isinstance(found, PythonLayout):
                continue
        yield path, type(value), field.name


def changed(value: Any, path: str, new: object) -> Any:
    """A copy in which the field at the end of ``path`` has another value."""
    name, _, rest = path.partition(".")
    if not rest:
        return dataclasses.replace(value, **{name: new})
    found = getattr(value, name)
    if isinstance(found, tuple):
        first = changed(found[0], rest.removeprefix("0."), new)
        return dataclasses.replace(value, **{name: (first, *found[1:])})
    return dataclasses.replace(value, **{name: changed(found, rest, new)})


FIELDS = [
    pytest.param(kind, path, owner, name, id=f"{kind} {path}")
    for kind, request in REQUESTS.items()
    for path, owner, name in fields_of(request)
]


@pytest.mark.parametrize(("kind", "path", "owner", "name"), FIELDS)
def test_every_field_of_a_request_is_an_input_or_is_left_out_for_a_reason(
    kind: str, path: str, owner: type, name: str
) -> None:
    """A new field fails here until someone decides."""
    request = REQUESTS[kind]
    found = _value(request, path)
    if isinstance(found, tuple) and found and dataclasses.is_dataclass(found[0]):
        if owner is not SourcePin:  # its files are looked up, not listed
            assert changed(request, path, ()).record() != request.record()
    elif name in INPUTS[owner]:
        assert changed(request, path, INPUTS[owner][name]).record() != request.record()
    else:
        assert NO_INPUTS[owner][name]
        if (owner, name) != (SourceFile, "path"):
            other = OF_NO_ACCOUNT.get(name, "other")
            assert changed(request, path, other).record() == request.record()


def _value(value: Any, path: str) -> Any:
    for name in path.split("."):
        value = value[int(name)] if name.isdigit() else getattr(value, name)
    return value


@pytest.mark.parametrize("kind", REQUESTS)
def test_a_record_is_canonical_json_and_names_no_name(kind: str) -> None:
    from builder import canonical

    text = canonical.encode(REQUESTS[kind].record()).decode()
    assert all(f'"{name}"' not in text for name in ("source", "overlay", "pull", "wheel", "f.py"))
