#!/bin/bash
# memory.sh - the resident memory of three real daemons over many rounds, a fifth of
# which fail.  Argument: rounds (10000).  After a tenth of them and at the end it must
# be within 5 % (half a MiB where that is more), and below memory_bound_bytes of `sleetctl status` and 32 MiB.
set -u
build=${SLEET_BUILD:?set SLEET_BUILD to the build folder}
rounds=${1:-10000}
work=$(mktemp -d) || exit 1
daemons=() trainers=()
finish() {
    [ ${#trainers[@]} -eq 0 ] || kill -KILL "${trainers[@]}" 2>/dev/null
    [ ${#daemons[@]} -eq 0 ] || kill -KILL "${daemons[@]}" 2>/dev/null
    wait 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

figure() { # NODE NAME: a number of its status
    "$build/sleetctl" -s "$work/$1.sock" --json status | sed -n "s/.*\"$2\":\([0-9]*\).*/\1/p"
}
resident() { awk '/^VmRSS:/ { print $2 }' "/proc/${daemons[$1]}/status"; } # KiB

base=$((20000 + $$ % 10000 * 3))
peers=127.0.0.1:$base,127.0.0.1:$((base + 1)),127.0.0.1:$((base + 2))
for i in 0 1 2; do
    "$build/sleetd" --node.id=$((i + 1)) --node.listen=127.0.0.1:$((base + i)) \
        --node.control="$work/$i.sock" --job.name="memory$$" --job.peers="$peers" \
        --job.rate_mbit=1000 --emulate.loss=0.05 >"$work/daemon$i" 2>&1 &
    daemons+=($!)
done
limit=$((SECONDS + 10))
until [ -S "$work/0.sock" ] && [ -S "$work/1.sock" ] && [ -S "$work/2.sock" ]; do
    [ $SECONDS -lt $limit ] || { cat "$work"/daemon*; echo "memory.sh: no daemon"; exit 1; }
    sleep 0.05
done
for i in 0 1 2; do
    SLEET_CONTROL=$work/$i.sock "$build/rounds" "$rounds" >"$work/trainer$i" 2>&1 &
    trainers+=($!)
done
early=() late=() bound=()
while kill -0 "${trainers[0]}" 2>/dev/null && kill -0 "${trainers[1]}" 2>/dev/null &&
    kill -0 "${trainers[2]}" 2>/dev/null; do
    done=$(figure 0 rounds)
    for i in 0 1 2; do
        late[i]=$(resident $i) bound[i]=$(figure $i memory_bound_bytes)
        [ ${#early[@]} -gt $i ] || [ "${done:-0}" -lt $((rounds / 10)) ] || early[i]=${late[i]}
    done
    sleep 0.2
done
status=0
for pid in "${trainers[@]}"; do
    wait "$pid" || status=1
done
trainers=()
cat "$work"/trainer*
for i in 0 1 2; do
    echo "memory.sh: daemon $((i + 1)): resident ${early[i]} KiB after $((rounds / 10)) rounds," \
        "${late[i]} KiB at the end; bar $((bound[i] / 1024 + 32768)) KiB"
    [ "${late[i]}" -le $((early[i] + (early[i] > 10240 ? early[i] / 20 : 512))) ] &&
        [ "${late[i]}" -le $((bound[i] / 1024 + 32768)) ] || status=1
done
exit $status
