#!/bin/sh
# Make a virtual environment: venv.sh DIRECTORY [PYTHON]
#
# Without PYTHON the first of the usual names that is new enough is taken. The marker .python in
# the directory, written last, says which one was asked for.
set -eu

directory=$1
asked=${2-}

new_enough() {
    "$1" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null
}

python=
for candidate in ${asked:-python3 python3.14 python3.13 python3.12 python3.11}; do
    if new_enough "$candidate"; then
        python=$candidate
        break
    fi
done

if [ -z "$python" ]; then
    found=$("${asked:-python3}" --version 2>/dev/null | head -n 1)
    found=${found:-not one that runs}
    echo "make: builder needs Python 3.11 or newer, ${asked:-python3} is $found" >&2
    echo "  hint: install one, or name it: make PYTHON=/path/to/python3.12 ..." >&2
    exit 9
fi

rm -rf "$directory"
if ! "$python" -m venv "$directory"; then
    rm -rf "$directory"
    echo "make: $python cannot make a virtual environment" >&2
    echo "  hint: on Debian and Ubuntu, apt-get install python3-venv" >&2
    exit 9
fi
printf '%s\n' "$asked" >"$directory/.python"
