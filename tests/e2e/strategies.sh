#!/bin/bash
# strategies.sh - who averages with whom, among real daemons on loopback: what is left of the variance among
# nodes after each round.  Targets are those of sleet-bench average STRATEGY; repair is on, so that loss changes little.
# Arguments: the cases to run, of exact lossy given low; SLEET_ALL_NODES=1: all, with up to 16 nodes; else the first three.
# Needs the build folder in SLEET_BUILD or BUILDDIR.
# shellcheck source=lib.sh disable=SC2154
. "$(dirname "$0")/lib.sh" strategies sleetd sleetctl vector sleet-bench
unset SLEET_JOB_SECURITY
met=30 # a round in which all nodes have met

# averaged STRATEGY NODES LOSS ROUNDS: real rounds, their figures in vector.out.  On a machine that is busy with
# other things a node may be taken for dead for a moment and miss a round: that says nothing, and is tried again.
averaged() {
    local try
    for try in 1 2 3 4 5; do
        rm -rf "$work/run" "$work/values"
        "$ctl" run -n "$2" --loss "$3" --keep "$work/run" -- "$build/vector" "$work/values" "$1" $met "$4" \
            >"$work/run.out" 2>"$work/run.err" || return 1
        "$build/vector" "$work/values" "$2" "$4" >"$work/vector.out" || return 1
        grep -q missing "$work/vector.out" || return 0
        echo "strategies: $1: a node has missed a round, try $try"
    done
    return 1
}
consensus() { awk -v round="$1" '$1 == round { print $2 }' "$work/vector.out"; }
drift() { awk -v round="$1" '$1 == round { print $3 }' "$work/vector.out"; }
# simulated STRATEGY NODES ROUND: the same by the simulator, without loss.
simulated() {
    "$build/sleet-bench" average "$1${edges:-}" -n "$2" --rounds "$3" --repetitions 20 | awk -v round="$3" '$1 == round { print $2 }'
}
times() { awk -v a="$1" -v b="$2" 'BEGIN { print a * b }'; }

exact() { # STRATEGY NODES ROUNDS: exact after so many
    ok "$1: $2 nodes average for $3 rounds" averaged "$1" "$2" 0 "$3"
    ok "$1: after $3 rounds all $2 nodes agree: $(consensus "$3") of the variance is left (bar 1e-10)" \
        at_most "$(consensus "$3")" 1e-10
    ok "$1: the mean has moved by $(drift "$3") of one node's noise (bar 1e-10)" at_most "$(drift "$3")" 1e-10
}
exact_case() {
    exact one-peer 8 3
    exact moshpit:2 4 2
    [ -z "${SLEET_ALL_NODES:-}" ] || exact one-peer 16 4
    [ -z "${SLEET_ALL_NODES:-}" ] || exact moshpit:4 12 2
}

lossy() { # STRATEGY NODES ROUNDS DRIFT: at 10 % loss within 1.5 times what the simulator has without
    local bar
    bar=$(times "$(simulated "$1" "$2" "$3")" 1.5)
    ok "$1: $2 nodes average for $3 rounds at 10 % loss" averaged "$1" "$2" 0.1 "$3"
    ok "$1: after $3 rounds $(consensus "$3") of the variance is left (bar $bar)" at_most "$(consensus "$3")" "$bar"
    ok "$1: the mean has moved by $(drift "$3") (bar $4)" at_most "$(drift "$3")" "$4"
}
lossy_case() {
    lossy ring 5 4 1e-3
    [ -z "${SLEET_ALL_NODES:-}" ] || lossy exponential 16 4 0.05
    [ -z "${SLEET_ALL_NODES:-}" ] || lossy pairs 12 6 1e-3
}

# Edges that are given: a path of four, to which the daemons' own list leads; what is wrong with one has its line; daemons of which each has
# another do not average.
given_case() {
    local t
    printf '1 2 # a path\n2 3\n3 4\n' >"$work/path"
    SLEET_JOB_SECURITY=none SLEET_JOB_EDGES=$work/path edges=:$work/path lossy graph 4 5 1e-3
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

[ $# -gt 0 ] || set -- exact lossy given ${SLEET_ALL_NODES:+low}
run_cases "$@"
