#!/bin/bash
# keys.sh - key files and what the daemon makes of them.
# Arguments: the cases to run, of keygen config sealed allow run evict operators rekey (all).  Needs the build folder in
# SLEET_BUILD or BUILDDIR.
# shellcheck source=lib.sh disable=SC2034,SC2154
. "$(dirname "$0")/lib.sh" keys sleetd sleetctl abuse mismatch
unset SLEET_JOB_SECURITY # the default is what is tested

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

# refused PATTERN ARGUMENTS...: sleetd --check-config ends with 2 and one line that matches.
refused() {
    local pattern=$1
    shift
    timeout 10 "$d" --check-config "$@" >"$work/r.out" 2>"$work/r.err"
    [ $? -eq 2 ] && lines r.err 1 && said r.err "$pattern" && [ ! -s "$work/r.out" ]
}
checked() { # FILE OPTIONS...: what is in force, without comments
    local out=$1
    shift
    "$d" --check-config "$@" >"$work/$out.ini" 2>"$work/r.err" && grep -v '^;' "$work/$out.ini" >"$work/$out"
}

config_case() {
    local k=$work/c id operator sealed
    mkdir -m 700 "$k"
    told 0 node --node "$k/node.key" --job "$k/job.key" --operator "$k/operator.key"
    id=$(field node_id) operator=$(field public | tail -n 1)
    sealed=(--security sealed --node.key "$k/node.key" --job.key "$k/job.key")
    ok "config: sealed, with two key files" checked one "${sealed[@]}" --allow "5 $id" --operator "$operator"
    ok "config: the id is the key's" grep -qx "id = $id" "$work/one"
    ok "config: and said to be" grep -q '(from node\.key)' "$work/one.ini"
    ok "config: no secret is printed" eval '! grep -qf <(cut -d " " -f 2 "$k"/*.key) "$work/one.ini"'
    ok "config: what it prints is accepted" checked two -c "$work/one.ini"
    ok "config: and means the same" cmp "$work/one" "$work/two"
    ok "config: the same id may be given" checked two "${sealed[@]}" --id "$id"
    ok "config: another id is refused" refused "--id: node\.id = \"7\": the key in .*node\.key makes this node $id: remove" \
        "${sealed[@]}" --id 7
    ok "config: a missing key file is named, and the way to make one" \
        refused '--job\.key: .*none\.key: No such file.*keygen' "${sealed[@]}" --job.key "$k/none.key"
    ok "config: a key of the wrong kind is refused" \
        refused 'holds the operator key, the job key is wanted' "${sealed[@]}" --job.key "$k/operator.key"
    ok "config: keys without sealing are refused" \
        refused '--job\.key: .*job\.security = none \(from --security\) makes no use of it' \
        --id 1 --security none --job.key "$k/job.key"
    ok "config: so is a list of nodes" refused '--allow: .*makes no use' --id 1 --security none --allow 5
    ok "config: security is one of two" refused 'sealed or none' "${sealed[@]}" --security on
    ok "config: a node id is a number" refused '"x7" is not a node id' "${sealed[@]}" --allow 5,x7
    ok "config: nor 0" refused '"0" is not a node id' "${sealed[@]}" --allow 0
    ok "config: the operator's key has 64 digits" refused '64 lower-case' "${sealed[@]}" --operator "${operator%?}"
    ok "config: and is a point of the curve" refused 'no ed25519 public key' "${sealed[@]}" \
        --operator 0100000000000000000000000000000000000000000000000000000000000000
    ok "config: a key of two sections needs its section" refused 'unknown argument --key' "${sealed[@]}" --key "$k/job.key"
    chmod 640 "$k/job.key"
    ok "config: a key that others can read is refused" refused 'job\.key can be read or written by others \(mode 640\)' "${sealed[@]}"
}

