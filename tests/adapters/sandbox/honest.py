"""A job that does all that an honest patch script may, and what must come back of it."""

from builder.sandbox import Finished, Job, Laid, LeftFile, LeftLink
from tests.adapters.sandbox.jobs import ROOT

_PATCH = r"""
import os, sys
note = open("/builder/in/deep/er/note").read()
print(sys.argv, os.getcwd(), os.environ["GENESIS_ENABLE_P67"], note)
print(oct(os.stat("/opt/a/mode").st_mode), oct(os.stat("/opt/a/same").st_mode), oct(os.umask(0)),
      oct(os.stat("/opt/a/hole.so").st_mode), os.stat("/opt/a/hole.so").st_size,
      os.stat("/opt/a/same").st_mtime, file=sys.stderr)
os.umask(0o022)
os.remove("/opt/a/gone")
open("/opt/a/hole_written.so", "wb").write(b"abc")
open("/opt/a/hole_written_with_zeros.so", "r+b").write(bytes(3))
os.chmod("/opt/a/mode", 0o4755)
open("/opt/a/touched", "r+").write("t")
packages = "/usr/local/lib/python3.12/dist-packages/"
open(packages + "vllm/config.py", "a").write("new = 2\n")
os.makedirs(packages + "vllm/_genesis/__pycache__")
open(packages + "vllm/_genesis/__pycache__/x.pyc", "wb").write(b"\0")
os.makedirs(packages + "empty/er")
os.remove(packages + "vllm/linked.py")
os.symlink("/etc/shadow", packages + "vllm/linked.py")
os.symlink("..", packages + "up")
sys.exit(3)
"""

HONEST = Job(
    command=("python", "/builder/in/patch.py", "--now"),
    environment={"GENESIS_ENABLE_P67": "1"},
    roots=("opt/a", "usr/local/lib/python3.12/dist-packages"),
    files=(
        Laid(path="opt/a/gone", data=b"x"),
        Laid(path="opt/a/hole.so", data=None, size=300_000_000, mode=0o755),
        Laid(path="opt/a/hole_written.so", data=None, size=3),
        Laid(path="opt/a/hole_written_with_zeros.so", data=None, size=3),
        Laid(path="opt/a/mode", data=b"m", mode=0o664),
        Laid(path="opt/a/same", data=b"s" * 70_000, mode=0o600),
        Laid(path="opt/a/touched", data=b"t"),
        Laid(path=f"{ROOT}/vllm/config.py", data=b"old = 1\n"),
        Laid(path=f"{ROOT}/vllm/linked.py", data=b"l"),
    ),
    inputs=(
        Laid(path="deep/er/note", data=b"a note\n"),
        Laid(
            path="patch.py",
            data=_PATCH.encode(),
        ),
    ),
)
HONEST_END = Finished(
    status=3,
    stdout=b"['/builder/in/patch.py', '--now'] / 1 a note\n\n",
    stderr=b"0o100664 0o100600 0o22 0o100755 300000000 315532800.0\n",
    left=(
        LeftFile(path="opt/a/hole_written.so", data=b"abc", mode=0o644),
        LeftFile(path="opt/a/mode", data=b"m", mode=0o4755),
        LeftLink(path=f"{ROOT}/up", target=".."),
        LeftFile(path=f"{ROOT}/vllm/_genesis/__pycache__/x.pyc", data=b"\0", mode=0o644),
        LeftFile(path=f"{ROOT}/vllm/config.py", data=b"old = 1\nnew = 2\n", mode=0o644),
        LeftLink(path=f"{ROOT}/vllm/linked.py", target="/etc/shadow"),
    ),
    removed=("opt/a/gone",),
)
