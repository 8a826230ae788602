#!/bin/sh
# accuracy.sh - test accuracy under loss, in the simulator: n x shards x loss x
# seeds, paired by seed.  Finished cells are kept and not run again.
#
#   tools/accuracy.sh [-t SLEET_TRAIN] [-c CELLS_DIR] [-e EPOCHS] [-s SEEDS] [-j JOBS] [-x ARGS]
#                     [-n "4 8"] [-k "iid dirichlet:0.3 label"] [-l "0 0.1 0.3"]
#
# Prints a Markdown table: points of test accuracy (mean of the last 5
# evaluations), worst node and averaged model, and the paired difference to the
# same seeds without loss with its 95 % interval.  Label-sorted shards without
# loss are held against iid ones: what a node alone has seen must reach the others,
# and a program that leaves it out would do so with and without loss.  A bar is
# missed when the whole interval lies below it; then the exit status is 1.
set -eu
train=tools/sleet-train cells=accuracy-cells epochs=4 seeds=5 jobs=2 extra=
nodes="4 8" kinds="iid dirichlet:0.3 label" losses="0 0.1 0.3"
while getopts t:c:e:s:j:x:n:k:l: option; do
    case $option in
    t) train=$OPTARG ;;
    c) cells=$OPTARG ;;
    e) epochs=$OPTARG ;;
    s) seeds=$OPTARG ;;
    j) jobs=$OPTARG ;;
    x) extra=$OPTARG ;;
    n) nodes=$OPTARG ;;
    k) kinds=$OPTARG ;;
    l) losses=$OPTARG ;;
    *) exit 2 ;;
    esac
done
[ -x "$train" ] || { echo "accuracy.sh: no program $train; build it or name it with -t" >&2; exit 2; }
case " $losses " in *" 0 "*) ;; *) losses="0 $losses" ;; esac

# A new program or other settings get a folder of their own.
binary=$train
[ -x "$(dirname "$train")/.libs/sleet-train" ] && binary=$(dirname "$train")/.libs/sleet-train
version=$({ cat "$binary"; echo "$epochs $extra"; } | cksum | tr ' ' '-')
dir=$cells/$version
mkdir -p "$dir"
export train dir epochs extra

list() {
    for seed in $(seq "$seeds"); do
        for n in $nodes; do
            for kind in $kinds; do
                for loss in $losses; do
                    [ -s "$dir/$n,$kind,$loss,$seed" ] || echo "$n $kind $loss $seed"
                done
            done
        done
    done
}

echo "accuracy.sh: $(list | wc -l) cells to run, $jobs at a time, kept in $dir" >&2
# One cell: its file appears only when the run has ended well.
list | xargs -r -P "$jobs" -L 1 sh -c '
    cell="$dir/$0,$1,$2,$3"
    # $extra is a list of words on purpose
    "$train" --sim "$0" --shards "$1" --loss "$2" --seed "$3" --epochs "$epochs" --json $extra \
        2>"$cell.settings" | grep "\"event\":\"done\"" >"$cell.part" &&
        mv "$cell.part" "$cell" && echo "accuracy.sh: n $0, $1, loss $2, seed $3" >&2 || {
        echo "accuracy.sh: n $0, $1, loss $2, seed $3 failed:" >&2
        cat "$cell.settings" >&2
        exit 1
    }'

first=$(ls "$dir"/*.settings | head -n 1)
sed 's/^sleet-train: /Settings: /; s/, [0-9]* shards.*//; s/ of [0-9]* steps//' "$first"
echo

for n in $nodes; do
    for kind in $kinds; do
        for loss in $losses; do
            for seed in $(seq "$seeds"); do
                printf '%s %s %s %s ' "$n" "$kind" "$loss" "$seed"
                sed 's/.*"test_accuracy":\([0-9.]*\).*"averaged_accuracy":\([0-9.]*\).*"coverage":\([0-9.]*\),.*/\1 \2 \3/' \
                    "$dir/$n,$kind,$loss,$seed"
            done
        done
    done
done | awk "$(cat "$(dirname "$0")/paired.awk")"'
# Points allowed; 0: no bar.
function bar(n, kind, loss) {
    if (kind == "label") return loss == 0 || loss == 0.1 ? 1 : loss == 0.3 ? 2 : 0
    if (kind != "iid") return 0
    if (n == 8) return loss > 0 && loss <= 0.3 ? 0.3 : 0
    return n == 4 && loss == 0.1 ? 0.3 : n == 4 && loss == 0.3 ? 0.6 : 0
}
# The row that a row is held against, "" for none.
function base_of(n, kind, loss) {
    if (loss > 0) return n " " kind " 0"
    return kind == "label" && (n " iid 0") in runs ? n " iid 0" : ""
}
# The paired difference of row to base in points: sets mean and half.
function pair(value, row, base,    i, d, sum, squares) {
    sum = squares = 0
    for (i = 1; i <= runs[row]; i++) {
        d = 100 * (value[row, i] - value[base, i])
        sum += d
        squares += d * d
    }
    mean = sum / runs[row]
    half = half95(sum, squares, runs[row])
}
# Print the difference of row to base: the verdict.
function judge(value, row, base, limit) {
    if (!base) return ""
    pair(value, row, base)
    printf "%+.2f ± %.2f%s", mean, half, row ~ / 0$/ ? " to iid" : ""
    return !limit ? "" : mean + half < -limit ? "missed" : "met"
}
function average(value, row,    i, sum) {
    for (i = 1; i <= runs[row]; i++) sum += value[row, i]
    return 100 * sum / runs[row]
}
{
    row = $1 " " $2 " " $3
    if (!(row in runs)) order[++rows] = row
    i = ++runs[row]
    worst[row, i] = $5; model[row, i] = $6; coverage[row] += $7
}
END {
    print "| n | shards | loss | worst node % | difference | averaged model % | difference | coverage % | bar |"
    print "|---|---|---|---|---|---|---|---|---|"
    for (r = 1; r <= rows; r++) {
        row = order[r]
        split(row, key, " ")
        printf "| %s | %s | %g %% | %.2f | ", key[1], key[2], 100 * key[3], average(worst, row)
        base = base_of(key[1], key[2], key[3] + 0)
        limit = base ? bar(key[1], key[2], key[3] + 0) : 0
        verdict = judge(worst, row, base, limit)
        printf " | %.2f | ", average(model, row)
        if (judge(model, row, base, limit) == "missed") verdict = "missed"
        if (limit) verdict = verdict ", " limit
        if (verdict ~ /missed/) bad = 1
        printf " | %.2f | %s |\n", 100 * coverage[row] / runs[row], verdict
    }
    exit bad
}'
