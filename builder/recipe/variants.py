"""``variants/NAME.yaml``: bytes to a :class:`~builder.variant.Variant`."""

import re

from builder.node import (
    Cursor,
    absolute_path,
    any_text,
    digest,
    file_path,
    mapping_of,
    sequence_of,
    shortened,
    text,
    text_or_null,
    unique,
    version_1,
    word,
)
from builder.recipe.known import Known, Names
from builder.recipe.steps import StepReader, variable
from builder.strict_yaml import ScalarNode
from builder.variant import (
    Base,
    ImageSettings,
    LayoutBase,
    PinnedBase,
    Python,
    ScratchBase,
    Variant,
)

_PYTHON = re.compile(r"3\.[0-9]{1,2}")


def read_variant(data: bytes, *, name: str, file: str, known: Known | None = None) -> Variant:
    """The variant ``name`` that stands in ``file``.

    Args:
        data: The bytes of the file.
        name: The name of the variant: that of the file.
        file: The name of the file in the project, for messages.
        known: Where every name must lead. ``None`` leaves names unchecked.

    Raises:
        ProjectError: The file is not what it must be, or names what is not there.
    """
    root = Cursor.open(data, file=file)
    root.take("version", version_1)
    names = Names(known)
    variant = Variant(
        name=name,
        description=root.default("description", any_text, ""),
        base=root.take("base", lambda node: _base(node, names)),
        python=root.optional("python", _python),
        steps=root.default("steps", StepReader(names).steps, ()),
        image=root.default("image", _image, ImageSettings()),
        models=root.default("models", unique(sequence_of(names.model)), ()),
        at=root.at,
    )
    root.done()
    return variant


def _base(node: Cursor, names: Names) -> Base:
    if isinstance(node.node, ScalarNode):
        word("scratch")(node)
        return ScratchBase()
    base: Base
    if node.choice("pin", "layout") == "pin":
        base = PinnedBase(pin=node.take("pin", names.image))
    else:
        base = LayoutBase(layout=node.take("layout", file_path), digest=node.take("digest", digest))
    node.done()
    return base


def _python(node: Cursor) -> Python:
    value = Python(
        version=node.take("version", _python_version), packages=node.take("packages", file_path)
    )
    node.done()
    return value


def _python_version(node: Cursor) -> str:
    value = text(node)
    if not _PYTHON.fullmatch(value):
        raise node.error(
            f"expected the version of a Python, got {shortened(value)!r}", hint="for example 3.12"
        )
    return value


def _image(node: Cursor) -> ImageSettings:
    settings = ImageSettings(
        env=node.default("env", mapping_of(variable, text_or_null), ()),
        labels=node.default("labels", mapping_of(text, text_or_null), ()),
        entrypoint=node.optional("entrypoint", sequence_of(any_text)),
        command=node.optional("command", sequence_of(any_text)),
        workdir=node.optional("workdir", absolute_path),
        user=node.optional("user", text),
    )
    node.done()
    return settings
