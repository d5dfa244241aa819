"""``builder add``: a pin from what a person has at hand."""

import re
from pathlib import Path

import click

from builder.cli.app import Commands
from builder.cli.model_sums import SUMS, published
from builder.cli.new_pin import add
from builder.cli.site import Site, project_command
from builder.errors import UsageError
from builder.lock.model import ImagePin, SourceDiff
from builder.moves import AnyResolved
from builder.reference import Reference
from builder.resolve.images import resolve_image
from builder.resolve.model_sums import resolve_with_sums
from builder.resolve.models import resolve_model
from builder.resolve.patch_sets import resolve_genesis
from builder.resolve.published import resolve_published
from builder.resolve.pulls import resolve_pull
from builder.resolve.sources import resolve_source
from builder.resolve.wheels import resolve_wheel
from builder.world import World

_IMAGE = "docker.io/vllm/vllm-openai"
_VLLM = "https://github.com/vllm-project/vllm"
_GENESIS = "https://github.com/Sandermage/genesis-vllm-patches"

_NAME = click.option("--name", metavar="NAME", help="The pin's name (default: made of what it is).")
_DRY_RUN = click.option("--dry-run", is_flag=True, help="Resolve and report; write nothing.")


@click.group("add", cls=Commands)
def command() -> None:
    """Pin something new.

    What upstream has now is resolved, checked and written into the lockfile of its kind. Nothing
    uses it before a variant names it.
    """


@project_command(
    "vllm",
    click.argument("tag"),
    _NAME,
    click.option("--image", default=_IMAGE, show_default=True, metavar="IMAGE", help="Of which."),
    click.option("--tags", metavar="PATTERN", help="What bump --latest looks among: nightly-*."),
    click.option("--commits", metavar="URL", help="The git repository that gives tags an order."),
    _DRY_RUN,
)
def vllm(
    site: Site,
    tag: str,
    name: str | None,
    image: str,
    tags: str | None,
    commits: str | None,
    dry_run: bool,
) -> None:
    """Pin a base image by its tag."""
    follows = Reference.parse(f"{image}:{tag}", at="add vllm")
    usual = re.sub(r"([0-9a-f]{8})[0-9a-f]{32}", r"\1", tag)

    def resolved(name: str, world: World) -> AnyResolved:
        return resolve_image(
            ImagePin(name=name, follows=follows, tags=tags, commits=commits),
            platforms=(site.platform,),
            registry=world.registry,
            store=world.store,
            progress=world.progress,
            now=world.now,
        )

    add(site, "vllm", name, usual, resolved, dry_run=dry_run)


@project_command(
    "genesis",
    click.argument("target", metavar="COMMIT|BRANCH|TAG"),
    _NAME,
    click.option("--repository", default=_GENESIS, show_default=True, metavar="URL", help="Where."),
    click.option("--ref", metavar="REF", help="What a bump without a target follows."),
    _DRY_RUN,
)
def genesis(
    site: Site, target: str, name: str | None, repository: str, ref: str | None, dry_run: bool
) -> None:
    """Pin a commit of the patch set."""

    def resolved(name: str, world: World) -> AnyResolved:
        return resolve_genesis(
            repository,
            target,
            name=name,
            follows=ref,
            git=world.git,
            history=world.history,
            now=world.now,
        )

    add(site, "genesis", name, f"genesis-{target[:12]}", resolved, dry_run=dry_run)


@project_command(
    "pull",
    click.argument("number", type=click.IntRange(min=1)),
    _NAME,
    click.option("--repository", default=_VLLM, show_default=True, metavar="URL", help="Of which."),
    click.option(
        "--published",
        nargs=2,
        metavar="SOURCE PATH",
        help="As this file of a source pin has it: a rebase that somebody maintains.",
    ),
    _DRY_RUN,
)
def pull(
    site: Site,
    number: int,
    name: str | None,
    repository: str,
    published: tuple[str, str] | None,
    dry_run: bool,
) -> None:
    """Pin a pull request: both commits, and the change between them."""

    def resolved(name: str, world: World) -> AnyResolved:
        if published is not None:
            return _published(site, repository, number, published, name=name, world=world)
        return resolve_pull(
            repository,
            number,
            name=name,
            git=world.git,
            history=world.history,
            forge=world.forge,
            store=world.store,
            now=world.now,
        )

    add(site, "pull", name, f"pr{number}", resolved, dry_run=dry_run)


