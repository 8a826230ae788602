#!/bin/bash
# crash.sh - daemons killed in the middle of rounds, again and again; a peer that takes
# everything and answers nothing; one that lies; what a daemon opens.
# Arguments: the cases to run, of kill sink liar port (all); SLEET_CRASHES kills (2).
# Needs the build folder in SLEET_BUILD or BUILDDIR.
# shellcheck source=lib.sh disable=SC2034,SC2154
. "$(dirname "$0")/lib.sh" crash sleetd sleetctl abuse
host=127.0.0.1 seed=${SLEET_TEST_SEED:-1} crashes=${SLEET_CRASHES:-2}

trainer() { # NAME DAEMON BYTES: round after round
    local name=$1 socket=$work/$2.sock
    keep "$name" env SLEET_CONTROL="$socket" "$build/abuse" rounds "$3"
}
rounds() { "$ctl" -s "$work/$1.sock" --json rounds 2>/dev/null; } # NAME: newest first
newest() { rounds "$1" | sed -n 's/.*"rounds":\[{"round":\([0-9]*\),.*/\1/p'; }
# NAME SIZE ROUND: a later round than that one was of so many.
of_size() {
    rounds "$1" | grep -o '"round":[0-9]*,"final":[a-z]*,"joined":true,"group_size":[0-9]*' |
        awk -F'[:,]' -v n="$2" -v r="$3" '$2 > r && $NF == n { found = 1 } END { exit !found }'
}
longest_ms() { status "$1" | sed -n 's/.*"longest_wait_ms":\([0-9.]*\).*/\1/p'; }
counter() { status "$1" | sed -n "s/.*\"datagrams\":{[^}]*\"$2\":\([0-9]*\).*/\1/p"; } # NAME FIELD

# ---- kill -9, in any phase of a round ---------------------------------------------------

declare -A at
up() { # NAME NUMBER
    boot "$1" --id "$2" --listen "$host:${at[$1]:-0}" --rate_mbit 20 ${peers:+--peers "$peers"} &&
        at[$1]=$port
}

kill_case() {
    local peers='' name i before delay
    for name in a b c; do up $name 1 && stop $name; done 2>/dev/null
    peers=$host:${at[a]},$host:${at[b]},$host:${at[c]}
    ok "kill: three daemons" eval 'up a 1 && up b 2 && up c 3'
    for name in a b c; do trainer "t$name" $name 300000; done
    for ((i = 1; i <= crashes; i++)); do
        before=$(newest a)
        ok "kill $i: rounds of three" until_true 30 of_size a 3 "${before:-0}"
        before=$(newest a)
        delay=$(((seed * 7919 + i * 104729) % 300)) # ms; the phase of the round
        sleep "0.$(printf %03d $delay)"
        kill -KILL "${pid[c]}"
        ended c 5
        ok "kill $i: $delay ms on, the others' rounds are of two" \
            eval "until_true 15 of_size a 2 $before && until_true 15 of_size b 2 $before"
        ok "kill $i: the log names the dead" said a.err 'event=member-(silent|suspected|dead).*node=0*x?0*3\b'
        ok "kill $i: no survivor has ended" \
            eval '! gone "${pid[a]}" && ! gone "${pid[b]}" && ! gone "${pid[ta]}" && ! gone "${pid[tb]}"'
        ok "kill $i: the trainer of the dead has, with an error" eval 'ended tc 10 && [ "$code" = 1 ]'
        ok "kill $i: it starts again" up c 3
        trainer tc c 300000
    done
    ok "kill: no call took longer than 4 s ($(longest_ms a) and $(longest_ms b) ms)" \
        eval 'at_most "$(longest_ms a)" 4000 && at_most "$(longest_ms b)" 4000'
    stop ta tb tc a b c
}

# ---- a peer that never answers -------------------------------------------------------------

sink_case() {
    local port_a
    boot a --id 1 --listen $host:0 && port_a=$port && stop a
    boot b --id 2 --listen $host:0 --peers "$host:$port_a"
    kill -STOP "${pid[b]}" # the kernel takes what is sent to it
    ok "sink: a daemon whose only peer answers nothing" \
        boot a --id 1 --listen "$host:$port_a" --peers "$host:$port"
    keep t env SLEET_CONTROL="$work/a.sock" "$build/abuse" rounds 100000
    ok "sink: its trainer goes on alone" until_true 20 eval '[ "$(newest a)" -ge 1 ] 2>/dev/null'
    ok "sink: peers shows that nothing came" \
        eval '"$ctl" -s "$work/a.sock" --json peers | grep -q "\"alive\":false.*\"received\":0"'
    ok "sink: which was asked, not flooded ($(counter a out) datagrams)" at_most "$(counter a out)" 100
    kill -CONT "${pid[b]}"
    ok "sink: when it answers they see each other" until_true 15 alive a 2
    stop t a b
}

# ---- a member that lies ------------------------------------------------------------------

# NAME NODE: peers and the log there hold something against that node only.
names_only() {
    "$ctl" -s "$work/$1.sock" peers | grep -q "^node $2 is far off" &&
        said "$1.err" "event=member-far-off .*node=$2 " &&
        ! "$ctl" -s "$work/$1.sock" peers | grep "is far off" | grep -vq "^node $2 "
}

# The newest round may be one that the other was late for.
explained() { "$ctl" -s "$work/$1.sock" explain | grep -q "^node $2 is far off in this round"; } # NAME OTHER
liar_case() {
    local peers='' name
    for name in a b c; do up $name 1 && stop $name; done 2>/dev/null
    peers=$host:${at[a]},$host:${at[b]},$host:${at[c]}
    ok "liar: three daemons" eval 'up a 1 && up b 2 && up c 3'
    for name in a b; do
        keep "t$name" env SLEET_CONTROL="$work/$name.sock" "$build/abuse" steps 100000 1
    done
    keep tc env SLEET_CONTROL="$work/c.sock" "$build/abuse" steps 100000 1000
    ok "liar: two hundred steps" eval 'until_true 60 said ta.out "^step 200 " && until_true 60 said tb.out "^step 200 "'
    ok "liar: the honest ones name it, and nobody else" eval 'names_only a 3 && names_only b 3'
    ok "liar: explain has it in a round" until_true 10 explained a 3
    ok "liar: their values, of 8 at most, are no larger than 12 ($(tail -n 1 "$work/ta.out"))" \
        at_most "$(tail -n 1 "$work/ta.out" | awk '{ print $4 }')" 12
    stop ta tb tc a b c
}

# ---- one UDP port, one socket file --------------------------------------------------------

port_case() {
    boot a --id 1 --listen $host:0
    command -v ss >/dev/null || { echo "port: skipped, no ss"; return; }
    ok "port: one UDP socket" [ "$(ss -uanpH | grep -c "pid=${pid[a]},")" = 1 ]
    ok "port: no TCP" [ "$(ss -tanpH | grep -c "pid=${pid[a]},")" = 0 ]
    stop a
}

[ $# -gt 0 ] || set -- kill sink liar port
run_cases "$@"
