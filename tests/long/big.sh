#!/bin/bash
# big.sh - one tensor of 2^29 + 1 elements between two daemons on loopback.
# Arguments: elements (2^29 + 1), Mbit a second of each node (8000).
# Exit 77, with the reason, where too little memory is available (20 GiB).
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../e2e/lib.sh" big sleetd big
elements=${1:-536870913} rate=${2:-8000} host=127.0.0.1
available=$(awk '/^MemAvailable:/ { print int($2 / 1024) }' /proc/meminfo)
need=$((elements / 26214 + 64)) # MiB; 20 GiB for 2^29 elements
if [ "$available" -le "$need" ]; then
    echo "big: SKIPPED: $available MiB of memory are available, more than $need MiB are needed"
    exit 77
fi

# VmHWM of a daemon: its heap, and the shared buffers, all of which it reads or writes.
most_mib() { awk '/^VmHWM:/ { print int($2 / 1024) }' "/proc/${pid[$1]}/status"; } # NAME

pair --rate_mbit "$rate" --clip 0 -- --rate_mbit "$rate" --clip 0 || { tail "$work"/*.err; echo "big: no daemon"; exit 1; }
SLEET_CONTROL=$work/a.sock "$build/big" 0 "$elements" &
one=$!
SLEET_CONTROL=$work/b.sock "$build/big" 1 "$elements" &
two=$! status=0
wait $one || status=1
wait $two || status=1
echo "big: the daemons held at most $(most_mib a) and $(most_mib b) MiB"
[ $status -eq 0 ] || tail -n 20 "$work"/*.err
exit $status
