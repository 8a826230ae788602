#!/bin/bash
# accuracy-daemons.sh - cells of the accuracy table repeated with real daemons: four
# sleetd and four trainers, beside the simulator with the same settings and seeds.
# Finished runs are kept.
#
#   tools/accuracy-daemons.sh [-n] [-b BUILD_DIR] [-c CELLS_DIR] [-e EPOCHS] [-s SEEDS]
#                             [-k "iid:0.1 iid:0.3 label:0.1"]
#   tools/accuracy-daemons.sh -t TABLE -r REGEX [-b BUILD_DIR] [-c CELLS_DIR] [-s SEEDS]
#
# With -t the cells are rows of a table of learning.sh, of which "TASK PAYLOAD CODEC LOSS BURST" matches: they say
# how many nodes there are and what is trained.
#
# The daemons run on loopback and drop datagrams themselves; with -n they run in the lab and netem
# drops, one scenario a run.  A cell is SHARDS:LOSS, with -n also SHARDS:LOSSxBURST: lost in
# bursts of so many on average, on both sides by the Gilbert model with r = 1 / BURST and
# p = r LOSS / (1 - LOSS).  With -n the default is "iid:0.1 iid:0.3 iid:0.1x5".
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
# coverage of both tells.  Exit: 0 all agree, 1 not, 2 usage, 3 no netem here.
set -eu -o pipefail
build=build cells=accuracy-cells epochs=4 seeds=5 kinds="" real=daemons table="" regex=.
n=4 batch=64 hidden=64 samples=60000
here=$(dirname "$0")
# Links as the simulator's; so little is sent that a guest on one processor keeps up.
links="delay_ms = 1" rate_mbit=25
while getopts nb:c:e:s:k:t:r: option; do
    case $option in
    n) real=lab ;;
    b) build=$OPTARG ;;
    c) cells=$OPTARG ;;
    e) epochs=$OPTARG ;;
    s) seeds=$OPTARG ;;
    k) kinds=$OPTARG ;;
    t) table=$OPTARG ;;
    r) regex=$OPTARG ;;
    *) exit 2 ;;
    esac
done
programs="sleetd sleetctl sleet-train"
if [ $real = lab ]; then
    programs+=" lab"
    kinds=${kinds:-iid:0.1 iid:0.3 iid:0.1x5}
