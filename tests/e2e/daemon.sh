#!/bin/bash
# daemon.sh - sleetd, sleetctl and libsleet at their edges: options, ports, socket files,
# signals, refusals.
# Arguments: the cases to run, of config order listen socket signals ipv6 busy
# mismatch foreign ctl roles descriptors (all).  Needs the build folder in SLEET_BUILD or BUILDDIR.
# shellcheck source=lib.sh disable=SC2034,SC2154
. "$(dirname "$0")/lib.sh" daemon sleetd sleetctl mismatch average
mismatch=$build/mismatch

seen() { [ "$(grep -sc -- "$2" "$work/$1")" -ge "$3" ]; } # FILE PATTERN COUNT
is_number() { [[ $1 =~ ^[1-9][0-9]*$ ]]; }
counter() { status "$1" | sed -n "s/.*\"datagrams\":{[^}]*\"$2\":\([0-9]*\).*/\1/p"; } # NAME FIELD
counted() { [ "$(counter "$1" "$2")" -ge "$3" ] 2>/dev/null; }

# refused CODE PATTERN ARGUMENTS...: sleetd ends with CODE and one line that matches.
refused() {
    local want=$1 pattern=$2 code
    shift 2
    timeout 10 "$d" "$@" >"$work/r.out" 2>"$work/r.err"
    code=$?
    [ "$code" -eq "$want" ] && lines r.err 1 && said r.err "$pattern" && [ ! -s "$work/r.out" ]
}

# ---- options ---------------------------------------------------------------------

config_case() {
    local ini=$work/a.ini
    cat >"$ini" <<'INI'
; a comment
[node]
id = 18446744073709551615
listen = [::1]:7711
control = /tmp/with space.sock
bandwidth = 1.5G
role = client
site = berlin-2
[job]
name = a job = and more
peers = 10.0.0.1:7700, node-with-a-long-name.example.org:7701
  [fe80::1]:7702 other-node-with-a-long-name.example.org:7703
  third-node-with-a-long-name.example.org:7704 127.0.0.1:7705
rate_mbit = 12.5
[emulate]
loss = 0.25
seed = 99
[log]
level = debug
INI
    ok "config: a file is accepted" eval '"$d" -c "$ini" --check-config >"$work/one.ini"'
    ok "config: what it prints is accepted" eval '"$d" -c "$work/one.ini" --check-config >"$work/two.ini"'
    grep -v '^;' "$work/one.ini" >"$work/one"
    grep -v '^;' "$work/two.ini" >"$work/two"
    ok "config: the round trip is identical" cmp -s "$work/one" "$work/two"
    ok "config: no value is lost" [ "$(grep -cE '= (18446744073709551615|\[::1\]:7711|/tmp/with space.sock|a job = and more|12.5|0.25|99|debug|1\.5G|client|berlin-2)$' "$work/two")" -eq 11 ]
    ok "config: nor one of six peers" [ "$(grep -oE ':770[0-5]' "$work/two" | sort -u | wc -l)" -eq 6 ]
    printf '[node]\nid = 1\n\n[job]\nnaem = x\n' >"$ini"
    ok "config: an unknown key is named with its line" refused 2 'a\.ini:5: .*naem.*\[job\]' -c "$ini"
    printf '[node]\nid = 1\n[nodes]\nlisten = :0\n' >"$ini"
    ok "config: an unknown section is named with its line" refused 2 'a\.ini:4: .*listen.*\[nodes\]' -c "$ini"
    printf '[node]\nid = 1\n[job]\nrate_mbit = 1O0\n' >"$ini"
    ok "config: a bad number is named with key and line" refused 2 'a\.ini:4: job\.rate_mbit = "1O0": a number' -c "$ini"
    printf '[node]\nid = 1\nid = 2\n' >"$ini"
    ok "config: a key given twice is refused" refused 2 'a\.ini:3: .*id .*a\.ini:2' -c "$ini"
    printf '[node]\nid = 1\nnonsense\n' >"$ini"
    ok "config: a line that is no key is named" refused 2 'a\.ini:3: neither' -c "$ini"
    ok "config: a missing file is named" refused 2 'cannot read .*/none\.ini: No such file' -c "$work/none.ini"
    ok "config: no id is refused with the fix" refused 2 'node\.id.*--node\.id=' --listen 127.0.0.1:0
    ok "config: an id of 0 is refused" refused 2 '--id: node\.id = "0"' --id 0
    ok "config: an unknown option is named" refused 2 'unknown argument --lissten' --id 1 --lissten :0
    ok "config: an option without value is named" refused 2 '--listen needs a value' --id 1 --listen
    ok "config: a peer without port is named" refused 2 'job\.peers.*"10\.0\.0\.1" is not host:port' --id 1 --peers 10.0.0.1
    ok "config: too many peers are refused" refused 1 '--peers: job\.peers names more than 1023 other nodes' \
        --id 1 --listen 127.0.0.1:0 --control "$work/many.sock" --peers "$(printf '127.0.0.1:%d,' $(seq 2000 3023))"
    ok "config: loss above 1 is refused" refused 2 'emulate\.loss = "1.5": a number from 0 to 1' --id 1 --loss 1.5
    ok "config: a speed without a unit that there is" refused 2 'node\.bandwidth = "12X": bits a second' --id 1 --bandwidth 12X
    ok "config: a role that there is not" refused 2 'node\.role = "server": node, client or auxiliary' --id 1 --role server
    ok "config: a site of two words" refused 2 'node\.site = "a b": a word' --id 1 --site 'a b'
    ok "config: a value that would not survive the file is refused" refused 2 'job\.name' --id 1 --name ' x'
    ok "config: a host with a ; as well" refused 2 'node\.listen' --id 1 --listen 'a;b:1'
    ok "config: a full disk is an error" eval '! "$d" --id 1 --check-config >/dev/full'
}

