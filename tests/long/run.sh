#!/bin/bash
# run.sh - one part of `make check-long`; its argument is the part's name.
# A part that ended well leaves the stamp check-long/NAME in the build folder.
# The last line is "check-long NAME: ok", "... FAILED" or "... SKIPPED (reason
# above)"; a skipped part leaves no stamp.  Exit: 0 ok or skipped, 1 failed, 2 usage.
# Environment: SLEET_SRC, SLEET_BUILD; MAKE; JOBS (2).
set -u
src=${SLEET_SRC:?set SLEET_SRC to the source tree}
build=${SLEET_BUILD:?set SLEET_BUILD to the build folder}
jobs=${JOBS:-2}
make=${MAKE:-make}
state=$build/check-long

# The engines' memory stays flat over 10,000 rounds.
part_memory() {
    local nodes status=0
    for nodes in 2 3 4; do
        "$build/memory" $nodes 10000 || status=1
    done
    return $status
}

# The table of test accuracy under loss; finished cells are kept.
part_accuracy() {
    "$src/tools/accuracy.sh" -t "$build/sleet-train" -c "$state/accuracy-cells" -j "$jobs"
}

# Three cells of that table with real daemons agree with the simulator; finished runs are kept.
part_daemons() {
    "$src/tools/accuracy-daemons.sh" -b "$build" -c "$state/accuracy-cells"
}

# A tensor of more than 2^29 elements between two daemons; at most 15 minutes.
part_big() { timeout -k 10 900 "$src/tests/long/big.sh"; }

# The simulator's tests under 20 more seeds.
part_seeds() {
    local seed status=0
    for seed in $(seq 2 21); do
        if SLEET_TEST_SEED=$seed "$build/simtest" >"$state/seed.log" 2>&1; then
            echo "seed $seed: $(tail -n 1 "$state/seed.log")"
        else
            grep -avE '^(ok|PASS)' "$state/seed.log" | head -n 60
            echo "seed $seed: FAILED: SLEET_TEST_SEED=$seed simtest"
            status=1
        fi
    done
    return $status
}

# The unit and simulator tests under ASan and UBSan, all repeats.
part_sanitizers() {
    local folder=$state/sanitizers
    mkdir -p "$folder" && cd "$folder" || return 1
    if [ ! -e Makefile ]; then
        "$src/configure" -q --enable-werror --enable-asan --enable-ubsan --disable-shared || return 1
    fi
    "$make" -s --no-print-directory -j"$jobs" check TESTS= || return 1
    env -u SLEET_TEST_FAST ./unit | tail -n 1 || return 1
    env -u SLEET_TEST_FAST ./simtest | tail -n 1
}

# Every wilful fault put into the sources is found by a test.
part_mutants() { "$make" -C "$build" --no-print-directory mutants; }

set -o pipefail
name=${1:-}
if [ $# -ne 1 ] || ! declare -F "part_$name" >/dev/null; then
    echo "usage: run.sh memory | accuracy | daemons | big | seeds | sanitizers | mutants" >&2
    exit 2
fi
mkdir -p "$state" || exit 1
rm -f "$state/$name"
(unset MAKEFLAGS MFLAGS && "part_$name")
status=$?
case $status in
0)
    date -u +%FT%TZ >"$state/$name" || exit 1
    echo "check-long $name: ok"
    ;;
77) echo "check-long $name: SKIPPED (reason above)" ;;
*)
    echo "check-long $name: FAILED"
    exit 1
    ;;
esac
