#!/bin/bash
# step-ahead.sh - what becomes of the gradients that topk leaves out (arXiv 2008.05823): four simulated nodes send
# one element in a hundred and forget the rest (none), carry it over (plain), or also look ahead with it (step-ahead).
#
#   tools/step-ahead.sh [-t SLEET_TRAIN] [-s SEEDS] [-x ARGUMENTS]
#
# ARGUMENTS are for all runs.  Prints Markdown, medians of the seeds after an epoch: the loss on training samples and the
# accuracy; step-ahead also with 5 % of the datagrams lost.
# Exit: 0 the losses are step-ahead <= plain <= none, and 5 % cost step-ahead at most half a point; 1 not; 2 usage.
set -eu -o pipefail
train=build/sleet-train seeds=3 extra=""
while getopts t:s:x: option; do
    case $option in
    t) train=$OPTARG ;;
    s) seeds=$OPTARG ;;
    x) extra=$OPTARG ;;
    *) sed -n '5s/^# *//p' "$0" >&2; exit 2 ;;
    esac
done
[ -x "$train" ] || { echo "step-ahead.sh: no program $train; build it or name it with -t" >&2; exit 2; }
export OPENBLAS_NUM_THREADS=1

# "loss accuracy" of a run.
run() { # ARGUMENTS...
    # shellcheck disable=SC2086 # words
    "$train" --sim 4 --epochs 1 --lr 0.05 --average gradient --codec topk --keep 0.01 --json $extra "$@" 2>/dev/null |
        sed -n 's/^{"event":"done".*"final_accuracy":\([0-9.]*\),"final_loss":\([0-9.]*\).*/\2 \1/p'
}
median() { sort -g | awk '{ v[NR] = $1 } END { print (v[int((NR + 1) / 2)] + v[int(NR / 2) + 1]) / 2 }'; }

ahead="--ef step-ahead --ef-average 16"
losses=() accuracies=()
echo "| what is left out | training loss | accuracy |"
echo "|---|---|---|"
for how in "--ef none" "--ef plain" "$ahead" "$ahead --loss 0.05"; do
    # shellcheck disable=SC2086
    all=$(for seed in $(seq "$seeds"); do run $how --seed "$seed"; done)
    losses+=("$(cut -d' ' -f1 <<<"$all" | median)")
    accuracies+=("$(cut -d' ' -f2 <<<"$all" | median)")
    awk -v how="$how" -v loss="${losses[-1]}" -v accuracy="${accuracies[-1]}" \
        'BEGIN { printf "| `%s` | %.4f | %.2f %% |\n", how, loss, 100 * accuracy }'
done
awk -v none="${losses[0]}" -v plain="${losses[1]}" -v ahead="${losses[2]}" -v whole="${accuracies[2]}" -v lossy="${accuracies[3]}" \
    'BEGIN { exit !(ahead <= plain && plain <= none && lossy >= whole - 0.005) }'
