"""A first version of a policy, and the next one."""

from collections.abc import Mapping, Sequence
from datetime import date

from builder.keys.public import PublicKey
from builder.strict_yaml import Writable, write
from builder.strict_yaml.edit import edited
from builder.trust.codec import read_policy
from builder.trust.names import FILE

_HEAD = """\
# Whose signatures count, and for what: docs/trust.md. A change is a new version, which the keys of
# the role root sign: builder trust new begins one, builder trust sign signs it.
"""


def first(
    keys: Mapping[str, PublicKey],
    *,
    expires: date,
    repositories: Sequence[str],
    threshold: int,
) -> bytes:
    """Version 1: these keys in every role. Only ``root`` wants more than one.

    Raises:
        ProjectError: That is no policy: a threshold over the number of keys, no repository.
    """
    names = list(keys)
    roles: dict[str, Writable] = {
        "root": {"keys": names, "threshold": threshold},
        "image": {"keys": names, "threshold": 1},
        "waiver": {"keys": names, "threshold": 1},
    }
    document: dict[str, Writable] = {
        "version": 1,
        "expires": str(expires),
        "keys": {
            name: {
                "public": key.openssh.decode().strip(),
                "fingerprint": key.fingerprint,
                "owner": name,
                "state": "active",
            }
            for name, key in keys.items()
        },
        "roles": roles,
        "scopes": [{"repositories": list(repositories), "role": "image"}],
    }
    raw = _HEAD.encode() + write(document, at=FILE)
    read_policy(raw)
    return raw


def following(raw: bytes, *, expires: date) -> bytes:
    """The next version of a policy: another number and another end; the rest as it was, for people
    to change.

    Raises:
        ProjectError: ``raw`` is no policy.
    """
    policy = read_policy(raw)
    return edited(
        raw,
        {"version": policy.version, "expires": str(policy.expires)},
        {"version": policy.version + 1, "expires": str(expires)},
        at=FILE,
    )
