"""The trust policy of the project that a command works on."""

from typing import TYPE_CHECKING

from builder.cli.site import Site
from builder.errors import ProjectError, UsageError
from builder.trust.names import FILE

if TYPE_CHECKING:
    from builder.trust.chain import Text
    from builder.trust.model import Policy

_HINT = "give a public key with --key"


def latest(site: Site) -> "Text":
    """The policy that is there, whether or not anybody accepted it.

    Raises:
        UntrustedError: There is none, and one was accepted here.
        ProjectError: There is none, and never was one here.
    """
    found = site.project.versions.latest
    if found is None:
        site.project.accepted()
        raise no_policy()
    return found


def holding(site: Site) -> "Policy":
    """The policy that this machine accepted, and that is not over.

    Raises:
        ProjectError: There is none.
        UntrustedError, ExpiredError, SignatureError: As :meth:`builder.project.Project.policy`.
    """
    policy = site.project.policy(today=site.today)
    if policy is None:
        raise no_policy()
    return policy


def trusting(site: Site) -> "Policy":
    """As :func:`holding`, for those who say whom to trust, or have the policy say it.

    Raises:
        UsageError: There is none.
    """
    if site.homeless:
        raise UsageError("no key is trusted: there is no project here", hint=f"{_HINT}, or -C DIR")
    policy = site.project.policy(today=site.today)
    if policy is None:
        hint = f"{_HINT}, or begin one: builder trust new"
        raise UsageError(f"no key is trusted: the project has no {FILE}", hint=hint)
    return policy


def no_policy() -> ProjectError:
    """The error of a project without one."""
    return ProjectError(f"no {FILE} here", hint="builder trust new begins one")