rate_from() { # ORIGIN VALUE ENVIRONMENT/ARGUMENTS...
    local origin=$1 value=$2
    shift 2
    env "$@" --check-config >"$work/o.out" 2>"$work/o.err" &&
        grep -A1 -F "(from $origin)" "$work/o.out" | grep -qx "rate_mbit = $value"
}
order_case() {
    printf '[node]\nid = 1\n[job]\nrate_mbit = 11\n' >"$work/b.ini"
    ok "order: the default is the last resort" rate_from default 100 "$d" --id 1
    ok "order: the file wins over it" rate_from "$work/b.ini:4" 11 "$d" -c "$work/b.ini"
    ok "order: the environment wins over the file" \
        rate_from SLEET_JOB_RATE_MBIT 12 SLEET_JOB_RATE_MBIT=12 "$d" -c "$work/b.ini"
    ok "order: the command line wins over both" \
        rate_from --job.rate_mbit 13 SLEET_JOB_RATE_MBIT=12 "$d" --job.rate_mbit=13 -c "$work/b.ini"
    ok "order: a key without its section too" \
        rate_from --rate_mbit 14 SLEET_JOB_RATE_MBIT=12 "$d" -c "$work/b.ini" --rate_mbit 14
    ok "order: a bad value of the environment names the variable" \
        eval '! SLEET_EMULATE_LOSS=x "$d" --id 1 --check-config 2>"$work/o.err" && said o.err SLEET_EMULATE_LOSS'
}

# ---- ports, socket files, signals --------------------------------------------------

listen_case() {
    ok "listen: :0 prints the port it got" eval 'boot a --id 1 --listen :0 && is_number "$port"'
    ok "listen: status says the same" eval "status a | grep -q 'listen\":\"[^\"]*:$port\"'"
    ok "listen: a taken port is refused, its owner named" \
        refused 1 "cannot listen on .*:$port .*held by pid ${pid[a]} \(sleetd\)" \
        --id 2 --listen "127.0.0.1:$port" --control "$work/b.sock"
    ok "listen: the refused one left no socket file" [ ! -e "$work/b.sock" ]
    stop a
}

