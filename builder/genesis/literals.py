"""Values of module-level names, taken out of the syntax tree of a Python source.

Nothing is run. What a value is made of: texts, numbers, ``True``, ``False``, ``None``, tuples,
lists, sets and dicts of those, sums of texts, tuples and lists, and other module-level names of the
same file that are such values themselves.

A source from outside may be built to exhaust its reader. Its size, the depth and the count of
values, and the length of numbers and texts are bounded, and what Python's own parser refuses is
the same error as what is refused here.
"""

import ast
import warnings
from collections.abc import Callable, Collection, Iterator
from typing import Any, TypeAlias

from builder.errors import ProjectError

SOURCE_LIMIT = 2 << 20
"""Bytes of a source. The largest registry that is known has 0.7 MB."""
DEPTH_LIMIT = 64
VALUE_LIMIT = 150_000
"""Values of one source, names that are used twice counted twice. The most that is known: 30,000."""
NUMBER_LIMIT = 1 << 64
SUM_LIMIT = 1 << 20
"""The length of a sum."""

_CHANGING = frozenset(
    {"add", "append", "clear", "discard", "extend", "insert", "pop", "popitem", "remove"}
    | {"setdefault", "sort", "update"}
)
_ASSIGNMENTS = (ast.Assign, ast.AnnAssign)
_OWN_SCOPE = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)
_Assignment: TypeAlias = tuple[int, ast.expr]


class NotLiteral(ProjectError):
    """A name is given a value that cannot be had without running the file."""


def literals(source: bytes, names: Collection[str], *, file: str) -> dict[str, Any]:
    """The values of those of ``names`` that the module in ``source`` assigns.

    Args:
        source: The module.
        names: What is looked for.
        file: What ``source`` is, for messages.

    Raises:
        NotLiteral: It is no Python, is over a limit, or one of the names has a value that is not
            literal, is assigned twice, or is changed after it was assigned.
    """
    module = _parsed(source, file)
    assigned = dict(_assigned(module))
    reader = _Reader(assigned, file)
    found = {name: reader.value_of(name) for name in names if name in assigned}
    for name in sorted({*names, *reader.used}):
        _refuse_changes(module, name, file)
    return found


def _parsed(source: bytes, file: str) -> ast.Module:
    if len(source) > SOURCE_LIMIT:
        raise NotLiteral(f"{file}: {len(source)} bytes of Python, the limit is {SOURCE_LIMIT}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # their escapes are not ours to complain of
            return ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        line = f":{error.lineno}" if isinstance(error, SyntaxError) and error.lineno else ""
        why = error.msg if isinstance(error, SyntaxError) else str(error) or type(error).__name__
        raise NotLiteral(f"{file}{line}: no Python that can be read: {why}") from error


def _assigned(module: ast.Module) -> Iterator[tuple[str, _Assignment]]:
    """Each name with its last assignment. That there is no other is checked by
    :func:`_refuse_changes`, for the names that matter."""
    for statement in module.body:
        if isinstance(statement, _ASSIGNMENTS) and statement.value is not None:
            for target in _targets(statement):
                if isinstance(target, ast.Name):
                    yield target.id, (statement.lineno, statement.value)


def _targets(statement: ast.Assign | ast.AnnAssign) -> list[ast.expr]:
    return statement.targets if isinstance(statement, ast.Assign) else [statement.target]


def _assigns(statement: ast.stmt, name: str) -> bool:
    return (
        isinstance(statement, _ASSIGNMENTS)
        and statement.value is not None
        and any(isinstance(item, ast.Name) and item.id == name for item in _targets(statement))
    )


def _refuse_changes(module: ast.Module, name: str, file: str) -> None:
    """Refuse a module that binds ``name`` in any way but by one plain assignment, or changes it
    in place. What a function does that the module calls is not seen."""
    lines = sorted(line for statement in module.body for line in _changes(statement, name))
    plain = [statement.lineno for statement in module.body if _assigns(statement, name)]
    if lines or len(plain) > 1:
        raise NotLiteral(
            f"{file}:{max(lines + plain[1:])}: {name} is changed after it was assigned, "
            "its value is not literal"
        )


def _changes(statement: ast.stmt, name: str) -> Iterator[int]:
    if isinstance(statement, _OWN_SCOPE):
        if statement.name == name:
            yield statement.lineno
        return
    if _assigns(statement, name):
        return
    if isinstance(statement, ast.AnnAssign) and statement.value is None:
        return  # an annotation binds nothing
    for node in _own(statement):
        if _binds(node, name) or _alters(node, name):
            yield getattr(node, "lineno", statement.lineno)


def _own(node: ast.AST) -> Iterator[ast.AST]:
    """``node`` and what is below it in its own scope."""
    waiting = [node]
    while waiting:
        current = waiting.pop()
        yield current
        if not isinstance(current, (*_OWN_SCOPE, ast.Lambda)):
            waiting += ast.iter_child_nodes(current)


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.Name):
        return node.id == name and not isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0]) == name
    return isinstance(node, _OWN_SCOPE) and node.name == name


