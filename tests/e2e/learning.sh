#!/bin/bash
# learning.sh - tools/learning.sh with a trainer that only says so: verdicts, kept cells, mistakes.
# Cases: judged kept against mistakes.
# Usage: SLEET_SRC=. SLEET_BUILD=build tests/e2e/learning.sh [CASE...]; exit: 0 passed, 1 failed.
. "$(dirname "$0")/lib.sh" learning
learning=${SLEET_SRC:-$(dirname "$0")/../..}/tools/learning.sh
trainer=$work/trainer

# It "learns" to 0.9, a hundredth more with each seed, less what loss costs the payload: good 0.1
# points, fair 1 point that differs from seed to seed, bad 5 points.  Each run is noted.
cat >"$trainer" <<'END'
#!/bin/bash
echo "$*" >>"$(dirname "$0")/runs"
loss=0 seed=0 average=good
while [ $# -gt 0 ]; do
    case $1 in
    --loss) loss=$2 ;;
    --seed) seed=$2 ;;
    --average) average=$2 ;;
    esac
    shift
done
echo "trainer: $average, 8 shards, seed $seed" >&2
case $average in
good) cost=0.001 ;;
fair) cost=0.01$((seed * seed)) ;;
bad) cost=0.05 ;;
wrong) echo "sleet-train: diverged" >&2; exit 1 ;;
*) echo "sleet-train: no such average" >&2; exit 2 ;;
esac
awk -v loss="$loss" -v seed="$seed" -v cost=$cost 'BEGIN {
    a = 0.9 + seed / 100 - (loss > 0) * cost
    printf "{\"event\":\"done\",\"steps\":1,\"test_accuracy\":%.4f,\"averaged_accuracy\":%.4f,\"coverage\":%.6f,\"nodes\":8}\n", a, a + 0.0001, 1 - loss
}'
END
chmod +x "$trainer"

table() { printf '%s\n' "task one points --shards iid" "codec f32" "$@" >"$work/t.cells"; }
run() { # CODE NAME OPTION...: the table's exit status
    local code=$1 name=$2 status=0
    shift 2
    : >"$work/runs"
    bash "$learning" -t "$trainer" -c "$work/cells" -j 1 "$@" "$work/t.cells" >"$work/$name.out" 2>"$work/$name.err" || status=$?
    [ $status -eq "$code" ]
}
row() { said "$1.out" "^\| $2 \| $3 \| f32 \| $4 \|.*\| $5 \|\$"; } # NAME TASK PAYLOAD LOSS END-OF-ROW

judged_case() {
    table "payload good" "payload fair --average fair" "payload bad --average bad" "payload new --average new" \
        "payload wrong --average wrong" "row one good,fair,bad,new,wrong f32 0,0.1,0.3 1" "bar one f32 0.1 0.3" \
        "bar one f32 0.3 1"
    ok "no bar is missed where one payload is good" run 0 judged
    ok "the base has no difference" said judged.out '^\| one \| good \| f32 \| 0 % \| 92.00 % \|  \| 92.01 % \|  \| 100.00 % \| 3 \|  \|$'
    ok "a cost is seen, paired" said judged.out '\| good \| f32 \| 10 % \| 91.90 % \| -0.10 ± 0.0[0-9] \|'
    ok "within the bar it is met" row judged one good "10 %" "met, 0.3"
    ok "beyond with its whole interval, missed" row judged one bad "10 %" "missed, 0.3"
    ok "beyond on average only, undecided" row judged one fair "30 %" "undecided, 1"
    ok "what the trainer refuses stays open, and why" row judged one new "10 %" "open, 0.3; refused: no such average"
    ok "what it fails at is missed, and why" row judged one wrong "10 %" "missed, 0.3; failed: diverged"
    ok "a bar is as its best payload" said judged.out '^Bars, .*: 2 met, 0 undecided, 0 missed, 0 open\.$'
    table "payload good" "payload bad --average bad" "row one good f32 0 1" "row one bad f32 0.1 1" "bar one f32 0.1 0.3"
    ok "a bar that all miss is missed" run 1 missed
    ok "and named" said missed.out '^- missed: one, f32, 10 %$'
    ok "one seed misses nothing" run 0 single -s 1
    ok "and has no interval" said single.out '\| bad \| f32 \| 10 % \| 86.00 % \| -5.00 \|.*\| undecided, 0.3 \|$'
}

kept_case() {
    table "payload good" "row one good f32 0,0.2 1,4"
    ok "cells are run" run 0 first -s 2
    ok "each once" lines runs 6
    ok "with bursts where there are" said runs '--loss 0.2 --seed 2 --burst 4'
    ok "again" run 0 second -s 2
    ok "none is run" lines runs 0
    ok "another seed" run 0 third -s 3
    ok "runs its cells only" lines runs 3
    ok "other arguments" run 0 other -s 2 -r ' 0.2 4$' -x --quick
    ok "run what matches and what it is held against" lines runs 4
    ok "nothing is run where nothing is to be" run 0 shown -n -s 2 -x --slow
    ok "none at all" lines runs 0
    ok "and that is said" row shown one good "20 %" "not run yet"
}

against_case() {
    table "payload good" "payload bad --average bad" "task two points" "row one good f32 0 1" "row two good f32 0,0.1 1" \
        "against two one" "bar two f32 0.1 1"
    ok "a task is held against another" run 0 against -r '^two'
    ok "without loss" said against.out '^\| two \| good \| f32 \| 0 % \| 92.00 % \| \+0.00 ± 0.00 to one \|.*\| met, 1 \|$'
}

mistakes_case() {
    table "payload good" "row one better f32 0 1"
    ok "an unknown payload is a mistake" run 2 unknown
    ok "that names its line" said unknown.err "t.cells:4: there is no payload better above"
    table "payload good" "raw one good f32 0 1"
    ok "so is a line that nobody understands" run 2 line
    ok "a missing trainer is told" eval '! bash "$learning" -t "$work/none" "$work/t.cells" 2>"$work/none.err"'
    ok "by name" said none.err "no program .*/none"
}

[ $# -gt 0 ] || set -- judged kept against mistakes
run_cases "$@"
