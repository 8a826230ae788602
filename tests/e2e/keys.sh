#!/bin/bash
# keys.sh - key files and what the daemon makes of them.
# Arguments: the cases to run, of keygen (all).  Needs the build folder in
# SLEET_BUILD or BUILDDIR.
# shellcheck source=lib.sh disable=SC2034,SC2154
. "$(dirname "$0")/lib.sh" keys sleetd sleetctl

# told CODE PATTERN ARGUMENTS...: sleetctl keygen ends with CODE and a line that matches.
told() {
    local want=$1 pattern=$2
    shift 2
    timeout 10 "$ctl" keygen "$@" >"$work/k.out" 2>"$work/k.err"
    [ $? -eq "$want" ] && grep -qE -- "$pattern" "$work/k.out" "$work/k.err"
}
field() { sed -n "s/^  $1 *\([0-9a-f]*\)\$/\1/p" "$work/k.out"; } # NAME

keygen_case() {
    local id public
    mkdir -m 700 "$work/k"
    ok "keygen: a node key" told 0 '^node key$' --node "$work/k/node.key"
    id=$(field node_id) public=$(field public)
    ok "keygen: of its form" grep -qxE 'sleet-node-key [0-9a-f]{64}' "$work/k/node.key"
    ok "keygen: only for its owner" [ "$(stat -c %a "$work/k/node.key")" = 600 ]
    ok "keygen: the secret is not printed" eval '! grep -q "$(cut -d " " -f 2 "$work/k/node.key")" "$work/k.out"'
    ok "keygen: --show repeats id and public key" eval \
        'told 0 node --show --node="$work/k/node.key" && [ "$(field node_id)" = "$id" ] && [ "$(field public)" = "$public" ]'
    ok "keygen: an existing file is kept" told 1 'exists and is kept' --node "$work/k/node.key"
    ok "keygen: whatever is said" eval 'told 0 node --show --node "$work/k/node.key" && [ "$(field public)" = "$public" ]'
    ok "keygen: but with --force" eval 'told 0 node --force --node "$work/k/node.key" && [ "$(field public)" != "$public" ]'
    ok "keygen: all three kinds at once, as JSON" told 0 \
        '^\{"node":\{.*"node_id":"[0-9]+".*"job":\{.*"fingerprint".*"operator":\{.*"public"' --json \
        --node "$work/k/n2.key" --job "$work/k/job.key" --operator "$work/k/operator.key"
    ok "keygen: two keys differ" eval '! cmp -s "$work/k/job.key" <(sed s/operator/job/ "$work/k/operator.key")'
    ok "keygen: an unknown word is refused" told 2 'does not know --nodes' --nodes
    [ "$(id -u)" -eq 0 ] ||
        ok "keygen: without a file it is in the user's folder" eval \
            'XDG_CONFIG_HOME=$work/config told 0 "$work/config/sleet/node.key" && [ "$(stat -c %a "$work/config/sleet")" = 700 ]'
    chmod 770 "$work/k"
    ok "keygen: not into a folder that others write to" told 1 'chmod go-w' --node "$work/k/n3.key"
    ok "keygen: and nothing is left there" [ ! -e "$work/k/n3.key" ]
    chmod 700 "$work/k"
    chmod 644 "$work/k/job.key"
    ok "keygen: a file that others read is refused" told 1 'chmod 600' --show --job "$work/k/job.key"
    ok "keygen: a full disk is an error" eval '! "$ctl" keygen --show --node "$work/k/node.key" >/dev/full'
}

[ $# -gt 0 ] || set -- keygen
run_cases "$@"
