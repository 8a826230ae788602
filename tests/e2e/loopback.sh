#!/bin/bash
# loopback.sh - real daemons and trainers on loopback: no loss, loss, a frozen node, a
# killed daemon, also in the middle of a round, a killed trainer, an interrupted run.
# Arguments: the cases to run, of clean freeze daemon round trainer interrupt (all).
# Needs the build folder in SLEET_BUILD or BUILDDIR, and dataset-fashion-mnist.
# shellcheck source=lib.sh disable=SC2034,SC2154
. "$(dirname "$0")/lib.sh" loopback sleetd sleetctl sleet-train
unset SLEET_JOB_SECURITY # sealed, as users have it
data=${SLEET_DATA:-/usr/share/datasets/fashion-mnist}
[ -d "$data" ] || { echo "loopback: no data in $data (package dataset-fashion-mnist)"; exit 77; }
tail_lines=30

all_gone() { # four pids
    local pid
    [ $# -eq 4 ] || return 1
    for pid in "$@"; do gone "$pid" || return 1; done
}
figure() { # NODE LINE-TYPE NAME: the number in the node's last such line
    sed -n "s/^\[$1\] .*\"$2\".*\"$3\":\([-0-9.e+]*\).*/\1/p" "$work/run.out" | tail -n 1
}
daemon_pid() { # NODE
    "$ctl" -s "$work/run/node$1.sock" --json status 2>/dev/null | sed -n 's/.*"pid":\([0-9]*\),.*"job":.*/\1/p'
}

# start OPTIONS... -- TRAINER-OPTIONS...: a run of 4 in the background, its pid in ${pid[run]}.
start() {
    local options=()
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    rm -rf "$work/run"
    keep run "$ctl" --json run -n 4 --seed 7 --keep "$work/run" "${options[@]}" -- \
        sleet-train --json --data "$data" --shard '{i}/{n}' --min-nodes 4 "$@"
}
pids_of_daemons() {
    local i
    for i in 0 1 2 3; do daemon_pid $i; done
}
answers() { "$ctl" -s "$work/run/node$1.sock" status 2>&1 >/dev/null | tee -a "$work/run.out" >&2; return "${PIPESTATUS[0]}"; }

# ---- nothing lost ----------------------------------------------------------------

clean_case() {
    local i slow
    start -- --limit 8000 --epochs 1
    ok "clean: the run of 4 ends by itself" ended run 120
    ok "clean: exit code 0 (was $code)" [ "$code" = 0 ]
    for i in 0 1 2 3; do
        slow=$(sed -n "s/^\[$i\] .*\"event\":\"step\".*\"wait_s\":\([0-9.]*\).*/\1/p" "$work/run.out" | sort -g |
            awk '{ w[NR] = $1 } END { if (NR) print w[int((NR + 1) / 2)] }')
        ok "clean: median wait of a step on node $i is $slow s (bar 1 s, deadline 2 s)" at_most "$slow" 1
    done
    ok "clean: all 4 averaged: node 0 sent $(figure 0 daemon datagrams_sent) datagrams" \
        at_least "$(figure 0 daemon datagrams_sent)" 1000
}

# ---- loss and a frozen node ---------------------------------------------------

freeze_case() {
    local i longest=0 w
    start --loss 0.1 --freeze '3:/"event":"epoch"/:2' -- --limit 8000 --epochs 3
    ok "frozen: the run of 4 ends by itself" ended run 180
    ok "frozen: exit code 0 (was $code)" [ "$code" = 0 ]
    ok "frozen: node 3 was frozen and thawed" said run.err "node 3 is thawed"
    for i in 0 1 2 3; do
        ok "frozen: node $i is done, test accuracy $(figure $i "done" test_accuracy)" \
            at_least "$(figure $i "done" test_accuracy)" 0.5
    done
    for i in 0 1 2; do
        w=$(sed -n "s/^\[$i\] .*\"event\":\"step\".*\"wait_s\":\([0-9.]*\).*/\1/p" "$work/run.out" | sort -g | tail -n 1)
        longest=$(printf '%s\n%s\n' "$longest" "${w:-999}" | sort -g | tail -n 1)
    done
    ok "frozen: longest wait of a step on nodes 0 to 2 is $longest s (deadline 2 s, bar 4 s)" \
        at_most "$longest" 4
    ok "frozen: datagrams were dropped (emulated): $(figure 0 daemon dropped_emulated)" \
        at_least "$(figure 0 daemon dropped_emulated)" 1
}

# ---- a killed daemon ------------------------------------------------------------

daemon_case() {
    local pids victim began
    start --loss 0.1 -- --limit 16000 --epochs 4
    ok "killed daemon: training is under way" until_true 60 said run.out '^\[2\] .*"event":"step"'
    ok "killed daemon: the daemon of node 0 answers sleetctl" answers 0
    pids=$(pids_of_daemons)
    victim=$(daemon_pid 2)
    began=$(now_ms)
    kill -KILL "$victim"
    ok "killed daemon: its trainer ends" until_true 10 said run.err "the trainer of node 2 ended with"
    began=$(($(now_ms) - began))
    ok "killed daemon: within $began ms (bar 2500)" at_most "$began" 2500
    ok "killed daemon: with a sentence" said run.out '^\[2\] sleet-train: .'
    ok "killed daemon: the others end by themselves" ended run 180
    ok "killed daemon: the exit code tells of it (was $code)" [ "$code" = 1 ]
    ok "killed daemon: node 0 is done" said run.out '^\[0\] .*"event":"done"'
    # shellcheck disable=SC2086 # a list of numbers
    ok "killed daemon: no daemon is left" all_gone $pids
}

# ---- a daemon killed in the middle of a round -------------------------------------------

explained() { # NODE ROUND PATTERN
    "$ctl" -s "$work/run/node$1.sock" --json explain "$2" 2>/dev/null | grep -qE -- "$3"
}
explained_without() { # NODE ROUND ID: elements of others but not of this one; own values alone where it was the owner
    "$ctl" -s "$work/run/node$1.sock" --json explain "$2" 2>/dev/null |
        grep -oE '"contributors":\[("[0-9]+",?){1,3}\]' | grep -qvF -- "$3"
}
step_of() { # NODE ROUND: the line of its step that averaged in this round
    sed -n "s/^\[$1\] \(.*\"event\":\"step\".*\"round\":$2,.*\)/\1/p" "$work/run.out"
}
stepped() { [ -n "$(step_of "$1" "$2")" ]; }
value() { sed -n "s/.*\"$1\":\([-0-9.]*\).*/\1/p"; }

id_of() { # NODE: in quotes; those of keys, in the order of the nodes
    "$ctl" -s "$work/run/node$1.sock" --json status 2>/dev/null | sed -n 's/.*"node_id":\("[0-9]*"\),.*"job":.*/\1/p'
}

# A round takes half a second at this rate.
round_case() {
    local victim round i first all gone
    start --rate 3 -- --limit 6400 --epochs 1 --hidden 16
    ok "killed in a round: training is under way" until_true 60 said run.out '^\[0\] .*"step":8,'
    victim=$(daemon_pid 2)
    gone=$(id_of 2)
    all=$(id_of 0),$(id_of 1),$gone,$(id_of 3)
    round=$(($(sed -n 's/^\[0\] .*"round":\([0-9]*\),.*/\1/p' "$work/run.out" | tail -n 1) + 1))
    ok "killed in a round: round $round has contributions of all" \
        until_true 10 explained 0 "$round" "\"contributors\":\\[$all\\]"
    kill -KILL "$victim"
    for i in 0 1 3; do
        ok "killed in a round: node $i returns from round $round" until_true 5 stepped $i "$round"
        ok "killed in a round: with a part of the result, coverage $(step_of $i "$round" | value coverage)" \
            at_most "$(step_of $i "$round" | value coverage)" 0.9999
        ok "killed in a round: its explanation has elements without node 2" \
            explained_without $i "$round" "$gone"
    done
    for i in 0 1 3; do
        ok "killed in a round: node $i goes on without it" until_true 10 said run.out "^\\[$i\\] .*\"group\":3,"
        first=$(sed -n "s/^\[$i\] .*\"round\":\([0-9]*\),.*\"group\":3,.*/\1/p" "$work/run.out" | head -n 1)
        ok "killed in a round: from round ${first:-none} on" at_most "$first" $((round + 6))
    done
    ok "killed in a round: the others end by themselves" ended run 120
    for i in 0 1 3; do
        first=$(sed -n "s/^\[$i\] .*\"event\":\"step\".*\"wait_s\":\([0-9.]*\).*/\1/p" "$work/run.out" | sort -g | tail -n 1)
        ok "killed in a round: longest wait of node $i is $first s (deadline 2 s)" at_most "$first" 2.25
    done
}

# ---- a killed trainer -----------------------------------------------------------

trainer_case() {
    local victim
    start -- --limit 16000 --epochs 4
    ok "killed trainer: training is under way" until_true 60 said run.out '^\[1\] .*"event":"step"'
    victim=$("$ctl" -s "$work/run/node1.sock" --json status | sed -n 's/.*"sets":\[.*"pid":\([0-9]*\).*/\1/p')
    ok "killed trainer: status names its pid, $victim" [ "${victim:-0}" -gt 1 ]
    [ "${victim:-0}" -gt 1 ] && kill -KILL "$victim"
    ok "killed trainer: it is gone" until_true 10 said run.err "the trainer of node 1 ended with 137"
    ok "killed trainer: its daemon goes on" answers 1
    ok "killed trainer: the others end by themselves" ended run 180
    ok "killed trainer: the exit code tells of it (was $code)" [ "$code" = 137 ]
    ok "killed trainer: node 0 is done" said run.out '^\[0\] .*"event":"done"'
}

# ---- an interrupted run -------------------------------------------------------------

interrupt_case() {
    local pids
    start -- --limit 16000 --epochs 50
    ok "interrupt: training is under way" until_true 60 said run.out '^\[3\] .*"event":"step"'
    pids=$(pids_of_daemons)
    kill -INT "${pid[run]}"
    ok "interrupt: the run ends" ended run 10
    ok "interrupt: exit code 130 (was $code)" [ "$code" = 130 ]
    # shellcheck disable=SC2086 # a list of numbers
    ok "interrupt: no daemon is left" all_gone $pids
}

[ $# -gt 0 ] || set -- clean freeze daemon round trainer interrupt
run_cases "$@"
