#!/bin/bash
# clients.sh - local clients that misbehave, die or lose their daemon; nothing of theirs stays.
# Arguments: the cases to run, of api garbage flood deaf each half mid held memory order (all).
# Needs the build folder in SLEET_BUILD or BUILDDIR.
# shellcheck source=lib.sh disable=SC2034,SC2154
. "$(dirname "$0")/lib.sh" clients sleetd sleetctl abuse mismatch
host=127.0.0.1

client() { # NAME DAEMON ARGUMENTS...: abuse, in the background
    local name=$1 socket=$work/$2.sock
    shift 2
    keep "$name" env SLEET_CONTROL="$socket" "$build/abuse" "$@"
}
trainer() { # NAME DAEMON: a trainer that stays
    keep "$1" env SLEET_CONTROL="$work/$2.sock" "$build/mismatch" register 1 w:100
    until_true 10 said "$1.out" '^start: '
}
descriptors() { find "/proc/${pid[$1]}/fd" -mindepth 1 | wc -l; }
has_descriptors() { [ "$(descriptors "$1")" -eq "$2" ]; }
field() { status "$1" | sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p"; } # NAME KEY
shared_is() { [ "$(field "$1" shared_bytes)" = "$2" ]; }
ticks() { awk '{ print $14 + $15 }' "/proc/${pid[$1]}/stat"; }
rss_kib() { awk '/^VmRSS/ { print $2 }' "/proc/${pid[$1]}/status"; }

api_case() {
    boot a --id 1 --listen $host:0
    client c a api
    ok "api: wrong calls end" ended c 30
    ok "api: each with its error ($(cat "$work/c.out"))" [ "$code" = 0 ]
    ok "api: the daemon is there" alive a 1
    stop a
}

garbage_case() {
    local before
    boot a --id 1 --listen $host:0
    alive a 1
    before=$(descriptors a)
    client c a garbage 300
    ok "garbage: 300 connections of it" ended c 60
    ok "garbage: were taken ($(cat "$work/c.out"))" [ "$code" = 0 ]
    ok "garbage: the daemon answers" until_true 10 alive a 1
    ok "garbage: no descriptor stays" until_true 10 has_descriptors a "$before"
    ok "garbage: no memory stays shared" shared_is a 0
    stop a
}

flood_case() {
    local spent began reports
    boot a --id 1 --listen $host:0
    began=$(now_ms) spent=$(ticks a)
    client c a flood 3000
    ok "flood: three seconds of questions end" ended c 20
    spent=$((($(ticks a) - spent) * 1000 / $(getconf CLK_TCK)))
    reports=$(sed -n 's/^flood: \([0-9]*\) reports, 0 refused/\1/p' "$work/c.out")
    ok "flood: were answered, slowly ($(cat "$work/c.out"))" at_least "$reports" 10
    ok "flood: and took $spent ms of processor in $(($(now_ms) - began)) ms (bar a third)" at_most "$spent" 1000
    ok "flood: it is asked again at once" until_true 5 alive a 1
    stop a
}

deaf_case() {
    boot a --id 1 --listen $host:0
    client c a deaf
    ok "deaf: who does not read is cut off" ended c 30
    ok "deaf: which the daemon says" said a.err 'event=client-does-not-read .*pid='
    ok "deaf: having kept little for it ($(rss_kib a) KiB in all)" at_most "$(rss_kib a)" 40000
    stop a
}

each_case() {
    boot a --id 1 --listen $host:0
    keep h env SLEET_CONTROL="$work/a.sock" "$build/mismatch" hold 100
    ok "each: one process asks for 100 connections" until_true 10 said h.out '^holding 100'
    ok "each: another is served all the same" until_true 5 alive a 1
    ok "each: it has 16 of them" until_true 5 eval '[ "$(ss -xp 2>/dev/null | grep -c "a\.sock.*pid=${pid[a]}," || true)" -le 16 ]'
    trainer t a
    ok "each: a trainer too" said t.out '^start: 0'
    stop t h a
}

half_case() {
    local before
    boot a --id 1 --listen $host:0
    alive a 1
    before=$(descriptors a)
    client c a half
    ok "half: clients that stop half way" ended c 10
    ok "half: nothing of them stays open" until_true 10 has_descriptors a "$before"
    ok "half: nor shared" until_true 5 shared_is a 0
    stop a
}

mid_case() {
    ok "mid: two daemons" pair --rate_mbit 1 -- --rate_mbit 1
    client c1 a mid 4000000
    client c2 b mid 4000000
    ok "mid: their trainers are in a round" until_true 15 eval 'said c1.out "^mid: start 0" && said c2.out "^mid: start 0"'
    kill -KILL "${pid[c1]}"
    wait "${pid[c1]}" 2>/dev/null
    ok "mid: one is killed: its memory is freed" until_true 10 shared_is a 0
    ok "mid: its daemon goes on" alive a 2
    ok "mid: another may take the set" eval 'client c3 a mid 4000000; until_true 15 said c3.out "^mid: start 0"'
    stop c2 c3 a b
}

held_case() {
    ok "held: two daemons" pair --rate_mbit 4 -- --rate_mbit 4
    client c1 a rounds 400000
    client c2 b held 400000
    ok "held: a round ends by its deadline" ended c2 60
    ok "held: its result is not written afterwards ($(cat "$work/c2.out"))" [ "$code" = 0 ]
    ok "held: though more was to come" said c2.out '^held: .*coverage 0\.'
    stop c1 a b
}

memory_case() {
    local all
    all=$(awk '/^(MemTotal|SwapTotal)/ { n += $2 } END { print n }' /proc/meminfo)
    boot a --id 1 --listen $host:0
    client c a mid $((all * 1024 + 4096))
    ok "memory: a set larger than the machine ends" ended c 20
    ok "memory: in a refusal" said c.out '^register: -2 .*bytes of shared memory'
    ok "memory: which holds nothing" eval 'shared_is a 0 && alive a 1'
    stop a
}

order_case() {
    boot a --id 1 --listen $host:0
    trainer t a
    kill -KILL "${pid[a]}"
    wait "${pid[a]}" 2>/dev/null
    client c a api
    ok "order: without a daemon a client says so at once" eval 'ended c 10 && [ "$code" = 1 ]'
    ok "order: and the trainer of the dead one is its own" eval '! gone "${pid[t]}"'
    ok "order: a new daemon starts on the same socket" boot a --id 1 --listen $host:0
    ok "order: a new trainer is served" trainer t2 a
    kill -KILL "${pid[t2]}"
    wait "${pid[t2]}" 2>/dev/null
    ok "order: trainer first: the set is free again" until_true 5 shared_is a 0
    trainer t2 a
    kill -KILL "${pid[t2]}" "${pid[a]}"
    wait "${pid[t2]}" "${pid[a]}" 2>/dev/null
    ok "order: both at once: the next daemon starts" boot a --id 1 --listen $host:0
    stop t a
}

[ $# -gt 0 ] || set -- api garbage flood deaf each half mid held memory order
run_cases "$@"
