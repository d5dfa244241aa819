"""Mails: only what follows the separator is the change."""

import pytest

from builder.diff import parse
from builder.errors import ProjectError

EDIT = b"diff --git a/f b/f\n--- a/f\n+++ b/f\n@@ -1 +1 @@\n-%s\n+%s\n"
QUOTED = b"```diff\n--- a/f\n+++ b/f\n@@ -9 +9 @@\n-quoted\n+diff\n```\n"


def _mail(body: bytes, message: bytes = b"why\n", stat: bytes = b"", fields: bytes = b"") -> bytes:
    return (
        b"From 1111111111111111111111111111111111111111 Mon Sep 17 00:00:00 2001\n"
        b"From: A <a@example.org>\nDate: Mon, 1 Jan 2024 00:00:00 +0000\nSubject: [PATCH] edit\n"
        + fields
        + b"\n"
        + message
        + b"---\n"
        + stat
        + b"\n"
        + body
        + b"-- \n2.39.5\n\n"
    )


def test_mails_come_in_order_and_a_quoted_diff_is_not_taken() -> None:
    mails = _mail(EDIT % (b"a", b"b")) + _mail(EDIT % (b"b", b"c"), message=QUOTED)
    diff = parse(mails, at="pull.patch")
    assert [(c.commit, c.hunks[0].old, c.hunks[0].new) for c in diff.changes] == [
        (0, [b"a\n"], [b"b\n"]),
        (1, [b"b\n"], [b"c\n"]),
    ]


def test_a_cover_letter_has_no_change() -> None:
    cover = _mail(b"").replace(b"---\n", b" f | 2 +-\n")
    assert len(parse(cover + _mail(EDIT % (b"a", b"b")), at="m").changes) == 1


def test_blanks_behind_the_separator_do_not_count_as_in_git() -> None:
    """mailinfo.c, patchbreak: "---" and nothing but blanks."""
    mail = _mail(EDIT % (b"a", b"b"), message=QUOTED).replace(b"\n---\n", b"\n--- \t\n", 1)
    (change,) = parse(mail, at="m").changes
    assert change.hunks[0].new == [b"b\n"]


def test_a_from_line_inside_a_message_is_text() -> None:
    message = b"as in\nFrom 2222222222222222222222222222222222222222 Mon Sep 17 00:00:00 2001\nso\n"
    assert len(parse(_mail(EDIT % (b"a", b"b"), message=message), at="m").changes) == 1


@pytest.mark.parametrize(
    "data, message",
    [
        pytest.param(
            _mail(EDIT % (b"a", b"b"), message=b"why\n---\n" + QUOTED),
            "m:15: a second '---' line, after a diff",
            id="the message has a separator and a quoted diff",
        ),
        pytest.param(
            _mail(EDIT % (b"a", b"b")).replace(b"---\n\n", b"\n"),
            "m:8: the mail of line 1 has a diff and no '---' line before it",
            id="no separator",
        ),
        pytest.param(
            b"From: A\nSubject: edit\n\nwhy\n" + EDIT % (b"a", b"b"),
            "m:5: the mail of line 1 has a diff and no '---' line before it",
            id="no separator in a mail without a From line",
        ),
        pytest.param(
            _mail(b""), "m:7: a mail without a diff after its '---' line", id="diff cut off"
        ),
        pytest.param(
            _mail(
                EDIT % (b"a", b"b"),
                stat=b" f | 2 +-\n g | 1 +\n 2 files changed, 2 insertions(+), 1 deletion(-)\n",
            ),
            "m:20: the diff has 1 files, 1 insertions and 1 deletions, its mail says 2, 2 and 1",
            id="cut between two files",
        ),
        pytest.param(
            _mail(EDIT % (b"a", b"b"), fields=b"Content-Transfer-Encoding: quoted-printable\n"),
            "m:5: a mail with 'Content-Transfer-Encoding: quoted-printable', "
            "wanted plain 7bit or 8bit",
            id="encoded",
        ),
        pytest.param(
            _mail(EDIT % (b"a", b"b"), fields=b"Content-Type: multipart/mixed; boundary=x\n"),
            "m:5: a mail with 'Content-Type: multipart/mixed; boundary=x', "
            "wanted plain 7bit or 8bit",
            id="multipart",
        ),
    ],
)
def test_a_mail_that_can_be_read_in_two_ways_is_refused(data: bytes, message: str) -> None:
    with pytest.raises(ProjectError) as caught:
        parse(data, at="m")
    assert caught.value.message == message
