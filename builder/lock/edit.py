"""One pin of a lockfile put in place, and everything else left as it is, byte for byte."""

from builder.lock import codec
from builder.lock.model import (
    GenesisPin,
    ImagePin,
    ModelPin,
    Pin,
    PullPin,
    Result,
    SourcePin,
    WheelPin,
)


def file_of(pin: Pin) -> str:
    """The lockfile of a pin's kind."""
    match pin:
        case ImagePin():
            return codec.IMAGES
        case PullPin():
            return codec.PULLS
        case SourcePin():
            return codec.SOURCES
        case WheelPin():
            return codec.WHEELS
        case GenesisPin():
            return codec.GENESIS
        case ModelPin():
            return codec.MODELS


def put(data: bytes | None, pin: Pin) -> bytes:
    """The lockfile of the pin's kind with this pin in it."""
    raise NotImplementedError


def put_result(data: bytes | None, result: Result) -> bytes:
    """The results of a variant with this one in them, in place of that of its platform."""
    raise NotImplementedError
