#!/bin/bash
# state.sh - published state with real daemons and trainers: the calls and their limits; all but the
# stalest node die; and under 10 % emulated loss a node
# joins a training and is in step within 30 s, one is killed and comes back where the others are
# and where it was in its own data, all the others' calls keep their deadlines; batches and rate follow who is there.
# Arguments: the cases to run, of calls stalest join restart resize (all); joined churned (long, with
# accuracies).
# Needs the build folder in SLEET_BUILD or BUILDDIR, and dataset-fashion-mnist.
# shellcheck source=lib.sh disable=SC2034,SC2154
. "$(dirname "$0")/lib.sh" state sleetd sleetctl sleet-train share
data=${SLEET_DATA:-/usr/share/datasets/fashion-mnist}
[ -d "$data" ] || { echo "state: no data in $data (package dataset-fashion-mnist)"; exit 77; }
export OPENBLAS_NUM_THREADS=1
host=127.0.0.1 deadline=2 loss=0.1 rate=100
port_of=()

# daemon NODE: start it, with the others as its peers.
daemon() {
    local peers
    peers=$(printf "$host:%s," "${port_of[@]}")
    boot "d$1" --id "$1" --listen "$host:${port_of[$1]}" --peers "${peers%,}" --emulate.loss $loss \
        --job.rate_mbit $rate
}
# daemons N: nodes 1 .. N; ports that were free, all bound at once.
daemons() {
    local i names=()
    port_of=()
    for i in $(seq "$1"); do
        boot "d$i" --id "$i" --listen "$host:0" || return 1
        port_of[i]=$port names+=("d$i")
    done
    stop "${names[@]}"
    for i in $(seq "$1"); do daemon "$i" || return 1; done
}
# node NODE OPTIONS...: its trainer, on label-sorted shards, 101,770 parameters.
node() {
    local i=$1
    shift
    keep "t$i" "$build/sleet-train" --json --data "$data" --control "$work/d$i.sock" --shards label \
        --shard "$((i - 1))/$nodes" --hidden 128 --deadline $deadline --min-nodes 4 "$@"
}
kill_node() { # NODE: trainer and daemon at once
    local who=(${pid[t$1]:-} "${pid[d$1]}")
    kill -KILL "${who[@]}" 2>/dev/null
    wait "${who[@]}" 2>/dev/null
}
figure() { sed -n "s/.*\"$2\":\([-0-9.e+]*\).*/\1/p" "$work/t$1.out" | tail -n 1; } # NODE FIELD: the last one
step_at_least() { at_least "$(figure "$1" step)" "$2"; }
# in_step NODE OTHER: its newest round is the other's, or one beside it, and it is counted there.
in_step() {
    local a b
    a=$(figure "$1" round) b=$(figure "$2" round)
    [ -n "$a" ] && [ "$(figure "$1" step)" -gt 0 ] && [ $((a - b)) -le 1 ] && [ $((b - a)) -le 1 ]
}
taken_over() { sed -n 's/.*took over step \([0-9]*\) of.*/\1/p' "$work/t$1.err"; }
waits_ok() { # NODE: all waits so far, within the deadline
    at_most "$(sed -n 's/.*"wait_s":\([0-9.]*\).*/\1/p' "$work/t$1.out" | sort -n | tail -n 1)" "$deadline.25"
}

# ---- the calls ---------------------------------------------------------------------------

share() { "$build/share" "$work/d$1.sock" "${@:2}" >"$work/share.out" 2>"$work/share.err"; } # NODE WORDS
answer() { said share.out "^$1"; }
took_at_most() { at_most "$(sed -n 's/.* took_ms=\([0-9]*\):.*/\1/p' "$work/share.out")" "$1"; }
told() { # NODE OF VERSION: it knows of that version there
    "$ctl" -s "$work/d$1.sock" --json state | grep -q "\"node_id\":\"$2\",\"version\":$3,\"blob_version\":$3,"
}

