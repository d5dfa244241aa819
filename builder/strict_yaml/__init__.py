"""YAML as this project reads and writes it: a tree of texts with their places, and nothing else.

Reading refuses whatever two readers could read differently: duplicate keys, anchors and aliases,
tags, merge keys, directives, several documents, characters that YAML 1.1 and 1.2 treat unlike.
No scalar is typed: ``no``, ``012``, ``1e3`` and ``2026-05-11`` stay the text that was written,
until a schema asks for something else. ``builder.node`` walks the tree and asks.

Writing is the other half: block style, one way to write each value, and double quotes around every
text that some YAML reader could take for something else.
"""

from builder.strict_yaml.reader import (
    DEPTH_LIMIT,
    NODE_LIMIT,
    SCALAR_LIMIT,
    SIZE_LIMIT,
    MappingNode,
    ScalarNode,
    SequenceNode,
    YamlNode,
    read,
)
from builder.strict_yaml.writer import Writable, write

__all__ = [
    "DEPTH_LIMIT",
    "NODE_LIMIT",
    "SCALAR_LIMIT",
    "SIZE_LIMIT",
    "MappingNode",
    "ScalarNode",
    "SequenceNode",
    "Writable",
    "YamlNode",
    "read",
    "write",
]
