#!/bin/bash
# socket.sh - the daemon's UDP socket at its edges: bursts with and without GSO, a full
# receive buffer, a small net.core.rmem_max, rounds over IPv6, whose a taken address is.
# Waits poll a condition with a deadline; nothing sleeps for a guessed time.
# Arguments: the cases to run, of gso overflow rmem ipv6 taken (all).
# Needs the build folder in SLEET_BUILD or BUILDDIR, the tree in SLEET_SRC; SLEET_CC (cc).
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh" socket sleetd sleetctl average
src=${SLEET_SRC:?set SLEET_SRC to the source tree}
average=$build/average
read -ra compiler <<<"${SLEET_CC:-cc}"

has() { status "$1" | grep -qE "$2"; }                             # NAME PATTERN
counter() { status "$1" | sed -n "s/.*\"datagrams\":{[^}]*\"$2\":\([0-9]*\).*/\1/p"; } # NAME FIELD
counted() { [ "$(counter "$1" "$2")" -ge "$3" ] 2>/dev/null; }

# pair HOST-OF-A HOST-OF-B OPTIONS...: daemons a and b that list each other as 127.0.0.1 or
# [::1], whichever $as_a and $as_b say.
pair() {
    local host_a=$1 host_b=$2 port_a port_b
    shift 2
    boot a --id 1 --listen "$host_a:0" && port_a=$port && boot b --id 2 --listen "$host_b:0" &&
        port_b=$port || return 1
    stop a b
    boot a --id 1 --listen "$host_a:$port_a" --peers "$as_b:$port_b" "$@" &&
        boot b --id 2 --listen "$host_b:$port_b" --peers "$as_a:$port_a" "$@"
}
# averages ROUNDS: examples/average beside a and b, of 1 and 3; true when both saw the mean.
averages() {
    local name value=1 running=()
    for name in a b; do
        SLEET_CONTROL=$work/$name.sock "$average" $value 2 "$1" >"$work/avg-$name.out" 2>"$work/avg-$name.err" &
        running+=($!)
        value=3
    done
    until_true 60 gone "${running[0]}" && until_true 60 gone "${running[1]}" &&
        wait "${running[0]}" && wait "${running[1]}" &&
        said avg-a.out ': first 2 last 2, coverage 1\.000 of 2 nodes' &&
        said avg-b.out ': first 2 last 2, coverage 1\.000 of 2 nodes'
}

# ---- bursts ------------------------------------------------------------------------

gso_case() {
    local name
    as_a=127.0.0.1 as_b=127.0.0.1
    pair 127.0.0.1 127.0.0.1 --gso off
    ok "gso: switched off, status says so" eval 'has a "\"gso\":false" && has b "\"gso\":false"'
    ok "gso: rounds go on one by one" averages 6
    ok "gso: no datagram is refused" eval '[ "$(counter a refused)" = 0 ] && [ "$(counter b refused)" = 0 ]'
    stop a b
    ok "gso: another word is refused with key and fix" \
        eval '! "$d" --id 1 --gso on --check-config 2>"$work/r.err" && said r.err "node\.gso = \"on\": off or auto"'

    if ! "${compiler[@]}" -shared -fPIC -o "$work/nogso.so" "$src/tests/e2e/nogso.c" 2>"$work/cc.err"; then
        ok "gso: the preloaded library compiles" false
        return
    fi
    wrap=(env "LD_PRELOAD=$work/nogso.so")
    pair 127.0.0.1 127.0.0.1
    if has a '"gso":false'; then
        echo "skipped: gso: this kernel has none, there is nothing to fall back from"
    else
        ok "gso: rounds go on where the path refuses a burst" averages 6
        for name in a b; do
            ok "gso: $name switches it off" has $name '"gso":false'
            ok "gso: $name says so once" [ "$(grep -c 'event=gso-off' "$work/$name.err")" -eq 1 ]
            ok "gso: $name loses nothing by it" [ "$(counter $name refused)" = 0 ]
        done
    fi
    wrap=()
    stop a b
}

# ---- the receive buffer --------------------------------------------------------------

flood() { # COUNT: datagrams of one byte to $port
    local i
    exec 7>"/dev/udp/127.0.0.1/$port" || return 1
    for ((i = 0; i < $1; i++)); do
        printf x >&7 || return 1
    done
    exec 7>&-
}
# The kernel's count comes with a datagram that was queued after the loss.
all_seen() { # COUNT: so many have come in, by the daemon's own count; else sends one more
    [ "$(counter a in)" -ge "$1" ] || { flood 1 && sent=$((sent + 1)) && false; }
}

