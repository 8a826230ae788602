#!/bin/bash
# strategies.sh - who averages with whom, among real daemons on loopback: what is left of the variance among nodes after each
# round is what the strategy's matrices of those rounds leave, with and without loss (exact rounds repair it), and the mean stays.
# Arguments: the cases to run, of
#   table   strategies and numbers of nodes; SLEET_ALL_NODES=1: up to 16 of them, minutes (make check-long-strategies)
#   given   edges that are given
#   low     differences of low rank; with SLEET_ALL_NODES=1 only
# Needs the build folder in SLEET_BUILD or BUILDDIR.
# shellcheck source=lib.sh disable=SC2154
. "$(dirname "$0")/lib.sh" strategies sleetd sleetctl vector
unset SLEET_JOB_SECURITY
met=30 # a round in which all nodes have met

# averaged STRATEGY NODES LOSS ROUNDS [EDGES]: real rounds, their figures in vector.out.  A job whose nodes have not all met by that round is
# tried again: it says nothing.
averaged() {
    local try
    for try in 1 2 3; do
        rm -rf "$work/run" "$work/values"
        "$ctl" run -n "$2" --loss "$3" --keep "$work/run" -- "$build/vector" "$work/values" "$1" $met "$4" \
            >"$work/run.out" 2>"$work/run.err" || {
            grep -h 'vector: ' "$work/run.out" "$work/run.err"
            return 1
        }
        "$build/vector" "$work/values" "$2" "$1" $met "$4" ${5:+"$5"} >"$work/vector.out" || return 1
        grep -q missing "$work/vector.out" || return 0
        echo "strategies: $1: a node was not there at the beginning, try $try"
    done
    return 1
}
figure() { awk -v round="$1" -v column="$2" '$1 == round { print $column }' "$work/vector.out"; } # ROUND COLUMN
consensus() { figure "$1" 2; }
drift() { figure "$1" 3; }
theory() { figure "$1" 4; }
times() { awk -v a="$1" -v b="$2" 'BEGIN { print a * b }'; }
# Equal, but for the chance of 9,216 values a node.
agree() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && b != "" && a <= 1.08 * b + 1e-10 && b <= 1.08 * a + 1e-10) }'; }

holds() { $1 && agree "$(consensus "$2")" "$(theory "$2")" && at_most "$(drift "$2")" 1e-6; }
row() { # STRATEGY NODES LOSS ROUNDS [EDGES]
    local right=false
    averaged "$@" && right=true
    ok "$(printf '%-14s %2d nodes, loss %-4s: after %d rounds %9s of the variance is left, by the matrices %9s; drift %s' "$1" "$2" "$3" \
        "$4" "$(consensus "$4")" "$(theory "$4")" "$(drift "$4")")" \
        holds "$right" "$4"
}

# Rounds, strategies, nodes: those that take seconds, and all.
table_case() {
    local strategy n
    row one-peer 8 0 3
    row moshpit:2 4 0.1 2
    row ring 5 0.1 4
    [ -n "${SLEET_ALL_NODES:-}" ] || return 0
    for n in 2 3 4 5 7 8 9 12 16; do
        for strategy in rps one-peer exponential ring torus pairs moshpit:4 random hierarchical crossover; do
            row $strategy $n 0.1 4
        done
    done
    row moshpit:2 8 0 3
    row moshpit:2 16 0 4
    row moshpit:3 9 0 2
    row moshpit:4 15 0 4
    row one-peer 16 0 4
    row one-peer 12 0.05 8
    row exponential 16 0 8
    row crossover:16,4 8 0.1 6
}

# Edges that are given: a path of four, to which the daemons' own list leads; what is wrong with one has its line; daemons of which each has
# another do not average.
given_case() {
    local t
    printf '1 2 # a path\n2 3\n3 4\n' >"$work/path"
    SLEET_JOB_SECURITY=none SLEET_JOB_EDGES=$work/path row graph 4 0.1 5 "$work/path"
    printf '1 2\n2 3\n2 1\n' >"$work/twice"
    ok "graph: a list with an edge twice is no configuration" \
        eval '! "$d" --id 1 --job.security=none --check-config --job.edges="$work/twice" >"$work/check.out" 2>"$work/check.err"'
    ok "graph: its line is named" eval 'lines check.err 1 && said check.err "twice:3: the list has this edge twice"'
    printf '1 2\n' >"$work/one"
    printf '2 1\n1 3\n' >"$work/other"
    host=127.0.0.1
    export SLEET_JOB_SECURITY=none
    pair --job.edges="$work/one" -- --job.edges="$work/other"
    for t in a b; do
        keep t$t env SLEET_CONTROL="$work/$t.sock" SLEET_NODE=0 SLEET_NODES=2 "$build/vector" "$work/values" graph 3 1
    done
    for t in a b; do
        ok "graph: daemons with other lists do not average, and $t names both" \
            until_true 20 said t$t.err 'graph:[0-9]+,[0-9]+.*graph:[0-9]+,[0-9]+'
    done
    stop ta tb b
    unset SLEET_JOB_SECURITY
    keep tc env SLEET_CONTROL="$work/a.sock" SLEET_NODE=0 SLEET_NODES=1 "$build/vector" "$work/values" graph:1,1 3 1
    ok "graph: a trainer that means another list is refused" eval 'ended tc 10; said tc.err "another list of edges"'
    stop a
}

# Differences of rank 1 on a ring of 8; the target is that of the paper's algorithm for matrices of 16 x 8.
low_case() {
    local rounds=30 bar
    bar=$(times 0.074 1.5)
    ok "ring:1: 8 nodes average for $rounds rounds at 5 % loss" averaged ring:1 8 0.05 $rounds
    ok "ring:1: after $rounds rounds $(consensus $rounds) of the variance is left (bar $bar)" at_most "$(consensus $rounds)" "$bar"
    ok "ring:1: the mean has moved by $(drift $rounds) (bar 1e-3)" at_most "$(drift $rounds)" 1e-3
}

[ $# -gt 0 ] || set -- table given ${SLEET_ALL_NODES:+low}
run_cases "$@"
