"""Documents against the JSON Schemas of the package: the formats as editors see them.

The codecs of ``builder.lock``, ``builder.recipe`` and ``builder.settings`` are what a build relies
on; the schemas say the same (a test holds them together) and explain every key. Importing this
module takes a tenth of a second: import it where a check is asked for.
"""

import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from typing import Any

from jsonschema import Draft202012Validator, TypeChecker, ValidationError
from jsonschema.exceptions import best_match
from jsonschema.validators import extend

from builder import json_text
from builder.errors import ProjectError
from builder.node import Cursor, did_you_mean, nearest, shortened
from builder.strict_yaml import MappingNode, ScalarNode, YamlNode

_FILES = {"builder.yaml": "settings", "trust.yaml": "trust"} | {
    f"lockfiles/{kind}.yaml": kind
    for kind in ("vllm", "pulls", "sources", "wheels", "genesis", "models", "waivers")
}
_PATTERNS = (
    (re.compile(r"lockfiles/images/[^/]+\.yaml"), "results"),
    (re.compile(r"variants/[^/]+\.yaml"), "variant"),
    (re.compile(r"overlays/[^/]+/overlay\.yaml"), "overlay"),
)
KINDS = (*_FILES.values(), *(kind for _, kind in _PATTERNS))
"""The kinds of files that have a schema."""
_INTEGER = re.compile("0|-?[1-9][0-9]{0,17}")


def kind_of(file: str) -> str | None:
    """The kind of a file, by its name in the project."""
    if file in _FILES:
        return _FILES[file]
    return next((kind for pattern, kind in _PATTERNS if pattern.fullmatch(file)), None)


@cache
def schema(kind: str) -> dict[str, Any]:
    """The JSON Schema (draft 2020-12) of one of :data:`KINDS`. Not to be changed."""
    data = resources.files("builder").joinpath("schemas", f"{kind}.json").read_bytes()
    value: dict[str, Any] = json_text.loads(data)
    return value


def check(data: bytes, *, kind: str, file: str) -> None:
    """Refuse a document that is not what the schema of ``kind`` says.

    Raises:
        ProjectError: The first thing that is wrong, with file, line and path; the hint is what
            the schema says about the value.
    """
    root = Cursor.open(data, file=file)
    errors = _VALIDATOR(schema(kind)).iter_errors(_instance(root.node))
    if (error := best_match(errors)) is not None:
        raise _refusal(root, error)


class _Scalar(str):
    """A scalar that has no type yet: the schema asks what it can be taken for."""

    __slots__ = ("node",)
    node: ScalarNode

    @classmethod
    def of(cls, node: ScalarNode) -> "_Scalar":
        value = cls(node.text)
        value.node = node
        return value


def _instance(node: YamlNode) -> Any:
    if isinstance(node, ScalarNode):
        return _Scalar.of(node)
    if isinstance(node, MappingNode):
        return {key: _instance(value) for key, (_, value) in node.entries.items()}
    return [_instance(item) for item in node.items]


def _is_string(_: TypeChecker, value: object) -> bool:
    return isinstance(value, str) and not (isinstance(value, _Scalar) and value.node.is_null)


def _is_integer(_: TypeChecker, value: object) -> bool:
    return isinstance(value, _Scalar) and value.node.plain and bool(_INTEGER.fullmatch(value))


def _is_boolean(_: TypeChecker, value: object) -> bool:
    return isinstance(value, _Scalar) and value.node.plain and value in {"true", "false"}


def _is_null(_: TypeChecker, value: object) -> bool:
    """``null``, written out: an empty value may as well be a slip."""
    return isinstance(value, _Scalar) and value.node.is_null and bool(value)


def _minimum(_: Any, least: int, value: Any, __: Any) -> Iterator[ValidationError]:
    if _is_integer(_TYPES, value) and int(value) < least:
        yield ValidationError(f"{shortened(value)} is less than the minimum of {least}")


def _maximum(_: Any, most: int, value: Any, __: Any) -> Iterator[ValidationError]:
    if _is_integer(_TYPES, value) and int(value) > most:
        yield ValidationError(f"{shortened(value)} is greater than the maximum of {most}")


def _const(_: Any, wanted: int, value: Any, __: Any) -> Iterator[ValidationError]:
    if _is_integer(_TYPES, value) and int(value) != wanted:
        yield ValidationError(f"{wanted} was expected, got {shortened(value)}")


def _pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    # ECMA-262, which JSON Schema names for patterns: "$" is the end, never before a line feed.
    if _is_string(_TYPES, value) and not re.search(re.sub(r"\$(?=\)|\Z)", r"\\Z", pattern), value):
        yield ValidationError(f"{shortened(value)!r} does not match {pattern!r}")


_TYPES = Draft202012Validator.TYPE_CHECKER.redefine_many(
    {"string": _is_string, "integer": _is_integer, "boolean": _is_boolean, "null": _is_null}
)
_VALIDATOR = extend(  # type: ignore[no-untyped-call]  # its types are not published
    Draft202012Validator,
    validators={"minimum": _minimum, "maximum": _maximum, "const": _const, "pattern": _pattern},
    type_checker=_TYPES,
)


def _refusal(root: Cursor, error: ValidationError) -> ProjectError:
    place = root
    for part in error.absolute_path:
        if isinstance(part, int):
            place = place.elements()[part]
        else:
            place = place.take(part, lambda child: child)
    rules: dict[str, Any] = error.schema if isinstance(error.schema, dict) else {}
    described = rules.get("description")
    value = error.instance
    if error.validator == "additionalProperties" and isinstance(value, dict):
        known = rules.get("properties", {})
        key = next(key for key in value if key not in known)
        hint = did_you_mean(nearest(key, known)) or f"the keys here are {', '.join(known)}"
        return _at_key(place, key).error(f"unknown key {key!r}", hint=hint)
    if error.validator == "required" and isinstance(value, dict):
        key = next(key for key in rules["required"] if key not in value)
        return place.error(f"missing key {key!r}", hint=described)
    if isinstance(value, str) and not isinstance(value, _Scalar):  # propertyNames: a key
        place = _at_key(place, value)
    return place.error(error.message[:300], hint=described)


def _at_key(place: Cursor, key: str) -> Cursor:
    found = place.key(key)
    return Cursor(found.node, file=found.file, line=found.line, path=place.path)
