#!/bin/bash
# scale-invariant.sh - what the scale of loss and weights does to learning (arXiv 2202.00980): four simulated
# nodes learn with the loss times 0.01, 1 and 100, from weights times 0.1, 1 and 10, with mlp-si under sgd-si and with
# mlp under SGD; then mlp-si from gradients of which a fifth is lost and the rest divided by all nodes.
#
#   tools/scale-invariant.sh [-t SLEET_TRAIN] [-x ARGUMENTS]
#
# Prints Markdown: final accuracies in per cent (NaN: it diverged), and what they come to.
# Exit: 0 mlp-si spreads over at most 1.5 points where mlp does over 10 or diverges, and loses at most 0.7 points to
# the loss; 1 not; 2 usage.
set -eu -o pipefail
train=build/sleet-train extra=""
while getopts t:x: option; do
    case $option in
    t) train=$OPTARG ;;
    x) extra=$OPTARG ;;
    *) sed -n '6s/^# *//p' "$0" >&2; exit 2 ;;
    esac
done
[ -x "$train" ] || { echo "scale-invariant.sh: no program $train; build it or name it with -t" >&2; exit 2; }
export OPENBLAS_NUM_THREADS=1

# The final accuracy in per cent, or NaN where the trainer says that the loss is no number.
accuracy() { # ARGUMENTS...
    local said status=0
    # shellcheck disable=SC2086 # words
    said=$("$train" --sim 4 --json "$@" $extra 2>&1) || status=$?
    case $status,$said in
    0,*) sed -n 's/.*"final_accuracy":\([0-9.]*\).*/\1/p' <<<"$said" | awk '{ printf "%.2f\n", 100 * $1 }' ;;
    1,*"no longer a number"*) echo NaN ;;
    *) echo "scale-invariant.sh: $* ended with $status: $(tail -n 1 <<<"$said")" >&2; return 1 ;;
    esac
}

# The nine runs of a model: a row of the table for each scale of the loss; they are kept in `all`.
runs() { # NAME ARGUMENTS...
    local name=$1 loss init row one
    shift
    all=""
    for loss in 0.01 1 100; do
        row="| $name | $loss |"
        for init in 0.1 1 10; do
            one=$(accuracy --loss-scale "$loss" --init-scale "$init" "$@")
            row+=" $one |"
            all+=" $one"
        done
        echo "$row"
    done
}
# Highest less lowest, or NaN.
spread() { # FIGURES...
    printf '%s\n' "$@" | awk '/NaN/ { nan = 1 } NR == 1 || $1 > high { high = $1 } NR == 1 || $1 < low { low = $1 }
                              END { if (nan) print "NaN"; else printf "%.2f\n", high - low }'
}

echo "| model | loss times | weights times 0.1 | 1 | 10 |"
echo "|---|---|---|---|---|"
runs "mlp-si, sgd-si" --model mlp-si
# shellcheck disable=SC2086
mine=$(spread $all)
runs "mlp, sgd" --model mlp
# shellcheck disable=SC2086
plain=$(spread $all)
share="--model mlp-si --average gradient --estimator nodes"
# shellcheck disable=SC2086
whole=$(accuracy $share) lossy=$(accuracy $share --loss 0.2)
echo
echo "spread: mlp-si $mine points, mlp $plain; gradients over all nodes: $whole %, with 20 % loss $lossy %"
awk -v mine="$mine" -v plain="$plain" -v whole="$whole" -v lossy="$lossy" \
    'BEGIN { exit !(mine != "NaN" && mine <= 1.5 && (plain == "NaN" || plain >= 10) && lossy >= whole - 0.7) }'
