"""All pages: links that lead somewhere, a design that names every room, nothing of a machine."""

import re
import tomllib
from itertools import pairwise
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return re.sub(
        r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL
    )


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives the headings of a page."""
    found: set[str] = set()
    for heading in re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", text.lower()).replace(" ", "-")
        number = 0
        while (name := f"{slug}-{number}" if number else slug) in found:
            number += 1
        found.add(name)
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_every_link_leads_to_a_file_and_a_heading_that_are_there(page: Path) -> None:
    for link in _LINK.findall(prose(page)):
        if link.startswith(("https://", "http://")):
            continue
        file, _, anchor = link.partition("#")
        target = (page.parent / file).resolve() if file else page
        assert target.exists(), link
        if anchor:
            assert anchor in anchors(target), link


def test_no_page_and_no_example_holds_a_place_of_somebodys_machine() -> None:
    examples = [path for path in sorted((ROOT / "docs/examples").rglob("*")) if path.is_file()]
    for page in (*PAGES, *examples):
        text = page.read_text(encoding="utf-8")
        found = re.findall(r"(?<![\w.])/(?:home|root|work|Users|tmp)/\S*", text)
        assert (page, found) == (page, [])
        assert str(ROOT) not in text


def test_every_module_has_its_line_in_the_design() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    layers = contracts["contracts"][0]["layers"]
    _, _, section = (ROOT / "docs/design.md").read_text(encoding="utf-8").partition("## Modules")
    named = re.findall(r"`(\w+)`", " ".join(re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)))
    order = [name for layer in layers for name in layer.split(" | ")]
    assert [name for name in named if name in order] == sorted(order, key=named.index)
    for higher, lower in pairwise(layers):
        for one in higher.split(" | "):
            for two in lower.split(" | "):
                assert named.index(one) < named.index(two), (one, two)


def test_every_decision_is_listed_and_says_what_it_costs() -> None:
    directory = ROOT / "docs" / "decisions"
    pages = sorted(path for path in directory.glob("[0-9]*.md"))
    listed = _LINK.findall((directory / "README.md").read_text(encoding="utf-8"))
    assert listed == [page.name for page in pages]
    for page in pages:
        headings = re.findall(r"^## (.*)$", page.read_text(encoding="utf-8"), re.MULTILINE)
        assert headings == ["Context", "Options", "Outcome", "What it costs"], page.name
