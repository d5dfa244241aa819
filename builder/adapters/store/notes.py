"""Names in the store: of memos, locks and references."""

from builder.errors import UsageError

_ALPHANUMERIC = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789")
_PLAIN = _ALPHANUMERIC | frozenset("._+-=@:")
_LIMIT = 200


def is_plain(name: str) -> bool:
    """Whether ``name`` is a plain file name on every system that we run on."""
    return 0 < len(name) <= _LIMIT and name[0] != "." and _PLAIN.issuperset(name)


def check_plain(name: str, *, at: str) -> str:
    """Return ``name`` if it is plain.

    Raises:
        ValueError: It is not; a bug of the caller.
    """
    if not is_plain(name):
        raise ValueError(f"{at}: not a plain file name: {name!r}")
    return name


def check_reference_name(name: str) -> str:
    """Return ``name`` if other tools can be given it too.

    image-spec, annotations.md, ``org.opencontainers.image.ref.name``: alphanumeric runs that are
    joined by single separators, or by ``--``.

    Raises:
        UsageError: It does not follow the grammar.
    """
    runs = name.replace("--", "-")
    for separator in "._:@+/":
        runs = runs.replace(separator, "-")
    if len(name) > _LIMIT or not all(
        run and _ALPHANUMERIC.issuperset(run) for run in runs.split("-")
    ):
        raise UsageError(
            f"reference name {name!r} does not follow the grammar of image layouts",
            hint="use letters and digits, joined by single . _ - : @ + /",
        )
    return name
