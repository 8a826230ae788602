#!/bin/bash
# bench.sh - sleet-bench: the brief tables are within their tolerance, one row outside fails.
# Cases: average brief fails usage.
# Usage: SLEET_BUILD=build tests/e2e/bench.sh [CASE...]; exit: 0 passed, 1 failed, 77 not built.
. "$(dirname "$0")/lib.sh" bench sleet-bench
bench=$build/sleet-bench

exits() { # CODE NAME ARGUMENT...: what it prints is in NAME.out and NAME.err
    local code=$1 name=$2
    shift 2
    "$bench" "$@" >"$work/$name.out" 2>"$work/$name.err"
    [ $? -eq "$code" ]
}
rows() { grep -c "^{\"part\":\"$2\",.*\"verdict\":\"[a-zA-Z]*\"}\$" "$work/$1.out"; } # NAME PART
some_rows() { [ "$(rows "$1" "$2")" -gt 0 ]; }
only_rows() { ! grep -qv '^{"part":"[a-z]*",.*}$' "$work/$1.out"; }
same() { cmp -s "$work/$1.out" "$work/$2.out"; }

brief_case() {
    local part
    ok "every row of the brief tables is within its tolerance" exits 0 brief reconstruct --brief --json
    for part in estimators parity codecs speed; do
        ok "there are rows of $part" some_rows brief $part
    done
    ok "every line is an object" only_rows brief
    exits 0 once reconstruct --brief parity codecs
    exits 0 again reconstruct --brief --seed 1 codecs parity
    ok "the same seed gives the same rows" same once again
}

fails_case() {
    ok "no row is exactly as in theory" exits 1 strict reconstruct --brief --tolerance 0 estimators
    ok "and the rows say so" said strict.out 'OUTSIDE$'
}

figure() { sed -n "s/.*\"$2\":\([^,}]*\).*/\1/p" "$work/$1.out"; } # NAME KEY
near() { # NAME KEY EXPECTED: within a fifth
    awk -v is="$(figure "$1" "$2")" -v be="$3" 'BEGIN { exit !(is > 0.8 * be && is < 1.2 * be) }'
}
zero() { awk -v is="$(figure "$1" "$2")" 'BEGIN { exit !(is != "" && is < 1e-12) }'; }

average_case() {
    ok "rounds of rps at 10 % loss" exits 0 rps average rps --loss 0.1 --repetitions 40 --json
    ok "leave the variance that arXiv 1810.07766 leads to" near rps consensus_1 0.079
    ok "and again" near rps consensus_2 6.4e-3
    ok "move the mean so far" near rps drift_1 0.19
    ok "of as many contributors" near rps contributors 7.3
    exits 0 rps2 average rps --loss 0.1 --repetitions 40 --json
    ok "the same seed gives the same figures" same rps rps2
    ok "trainers that are away" exits 0 out average rps --out 0.1 --repetitions 40 --rounds 1 --json
    ok "keep their values" near out consensus_1 0.1
    ok "and so the mean" zero out drift_1
    ok "without loss all have the mean at once" exits 0 clean average rps --repetitions 2 --json
    ok "to the last bit but rounding" zero clean consensus_1
    ok "noise a step" exits 0 steady average rps --loss 0.1 --steady --repetitions 60 --json
    ok "leaves a variance that stays" near steady consensus_steady 0.075
    ok "differences of rank 1 of a matrix" exits 0 low average ring:1 --matrix 16x8 --rounds 10 --repetitions 20 --json
    ok "bring its nodes together as arXiv 2008.01425 has it" near low consensus_10 0.36
    ok "and leave the mean where it is" zero low drift_10
    ok "an unknown strategy is a mistake" exits 2 strategy average best
    ok "which is named" said strategy.err 'best: there is no such'
    ok "so is none" exits 2 none average
    ok "and loss above 1" exits 2 loss average rps --loss 2
}

usage_case() {
    ok "nothing to do is a mistake" exits 2 nothing
    ok "so is an unknown subcommand" exits 2 other deconstruct
    ok "an unknown part" exits 2 part reconstruct everything
    ok "which is named" said part.err "no part 'everything'"
    ok "an unknown option" exits 2 option reconstruct --quick
    ok "a tolerance that is none" exits 2 tolerance reconstruct --tolerance much
    ok "a seed that is none" exits 2 seed reconstruct --seed -1
    ok "help is none" exits 0 help --help
    ok "and names the parts" said help.out '^  codecs  '
}

[ $# -gt 0 ] || set -- average brief fails usage
run_cases "$@"
