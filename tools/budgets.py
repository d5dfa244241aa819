"""Check the size budgets: a module takes 300 lines, a function 40.

Both are counted without their docstrings. What needs more says why: ``# budget: REASON`` on the
line of the ``def``, or on a line of its own before a module's first statement.

    python tools/budgets.py [DIRECTORY ...]
"""

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

MODULE_LINES = 300
FUNCTION_LINES = 40
_REASON = "# budget:"


def findings(path: Path) -> Iterator[str]:
    """What is over budget in one file, as ``path:line: message``."""
    source = path.read_text()
    lines = source.splitlines()
    module = ast.parse(source)
    reasons = {number for number, line in enumerate(lines, 1) if _REASON in line}
    length = len(lines) - _docstring(module)
    if length > MODULE_LINES and not reasons & set(range(1, _first_statement(module))):
        yield f"{path}:1: {length} lines, a module takes {MODULE_LINES}: split it by noun"
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = _span(node) - _docstring(node)
            if length > FUNCTION_LINES and node.lineno not in reasons:
                yield (
                    f"{path}:{node.lineno}: {node.name} takes {length} lines, "
                    f"a function takes {FUNCTION_LINES}"
                )


def _span(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def _docstring(node: ast.Module | ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    return 0 if ast.get_docstring(node) is None else _span(node.body[0])


def _first_statement(module: ast.Module) -> int:
    body = module.body[1:] if ast.get_docstring(module) is not None else module.body
    return body[0].lineno if body else 1


def main(arguments: list[str]) -> int:
    """Print the findings below each directory; the exit status is 1 when there are some."""
    roots = [Path(argument) for argument in arguments] or [Path("builder")]
    found = [
        line for root in roots for path in sorted(root.rglob("*.py")) for line in findings(path)
    ]
    print(*found, sep="\n", end="\n" if found else "")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
