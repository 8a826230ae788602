#!/bin/bash
# unit.sh - the systemd unit: systemd takes it and finds it tight; and the daemon runs with the
# limits and the environment that it sets.
# Needs the build folder in SLEET_BUILD or BUILDDIR.
# shellcheck source=lib.sh disable=SC2034,SC2154
. "$(dirname "$0")/lib.sh" unit sleetd sleetctl mismatch
made=$build/sleetd.service
has() { grep -qxE -- "$1" "$made"; } # LINE

text_case() {
    local line
    ok "unit: it is made" [ -s "$made" ]
    ok "unit: with all paths filled in" eval '! grep -q "@bindir@\|@sysconfdir@" "$made"'
    for line in 'User=sleet' 'NoNewPrivileges=yes' 'CapabilityBoundingSet=' 'ProtectSystem=strict' 'ProtectHome=yes' \
        'PrivateTmp=yes' 'PrivateDevices=yes' 'MemoryDenyWriteExecute=yes' 'SystemCallFilter=@system-service' \
        'RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK' 'StateDirectory=sleet' 'LimitCORE=0'; do
        ok "unit: $line" has "$line"
    done
}

systemd_case() {
    local score
    if ! command -v systemd-analyze >/dev/null; then
        echo "skipped: systemd: no systemd-analyze here"
        return
    fi
    # Names of its own, so that nothing of this machine is meant.
    sed "s|^ExecStart=[^ ]*|ExecStart=$d|; s/^User=.*/User=root/; s/^Group=.*/Group=root/" "$made" >"$work/sleetd-test.service"
    ok "systemd: verify finds nothing" eval \
        'systemd-analyze verify --man=no "$work/sleetd-test.service" 2>"$work/v.err"; ! grep -q "sleetd-test" "$work/v.err"'
    cp "$made" "$work/sleetd.service"
    systemd-analyze security --offline=yes "$work/sleetd.service" >"$work/s.out" 2>"$work/s.err"
    score=$(sed -n 's/.*exposure level for sleetd\.service: \([0-9.]*\) .*/\1/p' "$work/s.out")
    if [ -z "$score" ]; then
        echo "skipped: systemd: this version does not judge files"
        return
    fi
    ok "systemd: exposure $score of 10 (bar 2.5)" at_most "$score" 2.5
}

# The environment and limits of the unit, without systemd.
environment_case() {
    mkdir -p "$work/run/sleet" "$work/state/sleet"
    keep u env -i PATH="$PATH" XDG_CONFIG_HOME="$work/state" XDG_RUNTIME_DIR="$work/run/sleet" \
        bash -c 'ulimit -n 256 -c 0 && umask 077 && exec "$@"' - "$d" --id 1 --security none --listen 127.0.0.1:0
    ok "environment: the daemon starts" until_true 10 said u.out '^sleetd node='
    ok "environment: with its socket in the runtime folder" eval '"$ctl" -s "$work/run/sleet/sleet.sock" status >"$work/e.out"'
    stop u
    if [ "$(id -u)" -ne 0 ]; then
        ok "environment: keys are looked for in the state folder" eval \
            '! XDG_CONFIG_HOME=$work/state "$d" --security sealed --check-config 2>"$work/k.err" && said k.err "$work/state/sleet/node\.key"'
    fi
}

# names SET...: the system calls of systemd's sets.
names() {
    local set
    for set in "$@"; do
        systemd-analyze syscall-filter "$set" 2>/dev/null | sed -n 's/^ *\(@\{0,1\}[a-z_0-9-]*\)$/\1/p' | grep -vx -- "$set"
    done | while IFS= read -r name; do
        case $name in
        @*) names "$name" ;;
        ?*) echo "$name" ;;
        esac
    done
}
filter_case() {
    if ! command -v strace >/dev/null || ! names @file-system | grep -qx openat; then
        echo "skipped: filter: neither strace nor systemd's sets here"
        return
    fi
    keep u strace -f -qq -o "$work/trace" "$d" --id 1 --security none --listen 127.0.0.1:0 --control "$work/u.sock"
    until_true 20 said u.out '^sleetd node='
    keep t env SLEET_CONTROL="$work/u.sock" "$build/mismatch" register 1 w:1000
    ok "filter: a traced daemon trains" until_true 10 said t.out '^start: 0'
    "$ctl" -s "$work/u.sock" status >"$work/e.out"
    "$ctl" -s "$work/u.sock" shutdown
    ok "filter: and ends" ended u 10
    stop t
    names @system-service | sort -u >"$work/allowed"
    names @privileged @resources @keyring | sort -u >"$work/denied"
    # From the unit's start on: what comes before is the dynamic linker's.
    sed -n 's/^[0-9]* *\([a-z_0-9]*\)(.*/\1/p' "$work/trace" | sort -u >"$work/used"
    comm -23 "$work/used" <(comm -23 "$work/allowed" "$work/denied") >"$work/refused"
    ok "filter: of its $(wc -l <"$work/used") system calls the unit refuses only setting limits ($(xargs <"$work/refused"))" \
        eval '! grep -vxE "prlimit64|setrlimit" "$work/refused"'
}

[ $# -gt 0 ] || set -- text systemd environment filter
run_cases "$@"
