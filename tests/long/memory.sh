#!/bin/bash
# memory.sh - the resident memory of three real daemons over many rounds, a fifth of
# which fail.  Argument: rounds (10000).  After a tenth of them and at the end it must
# be within 5 % (half a MiB where that is more), and below memory_bound_bytes of
# `sleetctl status` and 32 MiB.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../e2e/lib.sh" memory sleetd sleetctl rounds
rounds=${1:-10000}
nodes=(a b c)
resident() { awk '/^VmRSS:/ { print $2 }' "/proc/${pid[$1]}/status"; } # NAME: KiB
bound() { status "$1" | sed -n 's/.*"memory_bound_bytes":\([0-9]*\).*/\1/p'; } # NAME: bytes
# Every trainer has come so far: after a tenth, or to the end, and waits.
all_said() { # WORD
    local fd word rest
    for fd in "${out[@]}"; do
        read -r -t 600 word rest <&"$fd" && [ "$word" = "$1" ] || return 1
        [ -z "$rest" ] || echo "$rest"
    done
}

all_ended() { wait "${trainers[0]}" && wait "${trainers[1]}" && wait "${trainers[2]}"; }

base=$((20000 + $$ % 10000 * 3))
peers=127.0.0.1:$base,127.0.0.1:$((base + 1)),127.0.0.1:$((base + 2))
for i in 0 1 2; do
    boot ${nodes[i]} --id $((i + 1)) --listen 127.0.0.1:$((base + i)) --peers "$peers" \
        --rate_mbit 1000 --loss 0.05 || { tail "$work"/*.err; exit 1; }
done
mkfifo "$work/go" && exec {go}<>"$work/go" || exit 1
declare -A early
out=() trainers=()
for i in 0 1 2; do
    exec {fd}< <(SLEET_CONTROL=$work/${nodes[i]}.sock exec "$build/rounds" "$rounds" <"$work/go" 2>&1)
    out+=("$fd") trainers+=($!)
done
all_said tenth || { echo "memory.sh: a trainer ended early"; exit 1; }
for name in "${nodes[@]}"; do
    early[$name]=$(resident $name)
done
printf '...' >&"$go"
all_said end || { echo "memory.sh: a trainer ended early"; exit 1; }
for name in "${nodes[@]}"; do
    late=$(resident $name) bar=$(($(bound $name) / 1024 + 32768)) was=${early[$name]}
    room=$((was > 10240 ? was / 20 : 512))
    ok "daemon $name: resident $was KiB after $((rounds / 10)) rounds, $late KiB at the end; bar $bar KiB" \
        [ "$late" -le $((was + room)) -a "$late" -le "$bar" ]
done
printf '...' >&"$go"
ok "an eighth of the rounds failed, or more" all_ended
echo "memory.sh: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
