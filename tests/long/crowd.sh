#!/bin/bash
# crowd.sh - many daemons on one machine: 64 that meet and average, then 16 that share the
# processors with busy loops for a minute: nobody is taken for dead who is only starved.
# Arguments: the cases to run, of crowd starved (all).
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/../e2e/lib.sh" crowd sleetd sleetctl abuse
host=127.0.0.1
tail_lines=1

# several COUNT: daemons n1 ... nCOUNT that list each other, started in any order.
several() {
    local base=$((20000 + $$ % 20000)) i peers=''
    for ((i = 1; i <= $1; i++)); do peers+=${peers:+,}$host:$((base + i)); done
    for i in $(seq "$1" | sort -R --random-source=<(yes "${SLEET_TEST_SEED:-1}")); do
        boot "n$i" --id "$i" --listen "$host:$((base + i))" --peers "$peers" --rate_mbit 10 || return 1
        ids+=("n$i")
    done
}
all_alive() { local n; for n in "${ids[@]}"; do alive "$n" ${#ids[@]} || return 1; done; }
of_all() { # NAME: its newest rounds have one of all nodes
    "$ctl" -s "$work/$1.sock" --json rounds 2>/dev/null | grep -q "\"joined\":true,\"group_size\":${#ids[@]},"
}
accused() { cat "$work"/n*.err | grep -cE 'event=member-(silent|dead|suspected)'; }

crowd_case() {
    local ids=() n
    ok "crowd: 64 daemons start" several 64
    ok "crowd: each sees all" until_true 60 all_alive
    for n in "${ids[@]}"; do
        keep "t$n" env SLEET_CONTROL="$work/$n.sock" "$build/abuse" rounds 20000
    done
    ok "crowd: they average, all in one round" until_true 90 of_all n1
    stop "${ids[@]/#/t}" "${ids[@]}"
}

starved_case() {
    local ids=() busy=() i before cores
    cores=$(nproc)
    ok "starved: 16 daemons start" several 16
    ok "starved: each sees all" until_true 60 all_alive
    before=$(accused)
    for ((i = 0; i < 4 * cores; i++)); do
        keep "busy$i" timeout 60 bash -c 'while :; do :; done'
        busy+=("busy$i")
    done
    for i in "${busy[@]}"; do until_true 90 gone "${pid[$i]}"; done
    ok "starved: a minute beside $((4 * cores)) busy loops: nobody was accused" [ "$(accused)" = "$before" ]
    ok "starved: and all see all" until_true 10 all_alive
    stop "${ids[@]}"
}

[ $# -gt 0 ] || set -- crowd starved
run_cases "$@"
