"""Find the modules of this package, and begin. Run by :data:`conversation.BOOT`.

What follows are either their names and texts, or the directory that they are in: where that is
readable, Python has them compiled.
"""

import sys
from types import ModuleType

PACKAGE = "builder.adapters.sandbox.inside"


def load(rows: list[str]) -> ModuleType:
    """The module ``main``. It can import what is in this package; the rest of ours is not there.

    Args:
        rows: A directory; or the names and texts of modules, each after those that it imports.
    """
    # "from a.b import c" looks for a, too.
    sys.modules["builder"] = ModuleType("builder")
    package = sys.modules[PACKAGE] = ModuleType(PACKAGE)
    package.__path__ = rows if len(rows) == 1 else []
    for name, text in zip(rows[::2], rows[1::2], strict=False):
        module = sys.modules[f"{PACKAGE}.{name}"] = ModuleType(f"{PACKAGE}.{name}")
        exec(compile(text, f"<{name}>", "exec"), vars(module))  # noqa: S102 - our own modules
        setattr(package, name, module)
    main: ModuleType = __import__(f"{PACKAGE}.main", fromlist=["main"])
    return main


if __name__ == "__main__":
    _read = sys.stdin.buffer.read
    _rows = _read(int.from_bytes(_read(8), "big")).decode().split("\0")[:-1]
    load(_rows).main(sys.stdin.buffer)