def _published(
    site: Site,
    repository: str,
    number: int,
    published: tuple[str, str],
    *,
    name: str,
    world: World,
) -> AnyResolved:
    source, path = published
    pins = site.project.sources
    if source not in pins or pins[source].file(path) is None:
        raise UsageError(
            f"--published: no source pin {source!r} with the file {path!r}",
            hint="pin the file first: builder add source URL PATH",
        )
    return resolve_published(
        repository,
        number,
        SourceDiff(source=source, path=path),
        pins[source],
        name=name,
        git=world.git,
        now=world.now,
    )


@project_command(
    "source",
    click.argument("repository", metavar="URL"),
    click.argument("paths", nargs=-1, required=True, metavar="PATH..."),
    _NAME,
    click.option("--at", "target", metavar="COMMIT|BRANCH|TAG", help="Which (default: --ref)."),
    click.option("--ref", metavar="REF", help="What a bump follows (default: its main branch)."),
    _DRY_RUN,
)
def source(
    site: Site,
    repository: str,
    paths: tuple[str, ...],
    name: str | None,
    target: str | None,
    ref: str | None,
    dry_run: bool,
) -> None:
    """Pin files of another git repository."""
    usual = repository.rstrip("/").rpartition("/")[2].removesuffix(".git").lower()

    def resolved(name: str, world: World) -> AnyResolved:
        follows = ref or (world.history.default_branch(repository) if target is None else None)
        return resolve_source(
            repository,
            target,
            paths,
            name=name,
            follows=follows,
            git=world.git,
            history=world.history,
            now=world.now,
        )

    add(site, "source", name, usual, resolved, dry_run=dry_run)


@project_command(
    "wheel",
    click.argument("requirement", metavar="PROJECT[==VERSION]"),
    _NAME,
    _DRY_RUN,
)
def wheel(site: Site, requirement: str, name: str | None, dry_run: bool) -> None:
    """Pin a Python wheel, as pip would take it."""
    project, exactly, version = requirement.partition("==")
    if not project or (exactly and not version) or set(requirement) & set("<>!~;[ "):
        raise UsageError(
            f"expected PROJECT or PROJECT==VERSION, got {requirement!r}",
            hint="a pin is one version: pandas==2.2.3",
        )

    def resolved(name: str, world: World) -> AnyResolved:
        return resolve_wheel(
            project, version or None, name=name, wheels=world.wheels, now=world.now
        )

    add(site, "wheel", name, requirement.replace("==", "-"), resolved, dry_run=dry_run)


@project_command(
    "model",
    click.argument("repository", metavar="ORG/NAME"),
    _NAME,
    click.option("--revision", metavar="REVISION", help="Branch, tag or commit (default: main)."),
    click.option("--include", multiple=True, metavar="GLOB", help="Which files; may be repeated."),
    SUMS,
    _DRY_RUN,
)
def model(
    site: Site,
    repository: str,
    name: str | None,
    revision: str | None,
    include: tuple[str, ...],
    sums: Path | None,
    dry_run: bool,
) -> None:
    """Pin the files of a model by content.

    With --sums they must be those of a checksum file that somebody publishes. With --offline, too,
    the digests are taken from there, for a commit that --revision names in full.
    """
    given = published(sums)

    def resolved(name: str, world: World) -> AnyResolved:
        if given is None:
            return resolve_model(
                repository, revision, name=name, hub=world.hub, now=world.now, include=include
            )
        return resolve_with_sums(
            repository,
            revision,
            given,
            name=name,
            hub=world.hub,
            now=world.now,
            include=include,
        )

    add(site, "model", name, repository.rpartition("/")[2], resolved, dry_run=dry_run)


for _kind in (vllm, genesis, pull, source, wheel, model):
    command.add_command(_kind)
