"""Everything that can be said of a project without building it."""

from collections.abc import Iterable, Iterator
from enum import StrEnum

from builder.errors import BuilderError, ProjectError
from builder.lock.model import ImagePin, Lock
from builder.oci import Platform
from builder.plan import plan
from builder.project import Project
from builder.schema_check import check as check_schema
from builder.schema_check import kind_of
from builder.value import value
from builder.variant import OverlayStep, PinnedBase, PullStep, SourceStep, Variant, WheelsStep


class Severity(StrEnum):
    """How bad a finding is: an error fails ``check``, a warning does not."""

    ERROR = "error"
    WARNING = "warning"


@value
class Finding:
    """One thing that is wrong or will be. ``exit_status`` is that of the error behind it."""

    severity: Severity
    where: str
    message: str
    hint: str | None = None
    exit_status: int = 0


def check(project: Project, names: Iterable[str], *, platform: Platform) -> tuple[Finding, ...]:
    """Look at the whole project, and at these variants closely; at all of them for no names."""
    wanted = tuple(names)
    findings = list(_schemas(project))
    try:
        lock = project.lock
        known = project.variants()
    except ProjectError as error:
        return (*findings, _finding("project", error))
    variants: list[Variant] = []
    for name in wanted or known:
        try:
            variant = project.variant(name)
            variants.append(variant)
            plan(variant, lock, overlay=project.overlay, platform=platform, base=None)
            findings += _base(variant, lock, platform)
        except BuilderError as error:
            findings.append(_finding(name, error))
    if not wanted:
        findings += _unused(project, lock, variants)
    seen: dict[tuple[str, str], Finding] = {}
    for finding in findings:
        seen.setdefault((finding.where, finding.message), finding)
    return tuple(seen.values())


def _finding(where: str, error: BuilderError) -> Finding:
    return Finding(
        severity=Severity.ERROR,
        where=where,
        message=error.message,
        hint=error.hint,
        exit_status=error.exit_status,
    )


def _schemas(project: Project) -> Iterator[Finding]:
    """Every file against its published schema: what an editor shows, said by us, too."""
    for file, data in project.documents():
        kind = kind_of(file)
        if kind is None:
            yield Finding(
                severity=Severity.WARNING,
                where=file,
                message="no such lockfile is known, and nothing reads it",
            )
            continue
        try:
            check_schema(data, kind=kind, file=file)
        except ProjectError as error:
            yield _finding(file, error)


def _base(variant: Variant, lock: Lock, platform: Platform) -> Iterator[Finding]:
    if not isinstance(variant.base, PinnedBase):
        return
    pin = lock.images.get(variant.base.pin)
    if pin is None:
        raise ProjectError(
            f"{variant.at}: base: no pin {variant.base.pin!r} in lockfiles/vllm.yaml",
            hint=f"it has: {', '.join(lock.images) or 'none'}",
        )
    if lacking := tuple(_lacking(pin, platform)):
        yield Finding(
            severity=Severity.WARNING,
            where=variant.name,
            message=f"base {pin.name!r} is locked without {', '.join(lacking)}",
            hint="a build resolves what is missing each time; record it in the lock",
        )
    if not pin.escrow:
        yield Finding(
            severity=Severity.WARNING,
            where=variant.name,
            message=f"nobody keeps the bytes of base {pin.name!r}: if upstream deletes it, it is"
            " lost",
            hint="push it to a registry of yours and record that as 'escrow'",
        )


def _lacking(pin: ImagePin, platform: Platform) -> Iterator[str]:
    known = pin.platform(platform)
    if known is None:
        yield f"a manifest for {platform}"
        return
    if known.config is None:
        yield "its config"
    if not known.layers:
        yield "its layers"
    elif any(layer.diff_id is None for layer in known.layers):
        yield "all diff_ids"


def _unused(project: Project, lock: Lock, variants: list[Variant]) -> Iterator[Finding]:
    """Pins and overlays that no variant names: dead weight that looks alive."""
    used: set[tuple[str, str]] = set()
    for variant in variants:
        if isinstance(variant.base, PinnedBase):
            used.add(("vllm", variant.base.pin))
        for step in variant.steps:
            match step:
                case PullStep(pull=name):
                    used.add(("pull", name))
                    pin = lock.pulls.get(name)
                    if pin is not None and pin.published is not None:
                        used.add(("source", pin.published.source))
                case OverlayStep(overlay=name):
                    used.add(("overlay", name))
                case SourceStep(source=name):
                    used.add(("source", name))
                case WheelsStep(wheels=names):
                    used.update(("wheel", name) for name in names)
    present = [
        *(("vllm", name) for name in lock.images),
        *(("pull", name) for name in lock.pulls),
        *(("source", name) for name in lock.sources),
        *(("wheel", name) for name in lock.wheels),
        *(("overlay", name) for name in project.overlays),
    ]
    for kind, name in present:
        if (kind, name) not in used:
            yield Finding(
                severity=Severity.WARNING,
                where=f"{kind} {name}",
                message="no variant uses it",
                hint="remove it, or use it",
            )
