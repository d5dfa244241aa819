#!/bin/sh
# The demo from end to end: baked, signed by a key that lives as long as this does, and verified as
# by somebody who has the image and the public key, and nothing else.
# usage: demo.sh BUILDER [OPTION of builder build]...
set -eu

builder=$(cd "$(dirname "$1")" && pwd)/$(basename "$1")
shift
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM

"$builder" build demo --out "$scratch/layout" "$@"

export BUILDER_KEYS="$scratch/keys" BUILDER_KEY_PASSWORD=of-no-worth
"$builder" key generate throwaway --quiet >"$scratch/generated"
"$builder" sign demo "oci:$scratch/layout" --key throwaway --quiet >"$scratch/signed"

cd "$scratch" # no project is here, and no store is needed
"$builder" verify oci:layout --key keys/throwaway.pub
