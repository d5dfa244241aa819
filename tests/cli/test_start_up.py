"""What a command waits for before it does something."""

import subprocess
import sys

BUILD = """
import sys
import builder.bake, builder.cli.build, builder.deliver
import builder.adapters.registry.client
print([name for name in sys.argv[1:] if name in sys.modules])
"""
UNUSED = (
    "builder.export",
    "builder.lock.codec_waivers",
    "builder.scan",
    "jsonschema",
    "requests",
    "rich",
)

GARBAGE = """
import gc
from builder.cli import main
def collections():
    return sum(generation["collections"] for generation in gc.get_stats())
before = collections()
try:
    main(["build", "--help"])
except SystemExit:
    print(collections() - before)
"""


def said(program: str, *arguments: str) -> str:
    command = [sys.executable, "-c", program, *arguments]
    return subprocess.run(command, capture_output=True, check=True, text=True).stdout


def test_a_build_with_a_push_does_not_load_what_few_builds_use() -> None:
    assert said(BUILD, *UNUSED) == "[]\n"


def test_no_garbage_is_looked_for_while_modules_are_loaded() -> None:
    assert said(GARBAGE).splitlines()[-1] == "0"


def test_models_without_signatures_are_verified_without_cryptography() -> None:
    program = "import sys, builder.cli.models, builder.models.verify as _; print(*sys.modules)"
    assert "cryptography" not in said(program).split()