def _alters(node: ast.AST, name: str) -> bool:
    match node:
        case ast.Subscript(value=ast.Name(id=owner), ctx=ast.Store() | ast.Del()):
            return owner == name
        case ast.Subscript(value=ast.Subscript(value=ast.Name(id=owner)), ctx=ast.Store()):
            return owner == name
        case ast.Call(func=ast.Attribute(value=ast.Name(id=owner), attr=method)):
            return owner == name and method in _CHANGING
        case _:
            return False


class _Reader:
    """Expressions to values, within the limits of one source."""

    def __init__(self, assigned: dict[str, _Assignment], file: str) -> None:
        self._assigned = assigned
        self._file = file
        self._left = VALUE_LIMIT
        self.used: set[str] = set()
        """The names that the values were made of."""

    def value_of(self, name: str) -> Any:
        line, node = self._assigned[name]
        return self._read(node, depth=1, within=f"{self._file}:{line}: {name}")

    def _read(self, node: ast.expr, *, depth: int, within: str) -> Any:
        self._left -= 1
        if depth > DEPTH_LIMIT:
            raise NotLiteral(f"{within}: values inside of values, {DEPTH_LIMIT} deep is the limit")
        if self._left < 0:
            raise NotLiteral(f"{within}: more than {VALUE_LIMIT} values")

        def read(inner: ast.expr) -> Any:
            return self._read(inner, depth=depth + 1, within=within)

        match node:
            case ast.Constant(value=int(number)) if abs(number) >= NUMBER_LIMIT:
                pass
            case ast.Constant(value=str() | int() | float() | bytes() | None as constant):
                return constant
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float())):
                return -read(node.operand)
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                return self._sum(read(left), read(right), node, within)
            case ast.Name(id=name) if name in self._assigned:
                self.used.add(name)
                return read(self._assigned[name][1])
            case ast.Tuple() | ast.List() | ast.Set() | ast.Dict():
                return self._container(node, read, within)
            case _:
                pass
        raise NotLiteral(f"{within}: {_what(node)} on line {node.lineno} is no literal")

    def _container(
        self,
        node: ast.Tuple | ast.List | ast.Set | ast.Dict,
        read: Callable[[ast.expr], Any],
        within: str,
    ) -> Any:
        if isinstance(node, ast.Dict):
            keys = [key for key in node.keys if key is not None]
            if len(keys) != len(node.keys):
                raise NotLiteral(f"{within}: ** on line {node.lineno} is no literal")
            pairs = [(read(key), read(item)) for key, item in zip(keys, node.values, strict=True)]
            return self._hashed(dict, pairs, within)
        items = [read(item) for item in node.elts]
        if isinstance(node, ast.Set):
            return self._hashed(frozenset, items, within)
        return tuple(items) if isinstance(node, ast.Tuple) else items

    def _hashed(self, made: Any, items: list[Any], within: str) -> Any:
        try:
            return made(items)
        except TypeError as error:
            raise NotLiteral(f"{within}: {error}") from error

    def _sum(self, left: Any, right: Any, node: ast.BinOp, within: str) -> Any:
        if type(left) is not type(right) or not isinstance(left, str | tuple | list):
            raise NotLiteral(
                f"{within}: the sum of {type(left).__name__} and {type(right).__name__} "
                f"on line {node.lineno} is no literal"
            )
        if len(left) + len(right) > SUM_LIMIT:
            raise NotLiteral(f"{within}: a sum of more than {SUM_LIMIT} on line {node.lineno}")
        return left + right


def _what(node: ast.expr) -> str:
    """A word for an expression."""
    match node:
        case ast.Name(id=name):
            return f"the name {name!r}"
        case ast.Call():
            return "a call"
        case ast.Constant():
            return "a number of this size or kind"
        case _:
            return f"an expression ({type(node).__name__})"
