"""What a build was: the record that stays in the store beside each image.

It is what ``why`` and ``explain`` read, and what :mod:`builder.statements` makes signed statements
of, on any later day. It holds no time, no path of the machine and nothing of the environment.

    build    a build, and its record
    pins     pins as records have them
    read     a record, read back
    needed   the blobs that the store's records name
"""

from builder.build_record.build import Build, describe, settings_record
from builder.build_record.needed import needed, own_layers
from builder.build_record.read import Made, Record, RecordedBase, RecordedStep, parse, recorded

__all__ = [
    "Build",
    "Made",
    "Record",
    "RecordedBase",
    "RecordedStep",
    "describe",
    "needed",
    "own_layers",
    "parse",
    "recorded",
    "settings_record",
]
