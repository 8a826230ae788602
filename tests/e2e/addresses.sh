#!/bin/bash
# addresses.sh - which addresses a daemon uses and tells others, in network namespaces of its own:
# here node a with three interfaces, there node b.
# Arguments: the cases to run, of auto join choice peers ipv6 linklocal ports noipv6 (all).
# Needs the build folder in SLEET_BUILD or BUILDDIR, and leave to make namespaces.
# shellcheck source=lib.sh disable=SC2034,SC2154
if [ -z "${SLEET_INSIDE:-}" ]; then
    for tool in ip unshare nsenter; do
        command -v $tool >/dev/null || { echo "addresses: $tool is not installed"; exit 77; }
    done
    new=(unshare -n -m)
    [ "$(id -u)" -eq 0 ] || new=(unshare -r -n -m)
    "${new[@]}" ip link add one type veth peer name two 2>/dev/null ||
        { echo "addresses: no leave to make network namespaces with veth here"; exit 77; }
    SLEET_INSIDE=1 exec "${new[@]}" /bin/bash "$0" "$@"
fi
. "$(dirname "$0")/lib.sh" addresses sleetd sleetctl mismatch

# ---- the network: a's side here, b's in the namespace of a process that holds it ------------

keep other unshare -n sh -c 'echo there; exec tail -f /dev/null'
until_true 5 said other.out '^there$' || exit 1
there=(nsenter -t "${pid[other]}" -n)
ip link set lo up
"${there[@]}" ip link set lo up
wire() { # NAME OWN OTHER: a link with an IPv4 address at each end
    ip link add "$1" type veth peer name "$1" netns "${pid[other]}"
    ip addr add "$2/24" dev "$1"
    "${there[@]}" ip addr add "$3/24" dev "$1"
    ip link set "$1" up
    "${there[@]}" ip link set "$1" up
}
wire slow0 10.91.0.1 10.91.0.2
wire fast0 10.92.0.1 10.92.0.2
ip addr add fe80::91/64 dev slow0 nodad
"${there[@]}" ip addr add fe80::92/64 dev slow0 nodad
ip addr add 2001:db8:91::1/64 dev fast0 nodad
"${there[@]}" ip addr add 2001:db8:91::2/64 dev fast0 nodad
# Names are of no help: this machine's own is 127.0.0.1.
printf '127.0.0.1 localhost %s\n' "$(hostname)" >"$work/hosts"
mount --bind "$work/hosts" /etc/hosts 2>/dev/null || echo "addresses: /etc/hosts stays as it is"

tells() { # NAME ADDRESSES: what status says is told to others
    status "$1" | grep -qF "\"advertised\":[$2]"
}
refused() { # CODE PATTERN OPTIONS...
    local want=$1 pattern=$2
    shift 2
    timeout 10 "$d" --id 1 --control "$work/r.sock" "$@" >"$work/r.out" 2>"$work/r.err"
    [ $? -eq "$want" ] && grep -qE -- "$pattern" "$work/r.err"
}
# meet A-LISTEN A-IS B-LISTEN B-IS: daemons a here and b there, each listing the other as it IS.
meet() {
    wrap=()
    boot a --id 1 --listen "$1" --peers "$4" && wrap=("${there[@]}") &&
        boot b --id 2 --listen "$3" --peers "$2"
    local code=$?
    wrap=()
    return $code
}
trainer() { # DAEMON: its trainer, tDAEMON
    keep "t$1" env SLEET_CONTROL="$work/$1.sock" "$build/mismatch" register 2 w:1000
}
together() { until_true 10 alive a 2 && until_true 10 alive b 2; }

# ---- cases -------------------------------------------------------------------------------------

auto_case() {
    ok "auto: a daemon of all addresses starts" boot a --id 1 --listen :7700 --peers 10.92.0.2:7700
    ok "auto: it tells those on the way to its peers, not 127.0.0.1" \
        tells a '"10.92.0.1:7700","[2001:db8:91::1]:7700"'
    ok "auto: and says so in the log" said a.err 'event=advertised .*address=10\.92\.0\.1:7700'
    stop a
    ok "auto: another peer, another address" boot a --id 1 --listen :7700 --peers 10.91.0.2:7700
    ok "auto: the first interface's" tells a '"10.91.0.1:7700","[2001:db8:91::1]:7700"'
    stop a
    ok "auto: on loopback nothing is told" eval 'boot a --id 1 --listen 127.0.0.1:0 && tells a ""'
    stop a
    ok "auto: nor where every network is gone" eval 'ip link set slow0 down; ip link set fast0 down
        boot a --id 1 --listen :0 --peers 10.92.0.2:7700 && tells a ""'
    ok "auto: which is said with every candidate and the reason" said a.err \
        'event=nothing-advertised.*slow0 10\.91\.0\.1: the interface is down; fast0 10\.92\.0\.1: the interface is down'
    stop a
    ip link set slow0 up
    ip link set fast0 up
    ip addr add 2001:db8:91::1/64 dev fast0 nodad 2>/dev/null # went with the link
    ip addr add fe80::91/64 dev slow0 nodad 2>/dev/null
}

# What the first says is enough for the second, copied as it is.
join_case() {
    local options k=$work/j
    mkdir -m 700 "$k"
    "$ctl" keygen --node "$k/a.key" --job "$k/job.key" >/dev/null && "$ctl" keygen --node "$k/b.key" >/dev/null
    ok "join: a first sealed daemon, told of nobody" boot a --security sealed --node.key "$k/a.key" --job.key "$k/job.key" \
        --listen :7700 --name "a job" --advertise fast0
    options=$(sed -n 's/.*event=join-with .*options="\(.*\)" job_key=.*/\1/p' "$work/a.err")
    wrap=("${there[@]}")
    ok "join: a second with what the first says ($options)" eval \
        "boot b --security sealed --node.key $k/b.key --job.key $k/job.key --listen :7700 $options"
    wrap=()
    ok "join: they meet" together
    stop a b
}

