"""cosign: a script of its own commands. cosign knows one key at a time; the script counts.

Measured with cosign 2.5 and 3.1: a key without a transparency log wants
``--insecure-ignore-tlog=true`` for ``verify``, and nothing else.
"""

import shlex
from collections.abc import Iterator
from datetime import date

from builder.trust.export.chosen import Chosen, Export, chosen, remarks
from builder.trust.model import Policy

_HEAD = """\
#!/bin/sh
# verify.sh REGISTRY/REPOSITORY@sha256:...: 0 if enough keys of the policy signed that image, 1 if
# not, with what cosign says of each other key, 2 if it is named otherwise, 3 without cosign.
# COSIGN_FLAGS has what the registry wants, such as --allow-insecure-registry.
set -u
image=${1:?usage: verify.sh REGISTRY/REPOSITORY@sha256:...}
place=${image%%@*}
otherwise() { echo "$1: $image" >&2; exit 2; }
case $image in *@sha256:*) ;; *) otherwise "name the image by digest";; esac
# What has two spellings would be held to the wrong scope by one of them.
case ${place##*/} in *:*) otherwise "name the image without a tag";; esac
case $place in *[[:upper:]]*) otherwise "write the image in lower case";; esac
registry=${place%%/*}
case ${registry##*]} in *:443|*:0*) otherwise "write the registry without :443 or :0...";; esac
case $registry in *.|*.:*) otherwise "write the registry without a dot at its end";; esac
case $place in
index.docker.io/*|registry-1.docker.io/*) otherwise "write docker.io";;
docker.io/*/*) ;;
docker.io/*) otherwise "write docker.io/library";;
*/*) ;;
*) registry=;;
esac
case $registry in *.*|*:*|localhost) ;; *) otherwise "name the image with its registry";; esac
keys=$(dirname "$0")/keys
command -v cosign >/dev/null || { echo "cosign is not in PATH: nothing was verified" >&2; exit 3; }
count=0
said=
by() {
  if told=$(cosign verify --key "$keys/$1.pub" --insecure-ignore-tlog=true ${COSIGN_FLAGS-} \\
      "$image" 2>&1 >/dev/null); then count=$((count + 1)); return; fi
  said="$said$1: $told
"
}
enough() {
  echo "$image: signed by $count of $1 keys of the role $2"
  [ "$count" -ge "$1" ] && return
  printf '%s' "$said" >&2
  return 1
}
case $place in
"""
_TAIL = """\
*) echo "no scope of the policy has $image" >&2; exit 1;;
esac
"""


def cosign(policy: Policy, *, today: date) -> Export:
    """``verify.sh`` and ``keys/NAME.pub``.

    Raises:
        PolicyError: A role has too few keys.
    """
    scopes = chosen(policy, today)
    # A shell takes the first pattern that matches: the narrowest stands first.
    ordered = sorted(
        scopes, key=lambda item: (-len(item.repository), item.repository.endswith("*"))
    )
    script = "".join((_HEAD, *(line for item in ordered for line in _case(item)), _TAIL))
    keys = {key.name: key for item in scopes for key in item.keys}
    return Export(
        files={
            "verify.sh": script.encode(),
            **{f"keys/{name}.pub": key.public.pem for name, key in keys.items()},
        },
        remarks=(
            *remarks(policy, today),
            "cosign 3 takes a statement of any type for a signature; builder verify does not",
        ),
    )


def _case(item: Chosen) -> Iterator[str]:
    # A registry may be [::1], which is a set of letters to a shell.
    base = item.repository.removesuffix("*")
    star = "*" if item.repository.endswith("*") else ""
    yield f"{shlex.quote(base) if base else ''}{star})\n"
    yield from (f"  by {key.name}\n" for key in item.keys)
    yield f"  enough {item.role.threshold} {item.role.name};;\n"
