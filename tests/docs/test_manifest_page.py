"""docs/manifest.md: the form that it tells of, and the manifest of the demo."""

import json
import re
from pathlib import Path

import pytest

from builder.schema_check import schema
from tests.docs.conftest import Compare
from tests.docs.pages import ROOT, Terminal, copy_project

PAGE = ROOT / "docs" / "manifest.md"
_EXAMPLE = re.compile(
    r"(?<=^<!-- manifest of the demo -->\n```json\n).*?(?=^```$)", re.MULTILINE | re.DOTALL
)


@pytest.mark.golden
@pytest.mark.requires("git")
def test_the_example_is_the_manifest_of_the_demo(tmp_path: Path, compare: Compare) -> None:
    terminal = Terminal(directory=copy_project(tmp_path / "here"), home=tmp_path / "home")
    terminal.play("$ builder build demo\n")
    _, _, printed = terminal.play("$ builder manifest demo\n").partition("\n")
    example = json.dumps(json.loads(printed), indent=1, ensure_ascii=False) + "\n"
    page = PAGE.read_text(encoding="utf-8")
    assert len(_EXAMPLE.findall(page)) == 1
    compare(PAGE, _EXAMPLE.sub(lambda _: example, page))


def test_the_page_names_every_key() -> None:
    text = PAGE.read_text(encoding="utf-8").partition("## An example")[0]
    rules = schema("manifest")
    steps = rules["$defs"]["step"]["properties"]
    for key in (*rules["properties"], *rules["$defs"]["pins"]["properties"], *steps):
        assert f"`{key}`" in text, key
