#!/bin/bash
# second.sh - second.py, written from docs/protocol.md, beside real daemons and trainers.
# Arguments: the cases to run, of initiator responder plain schema join found loss three state
# orders (all).
# Needs the build folder in SLEET_BUILD or BUILDDIR; skipped without python3, libsodium, libxxhash or libzstd.
# shellcheck source=lib.sh disable=SC2034,SC2154
. "$(dirname "$0")/lib.sh" second sleetd sleetctl average
unset SLEET_JOB_SECURITY # sealed
second=(python3 -B "$(dirname "$0")/second.py")
missing=$("${second[@]}" --check 2>&1) || { echo "second: skipped: ${missing:-no python3}"; exit 77; }

mkdir -m 700 "$work/k"
"$ctl" keygen --job "$work/k/job.key" >"$work/k.job" || exit 1
field() { sed -n "s/^  $2 *\([0-9a-f]*\)\$/\1/p" "$work/k.$1"; } # NODE NAME
# keys of a daemon `a` with the lower node id, which founds what it trains, and of the other one
for i in 1 2; do "$ctl" keygen --node "$work/k/$i.key" >"$work/k.$i" || exit 1; done
lower=$( (echo "$(field 1 node_id) 1"; echo "$(field 2 node_id) 2") | sort -n | sed -n '1s/.* //p')
roles() { # LOWER HIGHER: who has which key
    cp "$work/k/$lower.key" "$work/k/$1.key" && cp "$work/k.$lower" "$work/k.$1" &&
        cp "$work/k/$((3 - lower)).key" "$work/k/$2.key" && cp "$work/k.$((3 - lower))" "$work/k.$2"
}
roles a s

daemon() { boot a --node.key "$work/k/a.key" --job.key "$work/k/job.key" --listen "127.0.0.1:${1:-0}" "${@:2}"; } # PORT OPTIONS...
who=(--job-key "$work/k/job.key" --node-key "$work/k/s.key")
# twin OPTIONS...: the second implementation in the background; its port in $twin_port.
twin() {
    keep s "${second[@]}" "${who[@]}" --seconds 60 "$@"
    until_true 10 said s.out '^second node=' || return 1
    twin_port=$(sed -n 's/^second node=.* port=\([0-9]*\) .*/\1/p' "$work/s.out")
}
sees_twin() { "$ctl" -s "$work/a.sock" --json peers 2>/dev/null | grep -q "\"node_id\":\"$(field s node_id)\".*\"alive\":true"; }
session() { until_true 10 said s.out "^session $(field a node_id) $1 $2" && until_true 10 said s.out '^ping .* rtt_us' && until_true 5 sees_twin; }

initiator_case() {
    ok "initiator: a daemon" daemon
    ok "initiator: greets a stranger (XX)" twin --peer "127.0.0.1:$port"
    ok "initiator: a session, pings both ways" session initiator XX
    stop s
    ok "initiator: again, knowing its key (IK)" twin --peer "127.0.0.1:$port" --public "$(field a public)"
    ok "initiator: a session, pings both ways" session initiator IK
    stop s
    ok "initiator: in another job" twin --peer "127.0.0.1:$port" --job other
    ok "initiator: it is refused with the reason" until_true 10 said s.out '^refused, reason 3'
    ok "initiator: on both sides" until_true 10 said a.err 'hello-refused.*job differs'
    stop s a
}

responder_case() {
    ok "responder: waits" twin
    ok "responder: a daemon that knows its address" daemon 0 --peers "127.0.0.1:$twin_port"
    ok "responder: a session (XX), pings both ways" session responder XX
    stop s
    ok "responder: restarted at the same address" twin --port "$twin_port"
    ok "responder: the daemon finds it again by its key (IK)" session responder IK
    stop s
    ok "responder: restarted, it greets as well, before it answers" twin --port "$twin_port" --cross
    ok "responder: there is a session" session '(initiator|responder)' '(IK|XX)'
    ok "responder: both sides keep the same keys" until_true 5 eval \
        'grep "^comes" "$work/s.out" | tail -n 1 | grep -q "the pair that is sent with"'
    ok "responder: nothing was taken for damaged" eval 'status a | grep -q "\"corrupt\":0,"'
    stop s a
}

