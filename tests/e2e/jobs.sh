#!/bin/bash
# jobs.sh - two jobs on one port and one subnet, whose nodes list each other's addresses: each
# averages among its own, whatever arrives from the other.
# Arguments: the cases to run, of names keys (all).
# Needs the build folder in SLEET_BUILD or BUILDDIR, and dataset-fashion-mnist.
# shellcheck source=lib.sh disable=SC2034,SC2154
. "$(dirname "$0")/lib.sh" jobs sleetd sleetctl sleet-train
data=${SLEET_DATA:-/usr/share/datasets/fashion-mnist}
[ -d "$data" ] || { echo "jobs: no data in $data (package dataset-fashion-mnist)"; exit 77; }
subnet=127.77.0
# Nodes 1 and 2 are one job's, 3 and 4 the other's.
declare -A job=([1]=red [2]=red [3]=blue [4]=blue)

counter() { status "$1" | sed -n "s/.*\"datagrams\":{[^}]*\"$2\":\([0-9]*\).*/\1/p"; } # NAME FIELD
figure() { # NODE NAME: in the trainer's last line
    sed -n "s/.*\"done\".*\"$2\":\([0-9.]*\).*/\1/p" "$work/train$1.out"
}
key_file() { # PATH KEYWORD
    (umask 077 && printf '%s %s\n' "$2" "$(od -An -vtx1 -N32 /dev/urandom | tr -d ' \n')" >"$1")
}

# four OPTIONS...: all four daemons on one port of their own addresses; NODE and JOB in the
# options stand for the node's number and its job.
four() {
    local i options list
    boot probe --id 1 --listen $subnet.1:0 || return 1
    stop probe
    list=$subnet.1:$port,$subnet.2:$port,$subnet.3:$port,$subnet.4:$port
    for i in 1 2 3 4; do
        options=("${@//NODE/$i}")
        options=("${options[@]//JOB/${job[$i]}}")
        boot "$i" --listen $subnet.$i:"$port" --peers "$list" "${options[@]}" || return 1
    done
}

# no_cross_talk WHAT: two nodes in each job, trainers with models of different size that are
# done as if the other job were not there.
no_cross_talk() {
    local what=$1 i hidden
    for i in 1 2 3 4; do
        ok "$what: node $i sees its one mate" until_true 10 alive "$i" 2
    done
    for i in 1 2 3 4; do
        [ "${job[$i]}" = red ] && hidden=16 || hidden=24
        keep train$i "$build/sleet-train" --control "$work/$i.sock" --data "$data" --json \
            --shard $(((i - 1) % 2))/2 --min-nodes 2 --limit 1280 --epochs 2 --hidden $hidden
    done
    for i in 1 2 3 4; do
        ok "$what: the trainer of node $i ends" ended train$i 60
        ok "$what: with exit code 0 (was $code)" [ "$code" = 0 ]
        ok "$what: in rounds of two nodes" said train$i.out '"event":"step".*"group":2'
        ok "$what: and never of more" eval "! said train$i.out '\"group\":[3-9]'"
        ok "$what: with a coverage of $(figure $i coverage)" at_least "$(figure $i coverage)" 0.95
        ok "$what: node $i still sees one mate" alive "$i" 2
    done
    ok "$what: both jobs ended with models of their own" \
        [ "$(figure 1 averaged_accuracy)" = "$(figure 2 averaged_accuracy)" -a \
        "$(figure 3 averaged_accuracy)" = "$(figure 4 averaged_accuracy)" ]
    stop 1 2 3 4
}
kept_out() { [ $(($(counter "$1" foreign) + $(counter "$1" corrupt))) -ge 1 ]; }

names_case() {
    local i
    ok "names: four daemons on one port" four --id NODE --name JOB --security none
    for i in 1 2 3 4; do
        ok "names: node $i keeps out datagrams of the other job" until_true 10 kept_out $i
    done
    no_cross_talk "names"
}

# The same name, and what tells the jobs apart is the key.
keys_case() {
    local i
    for i in 1 2 3 4; do key_file "$work/node$i.key" sleet-node-key; done
    key_file "$work/red.key" sleet-job-key
    key_file "$work/blue.key" sleet-job-key
    ok "keys: four daemons on one port" \
        four --security sealed --node.key "$work/nodeNODE.key" --job.key "$work/JOB.key"
    for i in 1 2 3 4; do
        ok "keys: node $i keeps out datagrams of the other job" until_true 10 kept_out $i
    done
    no_cross_talk "keys"
}

[ $# -gt 0 ] || set -- names keys
run_cases "$@"
