"""Any compose file: only the bytes of images change, and whatever else it says stays."""

from dataclasses import dataclass

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from builder.errors import BuilderError
from tests.compose.worlds import DEMO, ONE, pinned

IMAGES = (
    "vllm:v1",
    f"registry.example/acme/vllm:demo@{ONE}",
    "localhost:5000/a/b:c",
    "${VLLM_IMAGE:-vllm/vllm-openai:v1}",
    "${A:-vllm/vllm-openai:nightly-${B}}",
    "${A-${B-${C:-x:y}}}",
    "${IMAGE:?set it}",
    "日本/ä:🚀",
)
DRESSES = (
    "{}",
    '"{}"',
    "'{}'",
    "&anchor{number} {}",
    "!!str '{}'",
    "&a{number} !!str {}",
    ">-\n{deeper}{}",
    "|-\n{deeper}{}\n",
    "\n{deeper}{}",
    "\n{deeper}# why\n{deeper}'{}'",
)
BESIDE = ("", " # image: x:y", "  # 日本 🚀 'quoted' {", " #")
AROUND = (
    "command: [--a, '$${{X:-0}}', \"$$@\"]",
    "# image: vllm:v1 # builder: other",
    'entrypoint:\n{deeper}- |\n{deeper}  image: vllm:v1\n{deeper}  exec "$$@"  # builder: x',
    "environment: {{A: '${{A:-}}', B: }}",
    "ports: !reset []",
    'profiles: [日本, "\\u00e9"]',
    "",
    "x-note: 'it''s # no comment'",
    "deploy: *anything",
)


@dataclass(frozen=True, slots=True)
class File:
    before: bytes
    after: bytes
    images: int


@st.composite
def files(draw: st.DrawFn) -> File:
    """A compose file of a few services, and how it shall be."""
    step = " " * draw(st.integers(1, 5))
    before = after = "x-anything: &anything {a: [b, {c: d}]}\nservices:\n"
    named = 0
    for number in range(draw(st.integers(1, 4))):
        names = number == 0 or draw(st.booleans())
        named += names
        image = draw(st.sampled_from(IMAGES))
        dress = draw(st.sampled_from(DRESSES)).replace("{deeper}", step * 3)
        dress = dress.replace("{number}", str(number))
        beside = "" if dress.startswith((">", "|")) else draw(st.sampled_from(BESIDE))
        labels = draw(
            st.sampled_from(("labels: {builder.variant: demo}", "labels: [builder.variant=demo]"))
        )
        lines = [f"image: \0{beside}", *([labels] if names else [])]
        for piece in draw(st.lists(st.sampled_from(AROUND), max_size=4, unique=True)):
            text = piece.replace("{{", "{").replace("}}", "}").replace("{deeper}", step * 3)
            lines.insert(draw(st.integers(0, len(lines))), text)
        body = "".join(f"{step * 2}{line}\n" if line else "\n" for line in lines)
        head = f"{step}s{number}:\n"
        before += head + body.replace("\0", dress.replace("{}", image))
        after += head + body.replace("\0", dress.replace("{}", DEMO if names else image))
    if draw(st.booleans()):
        before, after = before.replace("\n", "\r\n"), after.replace("\n", "\r\n")
    if draw(st.booleans()):
        before, after = before.rstrip(), after.rstrip()
    mark = b"\xef\xbb\xbf" if draw(st.booleans()) else b""
    return File(mark + before.encode(), mark + after.encode(), named)


def said(data: bytes) -> object:
    """What a file says to another parser than the one that edits; images of services that name
    something aside."""
    found = yaml.load(data.decode("utf-8-sig"), Loader=yaml.BaseLoader)
    for service in found["services"].values():
        if "labels" in service:
            service["image"] = None
    return found


def without_tags(data: bytes) -> bytes:
    return data.replace(b"!reset", b"      ")


@settings(max_examples=100)
@given(files())
def test_only_the_bytes_of_images_change(file: File) -> None:
    new, done = pinned(file.before)
    assert new == file.after
    assert len(done) == file.images
    assert said(without_tags(new)) == said(without_tags(file.before))
    assert pinned(new)[0] == new


PIECES = (
    "services:\n", "  a:\n", "    image: x:1\n", "    image: x:1 # builder: demo\n", "  b: *a\n",
    "    labels: {builder.variant: demo}\n", "    labels: [builder.variant=demo]\n", "---\n",
    "    <<: *a\n", "&a ", "*a ", "    extends: a\n", "    extends: {service: b}\n", "{", "}",
    "[", "]", "    image: &i !!str 'x'\n", "    image: |\n      x\n", "    image: *i\n", "!reset ",
    "\r\n", "\t", "? ", ": ", "- ", "'", '"', "#", "\0", "\ufeff", "\u2028", "\x85", "日本", "<<: ",
    "    build: .\n",
    "    image: ${A:-x}\n", "    image: [x]\n", "    image:\n", "    image: >-\n",
    "%TAG ! x\n", "...\n",
)  # fmt: skip


@settings(max_examples=200)
@given(st.lists(st.sampled_from(PIECES), max_size=25).map("".join) | st.text(max_size=40))
def test_any_text_is_pinned_or_refused(text: str) -> None:
    try:
        data = text.encode()
    except UnicodeEncodeError:
        return
    for keep in (False, True):
        try:
            new, done = pinned(data, keep_override=keep)
        except BuilderError:
            continue
        assert pinned(new, keep_override=keep)[0] == new
        assert done or new == data
