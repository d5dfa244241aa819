"""Pins that are files: Python wheels and model weights."""

import re
from collections.abc import Mapping

from builder.lock.codec_fields import (
    by_key,
    escrow,
    escrow_record,
    failing,
    locked,
    optional_text,
    present,
    ref,
    repository,
)
from builder.lock.model import ModelFile, ModelPin, WheelPin
from builder.node import (
    Cursor,
    digest,
    each,
    file_path,
    integer,
    object_id,
    sequence_of,
    text,
)
from builder.strict_yaml import Writable

# These are compiled when a wheel is first read: a build without one does not wait for it.
# PyPA, "Names and normalization" and "Version specifiers" (their characters, not their order).
_PROJECT = r"[A-Za-z0-9](?:[A-Za-z0-9._-]*[A-Za-z0-9])?"
_VERSION = r"[A-Za-z0-9](?:[A-Za-z0-9.!+_-]*[A-Za-z0-9])?"
# PyPA, "Binary distribution format", file name convention.
_WHEEL = (
    r"(?P<project>[A-Za-z0-9._]+)-(?P<version>[A-Za-z0-9._!+]+)(?:-[0-9][A-Za-z0-9._]*)?"
    r"(?:-[A-Za-z0-9._]+){3}\.whl"
)


def wheel_pin(key: str, node: Cursor) -> WheelPin:
    """One entry under ``wheels``."""
    project, version = node.take("follows", _wheel_follows)
    pin = WheelPin(
        name=key,
        project=project,
        version=version,
        filename=node.take("filename", lambda child: _filename(child, project, version)),
        digest=node.take("digest", digest),
        size=node.optional("size", integer),
        path=node.optional("path", file_path),
        escrow=node.default("escrow", sequence_of(escrow), ()),
        failing=node.default("failing", failing, ()),
        locked=node.optional("locked", locked),
        at=node.at,
    )
    node.done()
    return pin


def wheel_record(pin: WheelPin) -> Mapping[str, Writable]:
    """The entry of a wheel."""
    return present(
        follows={"project": pin.project, "version": pin.version},
        filename=pin.filename,
        digest=str(pin.digest),
        size=pin.size,
        path=pin.path,
        escrow=[escrow_record(item) for item in pin.escrow],
        failing=pin.failing,
        locked=pin.locked,
    )


def _wheel_follows(node: Cursor) -> tuple[str, str]:
    value = node.take("project", _project), node.take("version", _version)
    node.done()
    return value


def _project(node: Cursor) -> str:
    value = text(node)
    if not re.fullmatch(_PROJECT, value):
        raise node.error(f"{value!r} is not the name of a Python project")
    return value


def _version(node: Cursor) -> str:
    value = text(node)
    if not re.fullmatch(_VERSION, value):
        raise node.error(f"{value!r} is not one version", hint="for example 3.5.0")
    return value


def _filename(node: Cursor, project: str, version: str) -> str:
    value = text(node)
    if not (found := re.fullmatch(_WHEEL, value)):
        raise node.error(
            f"{value!r} is not the file name of a wheel",
            hint="NAME-VERSION[-BUILD]-PYTHON-ABI-PLATFORM.whl",
        )
    if _normalised(found["project"]) != _normalised(project):
        raise node.error(f"{value!r} is a wheel of {found['project']!r}, wanted {project!r}")
    if found["version"] != version.replace("-", "_"):
        raise node.error(
            f"{value!r} is version {found['version']!r}, wanted {version!r}",
            hint="write the version as the file name has it",
        )
    return value


def _normalised(project: str) -> str:
    return re.sub(r"[-_.]+", "-", project).lower()


def model_pin(key: str, node: Cursor) -> ModelPin:
    """One entry under ``models``."""
    place, follows = node.take("follows", _model_follows)
    pin = ModelPin(
        name=key,
        repository=place,
        follows=follows,
        commit=node.take("commit", object_id),
        files=node.default("files", each(file_path, _model_file), ()),
        include=node.default("include", sequence_of(text), ()),
        require=node.default("require", sequence_of(text), ()),
        forbid=node.default("forbid", sequence_of(text), ()),
        tensors=node.optional("tensors", integer),
        dtypes=node.default("dtypes", sequence_of(text), ()),
        failing=node.default("failing", failing, ()),
        locked=node.optional("locked", locked),
        at=node.at,
    )
    node.done()
    return pin


def model_record(pin: ModelPin) -> Mapping[str, Writable]:
    """The entry of a model."""
    return present(
        follows=present(repository=pin.repository, revision=pin.follows),
        commit=str(pin.commit),
        files=by_key(
            (file.path, present(digest=optional_text(file.digest), size=file.size))
            for file in pin.files
        ),
        include=pin.include,
        require=pin.require,
        forbid=pin.forbid,
        tensors=pin.tensors,
        dtypes=pin.dtypes,
        failing=pin.failing,
        locked=pin.locked,
    )


def _model_follows(node: Cursor) -> tuple[str, str | None]:
    value = node.take("repository", repository), node.optional("revision", ref)
    node.done()
    return value


def _model_file(path: str, node: Cursor) -> ModelFile:
    file = ModelFile(
        path=path, digest=node.optional("digest", digest), size=node.optional("size", integer)
    )
    node.done()
    return file
