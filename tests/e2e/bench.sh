#!/bin/bash
# bench.sh - sleet-bench: the brief tables are within their tolerance, one row outside fails.
# Cases: brief fails usage.
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

[ $# -gt 0 ] || set -- brief fails usage
run_cases "$@"
