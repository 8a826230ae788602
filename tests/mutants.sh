#!/bin/bash
# Plants one fault at a time into a copy of the tree and says which test catches it.
#
#   tests/mutants.sh [-a] [FAULT-NUMBER]... all faults without numbers
#   tests/mutants.sh -n                     only says which of them cannot be planted any more
#
# The suites named before a fault go first, and the first case that fails is enough; -a: all that do.
# Prints a Markdown table, fault | caught by, and "mutants: N passed, N failed", where
# passed means caught: by a case of simtest or, where all pass, by the accuracy of a
# simulated training with skewed shards and loss that falls by more than a point.  A fault
# in needs_row must be caught by that row of tools/learning.sh as well: the row would
# be worthless otherwise.
# Environment: SLEET_SRC (the tree), JOBS, TMPDIR.  Takes minutes.
# Exit: 0 all caught, 1 some were not or a fault cannot be planted.
set -u
src=${SLEET_SRC:-$(cd "$(dirname "$0")/.." && pwd)}
jobs=${JOBS:-$(nproc)}
training=(--sim 8 --shards label --loss 0.3 --epochs 1 --json)
# Label-sorted shards on 4 nodes, held against iid ones.
row=(-r '^label-4 .* 0 1$' -s 3 -x "--epochs 1")
export OPENBLAS_NUM_THREADS=1
unset MAKEFLAGS MFLAGS

names=( # the suites that should catch it, or the training: the fault
    ""
    "engine: a node's contribution is never counted"
    "rounds: the denominator counts one too many"
    "rounds: a duplicate is counted twice"
    "mutants: results are not repaired by default"
    "training: momentum is not averaged"
    "rounds: END is ignored"
    "mutants: no margin for datagrams that overtake"
    "rounds: a late joiner contributes at once"
    "groups: commits of other groups are dropped"
    "groups: an owner adds its own values to another group's fragments"
    "state hostile: a block of state is placed as it came"
    "state: a version goes while it is being fetched"
    "refresh: a round averages all of a tensor of state"
    "forge: any member's results are taken"
    "liars: far contributions are not held back"
    "liars: far results are taken"
    "liars: what all do is taken for a lie"
    "liars: what others hold of an owner is not compared"
    "estimators: carry does not look at masks"
    "estimators: what a mean does not lack is carried over"
    "late: late results of gradients are not asked for"
    "late nonlinear: late results are added under a nonlinear update"
    "payload estimators: a node's own gradient fills what nobody delivered"
    "estimators: arrival rates are not reckoned with"
    "nonlinear: half a gradient is handed to a nonlinear update"
    "parity: no parity is sent"
    "parity: parity takes two datagrams for one"
    "parity forge: what is rebuilt counts as the owner's, whoever sent the parity"
    "parity: what is protected is asked for at once all the same"
    "budgets: who was cut off and comes late teaches nothing"
    "budgets: a budget may be shorter than the round trip, and silence is not waited out"
    "drift: the odd one blames the others"
    "drift: drift is never seen"
    "quorum pace: a slow trainer's node closes for all only"
    "quorum: whoever comes first closes a majority's round"
    "quorum late: results of rounds that pass meanwhile are not asked for"
    "quorum: what a node hands over ahead of all others is lost"
    "quorum: with a quorum nobody is ever waited for"
    "quorum: parameters of a node that skipped rounds count as others do"
    "power: an end of an edge takes its step whether or not the other can"
    "power: steps over an edge that are decided late are lost"
    "power: ends of an edge that have lost step go on"
    "edges: one of two neighbours takes what the other does not"
    "strategies edges: a node passes the rounds in which a neighbour waits for it"
    "graph: any list of edges is the one that is meant"
    "backup: what an owner that is gone has committed goes with it"
    "backup: a backup is believed though nobody asked it"
    "backup: backups are not sent results first"
    "roles: the shares of other groups are not reckoned with"
    "roles: clients own as all do"
    "twice: what is sent twice is not what carries most energy"
    "numbers strategies: a neighbour that is a few rounds behind is absent"
    "strategies: who is behind others that it does not meet has no window of its own"
    "exchange: an end that is lost is not said again"
    "exchange: what an owner has by its deadline counts for nothing"
    "estimators: an owner says that it has used what its trainer has not got"
    "estimators: what a codec lost goes with what is frozen"
    "estimators: what is committed at the deadline stays in the residual"
    "estimators: a receipt is numbered in a list that the other has not got"
    "estimators: who cannot tell yet is asked as fast as ever"
)
needs_row=" 1 " # numbers, a space around each

