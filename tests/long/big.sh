#!/bin/bash
# big.sh - one tensor of 2^29 + 1 elements between two daemons on loopback.
# Arguments: elements (2^29 + 1), Mbit a second of each node (8000).
# Exit 77, with the reason, where too little memory is available (20 GiB) or less
# than 1.5 GiB are left on the way.
set -u
build=${SLEET_BUILD:?set SLEET_BUILD to the build folder}
elements=${1:-536870913} rate=${2:-8000}
available_mib() { awk '/^MemAvailable:/ { m = $2 } END { print int(m / 1024) }' /proc/meminfo; }
start=$(available_mib)
need=$((elements / 26214 + 64)) # 20 GiB for 2^29 elements
if [ "$start" -le "$need" ]; then
    echo "big: SKIPPED: $start MiB of memory are available, more than $need MiB are needed"
    exit 77
fi

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

base=$((20000 + $$ % 10000 * 2))
for i in 0 1; do
    "$build/sleetd" --node.id=$((i + 1)) --node.listen=127.0.0.1:$((base + i)) \
        --node.control="$work/$i.sock" --job.name="big$$" --job.rate_mbit="$rate" \
        --job.peers="127.0.0.1:$base,127.0.0.1:$((base + 1))" >"$work/daemon$i" 2>&1 &
    daemons+=($!)
done
limit=$((SECONDS + 10))
until [ -S "$work/0.sock" ] && [ -S "$work/1.sock" ]; do
    [ $SECONDS -lt $limit ] || { cat "$work"/daemon*; echo "big: no daemon"; exit 1; }
    sleep 0.05
done
for i in 0 1; do
    SLEET_CONTROL=$work/$i.sock "$build/big" $i "$elements" &
    trainers+=($!)
done
least=$start status=0
while kill -0 "${trainers[0]}" 2>/dev/null || kill -0 "${trainers[1]}" 2>/dev/null; do
    left=$(available_mib)
    [ "$left" -ge "$least" ] || least=$left
    if [ "$left" -lt 1536 ]; then
        echo "big: SKIPPED: of $start MiB of memory only $left MiB are left; nothing was checked"
        exit 77
    fi
    sleep 0.2
done
for pid in "${trainers[@]}"; do
    wait "$pid" || status=1
done
trainers=()
echo "big: at most $((start - least)) MiB of memory were taken"
[ $status -eq 0 ] || tail -n 20 "$work"/daemon*
exit $status