calls_case() {
    local loss=0 rate=8
    ok "calls: three daemons" daemons 3
    ok "calls: they meet" until_true 10 alive d3 3
    share 3 refused
    ok "calls: wrong arguments are refused" answer 'error=0 '
    share 3 fetch 0 20
    ok "calls: nothing is published: said at once" eval "answer 'error=-18 .* seed=-2 ' && took_at_most 4000"
    share 1 publish 5 15 one
    ok "calls: published" answer 'error=0 '
    ok "calls: the others are told" until_true 5 told 3 1 5
    share 3 fetch 5 20
    ok "calls: no newer one" eval "answer 'error=-18 ' && took_at_most 4000"
    share 3 fetch 0 0.5
    ok "calls: too little time: said by then" eval "answer 'error=-13 version=5 .* seed=-2 ' && took_at_most 760"
    keep slow "$build/share" "$work/d3.sock" fetch 0 60
    ok "calls: a fetch is under way" until_true 10 eval \
        '"$ctl" -s "$work/d3.sock" --json state | grep -q "\"fetch_coverage\":0.[0-9]*[1-9]"'
    share 1 publish 6 16 two
    ok "calls: meanwhile one more is published" answer 'error=0 '
    share 1 publish 7 17 three
    ok "calls: a third is refused, not waited for" eval "answer 'error=-13 .*being fetched' && took_at_most 1000"
    ok "calls: the fetch ends" ended slow 60
    ok "calls: with the version that it began" said slow.out 'error=0 version=5 newest=6 donors=1 seed=15 '
    ok "calls: then there is room again" until_true 5 eval "share 1 publish 7 17 three; answer 'error=0 '"
    ok "calls: the others are told, and hold its blob" until_true 5 told 3 1 7
    kill_node 1
    share 3 blob 1 5
    ok "calls: a dead node's blob is read" answer 'error=0 version=7 .* text=three '
    share 3 blob 9 5
    ok "calls: nobody's is not" eval "answer 'error=-18 ' && took_at_most 5250"
    kill -STOP "${pid[d2]}"
    share 2 fetch 0 0.5 &
    ok "calls: a frozen daemon holds no caller" eval 'until_true 12 gone $!'
    kill -CONT "${pid[d2]}"
    stop d2 d3
}

# ---- in make check -----------------------------------------------------------------------

join_case() {
    local i before nodes=5 options=(--limit 20000 --epochs 20 --step-time 0.05)
    ok "join: five daemons" daemons 5
    for i in 1 2 3 4; do node $i "${options[@]}"; done
    ok "join: four train" until_true 60 step_at_least 1 45
    before=$(figure 1 step)
    local at=$SECONDS
    node 5 "${options[@]}"
    ok "join: the fifth is in step within 30 s" until_true 30 in_step 5 1
    echo "join: took $((SECONDS - at)) s, others at step $before: $(grep -h took "$work/t5.err")"
    ok "join: from a state of the job, not older than 40 steps" at_least "$(taken_over 5)" $((before - 40))
    ok "join: the daemons tell who publishes what" eval \
        '"$ctl" -s "$work/d5.sock" state | grep -q "version [1-9][0-9]* published, 814272 bytes"'
    ok "join: the others go on" until_true 30 step_at_least 1 $((before + 30))
    for i in 1 2 3 4; do ok "join: node $i's calls kept their deadline" waits_ok $i; done
    stop t1 t2 t3 t4 t5 d1 d2 d3 d4 d5
}

restart_case() {
    local i before drawn nodes=4 options=(--limit 20000 --epochs 20 --step-time 0.05)
    ok "restart: four daemons" daemons 4
    for i in 1 2 3 4; do node $i "${options[@]}"; done
    ok "restart: four train" until_true 60 step_at_least 2 45
    kill_node 3
    before=$(figure 1 step)
    ok "restart: three go on" until_true 30 step_at_least 1 $((before + 15))
    ok "restart: the daemon is back" daemon 3
    node 3 "${options[@]}"
    ok "restart: in step within 30 s" until_true 30 in_step 3 1
    ok "restart: at the job's step, though it keeps no file" at_least "$(taken_over 3)" 40
    ok "restart: and its place in its data was kept by the others" until_true 5 said t3.err \
        'goes on behind [1-9][0-9]* of its samples'
    for i in 1 2 4; do ok "restart: node $i's calls kept their deadline" waits_ok $i; done
    stop t1 t2 t3 t4 d1 d2 d3 d4
}

# The newest state dies with its holders: what is left is taken, and that it is old is said.
stalest_case() {
    local loss=0 nodes=3
    ok "stalest: three daemons" daemons 3
    ok "stalest: they meet" until_true 10 alive d3 3
    share 3 refused # the set is known there now
    share 1 publish 30 1 old
    share 2 publish 50 2 new
    ok "stalest: all are told" until_true 5 eval 'told 3 1 30 && told 3 2 50'
    kill_node 2
    ok "stalest: the newest is gone" until_true 10 alive d3 2
    share 3 fetch 0 20
    ok "stalest: the older one is taken" answer 'error=0 version=30 newest=50 donors=1 seed=1 '
    ok "stalest: and the log warns" said d3.err 'state-is-old .*version=30 newest_heard_of=50'
    stop d1 d3
}

# batches NODE NODES GLOBAL RATE: so it was told last.
batches() {
    sed -n '/"event":"batches"/p' "$work/t$1.out" | tail -n 1 |
        grep -q "\"nodes\":$2,.*\"global_batch\":$3,\"batch_rate\":$4}"
}

