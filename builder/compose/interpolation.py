"""What Docker Compose puts in place of ``${...}``."""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from builder.errors import ProjectError

_DEPTH_LIMIT = 32
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNSET = re.compile("\0([A-Za-z0-9_]*)\0")

_WHOLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)(:?[-?+])(.*)\}", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class Variable:
    """A value that is one ``${NAME...}`` from end to end. ``operator`` is ``:-``, ``-``, ``:?``,
    ``?``, ``:+`` or ``+``, and ``rest`` what follows it."""

    name: str
    operator: str
    rest: str

    @property
    def default(self) -> str | None:
        """What stands for it where the variable is not set; ``None`` for other operators."""
        return self.rest if self.operator.endswith("-") else None

    def with_default(self, default: str) -> str:
        """The same variable with another default."""
        return f"${{{self.name}{self.operator}{default}}}"


def variable(value: str) -> Variable | None:
    """The variable that ``value`` is from end to end; ``None`` where it is anything else.

    >>> variable("${IMAGE:-a/b:${TAG}}").default
    'a/b:${TAG}'
    >>> variable("${IMAGE}"), variable("${A:-x}${B:-y}"), variable("a/b:${TAG:-v1}")
    (None, None, None)
    """
    found = _WHOLE.fullmatch(value)
    if found is None:
        return None
    depth = 0
    for index, character in enumerate(value):
        depth += {"{": 1, "}": -1}.get(character, 0)
        if depth == 0 and 0 < index < len(value) - 1:
            return None
    return Variable(name=found[1], operator=found[2], rest=found[3]) if depth == 0 else None


def stated(value: str) -> str | None:
    """The reference that a value states without asking the environment: itself, or the default of
    the variable that it is; ``None`` where another variable is needed for it.

    >>> stated("a/b:v1"), stated("${IMAGE:-a/b:v1}"), stated("${IMAGE:-a/b:${TAG}}")
    ('a/b:v1', 'a/b:v1', None)
    """
    found = variable(value)
    text = value if found is None else found.default
    return None if text is None or "$" in text else text


def interpolated(text: str, variables: Mapping[str, str], *, at: str, depth: int = 0) -> str:
    """``text`` with the values of variables, as Docker Compose has it. One that is not set and has
    no default stays recognisable (:func:`unset`): Compose puts nothing there, and warns.

    >>> interpolated("${A:-$B}/$$x", {"B": "b"}, at="f"), unset(interpolated("$C", {}, at="f"))
    ('b/$x', ('C',))

    Raises:
        ProjectError: Compose would refuse it.
    """
    if depth > _DEPTH_LIMIT:
        raise ProjectError(f"{at}: variables nested deeper than {_DEPTH_LIMIT}")
    done, place = [], 0
    while (start := text.find("$", place)) >= 0:
        done.append(text[place:start])
        after = text[start + 1 : start + 2]
        name = _NAME.match(text, start + 1)
        if after == "$":
            done.append("$")
            place = start + 2
        elif after == "{":
            place = _end(text, start, at=at)
            inside = text[start + 2 : place - 1]
            done.append(_value(inside, variables, at=at, depth=depth))
        elif name is not None:
            done.append(variables.get(name[0], f"\0{name[0]}\0"))
            place = name.end()
        else:
            done.append("$")  # Compose before 5.1 keeps it, as in "$@"
            place = start + 1
    return "".join((*done, text[place:]))


def unset(text: str) -> tuple[str, ...]:
    """The variables that an interpolated text lacks."""
    return tuple(dict.fromkeys(_UNSET.findall(text)))


def shown(text: str) -> str:
    """An interpolated text for people, with what is not set as it may be written in the file."""
    return _UNSET.sub(r"${\1}", text)


def without_unset(text: str) -> str:
    """An interpolated text as Compose hands it on: nothing for what is not set."""
    return _UNSET.sub("", text)


def _end(text: str, start: int, *, at: str) -> int:
    """The place behind the brace that closes the one behind ``start``."""
    depth = 0
    for index in range(start + 1, len(text)):
        depth += {"{": 1, "}": -1}.get(text[index], 0)
        if depth == 0:
            return index + 1
    raise ProjectError(f"{at}: no end of '${{' in {text[:200]!r}")


def _value(inside: str, variables: Mapping[str, str], *, at: str, depth: int) -> str:
    name = _NAME.match(inside)
    rest = "" if name is None else inside[name.end() :]
    operator = next((one for one in (":-", "-", ":?", "?", ":+", "+") if rest.startswith(one)), "")
    if name is None or (rest and not operator):
        raise ProjectError(f"{at}: not a variable: {'${' + inside[:200] + '}'!r}")
    found = variables.get(name[0])
    given = bool(found) if operator.startswith(":") else found is not None
    word = rest[len(operator) :]
    if operator.endswith("-") and not given:
        return interpolated(word, variables, at=at, depth=depth + 1)
    if operator.endswith("+"):
        return interpolated(word, variables, at=at, depth=depth + 1) if given else ""
    return f"\0{name[0]}\0" if found is None or (not given and operator) else found