say() { printf 'mutants: %s\n' "$*" >&2; }

# The files a fault changes: copied from the tree again after each.
changed=()

# Replace TEXT, which the file must hold exactly once, by OTHER.
plant() { # FILE TEXT OTHER
    local count
    changed+=("$1")
    [ -e "$copy/$1" ] || install -D -m 644 "$src/$1" "$copy/$1" # -n copies nothing else
    count=$(grep -cF -- "$2" "$copy/$1")
    if [ "$count" -ne 1 ]; then
        say "$1 holds '$2' $count times, not once: adapt the fault"
        return 1
    fi
    TEXT=$2 OTHER=$3 perl -pi -e 's/\Q$ENV{TEXT}\E/$ENV{OTHER}/' "$copy/$1"
}

fault() { # NUMBER
    local owner=lib/core/round/owner.c sums=lib/core/round/sums.c clip=lib/core/round/clip.c feedback=lib/core/round/feedback.c
    local quorum=lib/core/round/quorum.c low=lib/core/round/low.c
    case $1 in
    1) plant $owner '    if (o->mask[number] & BIT(rank))' \
        '    if (rank == 1 || (o->mask[number] & BIT(rank)))' &&
        plant $sums '    if (!r->prepared || r->closed || !r->contributes ||' \
            '    if (r->self == 1 || !r->prepared || r->closed || !r->contributes ||' ;;
    2) plant $sums '    r->own.wsum[number] += weight;' \
        '    r->own.wsum[number] += weight + (r->own.mask[number] ? 0 : 1);' ;;
    3) plant $owner '    if (o->mask[number] & BIT(rank))' '    if (rank >= 64)' &&
        plant lib/core/engine.c 'if (!replay_check_and_set(&m->replay, h.counter)) {' \
            'if (!replay_check_and_set(&m->replay, h.counter) && h.type != WIRE_DATA) {' ;;
    4) plant lib/core/engine.c 'e->config = *c;' \
        'e->config = *c; e->config.repair_off = true;' ;;
    5) plant tools/sleet-train-learn.c '                copy(values + t->part[p].at' \
        '                if (t->part[p].at < l->params) copy(values + t->part[p].at' ;;
    6) plant $owner '    if (d->flags & DATA_LAST)' '    if (d->flags & DATA_LAST && rank >= 64)' &&
        plant $feedback '    if (w->flags & SUMMARY_SCATTER_OVER)' \
            '    if (w->flags & SUMMARY_SCATTER_OVER && rank >= 64)' ;;
    7) plant $feedback '#define COUNTER_MARGIN 8 ' '#define COUNTER_MARGIN 0 ' ;;
    8) plant lib/core/round/group.c 's->attached && own && !set_parked' 's->attached && (own || !own) && !set_parked' &&
        plant lib/core/round/group.c 'same || comes || m == founder);' \
            'true || same || comes || m == founder);' &&
        plant lib/core/round/start.c 'r->contributes = r->contributes && s->established;' '' ;;
    9) plant lib/core/round/held.c 'return parts < PARTS_MAX && put_extra' 'return false && put_extra' ;;
    10) plant $owner '    if (number < share)' '    if (number < share || share)' ;;
    11) plant lib/core/state/block.c '    return !digest || ' '    return true || !digest || ' ;;
    12) plant lib/core/state/snapshot.c '> STATE_PIN)' '> 0 * STATE_PIN)' ;;
    13) plant lib/core/tensor/layout.h '    return round == 1 || (!state' '    return round >= 1 || (!state' ;;
    14) plant lib/core/round/gather.c '    if (!expected && vouched_for(' '    if (rank > 64 && vouched_for(' ;;
    15) plant $clip '    if (fits || (int)rank == r->self' '    if (true || fits || (int)rank == r->self' ;;
    16) plant $clip '    return excess < EXCESS_MAX ? excess : EXCESS_MAX;' '    return excess < 0 ? excess : 0;' ;;
    17) plant $clip '    u.change = clip_median(all, u.n);' '    u.change = clip_median(all, 0);' ;;
    18) plant lib/core/round/witness.c '    if (!(w->flags & SUMMARY_WITNESS) ||' \
        '    if ((w->flags & SUMMARY_WITNESS) ||' ;;
    19) plant lib/core/round/carry.c '    if (r->held[fragment].weight > 0 && (who & self))' \
        '    if (r->held[fragment].weight > 0 && (who & self) && r->self > 64)' ;;
    20) plant lib/core/round/start.c 's->layout.kind.estimator == SLEET_CARRY' 's->layout.kind.estimator != 0' ;;
    21) plant lib/core/round/late.c '    return r->closed && l->holes &&' '    return !r->closed && l->holes &&' ;;
    22) plant lib/core/round/late.h 'l->kind.update == SLEET_LINEAR' 'l->kind.update != 0' ;;
    23) plant lib/core/round/close.c '    if (layout_additive(&s->layout, tensor) && !alone)' \
        '    if (layout_additive(&s->layout, tensor) && alone)' ;;
    24) plant lib/core/round/estimate.c '    return 1 / q;' '    return q / q;' ;;
    25) plant lib/core/round/close.c '    r->behind |= !r->closing && misses_step(s, r);' \
        '    r->behind |= !r->closing && misses_step(s, r) && !r->joined;' ;;
    26) plant lib/core/protect/rule.c 'd.reason == PROTECT_FAR ?' 'd.reason == PROTECT_OFF ?' ;;
    27) plant lib/core/protect/decoder.c 'parity_add(rows, n, at.position,' 'parity_add(rows, n, at.position / 2 * 2,' ;;
    28) plant lib/core/engine_parity.c 'engine_take_data(b->e, b->m, b->s, b->r, (int)b->rank, &d, part)' \
        'engine_take_data(b->e, &b->e->members[b->r->group.members[b->r->owner_of_run[part[0].fragment / RUN_FRAGMENTS]].slot],
            b->s, b->r, b->r->owner_of_run[part[0].fragment / RUN_FRAGMENTS], &d, part)' ;;
    29) plant $feedback '        if (!idle && parity_pending(' '        if (idle && parity_pending(' ;;
    30) plant lib/core/round/wait.c '            budget_late(&s->budget, ' '            (void)(' ;;
    31) plant lib/core/round/wait.c '    budget_floor(&s->budget, floor);' '    budget_floor(&s->budget, 0);' &&
        plant lib/core/round/wait.c '#define UNHEARD_MAX MS(500)' '#define UNHEARD_MAX MS(0)' ;;
    32) plant lib/core/round/drift.c '    return n >= 2 && 2 * off > n;' '    return n >= 64 && 2 * off > n;' ;;
    33) plant lib/core/round/drift.c 'a->digest == b->digest ? 0 : sqrt(' 'a->digest != b->digest ? 0 : sqrt(' ;;
    34) plant $quorum 'SLEET_QUORUM_ALL : s->pending.options.quorum' \
        'SLEET_QUORUM_ALL : r->joined ? s->pending.options.quorum : SLEET_QUORUM_ALL' ;;
    35) plant $quorum '(initiators(s, r, now) & over) != 0' 'initiators(s, r, now) && over' ;;
    36) plant lib/core/round/set.c '    late_follow(s, e, now);' '' ;;
    37) plant lib/core/round/start.c 'carry_keep(s, s->pending.residual, f, weight, s->pending.send)' '(void)weight' ;;
    38) plant $quorum 'return quorum_leaves_out(s) && r->number' 'return false && r->number' ;;
    39) plant lib/core/round/late.c 'return old ? r->weight * LATE_WEIGHT : r->weight;' 'return (void)old, r->weight;' ;;
    40) plant $low '    if (all && heard) {' '    if (all) {' ;;
    41) plant $low '    s->low.late = step;' '    (void)step;' ;;
    42) plant $low '    if (w->open && tag != w->tag) {' '    if (false) {' &&
        plant $low '    if (w->tagged && w->tag_there != w->tag)' '    if (false)' ;;
    43) plant lib/core/round/edge_parts.h '    return !edge_two_way(g, rank) || ' '    return g->segments > 0 || ' ;;
    44) plant lib/core/round/start.c '    number = waited_for(s, e, number);' '    number = waited_for(s, e, number) ? number : 0;' ;;
    45) plant lib/core/strategy/edge_list.c 'return memcmp(k->numbers, l->digest' 'return k->numbers[0] || memcmp(k->numbers, l->digest' ;;
    46) plant lib/core/round/backup.c '    b->slot_of[f] = ++b->n;' '    b->slot_of[f] = b->n + 1;' ;;
    47) plant lib/core/round/backup.c '        !(r->lane[owner].backup.asked >> rank & 1))' '        r->lane[owner].backup.asked >> rank > 64)' ;;
    48) plant lib/core/round/send.c 'return number < r->lane[r->self].share &&' 'return number >= NOT_DUE &&' ;;
    49) plant lib/core/engine_group.c '    group_share(&g);' '' ;;
    50) plant lib/core/strategy/share.c '    if (d->role == ROLE_CLIENT)' '    if (d->role == ROLE_CLIENT && !d->kbit && d->kbit)' ;;
    51) plant lib/core/round/twice.c '        energy += x[i] * x[i];' '        energy += 1 / (1 + x[i] * x[i]);' ;;
    52) plant lib/core/round/group.c '(parts ? e->config->window : 0)' '(parts ? 1u : 0)' ;;
    53) plant lib/core/round/set.c '    return own && s->own_round + 1 < job ?' '    return own && s->own_round + 1 > job ?' ;;
    54) plant $feedback '    return !r->edges && !round_gathers(r) && r->contributes' \
        '    return r->edges && !round_gathers(r) && r->contributes' ;;
    55) plant $owner '    if (!round_gathers(r)) /* nobody else' '    if (false) /* nobody else' ;;
    56) plant lib/core/round/receipt.c 'own && bitmap_test(r->got, fragment) && !r->withheld &&' 'own &&' ;;
    57) plant lib/core/round/carry.c '        residual[i] = lost[i];' '        residual[i] = 0;' ;;
    58) plant lib/core/round/carry.c '(!r->closing || !round_gathers(r)); /*' '!r->closing; /*' ;;
    59) plant lib/core/round/receipt.c '    bool all = round_disagrees(r, rank);' '    bool all = false;' ;;
    60) plant $feedback ' : GAP_IDLE;' ' : GAP_MAX;' ;;
    *) say "there is no fault $1"; return 1 ;;
    esac
}

