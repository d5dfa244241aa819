"""docs/trust.md: the file that it shows is a policy, and its words are true."""

import re
from pathlib import Path

from builder.reference import Reference
from builder.schema_check import check
from builder.trust.codec import read_policy
from builder.trust.judge import Outcome
from builder.trust.names import PAYLOAD_TYPE, WAIVER_TYPE
from builder.trust.scope import scope_of

PAGE = (Path(__file__).parents[2] / "docs/trust.md").read_text(encoding="utf-8")


def test_the_file_that_the_page_shows_is_a_policy() -> None:
    (shown,) = re.findall(r"^```yaml\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    policy = read_policy(shown.encode())
    check(shown.encode(), kind="trust", file="trust.yaml")
    scope = scope_of(policy, Reference.parse("registry.example/acme/vllm"))
    assert scope is not None
    assert scope.role == "release"


def test_the_page_names_every_outcome_in_order_and_both_types() -> None:
    _, _, section = PAGE.partition("## What is said of a signature")
    named = re.findall(r"^\| `([a-z-]+)` \|", section.partition("\n## ")[0], re.MULTILINE)
    assert named == [str(outcome) for outcome in Outcome if outcome is not Outcome.TRUSTED]
    assert PAYLOAD_TYPE in PAGE
    assert WAIVER_TYPE in PAGE
