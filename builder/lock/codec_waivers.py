"""Exceptions that people made: what is let through, for what, why, by whom, until when."""

import re
from collections.abc import Callable, Mapping
from datetime import date

from builder.lock.model import Waiver
from builder.node import Cursor, object_id, shortened, text, word
from builder.strict_yaml import Writable

GENESIS_ALLOWLIST = "genesis-allowlist"
"""The rule that a base is one of those that the patch set lists."""

_DAY = re.compile(r"[0-9]{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12][0-9]|3[01])")
_COMMIT = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
# PyPA, "Version specifiers": enough of the form to tell a version from a tag or a short commit.
_VERSION = re.compile(r"(?:[0-9]+!)?[0-9]+(?:\.[0-9]+)+(?:[A-Za-z0-9.+_-]*[A-Za-z0-9])?")


def waiver(key: str, node: Cursor) -> Waiver:
    """One entry under ``waivers``."""
    value = Waiver(
        name=key,
        rule=node.take("rule", word(GENESIS_ALLOWLIST)),
        genesis=node.take("genesis", object_id),
        vllm=node.take("vllm", _build),
        reason=node.take("reason", _said("why it is let through")),
        author=node.take("author", _said("who lets it through")),
        until=node.take("until", _until),
        at=node.at,
    )
    node.done()
    return value


def waiver_record(value: Waiver) -> Mapping[str, Writable]:
    """The entry of a waiver."""
    return {
        "rule": value.rule,
        "genesis": str(value.genesis),
        "vllm": value.vllm,
        "reason": value.reason,
        "author": value.author,
        "until": value.until,
    }


def day(value: str) -> date | None:
    """The day that ``YYYY-MM-DD`` names, in that spelling; ``None`` where the calendar has no such
    day.

    >>> day("2028-02-29"), day("2027-02-29"), day("20280229")
    (datetime.date(2028, 2, 29), None, None)
    """
    try:
        return date.fromisoformat(value) if _DAY.fullmatch(value) else None
    except ValueError:
        return None


def _until(node: Cursor) -> str:
    value = text(node)
    if day(value) is None:
        raise node.error(
            f"expected a day of the calendar, got {shortened(value)!r}",
            hint="for example 2026-12-31; the waiver holds until the end of it, in UTC",
        )
    return value


def _build(node: Cursor) -> str:
    value = text(node)
    if not (_COMMIT.fullmatch(value) or _VERSION.fullmatch(value)):
        raise node.error(
            f"expected a full commit or a version of vLLM, got {shortened(value)!r}",
            hint="the 40 hex digits of the commit; a version, such as 0.20.2, where no commit is"
            " known",
        )
    return value


def _said(what: str) -> Callable[[Cursor], str]:
    def read(node: Cursor) -> str:
        value = text(node)
        if not value.strip():
            raise node.error(f"nothing but blanks, wanted {what}")
        return value

    return read
