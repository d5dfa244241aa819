"""Documents read by hand into types: a cursor that knows its place, and readers for scalars.

>>> from builder.node import Cursor, integer
>>> root = Cursor.open(b"version: 1", file="demo.yaml")
>>> root.take("version", integer)
1
>>> root.done()
"""

from builder.node.cursor import Cursor, describe, did_you_mean, nearest, shortened
from builder.node.readers import (
    absolute_path,
    any_text,
    boolean,
    digest,
    each,
    file_path,
    integer,
    is_name,
    is_variant_name,
    mapping_of,
    mode,
    name,
    object_id,
    platform,
    positive,
    reference,
    sequence_of,
    some_of,
    target_directory,
    target_path,
    text,
    text_or_null,
    unique,
    version_1,
    word,
)

__all__ = [
    "Cursor",
    "absolute_path",
    "any_text",
    "boolean",
    "describe",
    "did_you_mean",
    "digest",
    "each",
    "file_path",
    "integer",
    "is_name",
    "is_variant_name",
    "mapping_of",
    "mode",
    "name",
    "nearest",
    "object_id",
    "platform",
    "positive",
    "reference",
    "sequence_of",
    "shortened",
    "some_of",
    "target_directory",
    "target_path",
    "text",
    "text_or_null",
    "unique",
    "version_1",
    "word",
]
