"""The harness as a program: the bytes that run in the sandbox, and are an input of the step."""

from pathlib import Path

HARNESS: bytes = Path(__file__).with_name("harness.py").read_bytes()
