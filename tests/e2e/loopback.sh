#!/bin/bash
# loopback.sh - real daemons and trainers on loopback: no loss, loss, a frozen node, a
# killed daemon, a killed trainer, an interrupted run.  Waits poll a condition
# with a deadline; nothing sleeps for a guessed time.
# Arguments: the cases to run, of clean freeze daemon trainer interrupt (all).
# Needs the build folder in SLEET_BUILD or BUILDDIR, and dataset-fashion-mnist.
set -u
build=${SLEET_BUILD:-${BUILDDIR:?set SLEET_BUILD or BUILDDIR to the build folder}}
data=${SLEET_DATA:-/usr/share/datasets/fashion-mnist}
ctl=$build/sleetctl
for program in sleetctl sleetd sleet-train; do
    [ -x "$build/$program" ] || { echo "loopback: $build/$program is not built"; exit 77; }
done
[ -d "$data" ] || { echo "loopback: no data in $data (package dataset-fashion-mnist)"; exit 77; }

work=$(mktemp -d) || exit 1
passed=0 failed=0 run=
finish() {
    [ -n "$run" ] && kill -TERM "$run" 2>/dev/null && wait "$run" 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

ok() { # WHAT CONDITION...
    local what=$1
    shift
    if "$@"; then
        echo "ok: $what"
        passed=$((passed + 1))
    else
        echo "FAILED: $what"
        tail -n 30 "$work/out" | cut -c 1-200 | sed 's/^/    /'
        failed=$((failed + 1))
    fi
}

# until_true SECONDS COMMAND...: true as soon as COMMAND is; false at the deadline.
until_true() {
    local limit=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $limit ] || return 1
        sleep 0.05
    done
}
gone() { ! kill -0 "$1" 2>/dev/null; }
all_gone() { # four pids
    local pid
    [ $# -eq 4 ] || return 1
    for pid in "$@"; do gone "$pid" || return 1; done
}
said() { grep -q -- "$1" "$work/out"; }
at_most() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a <= b) }'; }
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a >= b) }'; }
figure() { # NODE LINE-TYPE NAME: the number in the node's last such line
    sed -n "s/^\[$1\] .*\"$2\".*\"$3\":\([-0-9.e+]*\).*/\1/p" "$work/out" | tail -n 1
}
daemon_pid() { # NODE
    "$ctl" -s "$work/run/node$1.sock" --json status 2>/dev/null | sed -n 's/.*"pid":\([0-9]*\),.*"job":.*/\1/p'
}
now() { date +%s.%N; }

# start OPTIONS... -- TRAINER-OPTIONS...: a run of 4 in the background, its pid in $run.
start() {
    local options=()
    while [ "$1" != -- ]; do options+=("$1"); shift; done
    shift
    rm -rf "$work/run"
    : >"$work/out" # here, not in the child: an earlier run's output must not be read
    "$ctl" --json run -n 4 --seed 7 --keep "$work/run" "${options[@]}" -- \
        sleet-train --json --data "$data" --shard '{i}/{n}' --min-nodes 4 "$@" \
        >"$work/out" 2>&1 &
    run=$!
}
finished() { # SECONDS: the run ended by itself; its exit code in $code
    code=none
    until_true "$1" gone "$run" || return 1
    wait "$run"
    code=$?
    run=
}
pids_of_daemons() {
    local i
    for i in 0 1 2 3; do daemon_pid $i; done
}
answers() { "$ctl" -s "$work/run/node$1.sock" status 2>&1 >/dev/null | tee -a "$work/out" >&2; return "${PIPESTATUS[0]}"; }

# ---- nothing lost ----------------------------------------------------------------

clean_case() {
    local i slow
    start -- --limit 8000 --epochs 1
    ok "clean: the run of 4 ends by itself" finished 120
    ok "clean: exit code 0 (was $code)" [ "$code" = 0 ]
    for i in 0 1 2 3; do
        slow=$(sed -n "s/^\[$i\] .*\"event\":\"step\".*\"wait_s\":\([0-9.]*\).*/\1/p" "$work/out" | sort -g |
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
    ok "frozen: the run of 4 ends by itself" finished 180
    ok "frozen: exit code 0 (was $code)" [ "$code" = 0 ]
    ok "frozen: node 3 was frozen and thawed" said "node 3 is thawed"
    for i in 0 1 2 3; do
        ok "frozen: node $i is done, test accuracy $(figure $i "done" test_accuracy)" \
            at_least "$(figure $i "done" test_accuracy)" 0.5
    done
    for i in 0 1 2; do
        w=$(sed -n "s/^\[$i\] .*\"event\":\"step\".*\"wait_s\":\([0-9.]*\).*/\1/p" "$work/out" | sort -g | tail -n 1)
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
    ok "killed daemon: training is under way" until_true 60 said '^\[2\] .*"event":"step"'
    ok "killed daemon: the daemon of node 0 answers sleetctl" answers 0
    pids=$(pids_of_daemons)
    victim=$(daemon_pid 2)
    began=$(now)
    kill -KILL "$victim"
    ok "killed daemon: its trainer ends" until_true 10 said "the trainer of node 2 ended with"
    began=$(awk -v a="$(now)" -v b="$began" 'BEGIN { printf "%.2f", a - b }')
    ok "killed daemon: within $began s (bar 2.5 s)" at_most "$began" 2.5
    ok "killed daemon: with a sentence" said '^\[2\] sleet-train: .'
    ok "killed daemon: the others end by themselves" finished 180
    ok "killed daemon: the exit code tells of it (was $code)" [ "$code" = 1 ]
    ok "killed daemon: node 0 is done" said '^\[0\] .*"event":"done"'
    # shellcheck disable=SC2086 # a list of numbers
    ok "killed daemon: no daemon is left" all_gone $pids
}

# ---- a killed trainer -----------------------------------------------------------

trainer_case() {
    local victim
    start -- --limit 16000 --epochs 4
    ok "killed trainer: training is under way" until_true 60 said '^\[1\] .*"event":"step"'
    victim=$("$ctl" -s "$work/run/node1.sock" --json status | sed -n 's/.*"sets":\[.*"pid":\([0-9]*\).*/\1/p')
    ok "killed trainer: status names its pid, $victim" [ "${victim:-0}" -gt 1 ]
    [ "${victim:-0}" -gt 1 ] && kill -KILL "$victim"
    ok "killed trainer: it is gone" until_true 10 said "the trainer of node 1 ended with 137"
    ok "killed trainer: its daemon goes on" answers 1
    ok "killed trainer: the others end by themselves" finished 180
    ok "killed trainer: the exit code tells of it (was $code)" [ "$code" = 137 ]
    ok "killed trainer: node 0 is done" said '^\[0\] .*"event":"done"'
}

# ---- an interrupted run -------------------------------------------------------------

interrupt_case() {
    local pids
    start -- --limit 16000 --epochs 50
    ok "interrupt: training is under way" until_true 60 said '^\[3\] .*"event":"step"'
    pids=$(pids_of_daemons)
    kill -INT "$run"
    ok "interrupt: the run ends" finished 10
    ok "interrupt: exit code 130 (was $code)" [ "$code" = 130 ]
    # shellcheck disable=SC2086 # a list of numbers
    ok "interrupt: no daemon is left" all_gone $pids
}

[ $# -gt 0 ] || set -- clean freeze daemon trainer interrupt
for name in "$@"; do
    "${name}_case"
done
echo "loopback: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