restore() {
    local file
    for file in "${changed[@]}"; do
        cp "$src/$file" "$copy/$file" && touch "$copy/$file"
    done
    changed=()
}

build() {
    make -C "$copy/build" -j"$jobs" simtest sleet-train >"$work/log" 2>&1 && return
    tail -n 20 "$work/log" >&2
    return 1
}

# Cases one a line, those of SUITES first and the traces, which any change of behaviour fails, last.
ordered() { # SUITES
    "$copy/build/simtest" --list | awk -v suites=" $1 " '{
        split($0, name, ".")
        print index(suites, " " name[1] " ") ? 0 : name[1] == "trace" ? 2 : 1, $0
    }' | sort -s -k 1,1n | cut -d' ' -f2
}

# Names of the cases that fail, one a line; one that hangs fails.  They read files of the
# tree by a path that begins in the build folder.  xargs stops at 255.
failing_cases() { # SUITES
    (cd "$copy/build" && ordered "$1" | xargs -P "$jobs" -I{} sh -c \
        'timeout -k 5 120 ./simtest "$1" >/dev/null 2>&1 || { echo "$1"; exit "$2"; }' - {} "$stop" 2>/dev/null | sort)
}

accuracy() { # in hundredths of a per cent, 0 where the training fails
    timeout -k 5 300 "$copy/build/sleet-train" "${training[@]}" 2>/dev/null |
        sed -n 's/.*"final_accuracy": *\([0-9.e+-]*\).*/\1/p' | tail -n 1 |
        awk '{ v = $1 } END { printf "%d\n", v * 10000 + 0.5 }'
}

