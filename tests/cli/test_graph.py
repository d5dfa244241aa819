"""``builder graph``: text that the tools for it accept, whatever the names are."""

import subprocess
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from builder.graph import Graph, Node, draw
from tests.cli.conftest import Builder

SVG = "{http://www.w3.org/2000/svg}"
ODD = Graph(
    nodes=(
        Node(name="base", kind="base", label=('a "quoted" <base> & more', "back\\slash")),
        Node(name="pin0", kind="pin", label=("pin #1; end",)),
        Node(name="image", kind="image", label=("image", "x" * 100)),
    ),
    arrows=(("base", "image"), ("pin0", "image")),
)


@pytest.mark.requires("dot")
def test_graphviz_reads_the_same_nodes_and_arrows(builder: Builder) -> None:
    shown = ""
    for text in (builder("graph", "hello").out, draw(ODD, "dot")):
        plain = subprocess.run(
            ["dot", "-Tplain"], input=text, capture_output=True, text=True, check=True
        )
        assert plain.stderr == ""
        shown = plain.stdout
        words = [line.split()[0] for line in plain.stdout.splitlines()]
        arrows = text.count("->")
        assert (words.count("node"), words.count("edge")) == (text.count("shape="), arrows)
    assert '"a \\"quoted\\" <base> & more\\nback\\\\slash"' in shown


@pytest.mark.parametrize("graph", [None, ODD], ids=["a real one", "odd names"])
def test_svg_is_xml_with_a_box_for_each_node_inside_the_picture(
    graph: Graph | None, builder: Builder
) -> None:
    text = builder("graph", "hello", "--format", "svg").out if graph is None else draw(graph, "svg")
    root = ET.fromstring(text)
    width, height = int(root.attrib["width"]), int(root.attrib["height"])
    boxes = [box for box in root.iter(f"{SVG}rect") if "x" in box.attrib]
    assert len(boxes) == (6 if graph is None else 3)
    for box in boxes:
        assert int(box.attrib["x"]) + int(box.attrib["width"]) < width
        assert int(box.attrib["y"]) + int(box.attrib["height"]) < height
    corners = [(box.attrib["x"], box.attrib["y"]) for box in boxes]
    assert len(set(corners)) == len(corners), "no box covers another"
    assert len(list(root.iter(f"{SVG}line"))) == (5 if graph is None else 2)
    if graph is not None:
        texts = [item.text for item in root.iter(f"{SVG}text")]
        assert texts[:2] == ['a "quoted" <base> & more', "back\\slash"]


def test_a_pin_stands_beside_the_first_step_that_uses_it(builder: Builder, project: Path) -> None:
    root = ET.fromstring(builder("graph", "hello", "--format", "svg").out)
    arrows = [line.attrib for line in root.iter(f"{SVG}line")]
    level = [(arrow["y1"] == arrow["y2"], arrow["x1"] == arrow["x2"]) for arrow in arrows]
    assert sorted(level) == [(False, True)] * 3 + [(True, False)] * 2


def test_mermaid_takes_no_character_of_a_name_for_its_own() -> None:
    lines = draw(ODD, "mermaid").splitlines()
    assert lines == [
        "flowchart TB",
        '  base["a #quot;quoted#quot; #lt;base#gt; #amp; more<br/>back\\slash"]',
        '  pin0(["pin #35;1#59; end"])',
        f'  image["image<br/>{"x" * 100}"]',
        "  base --> image",
        "  pin0 --> image",
    ]
