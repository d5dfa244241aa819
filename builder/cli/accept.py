"""``builder accept``."""

from builder.cli import show
from builder.cli.site import VARIANTS, Site, project_command
from builder.pipeline import build
from builder.results import result_of


@project_command("accept", VARIANTS)
def command(site: Site, variants: tuple[str, ...]) -> None:
    """Record what a variant bakes to as expected.

    Each one is built, and written to lockfiles/images/VARIANT.yaml. The first that fails ends the
    run; what was accepted before it stays.
    """
    with site.at_work(*variants) as world, show.one_by_one(site.settings, "accepted") as tell:
        for name in variants:
            made = build(site.project, name, world=world, platform=site.platform, held=False)
            result = result_of(made)
            file = site.project.accept(result)
            tell(
                {"variant": name, "digest": str(result.digest), "file": file},
                f"{file}: {result.digest}",
            )
