import os
import pathlib

PARSER = pathlib.Path(os.environ["BUILDER_PACKAGES"], "vllm/tool_parsers/parser.py")
OLD = "deferred = False\n"
NEW = f"deferred = {os.environ['VALUE']}\n"

text = PARSER.read_text()
assert text.count(OLD) == 1, "the anchor is gone"
PARSER.write_text(text.replace(OLD, NEW))
print("patched", PARSER.name)
