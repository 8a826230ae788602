#!/bin/bash
# accuracy-daemons.sh - cells of the accuracy table repeated with real daemons: four
# sleetd and four trainers on loopback, datagrams dropped in the daemons, beside the
# simulator with the same settings and seeds.  Finished runs are kept.
#
#   tools/accuracy-daemons.sh [-b BUILD_DIR] [-c CELLS_DIR] [-e EPOCHS] [-s SEEDS]
#                             [-k "iid:0.1 iid:0.3 label:0.1"]
#
# Prints a Markdown table: points of test accuracy of the worst node (mean of the
# evaluations in the last fifth of the steps), daemons and simulator, and their difference
# paired by seed with its 95 % interval.  The seed fixes weights, shards and order;
# which datagrams are lost differs, so runs of one seed differ as runs of the
# simulator with other losses do.  A cell fails when
#   - its whole interval lies more than 0.3 points from 0, on either side, or
#   - its interval reaches more than 1 point to each side: it then shows nothing;
#     give more seeds.
# The machine should be idle enough that rounds are not cut by want of processor; the
# coverage of both tells.  Exit: 0 all agree, 1 not.
set -eu -o pipefail
build=build cells=accuracy-cells epochs=4 seeds=5 kinds="iid:0.1 iid:0.3 label:0.1"
n=4 batch=64 samples=60000
while getopts b:c:e:s:k: option; do
    case $option in
    b) build=$OPTARG ;;
    c) cells=$OPTARG ;;
    e) epochs=$OPTARG ;;
    s) seeds=$OPTARG ;;
    k) kinds=$OPTARG ;;
    *) exit 2 ;;
    esac
done
for program in sleetd sleetctl sleet-train; do
    [ -x "$build/$program" ] || {
        echo "accuracy-daemons.sh: no program $build/$program; build it or name the folder with -b" >&2
        exit 2
    }
done

# New programs or other settings get a folder of their own.
version=$({ cat "$build"/sleetd "$build"/sleetctl "$build"/sleet-train "$build"/.libs/sleet-train \
    2>/dev/null || true; echo "$epochs"; } | cksum | tr ' ' '-')
dir=$cells/daemons-$version
mkdir -p "$dir"
steps=$((samples / (n * batch) * epochs))
evaluate=$(((steps + 19) / 20)) # as the simulator: about every 5 % of the steps

# One run: its file, "accuracy coverage", appears only when the run has ended well.
run_sim() { # KIND LOSS SEED FILE
    "$build/sleet-train" --sim $n --shards "$1" --loss "$2" --seed "$3" --batch $batch \
        --epochs "$epochs" --json 2>"$4.err" | sed -n 's/.*"done".*"test_accuracy":\([0-9.]*\).*"coverage":\([0-9.]*\),.*/\1 \2/p' >"$4.part"
}
run_daemons() { # KIND LOSS SEED FILE
    timeout -k 10 1200 "$build/sleetctl" run -n $n --loss "$2" --seed "$3" -- sleet-train --json --shards "$1" \
        --seed "$3" --batch $batch --epochs "$epochs" --min-nodes $n --evaluate $evaluate \
        >"$4.out" 2>"$4.err" || return
    awk -v steps=$steps -v n=$n '
    function field(name,    at) {
        at = match($0, "\"" name "\":[-0-9.e+]+")
        return at ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0 : ""
    }
    { node = $1 }
    /"event":"step".*"test_accuracy"/ && field("step") >= 0.79 * steps {
        sum[node] += field("test_accuracy"); count[node]++
    }
    /"event":"done"/ { coverage += field("coverage"); done++ }
    END {
        worst = 1
        for (node in count) {
            nodes++
            if (sum[node] / count[node] < worst) worst = sum[node] / count[node]
        }
        if (done != n || nodes != n) exit 1
        printf "%.6f %.6f\n", worst, coverage / n
    }' "$4.out" >"$4.part"
}

for seed in $(seq "$seeds"); do
    for kind in $kinds; do
        for how in sim daemons; do
            file=$dir/$how,${kind%:*},${kind##*:},$seed
            [ ! -s "$file" ] || continue
            if ! "run_$how" "${kind%:*}" "${kind##*:}" "$seed" "$file" || [ ! -s "$file.part" ]; then
                echo "accuracy-daemons.sh: $how, ${kind%:*}, loss ${kind##*:}, seed $seed failed:" >&2
                tail -n 20 "$file.err" >&2
                exit 1
            fi
            mv "$file.part" "$file"
            echo "accuracy-daemons.sh: $how, ${kind%:*}, loss ${kind##*:}, seed $seed: $(cat "$file")" >&2
        done
    done
done

for kind in $kinds; do
    for seed in $(seq "$seeds"); do
        echo "${kind%:*} ${kind##*:}" \
            "$(cat "$dir/daemons,${kind%:*},${kind##*:},$seed" "$dir/sim,${kind%:*},${kind##*:},$seed" | paste -sd' ')"
    done
done | awk "$(cat "$(dirname "$0")/paired.awk")"'
{
    row = $1 " " $2
    if (!(row in runs)) order[++rows] = row
    runs[row]++
    daemons[row] += 100 * $3; covered[row] += 100 * $4
    sim[row] += 100 * $5; sim_covered[row] += 100 * $6
    d = 100 * ($3 - $5)
    sum[row] += d; squares[row] += d * d
}
END {
    print "| n | shards | loss | seeds | daemons % | simulator % | difference | coverage, daemons % | simulator % | verdict |"
    print "|---|---|---|---|---|---|---|---|---|---|"
    for (r = 1; r <= rows; r++) {
        row = order[r]
        split(row, key, " ")
        k = runs[row]
        mean = sum[row] / k
        half = half95(sum[row], squares[row], k)
        far = (mean < 0 ? -mean : mean) - half > 0.3
        wide = k < 2 || half > 1
        bad = bad || far || wide
        printf "| '$n' | %s | %g %% | %d | %.2f | %.2f | %+.2f ± %.2f | %.2f | %.2f | %s |\n", key[1],
            100 * key[2], k, daemons[row] / k, sim[row] / k, mean, half, covered[row] / k,
            sim_covered[row] / k, far ? "differ" : wide ? "too few seeds" : "agree"
    }
    exit bad
}'
