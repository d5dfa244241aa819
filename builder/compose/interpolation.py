"""What Docker Compose puts in place of ``${...}``, as far as an image's reference needs it."""

import re
from dataclasses import dataclass

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
