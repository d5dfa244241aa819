"""YAML as people write it: the same value in many styles, with comments everywhere.

Each comment says where it stands: ``#3:vllm/x/index`` is beside, above or in that value.
"""

from collections.abc import Iterator, Mapping, Sequence
from random import Random

from builder.strict_yaml import Writable
from builder.strict_yaml.writer import flow as plain
from builder.strict_yaml.writer import quoted


class Style:
    """One hand. ``quiet`` writes no comments."""

    def __init__(self, seed: int, *, quiet: bool = False) -> None:
        self.random = Random(seed)
        self.step = self.random.choice([1, 2, 2, 3, 4])
        self.apart = self.random.random() < 0.3
        self.break_ = self.random.choice(["\n", "\n", "\r\n"])
        self.last = self.random.choice([self.break_, ""])
        self.talks = 0.0 if quiet else self.random.choice([0, 0.1, 0.4])
        self.likes_flow = self.random.choice([0, 0.2, 0.6])
        self.count = 0
        self.in_text = False  # below a block of text, an indented comment would be part of it

    def document(self, value: Mapping[str, Writable]) -> bytes:
        lines = list(self.lines(value, ""))
        return (self.break_.join([*self.above("", 0), *lines]) + self.last).encode()

    def lines(self, value: Writable, path: str) -> Iterator[str]:
        """A collection that is not empty, as a block."""
        pairs = value.items() if isinstance(value, Mapping) else enumerate(as_list(value))
        for number, (key, item) in enumerate(pairs):
            if number and (self.apart or self.chance(0.05)):
                yield ""
            below = f"{path}/{key}"
            yield from self.above(below, 0)
            if isinstance(value, Mapping):
                yield from self.entry(str(key), item, below)
            else:
                yield from self.item(item, below)
        if self.chance(self.talks) and not self.in_text:
            yield f"{'':{self.step}}{self.comment(path)}"

    def entry(self, key: str, item: Writable, path: str) -> Iterator[str]:
        name = self.text(key)
        self.in_text = False
        if self.is_block(item):
            indent = 0 if is_list(item) and self.chance(0.3) else self.step
            yield f"{name}:{self.beside(path)}"
            yield from indented(self.lines(item, path), indent)
        elif (
            isinstance(item, str)
            and item.isprintable()
            and item[:1].isalpha()
            and self.chance(0.05)
        ):
            yield f"{name}: {self.random.choice('|>')}-{self.beside(path)}"
            yield f"{'':{self.step}}{item}"
            self.in_text = True
        elif self.chance(0.05):
            yield f"{name}:{self.beside(path)}"
            yield from indented(self.above(path, 0), self.step)
            yield f"{'':{self.step}}{self.flow(item, path)}{self.beside(path)}"
        else:
            first, *rest = f"{name}: {self.flow(item, path)}{self.beside(path)}".split("\n")
            yield first
            yield from indented(iter(rest), self.step)

    def item(self, item: Writable, path: str) -> Iterator[str]:
        inner = (
            self.lines(item, path)
            if self.is_block(item)
            else iter(self.flow(item, path).split("\n"))
        )
        self.in_text = False
        first, *rest = inner
        yield f"- {first}"
        yield from indented(iter(rest), 2)

    def flow(self, value: Writable, path: str) -> str:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, int):
            return str(value)
        if isinstance(value, Mapping):
            items = [
                f"{self.text(key)}: {self.flow(item, f'{path}/{key}')}"
                for key, item in value.items()
            ]
            opened, closed = "{}"
        else:
            items = [self.flow(item, f"{path}/{number}") for number, item in enumerate(value)]
            opened, closed = "[]"
        if items and self.chance(0.3):
            comma = self.random.choice(["", ","])
            lines = [f"{item},{self.beside(path)}" for item in items[:-1]]
            body = "\n".join(
                f"  {line}" for line in [*lines, f"{items[-1]}{comma}{self.beside(path)}"]
            )
            return f"{opened}{self.beside(path)}\n{body}\n{closed}"
        inner = ", ".join(items) + ("," if items and self.chance(0.1) else "")
        blank = self.random.choice(["", " "])
        return f"{opened}{blank}{inner}{blank}{closed}"

    def text(self, text: str) -> str:
        return quoted(text, self.random.choice(["", "", "'", '"']))

    def above(self, path: str, indent: int) -> Iterator[str]:
        while self.chance(self.talks):
            yield f"{'':{indent}}{self.comment(path)}"
            if self.chance(0.2):
                yield ""

    def beside(self, path: str) -> str:
        return f"  {self.comment(path)}" if self.chance(self.talks) else ""

    def comment(self, path: str) -> str:
        self.count += 1
        return f"#{self.count}:{plain(path)}"

    def is_block(self, value: Writable) -> bool:
        return (
            isinstance(value, Mapping | list | tuple)
            and bool(value)
            and not self.chance(self.likes_flow)
        )

    def chance(self, odds: float) -> bool:
        return self.random.random() < odds


def indented(lines: Iterator[str], indent: int) -> Iterator[str]:
    return (f"{'':{indent if line else 0}}{line}" for line in lines)


def is_list(value: Writable) -> bool:
    return isinstance(value, list | tuple)


def as_list(value: Writable) -> Sequence[Writable]:
    assert isinstance(value, list | tuple)
    return value
