"""Waivers that are wrong in one place."""

from tests.lock.bad_documents import Bad
from tests.lock.documents import COMMIT, DIGITS

_AT = "lockfiles/waivers.yaml"
_REASON = 'reason: "tried on two cards, see the notes of 2026-05-11"'


def _until(name: str, day: str, *, codec_only: bool = False) -> Bad:
    """``codec_only`` for days of the right form: no pattern knows the calendar."""
    return Bad(
        id=name,
        kind="waivers",
        old='until: "2028-02-29"',
        new=f'until: "{day}"',
        message=f"{_AT}:9: waivers.on-a-commit.until: expected a day of the calendar, got {day!r}",
        hint="for example 2026-12-31; the waiver holds until the end of it, in UTC",
        codec_only=codec_only,
    )


def _build(name: str, value: str) -> Bad:
    return Bad(
        id=name,
        kind="waivers",
        old=f'vllm: "{COMMIT}"',
        new=f'vllm: "{value}"',
        message=f"{_AT}:6: waivers.on-a-commit.vllm: expected a full commit or a version of vLLM,"
        f" got {value!r}",
        hint="the 40 hex digits of the commit; a version, such as 0.20.2, where no commit is known",
    )


BAD_WAIVERS: tuple[Bad, ...] = (
    _until("29 February of a year that has none", "2027-02-29", codec_only=True),
    _until("the 31st of a month of 30 days", "2026-06-31", codec_only=True),
    _until("a day before all calendars", "0000-01-01", codec_only=True),
    _until("a month that is none", "2026-13-01"),
    _until("a day without its dashes", "20261231"),
    _until("a week date", "2026-W53-4"),
    _until("a time where a day is wanted", "2026-12-31T00:00:00Z"),
    _until("a day in other digits", "٢٠٢٦-12-31"),
    _until("an end that never comes", "never"),
    _build("a short commit of vLLM", COMMIT[:9]),
    _build("a tag of vLLM", f"nightly-{COMMIT}"),
    _build("a version and more", "0.20.2 or so"),
    Bad(
        id="a short commit of the patch set",
        kind="waivers",
        old=f'genesis: "{DIGITS}"',
        new=f'genesis: "{DIGITS[:10]}"',
        message=f"{_AT}:5: waivers.on-a-commit.genesis: expected a full git object id of 40 or 64"
        f" hex digits, got '{DIGITS[:10]}'",
        hint="names and short ids can change their meaning; write the id in full",
    ),
    Bad(
        id="a rule that is none",
        kind="waivers",
        old="rule: genesis-allowlist",
        new="rule: everything",
        message=f"{_AT}:4: waivers.on-a-commit.rule: expected 'genesis-allowlist', got the text"
        " 'everything'",
    ),
    Bad(
        id="a reason of blanks",
        kind="waivers",
        old=_REASON,
        new='reason: "  "',
        message=f"{_AT}:7: waivers.on-a-commit.reason: nothing but blanks, wanted why it is let"
        " through",
    ),
    Bad(
        id="a reason of two lines",
        kind="waivers",
        old=_REASON,
        new='reason: "a\\nb"',
        message=f"{_AT}:7: waivers.on-a-commit.reason: a text on one line, got 'a\\nb'",
    ),
    Bad(
        id="a waiver that nobody answers for",
        kind="waivers",
        old='    author: "Ada Lovelace <ada@example.org>"\n',
        new="",
        message=f"{_AT}:3: waivers.on-a-commit: missing key 'author'",
    ),
    Bad(
        id="an end in other words",
        kind="waivers",
        old='    until: "2028-02-29"\n',
        new='    until: "2028-02-29"\n    expires: "2030-01-01"\n',
        message=f"{_AT}:10: waivers.on-a-commit: unknown key 'expires'",
        hint="the keys here are 'rule', 'genesis', 'vllm', 'reason', 'author', 'until'",
    ),
    Bad(
        id="a waiver that is only a name",
        kind="waivers",
        old="waivers:\n",
        new="waivers:\n  empty:\n",
        message=f"{_AT}:3: waivers.empty: expected a mapping, got nothing",
    ),
)