counted() { [ "$(status "$1" | sed -n "s/.*\"datagrams\":{[^}]*\"$2\":\([0-9]*\).*/\1/p")" -ge "$3" ] 2>/dev/null; }
# ---- sealed daemons ---------------------------------------------------------------------

# nodes NAME...: keys for each, one for the job, an operator's, in $work/s; ids in ${id[NAME]}.
declare -A id
nodes() {
    local name
    [ -d "$work/s" ] || mkdir -m 700 "$work/s"
    told 0 job --force --job "$work/s/job.key" --operator "$work/s/operator.key"
    operator=$(field public)
    for name in "$@"; do
        told 0 node --force --node "$work/s/$name.key" && id[$name]=$(field node_id)
    done
}
# up NAME OPTIONS...: a sealed daemon with the keys of that name; its port in ${at[NAME]}.
declare -A at
up() {
    local name=$1
    shift
    boot "$name" --security sealed --node.key "$work/s/${name%+}.key" --job.key "$work/s/job.key" \
        --listen "127.0.0.1:${at[$name]:-0}" "$@" && at[$name]=$port
}
sees() { "$ctl" -s "$work/$1.sock" --json peers 2>/dev/null | grep -q "\"node_id\":\"${id[$2]}\".*\"alive\":true"; }

sealed_case() {
    local before
    nodes a b c
    ok "sealed: a first node" up a
    ok "sealed: a second that knows its address" up b --peers "127.0.0.1:${at[a]}"
    ok "sealed: they see each other, under their keys' ids" eval 'until_true 10 sees a b && until_true 10 sees b a'
    ok "sealed: status says so" eval 'status a | grep -q "\"security\":\"sealed\",\"job_key\":\"[0-9a-f]\{16\}\""'
    ok "sealed: and the log warns of nothing" eval '! said a.err security-none'
    cp "$work/s/job.key" "$work/s/job.right"
    told 0 job --force --job "$work/s/job.key"
    ok "sealed: a third with another job key" up c --peers "127.0.0.1:${at[a]}"
    ok "sealed: is told nothing and says what it sees" until_true 10 eval 'status a | grep -q "\"corrupt\":[1-9]"'
    ok "sealed: is seen by nobody" eval '! sees a c && alive a 2 && alive c 1'
    stop c
    cp "$work/s/job.right" "$work/s/job.key"
    ok "sealed: with the right one it joins" eval 'up c --peers "127.0.0.1:${at[a]}" && until_true 10 sees a c'
    keep n "$d" --id 7 --security none --listen 127.0.0.1:0 --control "$work/n.sock" --peers "127.0.0.1:${at[a]}"
    ok "sealed: one without security does not" eval 'until_true 10 said n.err security-none; ! sees n a && alive n 1'
    stop a b c n
}

allow_case() {
    nodes a b c
    at=()
    ok "allow: a node that lets in one other" up a --allow "${id[b]}"
    ok "allow: that one" eval 'up b --peers "127.0.0.1:${at[a]}" && until_true 10 sees a b'
    ok "allow: another starts" up c --peers "127.0.0.1:${at[a]}"
    ok "allow: but is not let in" eval 'until_true 10 counted c out 10; ! sees a c && alive a 2'
    stop a b c
}

run_case() {
    local files
    "$ctl" run -n 3 --keep "$work/run" -- "$build/mismatch" register 3 w:100 >"$work/run.out" 2>"$work/run.err" &
    pid[run]=$!
    ok "run: three sealed daemons and trainers meet" until_true 20 eval '[ "$(grep -c "start: 0" "$work/run.out")" = 3 ]'
    files=$(stat -c '%a %n' "$work"/run/*.key | grep -c '^600 ')
    ok "run: with four key files of their own ($files)" [ "$files" = 4 ]
    ok "run: sealed" eval '"$ctl" -s "$work/run/node0.sock" status | grep -q "security sealed"'
    kill -INT "${pid[run]}"
    wait "${pid[run]}" 2>/dev/null
}

# ---- an operator's orders ------------------------------------------------------------------

# trio OPTIONS...: sealed daemons a, b and c that have met, with the operator's key and these options.
trio() {
    nodes a b c
    at=()
    up a --operator "$operator" "$@" && up b --operator "$operator" --peers "127.0.0.1:${at[a]}" "$@" &&
        up c --operator "$operator" --peers "127.0.0.1:${at[a]},127.0.0.1:${at[b]}" "$@" &&
        until_true 10 alive a 3 && until_true 10 alive b 3 && until_true 10 alive c 3
}
# orders CODE PATTERN ARGUMENTS...: sleetctl on a ends with CODE and says so.
orders() {
    local want=$1 pattern=$2
    shift 2
    timeout 20 "$ctl" -s "$work/a.sock" "$@" >"$work/o.out" 2>"$work/o.err"
    [ $? -eq "$want" ] && grep -qE -- "$pattern" "$work/o.out" "$work/o.err"
}

listed() {
    local name
    for name in a b c; do
        up $name --operator "$operator" --allow "${id[a]},${id[b]},${id[c]}" --peers "${at[a]:+127.0.0.1:${at[a]}}" || return 1
    done
    until_true 10 alive a 3
}
# apart NAME...: as up, each with a file of its own for the job's key.
apart() {
    local name
    for name in "$@"; do
        [ -e "$work/s/$name.job" ] || cp "$work/s/job.key" "$work/s/$name.job"
        boot $name --security sealed --node.key "$work/s/$name.key" --job.key "$work/s/$name.job" --listen "127.0.0.1:0" \
            --operator "$operator" --peers "${at[a]:+127.0.0.1:${at[a]}}" || return 1
        at[$name]=$port
    done
}

evict_case() {
    local key=$work/s/operator.key
    ok "evict: three daemons" trio
    told 0 operator --operator "$work/s/other.key"
    ok "evict: not with another operator's key" orders 1 "job\.operator is $operator, the key in the file" \
        evict "${id[c]}" --operator "$work/s/other.key"
    ok "evict: nor without a key file" orders 1 'none\.key: No such file' evict "${id[c]}" --operator "$work/s/none.key"
    ok "evict: nor of the node that is asked" orders 1 'is the one that answers here' evict "${id[a]}" --operator "$key"
    ok "evict: nor of no number" orders 2 'usage' evict c --operator "$key"
    ok "evict: nor by a line of one's own" eval \
        'SLEET_CONTROL=$work/a.sock timeout 10 "$build/abuse" ask "order $(printf %0256d 0)" | grep -q "^400 order"'
    ok "evict: without a list it cannot last, and says so" orders 1 'this does not last: .*rekey' evict "${id[c]}" --operator "$key"
    ok "evict: though all know it" said o.out "^node ${id[c]} is evicted; [12] of [12] other members know it"
    ok "evict: the others are two" eval 'until_true 5 alive a 2 && until_true 5 alive b 2'
    ok "evict: the evicted knows" until_true 5 said c.err 'event=evicted '
    ok "evict: and has left" eval 'status c | grep -q "\"left\":true,\"evicted\":true"'
    ok "evict: which its status says" eval '"$ctl" -s "$work/c.sock" | grep -q "EVICTED from the job"'
    stop c
    ok "evict: started again it is kept out" eval 'up c --operator "$operator" --peers "127.0.0.1:${at[a]}"; \
        until_true 10 counted c out 5; ! sees a c && alive a 2'
    stop a b c
    nodes a b c # their ids are known before
    at=()
    ok "evict: with a list of who may join" listed
    ok "evict: it lasts" orders 0 '"told":1,"refused":0,.*"lasts":true' --json evict "${id[c]}" --operator "$work/s/operator.key"
    stop a b c
}

operators_case() {
    local other
    nodes a b c
    told 0 operator --force --operator "$work/s/other.key"
    other=$(field public)
    at=()
    ok "operators: one of three nodes has another operator" eval 'up a --operator "$operator" &&
        up b --operator "$operator" --peers "127.0.0.1:${at[a]}" && up c --operator "$other" --peers "127.0.0.1:${at[a]}" &&
        until_true 10 alive a 3'
    ok "operators: who does not take the order is counted" orders 1 '1 members have another job\.operator' \
        evict 12345 --operator "$work/s/operator.key"
    ok "operators: and named in the log" said a.err "event=notice-not-taken .*another job\.operator"
    ok "operators: on both sides" said c.err 'event=notice-refused .*not signed by job\.operator'
    ok "operators: nobody is put out" eval 'alive a 3'
    stop a c
    ok "operators: without one no order is taken" eval 'up a --peers "127.0.0.1:${at[b]}" &&
        orders 1 "takes nobody.s orders: set job\.operator = $operator" evict 12345 --operator "$work/s/operator.key"'
    stop a b
}

rekey_case() {
    local before
    nodes a b c
    at=()
    ok "rekey: three daemons with files of their own" eval 'apart a b c && until_true 10 alive a 3'
    before=$(status a | sed -n 's/.*"job_key":"\([0-9a-f]*\)".*/\1/p')
    ok "rekey: one is evicted" orders 1 'is evicted' evict "${id[c]}" --operator "$work/s/operator.key"
    ok "rekey: the others get a new key" orders 0 '^the job has a new key; 1 of 1 other members have it' rekey --operator "$work/s/operator.key"
    ok "rekey: status says another fingerprint" eval '! status a | grep -q "\"job_key\":\"$before\""'
    ok "rekey: both have saved the same" eval 'until_true 5 cmp -s "$work/s/a.job" "$work/s/b.job"'
    ok "rekey: in files for them alone" [ "$(stat -c %a "$work/s/a.job")" = 600 ]
    ok "rekey: the evicted has the former one" cmp -s "$work/s/c.job" "$work/s/job.key"
    ok "rekey: no key is in any log or answer" eval '! grep -qF "$(cut -d " " -f 2 "$work/s/a.job")" "$work"/*.err "$work"/*.out'
    ok "rekey: they still see each other" eval 'alive a 2 && alive b 2'
    stop b
    ok "rekey: one that starts again comes in by its new file" eval 'apart b && until_true 10 alive a 2 && until_true 10 alive b 2'
    stop c
    told 0 node --force --node "$work/s/c.key"
    ok "rekey: the evicted under a new name is kept out" eval \
        'apart c; until_true 10 counted c out 5; alive a 2 && alive b 2'
    chmod 500 "$work/s"
    if [ "$(id -u)" -ne 0 ]; then
        ok "rekey: a file that cannot be written is told" orders 1 'could not save' rekey --operator "$work/s/operator.key"
    fi
    chmod 700 "$work/s"
    stop a b c
}

[ $# -gt 0 ] || set -- keygen config sealed allow run evict operators rekey
run_cases "$@"
