"""The policy that a project has: for commands that need one."""

from typing import TYPE_CHECKING

from builder.cli.site import Site
from builder.errors import ProjectError
from builder.trust.names import FILE

if TYPE_CHECKING:
    from builder.trust.chain import Text


def latest_of(site: Site) -> "Text":
    """The newest version, as it stands.

    Raises:
        UntrustedError: There is none, and one was accepted here.
        ProjectError: There is none, and never was one here.
    """
    latest = site.project.versions.latest
    if latest is None:
        site.project.accepted()
        raise ProjectError(f"no {FILE} here", hint="builder trust new begins one")
    return latest
