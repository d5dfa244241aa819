"""Write a table of what a token costs in each cache type, from the types that this vLLM has.

It computes what it writes, from a file that other steps change: no edit could say it.
"""

import ast
import os
import sys
from pathlib import Path

LAYERS, HEADS, HEAD_SIZE = (int(word) for word in sys.argv[1:])
attention = Path(os.environ["BUILDER_PACKAGES"], "vllm/attention")

module = ast.parse((attention / "kv_cache.py").read_text())
(bits,) = (
    ast.literal_eval(node.value)
    for node in module.body
    if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "BITS"
)
values = 2 * LAYERS * HEADS * HEAD_SIZE
rows = "".join(f'    "{name}": {values * width // 8},\n' for name, width in sorted(bits.items()))
(attention / "kv_table.py").write_text(
    f'"""Bytes of a token, by cache type."""\n\nBYTES = {{\n{rows}}}\n'
)
