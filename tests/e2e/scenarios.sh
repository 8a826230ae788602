#!/bin/bash
# scenarios.sh - every scenario of netem/scenarios on simulated links: all that it expects
# holds, and the same file gives the same run.  Arguments: the cases to run, of each same wrong.
# Needs the source tree in SLEET_SRC and dataset-fashion-mnist.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh" scenarios sleet-sim
src=${SLEET_SRC:-$(dirname "$0")/../..}
[ -d /usr/share/datasets/fashion-mnist ] || { echo "scenarios: no package dataset-fashion-mnist"; exit 77; }
tail_lines=30

each_case() {
    local file name
    for file in "$src"/netem/scenarios/*.ini; do
        name=$(basename "$file" .ini)
        play "$file"
        if [ $code -eq 3 ]; then
            echo "$name: left out: $(tail -n 1 "$work/play.out")"
        else
            ok "$name: what it expects holds in the simulator" [ $code -eq 0 ]
        fi
    done
}
play() {
    "$build/sleet-sim" --scenario "$1" >"$work/play.out" 2>&1
    code=$?
}

same_case() {
    local file=$src/netem/scenarios/kill-one.ini
    "$build/sleet-sim" --scenario "$file" >"$work/first"
    "$build/sleet-sim" --scenario "$file" >"$work/second"
    ok "kill-one: twice the same, bit by bit" cmp -s "$work/first" "$work/second"
}

# An expectation that does not hold is found.
wrong_case() {
    sed 's/^coverage .*/coverage <= 0.5/' "$src/netem/scenarios/clean.ini" >"$work/wrong.ini"
    "$build/sleet-sim" --scenario "$work/wrong.ini" >"$work/wrong.out"
    ok "wrong: exit code 1" [ $? -eq 1 ]
    ok "wrong: names the expectation and what was found" \
        grep -qE "FAILED: coverage <= 0.5 \((0.99|1)" "$work/wrong.out"
}

[ $# -gt 0 ] || set -- each same wrong
run_cases "$@"