schema_case() {
    ok "schema: a daemon" daemon
    SLEET_CONTROL=$work/a.sock keep t "$build/average" 1 2
    ok "schema: a set with another tensor" twin --peer "127.0.0.1:$port" --set example:matrix:10000
    ok "schema: both sides say which" eval \
        'until_true 10 said s.out "^schema differs at 0" && until_true 10 said s.out "^schema verdict 2 at 0 vector 10000 1" &&
         said a.err "schema-differs.*tensor 0: here vector of 10000, on node [0-9]* matrix of 10000"'
    stop s t a
}

# averages WHAT ROUNDS TWIN-OPTIONS...: a trainer with 1 at the daemon, with 3 at the twin.
averages() {
    SLEET_CONTROL=$work/a.sock keep t "$build/average" 1 2 "$2"
    ok "$1: a trainer of each" twin --peer "127.0.0.1:$port" --set example:vector:10000 --value 3 "${@:3}"
    ok "$1: the daemon's ends by itself" ended t 30
    ok "$1: nothing was damaged or usurped" eval 'status a | grep -q "\"corrupt\":0,.*\"usurped\":0,"'
}
mean() { # WHAT
    ok "$1: of 1 and 3 the mean came out there" said t.out ': first 2 last 2, coverage .* of 2 nodes'
    ok "$1: and here" said s.out '^round .*: first 2 last 2, coverage .* of 2 member'
    ok "$1: nothing was foreign" eval 'status a | grep -q "\"foreign\":0,"'
}

join_case() {
    ok "join: a daemon, the founder" daemon
    averages join 15 --rekey 0.5 --roam 1.2
    mean join
    ok "join: the twin took the founder's model first" said s.out '^round .*: first 1 last 1, coverage 1.000 of 1 joining'
    ok "join: exact on both sides" eval 'said t.out "first 2 last 2, coverage 1.000 of 2" && said s.out "coverage 1.000 of 2"'
    ok "join: new keys several times meanwhile" at_least "$(grep -c '^keys .* initiator' "$work/s.out")" 3
    ok "join: other addresses, which the daemon follows" until_true 5 eval \
        '"$ctl" -s "$work/a.sock" --json peers | grep -q ":$(sed -n "s/^moved to //p" "$work/s.out" | tail -n 1)\""'
    ok "join: in one session" eval '[ "$(grep -c "^session" "$work/s.out")" = 1 ] && ! said s.out "^dropped" && sees_twin'
    stop s a
}

found_case() {
    roles s a
    ok "found: a daemon with the higher id" daemon
    averages found 8
    mean found
    ok "found: the twin's model was taken" said s.out '^round .*: first 3 last 3, coverage 1.000 of [12] member'
    ok "found: exact on both sides" eval 'said t.out "first 2 last 2, coverage 1.000 of 2" && said s.out "coverage 1.000 of 2"'
    stop s a
    roles a s
}

# What a fragment's contributions lacked is lost to all alike; results are asked for until they are there.
loss_case() {
    local last
    ok "loss: a daemon that loses a fifth" daemon 0 --emulate.loss 0.2
    averages loss 20 --loss 0.2
    ok "loss: the daemon has all results, some came again" eval \
        'status a | grep -q "\"gather\":{\"expected\":[0-9]*,\"direct\":[0-9]*,\"repaired\":[1-9][0-9]*,\"late\":0,\"lost\":0,"'
    last=$(sed -n 's/^\(round [0-9]*: first .* last .*\), coverage .*/\1/p' "$work/t.out" | tail -n 1)
    ok "loss: so has the twin ($last)" said s.out "^$last,"
    stop s a
}

silent() { # MS: a has not heard the twin for so long
    at_least "$("$ctl" -s "$work/a.sock" --json peers | grep -o "\"node_id\":\"$(field s node_id)\"[^}]*" |
        sed -n 's/.*"silent_ms":\([0-9.]*\).*/\1/p')" "$1"
}
three_case() {
    local first
    "$ctl" keygen --node "$work/k/b.key" --force >"$work/k.b"
    ok "three: a daemon" daemon
    first=$port
    ok "three: another, which knows the first" boot b --node.key "$work/k/b.key" --job.key "$work/k/job.key" \
        --listen 127.0.0.1:0 --peers "127.0.0.1:$first"
    SLEET_CONTROL=$work/a.sock keep t "$build/average" 1 3 15
    SLEET_CONTROL=$work/b.sock keep u "$build/average" 5 3 15
    ok "three: the twin, which knows the first" twin --peer "127.0.0.1:$first" --set example:vector:10000 --value 3
    for i in t u; do
        ok "three: trainer $i ends by itself" ended $i 30
        ok "three: of 1, 3 and 5 the mean came out there" said $i.out 'first 3 last 3, coverage 1.000 of 3 nodes'
    done
    ok "three: the twin heard of the other from the first" said s.out "^member $(field b node_id) status 0"
    ok "three: and greeted it, or was greeted" said s.out "^session $(field b node_id) .* IK"
    ok "three: and here" said s.out 'first 3 last 3, coverage 1.000 of 3 member'
    ok "three: its table of members is the others'" until_true 15 said s.out '^the same table'
    kill -STOP "${pid[s]}"
    ok "three: frozen, it is missed" until_true 10 eval '! sees_twin'
    ok "three: for so long that it is suspected" until_true 10 silent 5000
    kill -CONT "${pid[s]}"
    ok "three: thawed, it defends itself" until_true 10 said s.out '^defended incarnation 1'
    ok "three: and is back" until_true 10 sees_twin
    stop s a b
}

