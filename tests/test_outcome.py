"""What a step came to, as it is kept and read back."""

from typing import Any

import pytest

from builder.digest import Digest
from builder.outcome import FileOutcome, Output, PatchOutcome, PatchState
from builder.verdict import Verdict

OUTPUT = Output(
    layer=None,
    files=(FileOutcome(path="a", verdict=Verdict.APPLIED, post=Digest.of(b""), offsets=(3,)),),
    ignored=("tests/x",),
    summary="1 file",
    patches=(PatchOutcome(name="P1", state=PatchState.APPLIED, reason="so", files=("a",)),),
    sandbox="linux-namespaces",
)
LAYER = {name: str(Digest.of(b"")) for name in ("digest", "diff_id", "index", "table")}


def test_it_is_read_back_as_it_was() -> None:
    assert Output.parse(OUTPUT.record()) == OUTPUT
    assert Output.parse(OUTPUT.record()).sandbox == OUTPUT.sandbox


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("layer", {**LAYER, "size": "1"}),
        ("layer", {**LAYER, "size": True}),
        ("files", {}),
        ("files", [{"path": "a", "verdict": "applied", "offsets": "3"}]),
        ("files", [{"path": "a", "verdict": "applied", "offsets": ["3"]}]),
        ("files", [{"path": "a", "verdict": "done"}]),
        ("ignored", "tests"),
        ("ignored", [1]),
        ("summary", ["1 file"]),
        ("patches", {"P1": "applied"}),
        ("patches", [{"name": "P1", "state": "done"}]),
        ("patches", [{"name": 1, "state": "applied"}]),
        ("patches", [{"name": "P1", "state": "applied", "files": "a"}]),
        ("sandbox", None),
        ("sandbox", {"name": "linux-namespaces"}),
    ],
)
def test_what_has_another_form_is_no_output(key: str, value: Any) -> None:
    with pytest.raises((TypeError, ValueError)):
        Output.parse({**OUTPUT.record(), key: value})
