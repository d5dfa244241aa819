"""What importing the client costs: no charset detector, and none lost to others."""

import subprocess
import sys

PROGRAM = """
import sys
import builder.adapters.registry.client
print([name for name in ("chardet", "charset_normalizer") if name in sys.modules])
import charset_normalizer
import requests
answer = requests.Response()
answer._content = "\\u00e9".encode()
print(answer.apparent_encoding)
"""


def test_the_client_loads_no_charset_detector_and_hides_it_from_nobody() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], capture_output=True, text=True, check=True
    )
    assert (done.stdout, done.stderr) == ("[]\nutf-8\n", "")
