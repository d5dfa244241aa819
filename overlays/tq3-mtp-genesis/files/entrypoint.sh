#!/bin/sh
# Look that the image is what it was baked to be, then run what follows: the entry point that the
# base image has, and its arguments. Whatever is not right ends the container here, with a reason,
# instead of a server that is slower or wrong in a way that nobody sees.
set -eu

refuse() {
    printf 'tq3-mtp-genesis: %s\n' "$*" >&2
    exit 1
}

[ $# -gt 0 ] || refuse 'nothing to run: expected a command, such as: vllm serve'
command -v "$1" >/dev/null || refuse "no program '$1' in this image"

# Where vLLM is, without importing it.
vllm=$(python3 -c '
from importlib.util import find_spec
found = find_spec("vllm")
print(next(iter(found.submodule_search_locations)) if found else "")
') || refuse 'python3 does not run'
[ -n "$vllm" ] || refuse 'there is no vllm package in this image'

# Patched modules import the payload when they run.
[ -f "$vllm/_genesis/patches/apply_all.py" ] ||
    refuse "no Genesis payload in '$vllm/_genesis': is a directory mounted over it?"

# P67 is what three-bit keys and values with drafts need, and the first patch to be lost where a
# run of Genesis does not know that there will be drafts.
attention=$vllm/v1/attention/backends/turboquant_attn.py
grep -q '^# \[Genesis wiring marker: Genesis P67 ' "$attention" 2>/dev/null ||
    refuse "P67 is not in '$attention': this is not the file that was baked"

# The plugin applies Genesis once more in every process. Anything but these two words means "warn",
# so that a misspelt "strict" would not be.
case ${GENESIS_VLLM_PIN_POLICY-warn} in
warn | strict) ;;
*) refuse "GENESIS_VLLM_PIN_POLICY is '$GENESIS_VLLM_PIN_POLICY', wanted warn or strict" ;;
esac

exec "$@"