socket_case() {
    boot a --id 1 --listen 127.0.0.1:0
    ok "socket: only for its user" [ "$(stat -c %a "$work/a.sock")" = 600 ]
    ok "socket: a live one is refused with the pid" refused 1 "pid ${pid[a]} serves .*a\.sock" \
        --id 2 --listen 127.0.0.1:0 --control "$work/a.sock"
    ok "socket: its daemon still answers" alive a 1
    kill -KILL "${pid[a]}"
    wait "${pid[a]}" 2>/dev/null
    ok "socket: a killed daemon leaves its file" [ -S "$work/a.sock" ]
    ok "socket: the stale file is reclaimed" boot a --id 1 --listen 127.0.0.1:0
    ok "socket: and the new daemon answers on it" alive a 1
    stop a
    echo keep >"$work/a.sock"
    ok "socket: a file that is no socket is refused" refused 1 'a\.sock exists and is no socket' \
        --id 2 --listen 127.0.0.1:0 --control "$work/a.sock"
    ok "socket: and kept" grep -q keep "$work/a.sock"
    rm -f "$work/a.sock"
}

signals_case() {
    local times began took code
    for times in once twice; do
        boot a --id 1 --listen 127.0.0.1:0 --peers 127.0.0.1:9
        began=$(now_ms)
        kill -TERM "${pid[a]}"
        [ $times = once ] || kill -TERM "${pid[a]}" 2>/dev/null
        wait "${pid[a]}" 2>/dev/null
        code=$? took=$(($(now_ms) - began))
        ok "signals: SIGTERM $times ends it in $took ms (bar 1000)" [ $took -le 1000 ]
        ok "signals: SIGTERM $times: exit code 0 (was $code)" [ $code -eq 0 ]
        ok "signals: SIGTERM $times: no socket file stays" [ ! -e "$work/a.sock" ]
    done
    boot a --id 1 --listen 127.0.0.1:0
    ok "signals: shutdown is accepted" "$ctl" -s "$work/a.sock" shutdown
    ok "signals: shutdown ends it" until_true 5 gone "${pid[a]}"
    ok "signals: shutdown: no socket file stays" [ ! -e "$work/a.sock" ]
}

# ---- several nodes -------------------------------------------------------------------

ipv6_case() {
    if ! grep -q '^0\{31\}1 ' /proc/net/if_inet6 2>/dev/null; then
        echo "skipped: ipv6: this machine has no [::1]"
        return
    fi
    host='[::1]'
    ok "ipv6: two daemons start on [::1]" pair --
    ok "ipv6: the first sees the second" until_true 10 alive a 2
    ok "ipv6: the second sees the first" until_true 10 alive b 2
    ok "ipv6: peers shows the address" eval '"$ctl" -s "$work/a.sock" peers | grep -q "\[::1\]:$port "'
    stop a b
}

foreign_case() {
    local t
    host=127.0.0.1
    ok "foreign: two jobs on listed ports start" pair --name red -- --name blue
    ok "foreign: the first counts what it throws away" until_true 10 counted a foreign 2
    ok "foreign: the second as well" until_true 10 counted b foreign 2
    ok "foreign: neither sees the other" eval 'alive a 1 && alive b 1'
    trainer ta a register 1 w:100
    trainer tb b register 1 w:100
    for t in a b; do
        ok "foreign: the trainer of $t starts a round" until_true 10 said t$t.out '^start: 0 '
        ok "foreign: the round of $t ends" until_true 10 eval "status $t | grep -q '\"rounds\":1,'"
    done
    for t in a b; do
        ok "foreign: $t counts one trainer" eval "status $t | grep -q '\"trainers\":1,'"
        ok "foreign: $t expected no fragment" eval "! status $t | grep -q '\"expected\":[1-9]'"
    done
    stop ta tb a b
}

trainer() { # NAME DAEMON ARGUMENTS...
    local name=$1 socket=$work/$2.sock
    shift 2
    keep "$name" env SLEET_CONTROL="$socket" "$mismatch" "$@"
}

busy_case() {
    boot a --id 1 --listen 127.0.0.1:0
    trainer first a register 1 w:100
    ok "busy: a first contributor registers" until_true 10 said first.out '^register: 0 '
    trainer second a register 1 w:100
    ok "busy: a second one is refused with the pid of the first" \
        until_true 10 said second.out "^register: -7 .*pid ${pid[first]} "
    kill -TERM "${pid[first]}"
    ok "busy: the first one is gone from status" until_true 10 eval 'status a | grep -q "\"attached\":false"'
    trainer third a register 1 w:100
    ok "busy: then another may register" until_true 10 said third.out '^register: 0 '
    stop third a
}

