#!/bin/sh
set -eu
test -f "$MODEL/config.json" || { echo "start: no model in '$MODEL'" >&2; exit 1; }
exec "$@"
