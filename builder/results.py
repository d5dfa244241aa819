"""The accepted result of a variant against what it bakes to. Pure."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from builder.base import Base
from builder.build_record import Build
from builder.errors import IntegrityError
from builder.lock.model import Result, ResultFile, ResultPatch
from builder.oci import Platform
from builder.outcome import PatchOutcome, PatchState
from builder.realise import layer_ids

_log = logging.getLogger(__name__)
_SHOWN = 10
"""How many patches, and how many files, a message names."""
_REASON = 200
_TOLD = (PatchState.SKIPPED, PatchState.FAILED)
"""The states that have a reason worth accepting."""


def result_of(build: Build) -> Result:
    """What a person accepts when they accept a build."""
    final: dict[str, ResultFile] = {}
    for item in build.steps:
        for file in item.output.files:
            before = final.get(file.path)
            final[file.path] = ResultFile(
                path=file.path, pre=file.pre if before is None else before.pre, post=file.post
            )
    patches = [_patch(patch) for item in build.steps for patch in item.output.patches]
    return Result(
        variant=build.variant.name,
        platform=build.plan.platform,
        digest=build.image.digest,
        derivation=build.plan.derivation,
        diff_ids=layer_ids(build.steps),
        files=tuple(final[path] for path in sorted(final)),
        patches=tuple(sorted(patches, key=lambda patch: patch.name)),
    )


def _patch(patch: PatchOutcome) -> ResultPatch:
    reason = patch.why[:_REASON] if patch.state in _TOLD else ""
    return ResultPatch(name=patch.name, outcome=str(patch.state), reason=reason or None)


def compare(build: Build, results: Sequence[Result]) -> None:
    """Check a build against the accepted results of its variant. What was asked may be something
    else, as long as the same came of it.

    Raises:
        IntegrityError: Nothing was accepted for this platform, or the build differs; the message
            names the patches and the files that differ.
    """
    got = result_of(build)
    name = build.variant.name
    wanted = _accepted(results, got.platform)
    if wanted is None:
        raise IntegrityError(
            f"lockfiles/images/{name}.yaml: no accepted result for {got.platform}",
            hint=f"look at the build, then: builder accept {name}",
        )
    if wanted != replace(got, derivation=wanted.derivation):
        raise _refusal(wanted, got, base=build.base)


def hold_to(build: Build, results: Sequence[Result]) -> None:
    """Check what a patch set did against what was accepted, where a build has one.

    What each patch of a set does is decided by the set, and no pin says it. So a person looks at it
    once, and from then on every build is held to that, asked for or not. Other steps have guards of
    their own.

    Raises:
        IntegrityError: A result was accepted for this platform, and a patch, or a file that the
            variant changes, came out differently.
    """
    wanted = _accepted(results, build.plan.platform)
    has_patches = any(item.output.patches for item in build.steps)
    if not has_patches and (wanted is None or not wanted.patches):
        return
    got, name = result_of(build), build.variant.name
    if wanted is None:
        _log.warning(
            "%s: nobody has accepted what its patches do on %s; look at them: builder patches %s;"
            " then: builder accept %s",
            name,
            got.platform,
            name,
            name,
        )
    elif (wanted.patches, wanted.files) != (got.patches, got.files):
        raise _refusal(wanted, got, base=build.base)


def differences(wanted: Result, got: Result) -> tuple[str, ...]:
    """What is not as it was accepted: a line for each patch, then one for the files. Long lists
    are cut."""
    lines = list(_patches(wanted.patches, got.patches))
    if len(lines) > _SHOWN:
        lines[_SHOWN:] = [f"and {len(lines) - _SHOWN} more patches"]
    before = {file.path: file for file in wanted.files}
    after = {file.path: file for file in got.files}
    changed = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    if changed:
        more = f" and {len(changed) - _SHOWN} more" if len(changed) > _SHOWN else ""
        lines.append(f"files that differ: {', '.join(changed[:_SHOWN])}{more}")
    return tuple(lines)


def _patches(wanted: Iterable[ResultPatch], got: Iterable[ResultPatch]) -> Iterator[str]:
    before = {patch.name: patch for patch in wanted}
    after = {patch.name: patch for patch in got}
    for name in sorted({*before, *after}):
        old, new = before.get(name), after.get(name)
        if new is None:
            yield f"{name}: gone"
        elif old is None:
            yield f"{name}: new, {_shown(new)}"
        elif old.outcome == new.outcome and old != new:
            yield f"{name}: {_shown(old)} -> {_shown(new)}"
        elif old != new:
            yield f"{name}: {old.outcome} -> {_shown(new)}"


def _shown(patch: ResultPatch) -> str:
    return patch.outcome if patch.reason is None else f"{patch.outcome} ({patch.reason})"


def _accepted(results: Iterable[Result], platform: Platform) -> Result | None:
    return next((item for item in results if item.platform == platform), None)


def _refusal(wanted: Result, got: Result, *, base: Base | None) -> IntegrityError:
    """One difference stays in the sentence, several have a line each."""
    lines = differences(wanted, got)
    if base is not None and base.twin is not None:
        lines = (f"the base is {base.twin}", *lines)
    said = f"; {lines[0]}" if len(lines) == 1 else "".join(f"\n  {line}" for line in lines)
    return IntegrityError(
        f"{wanted.at or got.variant}: expected image {wanted.digest}, the build gave"
        f" {got.digest}{said}",
        hint=f"if it is meant: builder accept {got.variant}; to see why: builder explain"
        f" {wanted.digest} {got.digest}",
    )
