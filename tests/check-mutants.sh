#!/bin/bash
# Each fault of mutants.sh can be planted: the line that it changes is there.
set -u
exec /bin/bash "${SLEET_SRC:?set SLEET_SRC to the source tree}/tests/mutants.sh" -n
