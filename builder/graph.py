"""A plan as a picture: pins on the left, steps in a chain from base to image. Pure."""

from collections.abc import Callable
from xml.sax.saxutils import escape

from builder.plan import Plan
from builder.value import value


@value
class Node:
    """A box: ``base``, ``step``, ``pin`` or ``image``."""

    name: str
    kind: str
    label: tuple[str, ...]


@value
class Graph:
    """Boxes, and arrows between their names, from input to output."""

    nodes: tuple[Node, ...]
    arrows: tuple[tuple[str, str], ...]


def graph_of(plan: Plan) -> Graph:
    """The boxes and arrows of a plan."""
    base = "scratch" if plan.base is None else plan.base.short
    nodes = [Node(name="base", kind="base", label=("base", base))]
    arrows: list[tuple[str, str]] = []
    pins: dict[str, str] = {}
    below = "base"
    for number, step in enumerate(plan.steps):
        name = f"step{number}"
        nodes.append(
            Node(
                name=name,
                kind="step",
                label=(f"{step.kind} {step.name}", step.derivation.id.short),
            )
        )
        arrows.append((below, name))
        for pin in step.request.pins:
            if pin not in pins:
                pins[pin] = f"pin{len(pins)}"
                nodes.append(Node(name=pins[pin], kind="pin", label=(pin,)))
            arrows.append((pins[pin], name))
        below = name
    nodes.append(Node(name="image", kind="image", label=(plan.variant.name, str(plan.platform))))
    arrows.append((below, "image"))
    return Graph(nodes=tuple(nodes), arrows=tuple(arrows))


def draw(graph: Graph, style: str) -> str:
    """The picture in one of the languages of :data:`STYLES`."""
    return STYLES[style](graph)


def _dot(graph: Graph) -> str:
    shapes = {"pin": "note", "base": "cylinder", "image": "box3d", "step": "box"}
    lines = ["digraph variant {", "  rankdir=BT;", '  node [fontname="monospace"];']
    for node in graph.nodes:
        label = "\\n".join(_quoted(text) for text in node.label)
        lines.append(f'  {node.name} [shape={shapes[node.kind]} label="{label}"];')
    lines += [f"  {source} -> {target};" for source, target in graph.arrows]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _mermaid(graph: Graph) -> str:
    lines = ["flowchart BT"]
    for node in graph.nodes:
        label = "<br/>".join(escape(text, {'"': "#quot;"}) for text in node.label)
        opening, closing = ("([", "])") if node.kind == "pin" else ("[", "]")
        lines.append(f'  {node.name}{opening}"{label}"{closing}')
    lines += [f"  {source} --> {target}" for source, target in graph.arrows]
    return "\n".join(lines)


_WIDTH, _HEIGHT, _GAP, _MARGIN = 300, 44, 22, 16


def _svg(graph: Graph) -> str:
    """The chain on the right, top down; the pins of each step to its left."""
    chain = [node for node in graph.nodes if node.kind != "pin"]
    pins = [node for node in graph.nodes if node.kind == "pin"]
    places = {
        node.name: (_MARGIN * 3 + _WIDTH, _MARGIN + row * (_HEIGHT + _GAP))
        for row, node in enumerate(chain)
    } | {node.name: (_MARGIN, _MARGIN + row * (_HEIGHT + _GAP)) for row, node in enumerate(pins)}
    height = 2 * _MARGIN + max(len(chain), len(pins)) * (_HEIGHT + _GAP)
    width = 4 * _MARGIN + 2 * _WIDTH
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">',
        "<style>text { font: 12px monospace }</style>",
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8">',
        '<path d="M0,0 L8,4 L0,8 z"/></marker></defs>',
    ]
    parts += [_svg_arrow(places[source], places[target]) for source, target in graph.arrows]
    parts += [_svg_box(node, *places[node.name]) for node in (*chain, *pins)]
    return "\n".join([*parts, "</svg>"])


def _svg_arrow(source: tuple[int, int], target: tuple[int, int]) -> str:
    if source[0] == target[0]:
        middle = source[0] + _WIDTH // 2
        line = (middle, source[1] + _HEIGHT, middle, target[1])
    else:
        line = (source[0] + _WIDTH, source[1] + _HEIGHT // 2, target[0], target[1] + _HEIGHT // 2)
    return (
        f'<line x1="{line[0]}" y1="{line[1]}" x2="{line[2]}" y2="{line[3]}"'
        ' stroke="black" marker-end="url(#tip)"/>'
    )


def _svg_box(node: Node, left: int, top: int) -> str:
    fill = {"pin": "#fff7e0", "step": "#eef4ff", "base": "#eeeeee", "image": "#e6f6e6"}[node.kind]
    text = "".join(
        f'<text x="{left + 10}" y="{top + 18 + 16 * row}">{escape(line)}</text>'
        for row, line in enumerate(node.label)
    )
    return (
        f'<rect x="{left}" y="{top}" width="{_WIDTH}" height="{_HEIGHT}" rx="4"'
        f' fill="{fill}" stroke="black"/>{text}'
    )


STYLES: dict[str, Callable[[Graph], str]] = {"dot": _dot, "mermaid": _mermaid, "svg": _svg}
"""The languages that :func:`draw` knows."""
