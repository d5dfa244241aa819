"""The answer of a build that was given before, where nothing that it depends on has changed.

A build in which every layer is cached still reads YAML, makes a plan and assembles an image, to
say what it said before. Its answer is therefore kept with every question that was asked of the
project's files, as a digest of what they said; where all of them say the same and the blobs are
there, the answer is the same. This module imports next to nothing: what it saves is start-up.

Only the plain command is answered so, ``builder build VARIANT...`` with or without ``--json``, in
the project's directory. Every other one takes the long way.
"""

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from builder import ASSEMBLY, __version__, notes
from builder.digest import Digest
from builder.errors import BuilderError
from builder.project_files import Files


def store_directory(environment: Mapping[str, str]) -> str:
    """Where the store is when no option says so: ``BUILDER_STORE``, or ``builder`` in the user's
    cache directory (XDG Base Directory Specification)."""
    if path := environment.get("BUILDER_STORE"):
        return path
    cache = environment.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(cache):  # "must be absolute", and is ignored otherwise
        cache = os.path.expanduser("~/.cache")
    return f"{cache}/builder"


def key(variants: Sequence[str], *, as_json: bool) -> str:
    """The name of the answer: this program, this directory, these variants."""
    versions = (__version__, str(ASSEMBLY), str(notes.IMAGE_VERSION))
    parts = (*versions, os.getcwd(), "json" if as_json else "text", *variants)
    return Digest.of("\0".join(parts).encode("utf-8", "surrogateescape")).hex


def recall(arguments: Sequence[str], environment: Mapping[str, str]) -> str | None:
    """What ``builder build`` with these arguments would print; ``None`` when it has to be run to
    know.

    The note has a line for each question to the project's files (question, digest of the answer or
    ``-``, file), for each image (``image``, digest, name in the store) and its record (``record``,
    digest of the record, that of the image), for each blob (``blob``, digest, size), and for what
    ends with a day (``until``, that day, ``-``); an empty line; and the output.
    """
    variants = [item for item in arguments if item != "--json"]
    if not variants or any(item.startswith("-") for item in variants):
        return None
    store = store_directory(environment)
    try:
        name = key(variants, as_json=len(variants) < len(arguments))
        with Path(f"{store}/notes/{notes.ANSWER}/{name}").open(encoding="utf-8") as note:
            head, _, output = note.read().partition("\n\n")
        with Path(f"{store}/index.json").open(encoding="utf-8") as index:
            named = index.read()
        files = Files(Path())
        for line in head.split("\n"):
            if not _holds(*line.split(" ", 2), store=store, named=named, files=files):
                return None
    except (OSError, TypeError, ValueError, KeyError, BuilderError):
        return None
    return output


def _holds(word: str, digest: str, about: str, *, store: str, named: str, files: Files) -> bool:
    """Whether one line of the note is still true."""
    if word == "blob":
        return os.lstat(f"{store}/blobs/sha256/{digest}").st_size == int(about)
    if word == "image":
        return _entry(about, digest) in named
    if word == "record":  # another variant may have come to the same image since
        with Path(f"{store}/notes/{notes.IMAGE}/{about}").open("rb") as record:
            return Digest.of(record.read()).hex == digest
    if word == "until":
        return digest >= time.strftime("%Y-%m-%d", time.gmtime())
    answer = files.ask(word, about)
    return digest == ("-" if answer is None else answer.hex)


def _entry(name: str, digest: str) -> str:
    """How index.json begins the entry of an image, canonical JSON that it is."""
    return f'{{"org.opencontainers.image.ref.name":"{name}"}},"digest":"sha256:{digest}"'


def note(
    asked: Mapping[tuple[str, str], Digest | None],
    *,
    images: Iterable[tuple[str, Digest]],
    records: Iterable[tuple[Digest, Digest]],
    blobs: Iterable[tuple[Digest, int]],
    output: str,
    until: str | None = None,
) -> bytes | None:
    """The note for :func:`recall`; ``None`` where a name does not fit on its line. ``until`` is the
    last day (UTC) on which the answer holds: a waiver ends, and no file says so."""
    lines = [f"image {digest.hex} {name}" for name, digest in images]
    lines += [f"record {record.hex} {image.hex}" for image, record in sorted(set(records))]
    lines += [] if until is None else [f"until {until} -"]
    lines += [f"blob {digest.hex} {size}" for digest, size in sorted(set(blobs))]
    for (question, about), answer in sorted(asked.items()):
        lines.append(f"{question} {'-' if answer is None else answer.hex} {about}")
    try:
        text = "\n".join([*lines, "", output])
        return text.encode() if all("\n" not in line for line in lines) else None
    except UnicodeEncodeError:
        return None
