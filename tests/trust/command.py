"""A command that signs for the keys of :mod:`tests.trust.keys`: what ``exec:`` starts."""

import sys
from base64 import b64encode
from pathlib import Path

ROOT = Path(__file__).parents[2]


def options(name: str, directory: Path) -> tuple[str, ...]:
    """``--key`` and ``--public`` for a key, whose public half is written into a directory."""
    from tests.trust.keys import public

    file = directory / f"{name}.pub"
    file.write_bytes(public(name).pem)
    return "--key", f"exec:{sys.executable} {__file__} {name}", "--public", str(file)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    from tests.trust.keys import signer

    print(b64encode(signer(sys.argv[1]).sign(sys.stdin.buffer.read())).decode())