# One of three leaves, and comes again: what becomes of the samples of a step of all, and of the rate.
resize_case() {
    local i how want loss=0 nodes=3 options=(--shards iid --hidden 8 --limit 6000 --steps 100000 --step-time 0.01 --min-nodes 3
        --schedule constant --batch-control --global-batch 96 --batch-every 10)
    for how in "constant-batch 96 1 0.1" "linear-lr 64 0.666667 0.0666667" "keep 64 1 0.1"; do
        read -ra want <<<"$how"
        how="resize: ${want[0]}"
        ok "$how: three daemons" daemons 3
        for i in 1 2 3; do node $i "${options[@]}" --on-resize "${want[0]}"; done
        ok "$how: three nodes share 96 samples" until_true 30 eval 'batches 1 3 96 1 && batches 2 3 96 1'
        "$ctl" -s "$work/d3.sock" leave >/dev/null
        stop t3 d3
        ok "$how: when one leaves, two share ${want[1]}, at a rate times ${want[2]}" until_true 30 eval \
            'batches 1 2 ${want[1]} ${want[2]} && batches 2 2 ${want[1]} ${want[2]}'
        ok "$how: the rate is ${want[3]}" until_true 5 eval 'tail -n 2 "$work/t1.out" | grep -q "\"lr\":${want[3]},"'
        if [ "${want[0]}" = linear-lr ]; then
            ok "$how: the third is back" daemon 3
            node 3 "${options[@]}" --on-resize linear-lr
            ok "$how: and all three are where they were" until_true 30 eval 'batches 1 3 96 1 && batches 2 3 96 1 && batches 3 3 96 1'
            stop t3 d3
        fi
        stop t1 t2 d1 d2
    done
}

# ---- in make check-long ----------------------------------------------------------------------

# In ten epochs what a kill makes the model forget of the node's classes is not all learnt again
# before the rate is gone: 0.4 to 1.2 points are lost, in twenty none.
full=(--epochs 20 --step-time 0.1)
# whole_run NAME NODES: an undisturbed run; the averaged model's accuracy in $accuracy.
whole_run() {
    local i
    nodes=$2
    daemons "$nodes"
    for i in $(seq "$nodes"); do node "$i" "${full[@]}"; done
    for i in $(seq "$nodes"); do ended "t$i" 3000; done
    accuracy=$(figure 1 averaged_accuracy)
    for i in $(seq "$nodes"); do stop "d$i"; done
}

joined_case() {
    local i nodes=5 accuracy
    whole_run joined 5
    local undisturbed=$accuracy
    daemons 5
    for i in 1 2 3 4; do node $i "${full[@]}"; done
    until_true 120 step_at_least 1 200
    node 5 "${full[@]}"
    ok "joined: in step within 30 s" until_true 30 in_step 5 1
    for i in 1 2 3 4 5; do ok "joined: node $i ends" ended t$i 3000; done
    for i in 1 2 3 4; do ok "joined: node $i's calls kept their deadline" waits_ok $i; done
    for i in 1 2 3 4 5; do
        ok "joined: node $i: $(figure $i averaged_accuracy), undisturbed $undisturbed" \
            at_least "$(figure $i averaged_accuracy)" "$(awk -v a="$undisturbed" 'BEGIN { print a - 0.01 }')"
        stop d$i
    done
}

churned_case() {
    local i nodes=4 accuracy victim kills=0 next
    whole_run churned 4
    local undisturbed=$accuracy
    RANDOM=${SLEET_TEST_SEED:-1}
    daemons 4
    for i in 1 2 3 4; do node $i "${full[@]}"; done
    next=$((SECONDS + 20))
    while ! said t1.out '"event":"done"' && ! said t2.out '"event":"done"'; do
        if [ $SECONDS -ge $next ] && ! step_at_least 1 4500; then
            victim=$((1 + RANDOM % 4))
            kill_node $victim
            kills=$((kills + 1))
            daemon $victim && node $victim "${full[@]}"
            ok "churned: kill $kills: node $victim is in step within 20 s" until_true 20 in_step $victim $((victim % 4 + 1))
            next=$((next + 20))
        fi
        until_true 1 false # look again
    done
    for i in 1 2 3 4; do ok "churned: node $i ends" ended t$i 600; done
    for i in 1 2 3 4; do
        ok "churned: node $i's calls kept their deadline" waits_ok $i
        ok "churned: node $i after $kills kills: $(figure $i averaged_accuracy), undisturbed $undisturbed" \
            at_least "$(figure $i averaged_accuracy)" "$(awk -v a="$undisturbed" 'BEGIN { print a - 0.01 }')"
        stop d$i
    done
}

[ $# -gt 0 ] || set -- calls stalest join restart resize
run_cases "$@"
