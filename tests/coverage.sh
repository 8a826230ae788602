#!/bin/bash
# Which lines of lib/core the tests run: builds with --enable-coverage with hardly any
# optimisation in coverage/ of the build folder, runs the unit, simulator and corpus tests
# there and prints, from gcov (package gcc), lines run of lines a folder and the files
# below 90 %.  Inline functions of headers are not counted.  The *.gcov listings stay there.
# Environment: SLEET_SRC, SLEET_BUILD; MAKE; JOBS (2).
set -u -o pipefail
src=${SLEET_SRC:?set SLEET_SRC to the source tree}
build=${SLEET_BUILD:?set SLEET_BUILD to the build folder}
make=${MAKE:-make}
unset MAKEFLAGS MFLAGS MAKELEVEL

mkdir -p "$build/coverage" && cd "$build/coverage" || exit 1
if [ ! -e Makefile ] || [ "$src/configure" -nt config.status ]; then
    "$src/configure" -q CC=gcc CFLAGS='-g -Og' --enable-coverage --disable-shared || exit 1
fi
tests="unit simtest replay-datagram replay-member replay-config replay-idx replay-control replay-state"
"$make" -s --no-print-directory -j"${JOBS:-2}" check TESTS= || exit 1
find . -name '*.gcda' -delete
"$make" -s --no-print-directory check TESTS="$tests" >check.log 2>&1 || { tail -n 40 check.log; exit 1; }

# "File '.../lib/core/wire/data.c'" is followed by "Lines executed:97.50% of 40".
find lib/core -name '*.gcda' -print0 | xargs -0 gcov -p 2>/dev/null | awk -v q="'" '
    /^File / { split($0, part, q); file = part[2]; core = sub(/.*lib\/core\//, "", file) && file ~ /\.c$/ }
    /^Lines executed:/ && core {
        split($2, part, /[:%]/)
        lines = $4; run = int(part[2] * lines / 100 + 0.5); core = 0
        folder = file
        if (!sub(/\/.*/, "", folder)) folder = "(engine)"
        total[folder] += lines; ran[folder] += run; all += lines; all_ran += run
        if (run < 0.9 * lines) low = low sprintf("coverage: below 90 %%: %s, %d of %d lines\n", file, run, lines)
    }
    function row(name, run, lines) { return sprintf("coverage: %-10s %5d of %5d lines, %5.1f %%", name, run, lines, 100 * run / lines) }
    END {
        if (!all) { print "coverage: gcov knows no file of lib/core"; exit 1 }
        for (folder in total) print row(folder, ran[folder], total[folder]) | "sort"
        close("sort")
        printf "%s", low
        print row("lib/core", all_ran, all)
    }'