trainer=(python3 -B "$(dirname "$0")/second_trainer.py")
state_case() {
    local set=(example vector 100001) digest
    ok "state: a daemon that loses a tenth" daemon 0 --emulate.loss 0.1
    keep t "${trainer[@]}" "$work/a.sock" publish "${set[@]}" 7
    ok "state: what its trainer publishes" until_true 10 said t.out '^published 7'
    digest=$(sed -n 's/^published 7 //p' "$work/t.out")
    ok "state: the twin fetches" eval \
        'twin --peer "127.0.0.1:$port" --set example:vector:100001 --loss 0.1 && until_true 20 said s.out "^state 7 $digest"'
    stop t a
    "$ctl" keygen --node "$work/k/b.key" --force >"$work/k.b"
    ok "state: another daemon, when the first is gone" boot b --node.key "$work/k/b.key" --job.key "$work/k/job.key" \
        --listen 127.0.0.1:0 --peers "127.0.0.1:$twin_port"
    ok "state: it hears of the twin" until_true 10 alive b 2
    keep u "${trainer[@]}" "$work/b.sock" fetch "${set[@]}"
    ok "state: its trainer fetches that from the twin" until_true 20 said u.out "^fetched 7 $digest error 0"
    stop s b
}

orders_case() {
    local key=$work/k/operator.key public before
    "$ctl" keygen --operator "$key" >"$work/k.o"
    public=$(field o public)
    ok "orders: a daemon with an operator" daemon 0 --operator "$public"
    ok "orders: the twin, with the same" twin --peer "127.0.0.1:$port" --operator "$public" --rekey 1
    ok "orders: a session" session initiator XX
    ok "orders: a new key for the job is taken" eval \
        '"$ctl" -s "$work/a.sock" rekey --operator "$key" | grep -q "1 of 1 other members have it" && until_true 5 said s.out "^notice taken 2"'
    before=$(grep -c '^keys' "$work/s.out")
    ok "orders: and begins handshakes" until_true 10 eval '[ "$(grep -c "^keys" "$work/s.out")" -gt "$before" ]'
    "$ctl" -s "$work/a.sock" evict "$(field s node_id)" --operator "$key" >"$work/evict.out" 2>&1
    ok "orders: evicted, the twin is told, and then put out" eval \
        'until_true 5 said s.out "^notice taken 1 [0-9]* $(field s node_id)" && until_true 5 said s.out "^closed .* reason 6"'
    stop s
    ok "orders: it comes again" twin --peer "127.0.0.1:$port"
    ok "orders: and is refused" until_true 10 said s.out '^refused, reason 6'
    stop s a
}

plain_case() {
    local who=(--id 2) first
    ok "plain: a twin waits" twin
    first=$twin_port
    stop s
    ok "plain: a daemon without security, which lists it" boot a --id 1 --security none --listen 127.0.0.1:0 --peers "127.0.0.1:$first"
    averages plain 8 --port "$first"
    mean plain
    ok "plain: exact on both sides" eval 'said t.out "first 2 last 2, coverage 1.000 of 2" && said s.out "coverage 1.000 of 2"'
    stop s
    ok "plain: it comes again with a new life" twin --port "$first"
    ok "plain: and is greeted" until_true 10 said s.out '^session 1 responder plain'
    ok "plain: and seen" until_true 5 alive a 2
    stop s a
}

[ $# -gt 0 ] || set -- initiator responder plain schema join found loss three state orders
run_cases "$@"
