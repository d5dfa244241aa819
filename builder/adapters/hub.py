"""The Hub port, through huggingface_hub (the extra ``models``)."""

from builder.upstream import HubFile


class HubClient:
    """See :class:`builder.upstream.Hub`."""

    def __init__(self, *, offline: bool) -> None:
        self._offline = offline

    def commit(self, repository: str, revision: str) -> str:
        raise NotImplementedError

    def files(self, repository: str, commit: str) -> tuple[HubFile, ...]:
        raise NotImplementedError

    def read(self, repository: str, commit: str, path: str, *, limit: int) -> bytes:
        raise NotImplementedError
