"""What importing the client costs: urllib3 and no more, and nothing is lost to others."""

import subprocess
import sys

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
