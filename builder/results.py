"""The accepted result of a variant against what it bakes to. Pure."""

from collections.abc import Sequence

from builder.build_record import Build
from builder.errors import IntegrityError
from builder.lock.model import Result, ResultFile
from builder.realise import layer_ids


def result_of(build: Build) -> Result:
    """What a person accepts when they accept a build."""
    final: dict[str, ResultFile] = {}
    for item in build.steps:
        for file in item.output.files:
            before = final.get(file.path)
            final[file.path] = ResultFile(
                path=file.path, pre=file.pre if before is None else before.pre, post=file.post
            )
    return Result(
        variant=build.variant.name,
        platform=build.plan.platform,
        digest=build.image.digest,
        diff_ids=layer_ids(build.steps),
        files=tuple(final[path] for path in sorted(final)),
    )


def compare(build: Build, results: Sequence[Result]) -> None:
    """Check a build against the accepted results of its variant.

    Raises:
        IntegrityError: Nothing was accepted for this platform, or the build differs; the message
            names the files that differ.
    """
    got = result_of(build)
    name = build.variant.name
    wanted = next((item for item in results if item.platform == got.platform), None)
    if wanted is None:
        raise IntegrityError(
            f"lockfiles/images/{name}.yaml: no accepted result for {got.platform}",
            hint=f"look at the build, then: builder accept {name}",
        )
    if wanted == got:
        return
    before = {file.path: file for file in wanted.files}
    after = {file.path: file for file in got.files}
    changed = [path for path in sorted({*before, *after}) if before.get(path) != after.get(path)]
    files = f"; files that differ: {', '.join(changed[:10])}" if changed else ""
    raise IntegrityError(
        f"{wanted.at or name}: expected image {wanted.digest}, the build gave {got.digest}{files}",
        hint=f"if it is meant: builder accept {name}; to see why: builder build {name}, then"
        f" builder explain {wanted.digest} {name}",
    )
