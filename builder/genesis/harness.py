"""The program that bakes: it runs a patch set's own apply module on a copy of the packages.

It is read as text and run by whatever Python the sandbox has, as
``python -s -S -P -B harness.py bake.json``; it imports nothing of ours. What the patch set decides
by is the same in every sandbox:

- ``vllm`` is a bare package over the copy, with the version of the image's; none of its own
  start-up code runs;
- ``vllm.platforms.current_platform`` is the platform that the recipe states;
- ``torch`` and what is given beside it are inert stand-ins: names without effect, false, empty;
- there is no other package than these and the standard library.

On stdout it tells, a JSON document a line, what each patch said (``patch``, ``says``, ``reason``)
and which files were opened for writing or renamed since the one before (``wrote``); and at last,
where Python comes to its end in good order, just that (``ended``). It speaks for the patch set,
which runs in the same process: nothing of it is believed without the files. All that the patch set
prints goes to stderr.
"""

import atexit
import importlib.abc
import importlib.machinery
import json
import logging
import os
import runpy
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TextIO

_SAYS = {
    "[Genesis] applied: ": "applied",
    "[Genesis] skipped: ": "skipped",
    "[Genesis] DRIFT skipped: ": "skipped",
    "[Genesis] FAILED: ": "failed",
    "[Genesis] EXCEPTION in ": "failed",
}
"""How every era's lines begin. The name and the reason are the record's two arguments, or stand in
its text."""
_BETWEEN = " \N{EM DASH} "