choice_case() {
    local way="--peers 10.92.0.2:7700"
    ok "choice: an interface" eval "boot a --id 1 --listen :7700 $way --advertise slow0"
    ok "choice: is taken, whatever the route" tells a '"10.91.0.1:7700"'
    stop a
    ok "choice: a prefix" eval "boot a --id 1 --listen :7700 $way --advertise 10.91.0.0/16"
    ok "choice: is taken" tells a '"10.91.0.1:7700"'
    stop a
    ok "choice: a forwarded port" eval "boot a --id 1 --listen :7700 $way --advertise 192.0.2.7:9000"
    ok "choice: is told as it is written" tells a '"192.0.2.7:9000"'
    stop a
    ok "choice: a prefix that nothing is in is refused, with all candidates" refused 1 \
        'node\.advertise = "10\.99\.0\.0/16": no address is left .*lo 127\.0\.0\.1: .*slow0 10\.91\.0\.1: outside the prefix; fast0 10\.92\.0\.1: outside the prefix' \
        --listen :0 --advertise 10.99.0.0/16
    ok "choice: loopback is refused" refused 1 'no address is left.*127\.0\.0\.1: loopback' \
        --listen :0 --advertise 127.0.0.1:7700
    ok "choice: the refused ones left no socket file" [ ! -e "$work/r.sock" ]
}

peers_case() {
    ok "peers: from loopback no other machine can be reached: refused" refused 1 \
        'job\.peers: 10\.92\.0\.2:7700: node\.listen is a loopback address' \
        --listen 127.0.0.1:0 --peers 10.92.0.2:7700
    ok "peers: 0.0.0.0 is nobody" refused 1 'no address of a machine' --listen :0 --peers 0.0.0.0:7700
    ok "peers: IPv6 from an IPv4 socket is refused" refused 1 'listen on \[::\] for both' \
        --listen 10.92.0.1:0 --peers '[2001:db8:91::2]:7700'
    ok "peers: over IPv4 two namespaces meet" meet 10.92.0.1:7700 10.92.0.1:7700 :7700 10.92.0.2:7700
    ok "peers: and see each other" together
    stop a b
    ok "peers: IPv4 only and dual stack" meet 0.0.0.0:7700 10.91.0.1:7700 '[::]:7700' 10.91.0.2:7700
    ok "peers: meet over IPv4" together
    stop a b
}

ipv6_case() {
    ok "ipv6: global addresses" meet '[2001:db8:91::1]:7700' '[2001:db8:91::1]:7700' \
        '[::]:7700' '[2001:db8:91::2]:7700'
    ok "ipv6: see each other" together
    ok "ipv6: and are told" tells a '"[2001:db8:91::1]:7700"'
    stop a b
}

linklocal_case() {
    ok "linklocal: without an interface it is refused" refused 1 'needs its interface' \
        --listen '[::]:0' --peers '[fe80::92]:7700'
    ok "linklocal: with one" meet '[fe80::91%slow0]:7700' '[fe80::91%slow0]:7700' \
        '[::]:7700' '[fe80::92%slow0]:7700'
    ok "linklocal: they see each other" together
    ok "linklocal: and tell nobody else" tells a ''
    stop a b
}

# Everything goes over the one UDP port: whatever else would be needed is dropped here.
ports_case() {
    if ! command -v nft >/dev/null || ! "${there[@]}" nft -f - 2>"$work/nft.err" <<'NFT'
table inet fence {
    chain in { type filter hook input priority 0; policy drop; iif lo accept; udp dport 7700 accept; counter; }
    chain out { type filter hook output priority 0; policy drop; oif lo accept; udp sport 7700 accept; counter; }
}
NFT
    then
        echo "skipped: ports: no nftables here: $(head -n 1 "$work/nft.err")"
        return
    fi
    ok "ports: behind a firewall with one open port" meet :7700 10.92.0.1:7700 :7700 10.92.0.2:7700
    ok "ports: they meet" together
    trainer a
    trainer b
    ok "ports: and average" eval 'until_true 15 said ta.out "^start: 0" && until_true 15 said tb.out "^start: 0"'
    stop ta tb a b
    "${there[@]}" nft delete table inet fence
}

noipv6_case() {
    ok "noipv6: a namespace without IPv6" eval \
        '"${there[@]}" sh -c "echo 1 >/proc/sys/net/ipv6/conf/all/disable_ipv6" 2>/dev/null'
    ok "noipv6: all addresses still work" meet :7700 10.92.0.1:7700 :7700 10.92.0.2:7700
    ok "noipv6: over IPv4" together
    ok "noipv6: and only that is told" tells b '"10.92.0.2:7700"'
    stop a b
    wrap=("${there[@]}")
    keep b "${there[@]}" "$d" --id 1 --listen '[2001:db8:91::2]:7700' --control "$work/b.sock"
    wrap=()
    ok "noipv6: an IPv6 address is refused" eval 'ended b 10 && [ "$code" -eq 1 ]'
    ok "noipv6: with the reason" said b.err 'cannot listen on \[2001:db8:91::2\]:7700 .*: (Cannot assign|Address family)'
}

[ $# -gt 0 ] || set -- auto join choice peers ipv6 linklocal ports noipv6
run_cases "$@"
