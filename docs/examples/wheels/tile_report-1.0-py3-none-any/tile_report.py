"""Prints what the tiles of this installation are."""

from vllm.config import tile


def main():
    print(tile(1))
