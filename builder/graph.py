"""A plan as a picture: pins on the left, steps in a chain from base to image. Pure."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from xml.sax.saxutils import escape

from builder.plan import Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A box: ``base``, ``step``, ``pin`` or ``image``."""

    name: str
    kind: str
    label: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
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
                label=(
                    step.kind if step.name == step.kind else f"{step.kind} {step.name}",
                    step.derivation.id.short,
                ),
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
    lines = ["digraph variant {", "  rankdir=TB;", '  node [fontname="monospace"];']
    for node in graph.nodes:
        label = "\\n".join(_quoted(text) for text in node.label)
        lines.append(f'  {node.name} [shape={shapes[node.kind]} label="{label}"];')
    lines += [f"  {source} -> {target};" for source, target in graph.arrows]
    return "\n".join([*lines, "}"])


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


_MERMAID = str.maketrans(
    {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", ";": "#59;"}
)


def _mermaid(graph: Graph) -> str:
    lines = ["flowchart TB"]
    for node in graph.nodes:
        label = "<br/>".join(text.translate(_MERMAID) for text in node.label)
        opening, closing = ("([", "])") if node.kind == "pin" else ("[", "]")
        lines.append(f'  {node.name}{opening}"{label}"{closing}')
    lines += [f"  {source} --> {target}" for source, target in graph.arrows]
    return "\n".join(lines)


_HEIGHT, _GAP, _MARGIN, _ARROW = 44, 22, 16, 48
_FILL = {"pin": "#fff7e0", "step": "#eef4ff", "base": "#eeeeee", "image": "#e6f6e6"}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Box:
    """Where a node is drawn."""

    node: Node
    left: int
    top: int
    width: int

    def draw(self) -> str:
        first = self.top + _HEIGHT // 2 + 4 - 8 * (len(self.node.label) - 1)
        text = "".join(
            f'<text x="{self.left + 10}" y="{first + 16 * row}">{escape(line)}</text>'
            for row, line in enumerate(self.node.label)
        )
        return (
            f'<rect x="{self.left}" y="{self.top}" width="{self.width}" height="{_HEIGHT}" rx="4"'
            f' fill="{_FILL[self.node.kind]}" stroke="black"/>{text}'
        )

    def arrow_to(self, other: "_Box") -> str:
        if self.left == other.left:
            middle = self.left + self.width // 2
            x1, y1, x2, y2 = middle, self.top + _HEIGHT, middle, other.top
        else:
            x1, y1 = self.left + self.width, self.top + _HEIGHT // 2
            x2, y2 = other.left, other.top + _HEIGHT // 2
        return (
            f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="black" marker-end="url(#tip)"/>'
        )


def _svg(graph: Graph) -> str:
    boxes = _boxes(graph)
    height = _MARGIN + max(box.top + _HEIGHT for box in boxes.values())
    width = _MARGIN + max(box.left + box.width for box in boxes.values())
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}">',
            "<style>text { font: 12px monospace; fill: black }</style>",
            (
                '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="8"'
                ' markerHeight="8" orient="auto"><path d="M0,0 L8,4 L0,8 z"/></marker></defs>'
            ),
            '<rect width="100%" height="100%" fill="white"/>',
            *(boxes[source].arrow_to(boxes[target]) for source, target in graph.arrows),
            *(box.draw() for box in boxes.values()),
            "</svg>",
        ]
    )


def _boxes(graph: Graph) -> dict[str, _Box]:
    """The chain on the right, top down; on the left, each pin beside the step that is the first to
    use it."""
    pins = {node.name: node for node in graph.nodes if node.kind == "pin"}
    chain = [node for node in graph.nodes if node.kind != "pin"]
    left, right = _width(pins.values()), _width(chain)
    column = _MARGIN + (left + _ARROW if pins else 0)
    boxes: dict[str, _Box] = {}
    row = 0
    for node in chain:
        top = _MARGIN + row * (_HEIGHT + _GAP)
        boxes[node.name] = _Box(node=node, left=column, top=top, width=right)
        used = [pins[s] for s, t in graph.arrows if t == node.name and s in pins and s not in boxes]
        for number, pin in enumerate(used):
            below = top + number * (_HEIGHT + _GAP)
            boxes[pin.name] = _Box(node=pin, left=_MARGIN, top=below, width=left)
        row += max(1, len(used))
    return boxes


def _width(nodes: Iterable[Node]) -> int:
    """Room for the longest line; no monospace font that browsers use is wider at this size."""
    return 20 + 8 * max((len(line) for node in nodes for line in node.label), default=0)


STYLES: dict[str, Callable[[Graph], str]] = {"dot": _dot, "mermaid": _mermaid, "svg": _svg}
"""The languages that :func:`draw` knows."""