class _StandIn(type):
    """A class that stands for anything: a module's function, class, value or decorator."""

    def __getattr__(cls, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return _inert(f"{cls.__name__}.{name}")

    def __call__(cls, *arguments: Any, **named: Any) -> Any:
        if "_inert" not in cls.__dict__:  # a subclass that the patch set wrote
            return super().__call__(*arguments, **named)
        if len(arguments) == 1 and not named and isinstance(arguments[0], types.FunctionType):
            return arguments[0]  # a decorator
        return _inert(cls.__name__)

    def __getitem__(cls, key: object) -> Any:
        return cls

    def __or__(cls, other: Any) -> Any:
        return cls

    def __ror__(cls, other: Any) -> Any:
        return cls

    def __bool__(cls) -> bool:
        return False

    def __iter__(cls) -> Iterator[Any]:
        return iter(())

    def __len__(cls) -> int:
        return 0

    def __enter__(cls) -> Any:
        return cls

    def __exit__(cls, *exception: object) -> None:
        """Nothing was held."""


def _inert(name: str) -> Any:
    return _StandIn(name, (), {"_inert": True})


class _StandInModule(types.ModuleType):
    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        found = _inert(f"{self.__name__}.{name}")
        setattr(self, name, found)
        return found


class StandIns(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds the modules below ``versions``, a mapping from package to version."""

    def __init__(self, versions: dict[str, str]) -> None:
        self._versions = versions

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None,  # noqa: ARG002 - the protocol's
        target: types.ModuleType | None = None,  # noqa: ARG002 - as above
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname.partition(".")[0] not in self._versions:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        module = _StandInModule(spec.name)
        if spec.name in self._versions:
            module.__dict__["__version__"] = self._versions[spec.name]
        return module

    def exec_module(self, module: types.ModuleType) -> None:
        """There is nothing in it."""


class _Capability(tuple[int, int]):
    """As ``vllm.platforms.interface.DeviceCapability``: a pair with names."""

    __slots__ = ()

    @property
    def major(self) -> int:
        return self[0]

    @property
    def minor(self) -> int:
        return self[1]

    def to_int(self) -> int:
        return self[0] * 10 + self[1]


class Platform:
    """``vllm.platforms.current_platform`` on a machine of ``vendor`` with this capability."""

    def __init__(self, vendor: str, capability: Sequence[int] | None) -> None:
        self.device_name = self.device_type = vendor
        self._capability = None if capability is None else _Capability(capability)

    def is_cuda(self) -> bool:
        return self.device_type == "cuda"

    def is_rocm(self) -> bool:
        return self.device_type == "rocm"

    def is_xpu(self) -> bool:
        return self.device_type == "xpu"

    def is_cpu(self) -> bool:
        return self.device_type == "cpu"

    def is_tpu(self) -> bool:
        return False

    def is_cuda_alike(self) -> bool:
        return self.device_type in ("cuda", "rocm")

    def get_device_capability(self, *_: object) -> _Capability | None:
        return self._capability

    def has_device_capability(self, wanted: Any, *_: object) -> bool:
        if self._capability is None:
            return False
        if isinstance(wanted, tuple):
            return tuple(self._capability) >= wanted
        return self._capability.to_int() >= int(wanted)


class Teller:
    """Tells ``line`` what patches say, and what was written in between below ``root``."""

    def __init__(self, line: TextIO, root: str) -> None:
        self._line = line
        self._root = f"{root}/"
        self._wrote: dict[str, None] = {}
        self._process = os.getpid()

    def audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        """For :func:`sys.addaudithook`."""
        if event == "open":
            path, _, flags = arguments
            if isinstance(flags, int) and flags & (os.O_WRONLY | os.O_RDWR):
                self._note(path)
        elif event == "os.rename":
            self._note(arguments[1])
        elif event in ("os.remove", "os.truncate"):
            self._note(arguments[0])

    def _note(self, path: object) -> None:
        if isinstance(path, str | bytes | os.PathLike):
            full = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - pathlib follows links
            if full.startswith(self._root):
                self._wrote[full.lstrip("/")] = None

    def record(self, *arguments: Any, **named: Any) -> logging.LogRecord:
        """For :func:`logging.setLogRecordFactory`."""
        record = logging.LogRecord(*arguments, **named)
        if isinstance(record.msg, str):
            for start, says in _SAYS.items():
                if record.msg.startswith(start):
                    self._tell(record, start, says)
        return record

    def end(self) -> None:
        """For :mod:`atexit`: nothing else of this process comes after it."""
        if os.getpid() == self._process:
            self._write({"ended": True})

    def _tell(self, record: logging.LogRecord, start: str, says: str) -> None:
        name, reason = _words(record, start)
        if record.exc_info and record.exc_info[1] is not None:
            error = record.exc_info[1]
            reason = f"{type(error).__name__}: {error}"
        event = {"patch": name, "says": says, "reason": reason, "wrote": list(self._wrote)}
        self._wrote.clear()
        self._write(event)

    def _write(self, event: dict[str, Any]) -> None:
        self._line.write(json.dumps(event) + "\n")
        self._line.flush()


def _words(record: logging.LogRecord, start: str) -> tuple[str, str]:
    """The name of the patch and its reason."""
    if isinstance(record.args, tuple) and record.args:
        arguments = tuple(map(str, record.args))
        return arguments[0], arguments[1] if len(arguments) > 1 else ""
    try:
        text = record.getMessage()
    except (KeyError, TypeError, ValueError):  # logging would tell of it, and go on
        text = str(record.msg)
    name, _, reason = text.removeprefix(start).partition(_BETWEEN)
    return name, reason


def seed(packages: str, version: str, platform: Platform) -> None:
    """Make ``vllm`` a package over the copy, without running any of its code."""
    origin = f"{packages}/vllm/__init__.py"
    spec = importlib.machinery.ModuleSpec("vllm", None, origin=origin, is_package=True)
    spec.submodule_search_locations = [f"{packages}/vllm"]
    package = types.ModuleType("vllm")
    package.__path__ = [f"{packages}/vllm"]
    package.__file__ = origin
    package.__spec__ = spec
    package.__dict__["__version__"] = version
    platforms = types.ModuleType("vllm.platforms")
    platforms.__path__ = [f"{packages}/vllm/platforms"]
    platforms.__dict__["current_platform"] = platform
    package.__dict__["platforms"] = platforms
    sys.modules |= {"vllm": package, "vllm.platforms": platforms}


def main(arguments: Sequence[str], run: Callable[..., object] = runpy.run_module) -> None:
    """Bake as the file says; ends as the apply module ends."""
    with open(arguments[0], encoding="utf-8") as file:  # noqa: PTH123 - nothing but what is needed
        bake = json.load(file)
    line = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    teller = Teller(line, bake["packages"])
    atexit.register(teller.end)  # the first that is registered is the last that is called
    sys.addaudithook(teller.audit)
    logging.setLogRecordFactory(teller.record)
    logging.basicConfig(level=logging.INFO, format="%(message)s")
    sys.path.insert(0, bake["packages"])
    sys.meta_path.insert(0, StandIns(bake["stand_ins"]))
    seed(bake["packages"], bake["version"], Platform(bake["vendor"], bake["capability"]))
    sys.argv[:] = [bake["module"]]
    run(bake["module"], run_name="__main__")


if __name__ == "__main__":
    main(sys.argv[1:])
