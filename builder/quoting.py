"""Text of others in ours, on terminals and in Markdown, neither of which it may steer."""

import re


def plain(line: str) -> str:
    """On one line, without what would steer a terminal."""
    return "".join(filter(str.isprintable, " ".join(line.split())))


def first_line(message: str) -> str:
    """The first line of a message, as :func:`plain` has it."""
    return plain(message.partition("\n")[0])


def harmless(text: str) -> str:
    """Lines as they are, with what would steer a terminal spelt out."""
    if text.isprintable():
        return text
    return "".join(
        character if character in "\n\t" or character.isprintable() else repr(character)[1:-1]
        for character in text
    )


def code(line: str) -> str:
    """A text as Markdown code, in a table, too, whatever it has in it."""
    escaped = plain(line).replace("|", "\\|")
    ticks = "`" * (1 + max(map(len, re.findall("`+", escaped)), default=0))
    pad = " " if escaped.startswith("`") or escaped.endswith("`") or not escaped else ""
    return f"{ticks}{pad}{escaped}{pad}{ticks}"


def fenced(lines: list[str]) -> list[str]:
    """Lines as a block of code that none of them ends."""
    longest = max((len(run) for line in lines for run in re.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    return [fence, *lines, fence]
