"""The Forge port: GitHub's REST API."""

from collections.abc import Mapping

from builder.upstream import PullFacts


class ForgeClient:
    """See :class:`builder.upstream.Forge`.

    Args:
        apis: Where the API of a host is, beyond what is known of github.com.
        token: Sent to the API of github.com, or to the only one configured; never elsewhere.
    """

    def __init__(self, apis: Mapping[str, str], *, token: str | None, offline: bool) -> None:
        self._apis, self._token, self._offline = dict(apis), token, offline

    def pull(self, repository: str, number: int) -> PullFacts | None:
        raise NotImplementedError
