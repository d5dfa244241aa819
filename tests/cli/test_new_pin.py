"""How a new pin is named in a variant."""

from collections.abc import Mapping

import pytest
import yaml

from builder.cli.new_pin import _first_file
from builder.digest import Digest, ObjectId
from builder.lock.model import SourceFile, SourcePin

PATHS: Mapping[str, str] = {
    "plain": "a/b-c_d.jinja",
    "a comma and a brace": "a, b}.md",
    "quotes": 'it\'s "it"',
    "a comment": "#1.md",
    "another script": "Übersicht.md",
}


@pytest.mark.parametrize("path", PATHS.values(), ids=PATHS)
def test_any_path_of_a_source_can_be_copied_into_a_variant(path: str) -> None:
    commit = ObjectId("1" * 40)
    file = SourceFile(path=path, digest=Digest.of(b""), size=0)
    pin = SourcePin(
        name="club", repository="https://h.example/r", commit=commit, tree=commit, files=(file,)
    )
    (read,) = yaml.safe_load(f"[{{from: {_first_file(pin)}, to: WHERE}}]")
    assert read == {"from": path, "to": "WHERE"}