overflow_case() {
    local sent=0 round
    boot a --id 1 --listen 127.0.0.1:0 --receive_buffer 4096
    for round in first second; do
        kill -STOP "${pid[a]}"
        ok "overflow: 500 datagrams to a stopped daemon, the $round time" flood 500
        sent=$((sent + 500))
        kill -CONT "${pid[a]}"
        ok "overflow: it hears of those that found no room" until_true 10 all_seen $((sent + 1))
    done
    ok "overflow: it counts them ($(counter a overflow) of $sent)" counted a overflow 800
    ok "overflow: every datagram is accounted for, once" until_true 10 eval '[ "$(counter a in)" -eq $sent ]'
    stop a
}

rmem_case() {
    local most drop=()
    boot a --id 1 --listen 127.0.0.1:0 --receive_buffer 65536
    ok "rmem: what was asked is granted" has a '"rcvbuf_bytes":131072,'
    ok "rmem: then nothing is said" eval '! said a.err rcvbuf-small'
    stop a
    most=$(cat /proc/sys/net/core/rmem_max)
    if [ "$(id -u)" -eq 0 ]; then
        command -v setpriv >/dev/null || { echo "skipped: rmem: root, but no setpriv"; return; }
        drop=(setpriv --bounding-set=-net_admin --)
    fi
    wrap=("${drop[@]}")
    ok "rmem: a buffer above net.core.rmem_max is no reason not to start" \
        boot a --id 1 --listen 127.0.0.1:0 --receive_buffer $((most + 1))
    ok "rmem: the log says what was granted, wanted, and the fix" said a.err \
        "level=warn event=rcvbuf-small fault=local bytes=$most wanted=$((most + 1)) fix=\"sysctl -w net\.core\.rmem_max=$((most + 1))\""
    ok "rmem: status has what was granted" has a "\"rcvbuf_bytes\":$((2 * most)),"
    wrap=()
    stop a
}

# ---- addresses -------------------------------------------------------------------------

has_ipv6() {
    grep -q '^0\{31\}1 ' /proc/net/if_inet6 2>/dev/null && return
    echo "skipped: $1: this machine has no [::1]"
    return 1
}

ipv6_case() {
    has_ipv6 ipv6 || return
    as_a='[::1]' as_b='[::1]'
    ok "ipv6: two daemons start on [::1]" pair '[::1]' '[::1]'
    ok "ipv6: they average" averages 6
    stop a b
    as_a=127.0.0.1 as_b=127.0.0.1
    ok "ipv6: one on all addresses starts beside one on IPv4" pair '' 127.0.0.1
    ok "ipv6: these average as well" averages 6
    stop a b
    as_a='[::1]' as_b='[::1]'
    ok "ipv6: and beside one on IPv6" pair '' '[::1]'
    ok "ipv6: these too" averages 6
    stop a b
}

refused() { # PATTERN ADDRESS: a daemon cannot listen there, and says whose it is
    timeout 10 "$d" --id 9 --control "$work/r.sock" --listen "$2" >"$work/r.out" 2>"$work/r.err"
    [ $? -eq 1 ] && said r.err "^sleetd: cannot listen on .*$1" && [ ! -e "$work/r.sock" ]
}

taken_case() {
    local held
    boot a --id 1 --listen 127.0.0.1:0
    held=$port
    ok "taken: the same port of another address is free" boot b --id 2 --listen "127.0.0.2:$held"
    ok "taken: 127.0.0.1 names its owner" refused "held by pid ${pid[a]} \(sleetd\)" "127.0.0.1:$held"
    ok "taken: 127.0.0.2 names the other" refused "held by pid ${pid[b]} \(sleetd\)" "127.0.0.2:$held"
    ok "taken: all addresses name one of the two" \
        refused "held by pid (${pid[a]}|${pid[b]}) \(sleetd\)" "0.0.0.0:$held"
    stop a b
    has_ipv6 taken || return
    boot a --id 1 --listen '[::1]:0'
    held=$port
    ok "taken: IPv4 is free beside it" boot b --id 2 --listen "127.0.0.1:$held"
    ok "taken: [::1] names its owner" refused "held by pid ${pid[a]} \(sleetd\)" "[::1]:$held"
    stop a b
    boot a --id 1 --listen ':0'
    ok "taken: who has all addresses is named for one of IPv4" refused "held by pid ${pid[a]} \(sleetd\)" "127.0.0.1:$port"
    stop a
}

[ $# -gt 0 ] || set -- gso overflow rmem ipv6 taken
run_cases "$@"
