#!/bin/bash
# switch.sh - sleetctl set: a running job changes its strategy, on all nodes.
# Arguments: the cases to run, of job (all).
# Needs the build folder in SLEET_BUILD or BUILDDIR.
# shellcheck source=lib.sh disable=SC2034,SC2154
. "$(dirname "$0")/lib.sh" switch sleetd sleetctl average
host=127.0.0.1

trainer() { keep "t$1" env SLEET_CONTROL="$work/$1.sock" "$build/average" "$2" 2 1000000000; } # DAEMON VALUE
field() { status "$1" | sed -n "s/.*\"$2\":\"\{0,1\}\([^\",]*\).*/\1/p"; } # DAEMON KEY
is() { [ "$(field "$1" "$2")" = "$3" ]; }                                   # DAEMON KEY VALUE
past() { at_least "$(field "$1" job_round)" "$2"; }                         # DAEMON ROUND
change() { "$ctl" -s "$work/$1.sock" set "${@:2}" >"$work/set.out" 2>&1; } # DAEMON WORDS...
refused() { # EXIT-CODE PATTERN WORDS...
    change a "${@:3}"
    [ $? -eq "$1" ] && said set.out "$2"
}
# carried_out DAEMON STRATEGY VERSION: all nodes average by it, and their rounds go on.
carried_out() {
    local from node
    from=$(sed -n 's/.* from round \([0-9]*\) on.*/\1/p' "$work/set.out")
    for node in a b; do
        ok "$node averages by $1 from round $from on" until_true 20 is $node strategy "$1"
        ok "$node holds version $2" is $node strategy_version "$2"
        ok "$node goes on" until_true 20 past $node $((from + 5))
    done
}

job_case() {
    ok "two daemons that lose 5 %" pair --emulate.loss 0.05 -- --emulate.loss 0.05
    trainer a 1
    trainer b 3
    ok "their trainers average by rps" until_true 20 past a 10
    ok "which is no switch" eval 'is a strategy rps && is a strategy_version 0'
    ok "a strategy that nobody knows is refused" refused 1 'unknown strategy' strategy=two-peer
    ok "and a set that is not there" refused 1 'no trainer of this node' other strategy=ring
    ok "and words that are none" refused 2 '^usage: ' strategy
    ok "a switch, at a node that has told nothing yet" change b strategy=one-peer
    carried_out one-peer 1
    ok "one of the set by its name, elsewhere" change a example strategy=ring
    carried_out ring 2
    kill -KILL "${pid[b]}" "${pid[tb]}"
    wait "${pid[b]}" "${pid[tb]}" 2>/dev/null
    ok "one daemon in a new life" boot b --id 2 --listen "$host:$port" \
        --peers "$(field a listen)" --emulate.loss 0.05
    trainer b 7
    ok "hears of it" until_true 20 is b strategy ring
    ok "and averages" until_true 20 is b joining false
    ok "nobody's log names a fault" eval '! said a.err switch-refused && ! said b.err switch-refused'
    stop ta tb a b
}

run_cases "${@:-job}"
