#!/bin/bash
# second.sh - second.py, written from docs/protocol.md alone, beside real daemons and trainers.
# Arguments: the cases to run, of initiator responder (all).  Needs the build folder in
# SLEET_BUILD or BUILDDIR; skipped without python3, libsodium or libxxhash.
# shellcheck source=lib.sh disable=SC2034,SC2154
. "$(dirname "$0")/lib.sh" second sleetd sleetctl average
unset SLEET_JOB_SECURITY # sealed
second=(python3 "$(dirname "$0")/second.py")
missing=$("${second[@]}" --check 2>&1) || { echo "second: skipped: ${missing:-no python3}"; exit 77; }

mkdir -m 700 "$work/k"
"$ctl" keygen --node "$work/k/a.key" --job "$work/k/job.key" >"$work/k.a" || exit 1
"$ctl" keygen --node "$work/k/s.key" >"$work/k.s" || exit 1
field() { sed -n "s/^  $2 *\([0-9a-f]*\)\$/\1/p" "$work/k.$1"; } # NODE NAME

daemon() { boot a --node.key "$work/k/a.key" --job.key "$work/k/job.key" --listen "127.0.0.1:${1:-0}" "${@:2}"; } # PORT OPTIONS...
# twin OPTIONS...: the second implementation in the background; its port in $twin_port.
twin() {
    keep s "${second[@]}" --job-key "$work/k/job.key" --node-key "$work/k/s.key" --seconds 60 "$@"
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
    ok "responder: nothing was taken for damaged" eval 'status a | grep -q "\"corrupt\":0,"'
    stop s a
}

[ $# -gt 0 ] || set -- initiator responder
run_cases "$@"