# The label-sorted row's difference and verdict, "-0.10 ± 0.50 to iid, met, 1"; "" where a training fails.
skewed_row() {
    "$copy/tools/learning.sh" -t "$copy/build/sleet-train" -c "$work/cells" -j "$jobs" "${row[@]}" \
        "$copy/tools/accuracy.cells" 2>"$work/log" | awk -F ' *[|] *' '$2 == "label-4" { print $7 ", " $12 }'
}

points() { awk -v v="$1" 'BEGIN { printf "%.2f %%", v / 100 }'; }

passed=0 failed=0
verdict() { # passed|failed NUMBER TEXT
    printf '| %s | %s |\n' "${names[$2]#*: }" "$3"
    (($1++))
    restore
}

trained() { # by how much the training falls, or nothing
    local now=$(accuracy)
    [ $((usual - now)) -le 100 ] ||
        echo "training, 8 nodes, label shards, 30 % loss: $(points "$now") instead of $(points "$usual")"
}

try() { # NUMBER
    local suites=${names[$1]%%: *} caught= held missing=
    if ! fault "$1" || ! build; then
        verdict failed "$1" "(cannot be planted or built)"
        return
    fi
    [ "$suites" != training ] || caught=$(trained)
    [ "$caught" ] || caught=$(failing_cases "$suites" | paste -sd, | sed 's/,/, /g')
    if [[ $needs_row == *" $1 "* ]]; then
        held=$(skewed_row)
        [[ $held == *missed* ]] || missing=" but not the accuracy row of label shards, 4 nodes: $held"
        [ "$missing" ] || caught="$caught${caught:+; }accuracy row of label shards, 4 nodes: $held"
    elif [ -z "$caught" ]; then
        caught=$(trained)
    fi
    if [ "$missing" ] || [ -z "$caught" ]; then
        verdict failed "$1" "${caught:-nothing}$missing"
    else
        verdict passed "$1" "$caught"
    fi
}