mismatch_case() {
    host=127.0.0.1
    pair --
    trainer ta a register 2 same:10 odd:20 last:5
    trainer tb b register 2 same:10 odd:21 last:6
    local t
    for t in ta tb; do
        ok "mismatch: $t hears of it" until_true 15 said $t.out '^wait: -8 '
        ok "mismatch: $t names the first differing tensor" said $t.out '^wait: -8 .*: .*odd'
        ok "mismatch: $t does not name another" eval "! said $t.out '^wait: .*(same|last)'"
        ok "mismatch: $t is refused a round with it" until_true 5 said $t.out '^start: -8 .*: .*odd'
    done
    ok "mismatch: status names it" eval 'status a | grep -q "\"schema_differs\":true.*odd"'
    stop ta tb a b
}

# ---- sleetctl ------------------------------------------------------------------------

parses() { # COMMAND KEY
    "$ctl" -s "$work/a.sock" --json "$1" >"$work/j.out" 2>"$work/j.err" || return 1
    if command -v python3 >/dev/null && python3 -c '' 2>/dev/null; then
        python3 -m json.tool <"$work/j.out" >/dev/null || return 1
    fi
    grep -q "^{.*\"$2\":.*}$" "$work/j.out" && lines j.out 1
}
exits() { # CODE ARGUMENTS...: with a sentence on stderr where it is not 0
    local want=$1
    shift
    timeout 10 "$ctl" "$@" >"$work/c.out" 2>"$work/c.err"
    [ $? -eq "$want" ] && { [ "$want" -eq 0 ] || grep -q '^sleetctl: \|^usage: ' "$work/c.err"; }
}

ctl_case() {
    local command
    boot a --id 1 --listen 127.0.0.1:0
    trainer t a register 1 w:100
    until_true 10 said t.out '^start: 0'
    for command in status:node_id peers:peers rounds:sets explain:sets config:keys; do
        ok "sleetctl: ${command%:*} exits 0" exits 0 -s "$work/a.sock" "${command%:*}"
        ok "sleetctl: --json ${command%:*} is one object" parses "${command%:*}" "${command#*:}"
    done
    ok "sleetctl: explain of no number exits 2" exits 2 -s "$work/a.sock" explain last
    ok "sleetctl: explain of a round that never was says so" eval '"$ctl" -s "$work/a.sock" explain 999 | grep -q "no such round"'
    ok "sleetctl: config prints what is in force" eval '"$ctl" -s "$work/a.sock" config >"$work/a.ini"'
    ok "sleetctl: config: with the source of each" grep -qF '(from --listen)' "$work/a.ini"
    "$d" --id 1 --listen 127.0.0.1:0 --control "$work/a.sock" --check-config >"$work/b.ini"
    ok "sleetctl: config: in the form of --check-config" cmp "$work/a.ini" "$work/b.ini"
    ok "sleetctl: config: and sleetd takes it" eval '"$d" -c "$work/a.ini" --check-config | grep -qx "id = 1"'
    ok "sleetctl: status is the default" exits 0 -s "$work/a.sock"
    ok "sleetctl: \$SLEET_CONTROL names the socket" eval 'SLEET_CONTROL=$work/a.sock exits 0 status'
    ok "sleetctl: no daemon exits 1" exits 1 -s "$work/none.sock" status
    ok "sleetctl: and names the socket" said c.err 'none\.sock'
    ok "sleetctl: an unknown command exits 2" exits 2 -s "$work/a.sock" stauts
    ok "sleetctl: an unknown option exits 2" exits 2 --nonsense
    ok "sleetctl: too many words exit 2" exits 2 -s "$work/a.sock" status more
    ok "sleetctl: run without -n exits 2" exits 2 run true
    ok "sleetctl: --help exits 0" exits 0 --help
    ok "sleetctl: resume exits 0" exits 0 -s "$work/a.sock" resume
    ok "sleetctl: leave exits 0" exits 0 -s "$work/a.sock" leave
    ok "sleetctl: leave is in status" eval 'status a | grep -q "\"left\":true"'
    stop t a
}