fi
declare -A arguments=() # of the trainer, by cell
if [ "$table" ]; then
    if [ $real = lab ] || [ "$kinds" ]; then
        echo "accuracy-daemons.sh: -t goes without -n and -k" >&2
        exit 2
    fi
    rows=$(awk -v regex="$regex" -v extra="" -f "$here/learning-rows.awk" "$table")
    while read -r task payload codec loss burst options; do
        [[ "$task $payload $codec $loss $burst" =~ $regex ]] || continue # held against it only
        if [[ ! $options =~ ^--sim\ ([0-9]+)\ (.*) ]] || [ "$burst" != 1 ] || { [ ${#arguments[@]} -gt 0 ] && [ "${BASH_REMATCH[1]}" != "$n" ]; }; then
            echo "accuracy-daemons.sh: $task $payload: cells are of --sim N, the same for all, and of independent losses" >&2
            exit 2
        fi
        n=${BASH_REMATCH[1]}
        arguments[$task,$payload,$codec:$loss]=${BASH_REMATCH[2]}
        kinds+=" $task,$payload,$codec:$loss"
    done <<<"$rows"
    [ "$kinds" ] || { echo "accuracy-daemons.sh: no row of $table matches $regex" >&2; exit 2; }
fi
kinds=${kinds:-iid:0.1 iid:0.3 label:0.1}
for program in $programs; do
    [ -x "$build/$program" ] || {
        echo "accuracy-daemons.sh: no program $build/$program; build it or name the folder with -b" >&2
        exit 2
    }
done
for kind in $kinds; do
    if [[ ! $kind =~ :[0-9.]+(x[0-9.]+)?$ ]] || { [[ $kind == *x* ]] && [ $real = daemons ]; }; then
        echo "accuracy-daemons.sh: a cell is SHARDS:LOSS, with -n also SHARDS:LOSSxBURST, not $kind" >&2
        exit 2
    fi
done

# New programs or other settings get a folder of their own.
version=$({
    for program in $programs; do
        cat "$build/$program" "$build/.libs/$program" 2>/dev/null || true
    done
    echo "$epochs $links $rate_mbit${table:+ $(declare -p arguments)}"
} | cksum | tr ' ' '-')
dir=$cells/$real-$version
mkdir -p "$dir"
steps=$((samples / (n * batch) * epochs))
# What a cell trains; a table's says how many steps when it has run in the simulator.
options_of() { # SHARDS-OR-ROW LOSS
    echo "${arguments[$1:$2]:---shards $1 --batch $batch --hidden $hidden --epochs $epochs}"
}

# The worst node's accuracy and the mean coverage, from the trainers' lines: a node a file, or
# a node a prefix.  Fails where one is missing.
worst_of() { # FILE...
    awk -v steps=$steps -v n=$n '
    function field(name,    at) {
        at = match($0, "\"" name "\":[-0-9.e+]+")
        return at ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0 : ""
    }
    { node = ARGC > 2 ? FILENAME : $1 }
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
    }' "$@"
}

# One run: "accuracy coverage" to stdout.
run_sim() { # SHARDS LOSS BURST SEED FILE
    # shellcheck disable=SC2046
    "$build/sleet-train" --sim $n $(options_of "$1" "$2") --loss "$2" ${3:+--burst "$3"} --seed "$4" --json 2>"$5.err" |
        sed -n 's/.*"done","steps":\([0-9]*\),"test_accuracy":\([0-9.]*\).*"coverage":\([0-9.]*\),.*/\2 \3 \1/p'
}
run_daemons() { # SHARDS LOSS - SEED FILE
    local evaluate
    [ ! "$table" ] || steps=$(cut -d' ' -f3 "$dir/sim,${1//:/,},$2,$4")
    evaluate=$(((steps + 19) / 20)) # as the simulator: about every 5 % of the steps
    # shellcheck disable=SC2046
    timeout -k 10 1200 "$build/sleetctl" run -n $n --loss "$2" --seed "$4" -- sleet-train --json $(options_of "$1" "$2") \
        --seed "$4" --min-nodes $n --evaluate $evaluate >"$5.out" 2>"$5.err" && worst_of "$5.out"
}
run_lab() { # SHARDS LOSS BURST SEED FILE
    local loss="loss = $2" status=0
    [ -z "$3" ] || loss=$(awk -v loss="$2" -v burst="$3" 'BEGIN {
        printf "gemodel_p = %.6f\ngemodel_r = %.6f", loss / burst / (1 - loss), 1 / burst
    }')
    cat >"$5.ini" <<END
[job]
about = a cell of the accuracy table
seed = $4
limit_s = 1800
[nodes]
count = $n
rate_mbit = $rate_mbit
[link *]
$links
$loss
[workload]
shards = $1
samples = $samples
epochs = $epochs
batch = $batch
hidden = $hidden
evaluate = $(((steps + 19) / 20))
[expect]
done = 1
accuracy_gap <= 0
loss_gap <= 0.02
END
    sleep 1 # another lab that waits has its turn
    "$build/lab" run "$5.ini" --wait 3600 --keep "$dir" >"$5.err" 2>&1 || status=$?
    [ $status -ne 0 ] || worst_of "$5"/node*.jsonl
    return $status
}

for seed in $(seq "$seeds"); do
    for kind in $kinds; do
        shards=${kind%:*} loss=${kind##*:} burst=
        [[ $loss != *x* ]] || burst=${loss#*x} loss=${loss%x*}
        for how in sim $real; do
            file=$dir/$how,${kind//:/,},$seed
            [ ! -s "$file" ] || continue
            what="$how, $shards, loss $loss${burst:+ in bursts of $burst}, seed $seed"
            # The file appears only when the run has ended well.
            status=0
            "run_$how" "$shards" "$loss" "$burst" "$seed" "$file.run" >"$file.part" || status=$?
            if [ $status -ne 0 ] || [ ! -s "$file.part" ]; then
                echo "accuracy-daemons.sh: $what failed:" >&2
                tail -n 20 "$file.run.err" >&2
                [ $status -ne 3 ] || exit 3
                exit 1
            fi
            mv "$file.part" "$file"
            echo "accuracy-daemons.sh: $what: $(cat "$file")" >&2
        done
    done
done

for kind in $kinds; do
    for seed in $(seq "$seeds"); do
        echo "${kind%:*} ${kind##*:}" \
            "$(cut -d' ' -f1,2 "$dir/$real,${kind//:/,},$seed" "$dir/sim,${kind//:/,},$seed" | paste -sd' ')"
    done
done | awk -v real=$real -v cells="$([ "$table" ] && echo row || echo shards)" "$(cat "$here/paired.awk")"'
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
    print "| n | " cells " | loss | seeds | " real " % | simulator % | difference | coverage, " real " % | simulator % | verdict |"
    print "|---|---|---|---|---|---|---|---|---|---|"
    for (r = 1; r <= rows; r++) {
        row = order[r]
        split(row, key, " ")
        burst = key[2] ~ /x/ ? " in bursts of " substr(key[2], index(key[2], "x") + 1) : ""
        k = runs[row]
        mean = sum[row] / k
        half = half95(sum[row], squares[row], k)
        far = (mean < 0 ? -mean : mean) - half > 0.3
        wide = k < 2 || half > 1
        bad = bad || far || wide
        printf "| '$n' | %s | %g %%%s | %d | %.2f | %.2f | %+.2f ± %.2f | %.2f | %.2f | %s |\n", key[1],
            100 * key[2], burst, k, daemons[row] / k, sim[row] / k, mean, half, covered[row] / k,
            sim_covered[row] / k, far ? "differ" : wide ? "too few seeds" : "agree"
    }
    exit bad
}'