work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
copy=$work/tree
mkdir -p "$copy/build"
stop=255
if [ "${1:-}" = -a ]; then
    stop=0
    shift
fi
if [ "${1:-}" = -n ]; then
    for number in $(seq $((${#names[@]} - 1))); do
        if fault "$number"; then ((passed++)); else ((failed++)); fi
        restore
    done
    printf 'mutants: %d can be planted, %d cannot\n' "$passed" "$failed"
    [ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
    exit
fi
(cd "$src" && tar cf - --exclude='./build*' --exclude=./.git --exclude=autom4te.cache .) |
    tar xf - -C "$copy" || exit 1
# Without warnings as errors: a fault may leave something unused.
[ -d "$src/build-aux" ] && cp -r "$src/build-aux" "$copy/"
if ! (cd "$copy" && { [ -x configure ] || autoreconf -fi; } && cd build &&
    ../configure --disable-shared) >"$work/log" 2>&1; then
    tail -n 20 "$work/log" >&2
    exit 1
fi
build || exit 1
before=$(failing_cases "" | paste -sd' ')
[ -z "$before" ] || { say "these fail without any fault: $before"; exit 1; }
usual=$(accuracy)
[ "$usual" -gt 0 ] || { say "the training fails without any fault"; exit 1; }
held=$(skewed_row)
[[ $held == *met* ]] || { say "the accuracy row of label shards fails without any fault: $held"; exit 1; }

printf '| fault | caught by |\n| --- | --- |\n'
if [ $# -eq 0 ]; then
    set -- $(seq $((${#names[@]} - 1)))
fi
for number in "$@"; do
    try "$number"
done
printf 'mutants: %d passed, %d failed\n' "$passed" "$failed"
[ "$failed" -eq 0 ] && [ "$passed" -gt 0 ]
