"""Jobs in a few words."""

from textwrap import dedent

from builder.sandbox import Finished, Job, Laid, Limits, Sandbox

ROOT = "usr/local/lib/python3.12/dist-packages"
QUICK = Limits(seconds=20.0, memory=256 << 20, processes=32, output=1 << 20, disk=16 << 20)


def python(text: str, *files: Laid, limits: Limits = QUICK, root: str = ROOT) -> Job:
    """A Python program that works in one directory, which is its working directory."""
    return Job(
        command=("python", "-c", dedent(text)),
        roots=(root,),
        files=(Laid(path=f"{root}/keep", data=b""), *files),
        working=f"/{root}",
        limits=limits,
    )


def said(sandbox: Sandbox, text: str) -> str:
    """What a Python program prints, which must end well and leave nothing."""
    done = sandbox.run(python(text))
    assert (done.status, done.stderr, done.left) == (0, b"", ())
    return done.stdout.decode()


def refusal(sandbox: Sandbox, text: str) -> str:
    """The error that a Python program ends with when it does what it may not."""
    done: Finished = sandbox.run(python(text))
    assert (done.status, done.left) == (1, ())
    return done.stderr.decode().splitlines()[-1]
