"""What importing the client costs: urllib3 and no more, and nothing is lost to others."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
import builder.adapters.registry.client
costly = ("requests", "http.cookiejar", "certifi", "importlib.metadata", "zipfile", "idna")
print([name for name in costly if name in sys.modules])
import importlib.metadata
import urllib3
import urllib3.http2
print(importlib.metadata.distribution("urllib3").name)
print(urllib3.http2.version("urllib3") == urllib3.__version__)
import requests
"""


def test_the_client_loads_neither_requests_nor_metadata_and_hides_them_from_nobody() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("[]\nurllib3\nTrue\n", "")


def test_metadata_that_is_loaded_already_stays_what_it_is() -> None:
    program = """
import importlib.metadata, sys
before = sys.modules["importlib.metadata"]
import builder.adapters.registry.client
print(sys.modules["importlib.metadata"] is before)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"True\n"


def test_another_urllib3_gets_what_it_wants_of_metadata(tmp_path: Path) -> None:
    (tmp_path / "urllib3.py").write_text(
        "from importlib.metadata import PackageNotFoundError, version\n"
    )
    program = f"""
import sys
sys.path.insert(0, {str(tmp_path)!r})
from builder.adapters.registry.http import urllib3
import importlib.metadata
print(urllib3.PackageNotFoundError is importlib.metadata.PackageNotFoundError)
print(urllib3.version("pytest") == importlib.metadata.version("pytest"))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b"True\nTrue\n"
