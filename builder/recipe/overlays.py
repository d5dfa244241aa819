"""``overlays/NAME/overlay.yaml``: bytes to an :class:`~builder.variant.Overlay`."""

import posixpath
from collections.abc import Callable, Collection, Iterable

from builder.errors import ProjectError
from builder.node import (
    Cursor,
    any_text,
    did_you_mean,
    digest,
    file_path,
    integer,
    mode,
    nearest,
    positive,
    sequence_of,
    some_of,
    target_directory,
    target_path,
    text,
    version_1,
)
from builder.recipe.steps import replaces
from builder.variant import (
    Action,
    Edit,
    EditRule,
    FileRule,
    Overlay,
    PatchRule,
    RemoveRule,
    Script,
)

OVERLAY_FILE = "overlay.yaml"
"""The file of an overlay's directory that says what the others are for."""
_ACTIONS = {
    "replace": Action.REPLACE,
    "insert_before": Action.INSERT_BEFORE,
    "insert_after": Action.INSERT_AFTER,
}


def read_overlay(
    data: bytes,
    *,
    name: str,
    directory: str,
    present: Collection[str],
    load: Callable[[str], bytes],
) -> Overlay:
    """The overlay ``name`` with the bytes of its files.

    Args:
        data: The bytes of ``overlay.yaml``.
        name: The name of the overlay: that of its directory.
        directory: The directory's path in the project, for messages.
        present: Every file in the directory, by its path there.
        load: Gives the bytes of one of them.

    Raises:
        ProjectError: The file is not what it must be; it names a file that is not there; a file
            is there that it does not name (``overlay.yaml`` and ``README*`` aside).
    """
    root = Cursor.open(data, file=f"{directory}/{OVERLAY_FILE}")
    root.take("version", version_1)
    reader = _Reader(directory, present, load)
    overlay = Overlay(
        name=name,
        files=root.default("files", some_of(reader.file), ()),
        remove=root.default("remove", some_of(_remove), ()),
        edits=root.default("edits", some_of(_edits), ()),
        patch=root.optional("patch", reader.patch),
        scripts=root.default("scripts", some_of(reader.script), ()),
        at=root.at,
    )
    root.done()
    if not (overlay.changes or overlay.scripts):
        raise root.error(
            "an overlay that does nothing", hint="give files, remove, edits, patch or scripts"
        )
    _refuse_second_rules(overlay)
    reader.refuse_strays()
    return overlay


class _Reader:
    """The readers of what names files of the directory; remembers which were named."""

    def __init__(
        self, directory: str, present: Collection[str], load: Callable[[str], bytes]
    ) -> None:
        self._directory = directory
        self._present = present
        self._load = load
        self._named = {OVERLAY_FILE}

    def file(self, node: Cursor) -> FileRule:
        path = node.take("file", self._path)
        rule = FileRule(
            target=node.take("path", target_path),
            file=path,
            data=self._load(path),
            replaces=node.take("replaces", replaces),
            mode=node.optional("mode", mode),
            at=node.at,
        )
        node.done()
        return rule

    def patch(self, node: Cursor) -> PatchRule:
        path = node.take("file", self._path)
        rule = PatchRule(
            file=path,
            data=self._load(path),
            root=node.optional("root", target_directory),
            strip=node.optional("strip", integer),
            ignore=node.default("ignore", sequence_of(text), ()),
            at=node.at,
        )
        node.done()
        return rule

    def script(self, node: Cursor) -> Script:
        path = self._path(node)
        return Script(file=path, data=self._load(path))

    def refuse_strays(self) -> None:
        for path in sorted(self._present):
            if path not in self._named and not posixpath.basename(path).startswith("README"):
                raise ProjectError(
                    f"{self._directory}/{path}: {OVERLAY_FILE} does not use this file",
                    hint=f"name it in {self._directory}/{OVERLAY_FILE}, or remove it",
                )

    def _path(self, node: Cursor) -> str:
        path = file_path(node)
        if path == OVERLAY_FILE:
            raise node.error(f"{OVERLAY_FILE!r} is the recipe, not a file to use")
        if path not in self._present:
            raise node.error(
                f"no file {path!r} in {self._directory}",
                hint=did_you_mean(nearest(path, self._present)),
            )
        self._named.add(path)
        return path


def _remove(node: Cursor) -> RemoveRule:
    rule = RemoveRule(
        target=node.take("path", target_path), replaces=node.take("replaces", digest), at=node.at
    )
    node.done()
    return rule


def _edits(node: Cursor) -> EditRule:
    rule = EditRule(
        target=node.take("path", target_path),
        edits=node.take("edits", some_of(_edit)),
        replaces=node.optional("replaces", digest),
        at=node.at,
    )
    node.done()
    return rule


def _edit(node: Cursor) -> Edit:
    key = node.choice(*_ACTIONS)
    edit = Edit(
        anchor=node.take("anchor", any_text).encode(),
        action=_ACTIONS[key],
        text=node.take(key, any_text).encode(),
        count=node.default("count", positive, 1),
        at=node.at,
    )
    node.done()
    if not edit.anchor:
        raise node.error("an empty anchor stands everywhere")
    if edit.action is not Action.REPLACE and not edit.text:
        raise node.error(f"{key!r} with an empty text changes nothing")
    if edit.action is Action.REPLACE and edit.text == edit.anchor:
        raise node.error("an edit that replaces its anchor with itself changes nothing")
    return edit


def _refuse_second_rules(overlay: Overlay) -> None:
    """Two rules for one file would depend on their order, which the file does not show."""
    rules: Iterable[FileRule | RemoveRule | EditRule] = (
        *overlay.files,
        *overlay.remove,
        *overlay.edits,
    )
    first: dict[str, str] = {}
    for rule in rules:
        if rule.target in first:
            raise ProjectError(
                f"{rule.at}: a second rule for {rule.target!r}, the first is {first[rule.target]}"
            )
        first[rule.target] = rule.at