# ---- out of descriptors -------------------------------------------------------------

ticks() { awk '{ print $14 + $15 }' "/proc/$1/stat"; }
# ---- what a node declares of itself ------------------------------------------------

# Fragments that were scattered to a node, since it owned them.
reduced() { status "$1" | sed -n 's/.*"scatter":{"expected":\([0-9]*\).*/\1/p'; } # NAME
# Two nodes with trainers, and one that only reduces for them.
auxiliary() {
    local name ports=() list
    for name in a b c; do
        boot $name --id 9 --listen 127.0.0.1:0
        ports+=("$port")
        stop $name
    done
    list=127.0.0.1:${ports[0]},127.0.0.1:${ports[1]},127.0.0.1:${ports[2]}
    boot a --id 1 --listen "127.0.0.1:${ports[0]}" --peers "$list" --role auxiliary --bandwidth 1G
    boot b --id 2 --listen "127.0.0.1:${ports[1]}" --peers "$list"
    boot c --id 3 --listen "127.0.0.1:${ports[2]}" --peers "$list"
    ok "auxiliary: three nodes" until_true 10 alive b 3
    SLEET_CONTROL=$work/b.sock keep t "$build/average" 1 2 40
    SLEET_CONTROL=$work/c.sock keep u "$build/average" 3 2 40
    ok "auxiliary: both trainers end" eval 'ended t 30 && ended u 30'
    ok "auxiliary: without a trainer it reduced $(reduced a) fragments" at_least "$(reduced a)" 100
    SLEET_CONTROL=$work/a.sock keep v "$build/average" 1
    ok "auxiliary: a trainer is refused there" eval 'ended v 10 && [ "$code" = 1 ] && said v.err "this daemon is an auxiliary"'
    stop a b c
}
roles_case() {
    local host=127.0.0.1
    ok "roles: a client and a node" pair --role client --site berlin --bandwidth 20M --
    SLEET_CONTROL=$work/a.sock keep t "$build/average" 1 2 30
    SLEET_CONTROL=$work/b.sock keep u "$build/average" 3 2 30
    ok "roles: peers says what the other has declared" until_true 10 eval \
        '"$ctl" -s "$work/b.sock" peers | grep -qx "1 is a client at site berlin, can send 20 Mbit/s"'
    ok "roles: --json likewise" eval '"$ctl" -s "$work/b.sock" --json peers | grep -q "\"role\":\"client\",\"site\":\"berlin\",\"bandwidth\":20000000,"'
    ok "roles: and nothing of who has not" eval '! "$ctl" -s "$work/a.sock" peers | grep -q " is a "'
    ok "roles: both trainers end" eval 'ended t 30 && ended u 30'
    ok "roles: the node reduced $(reduced b) fragments" at_least "$(reduced b)" 100
    ok "roles: the client $(reduced a)" [ "$(reduced a)" = 0 ]
    stop a b
    auxiliary
}

descriptors_case() {
    local began spent
    keep a bash -c 'ulimit -n 16 && exec "$@"' - "$d" --id 1 --listen 127.0.0.1:0 --control "$work/a.sock"
    until_true 10 said a.out '^sleetd node='
    trainer h a hold 24
    ok "descriptors: 24 connections wait" until_true 10 said h.out '^holding'
    ok "descriptors: the daemon says that it has none left" until_true 10 seen a.err accept-failed 1
    began=$(now_ms) spent=$(ticks "${pid[a]}")
    ok "descriptors: it tries again" until_true 10 seen a.err accept-failed 4
    began=$(($(now_ms) - began)) spent=$((($(ticks "${pid[a]}") - spent) * 1000 / $(getconf CLK_TCK)))
    ok "descriptors: but does not spin (3 tries in $began ms, $spent ms of processor)" \
        [ $((began > 300 && spent < 200)) -eq 1 ]
    kill -TERM "${pid[h]}"
    ok "descriptors: it answers again once there are some" until_true 10 alive a 1
    stop a
}

[ $# -gt 0 ] || set -- config order listen socket signals ipv6 busy mismatch foreign ctl roles descriptors
run_cases "$@"
