#!/bin/bash
# demo.sh - four nodes train while packets are dropped; called by `bootstrap demo`
# from the top of the source tree once build/ holds the programs.
#
# The same training runs twice, with 10 % of datagrams dropped inside the daemons
# ("emulated") and without loss.  In both, node 3 is frozen for 4 s half way.
# Leaves demo.png and the runs' output (demo-LOSS.jsonl) in the build directory.
set -u -o pipefail
build=${SLEET_BUILD:-${BUILDDIR:-build}}
nodes=4
epochs=2
frozen=3
freeze_s=4
evaluate=20

for program in sleetctl sleetd sleet-train; do
    if [ ! -x "$build/$program" ]; then
        echo "demo: $build/$program is missing: run ./bootstrap first" >&2
        exit 1
    fi
done

# mawk reads in blocks unless told otherwise.
awk_live=(awk)
if awk -W version 2>&1 </dev/null | grep -q mawk; then
    awk_live=(awk -W interactive)
fi

# A progress bar an epoch from node 0's lines; all lines go to the file $1.
progress() {
    "${awk_live[@]}" -v keep="$1" -v epochs="$epochs" -v tty="$([ -t 1 ] && echo 1 || echo 0)" '
    function field(name,    at) {
        at = match($0, "\"" name "\":[-0-9.e+]+")
        return at ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) : ""
    }
    function bar(done, total,    i, s) {
        for (i = 0; i < 30; i++)
            s = s (i < done * 30 / total ? "#" : ".")
        return "[" s "]"
    }
    function show(line, end) {
        if (tty)
            printf "\r%s\033[K%s", line, end ? "\n" : ""
        else if (end)
            print line
        fflush()
        open = tty && !end
    }
    { print > keep }
    match($0, /epochs of [0-9]+ steps/) { per = substr($0, RSTART + 10, RLENGTH - 16) + 0 }
    /^\[0\] .*"event":"step"/ {
        in_epoch = field("step") - (field("epoch") - 1) * per
        if (per)
            show(sprintf("  epoch %d/%d %s %d/%d  loss %.3f  coverage %.3f", field("epoch"),
                 epochs, bar(in_epoch, per), in_epoch, per, field("loss"), field("coverage")), 0)
    }
    /^\[0\] .*"event":"epoch"/ {
        show(sprintf("  epoch %d/%d %s test accuracy %.2f %%, %.1f s", field("epoch"), epochs,
             bar(1, 1), 100 * field("test_accuracy"), field("seconds")), 1)
    }
    # sentences of the trainers and of sleetctl, not their figures
    /^sleetctl: / || /^\[[0-9]+\] sleet-train: / {
        if ($0 !~ /sleet-train: MLP/ || /^\[0\]/) {
            if (open)
                printf "\n"
            open = 0
            print "  " $0
        }
    }
    END { if (open) printf "\n" }'
}

# One training run with the loss $1; its lines into $2.
train() {
    "$build/sleetctl" --json run -n $nodes --loss "$1" --seed 1 \
        --freeze "$frozen:/\"event\":\"epoch\"/:$freeze_s" -- \
        sleet-train --json --shard '{i}/{n}' --shards iid --epochs $epochs --batch 64 \
        --min-nodes $nodes --evaluate $evaluate 2>&1 | progress "$2"
}

# The table of one run from its lines.
table() {
    awk '
    function field(name,    at) {
        at = match($0, "\"" name "\":[-0-9.e+]+")
        return at ? substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3) : ""
    }
    match($0, /^\[[0-9]+\]/) { node = substr($0, 2, RLENGTH - 2) + 0 }
    /"event":"done"/ {
        accuracy[node] = 100 * field("test_accuracy")
        coverage[node] = field("coverage")
        wait[node] = field("longest_wait_s")
        time[node] = field("seconds")
        seen[node] = 1
    }
    /"type":"daemon"/ {
        sent[node] = field("datagrams_sent")
        lost[node] = field("datagrams_lost")
        late[node] = field("fragments_late")
        seen[node] = 1
    }
    END {
        printf "  %4s  %13s  %8s  %9s  %9s  %9s  %12s  %7s\n", "node", "test accuracy",
            "coverage", "sent", "lost", "late", "longest wait", "time"
        for (i = 0; i < '$nodes'; i++)
            if (seen[i])
                printf "  %4d  %11.2f %%  %8.4f  %9d  %9d  %9d  %10.3f s  %5.1f s%s\n", i,
                    accuracy[i], coverage[i], sent[i], lost[i], late[i], wait[i], time[i],
                    i == '$frozen' ? "  (frozen '$freeze_s' s)" : ""
    }' "$1"
}

# "step accuracy" lines of node $2 in the file $1.
curve() {
    sed -n "s/^\[$2\] .*\"event\":\"step\".*\"step\":\([0-9]*\).*\"test_accuracy\":\([0-9.]*\).*/\1 \2/p" "$1"
}

plot() {
    if ! command -v gnuplot >/dev/null; then
        echo "demo: gnuplot is missing, no plot" >&2
        return 1
    fi
    for loss in 0.1 0; do
        curve "$build/demo-$loss.jsonl" 0 >"$build/demo-$loss-node0.dat"
        curve "$build/demo-$loss.jsonl" $frozen >"$build/demo-$loss-frozen.dat"
    done
    gnuplot <<EOF
set terminal pngcairo size 900,540
set output "$build/demo.png"
set title "Fashion-MNIST on $nodes nodes, node $frozen frozen for $freeze_s s half way"
set xlabel "steps"
set ylabel "test accuracy, %"
set key bottom right
set grid
plot "$build/demo-0-node0.dat" using 1:(100*\$2) with lines lw 2 title "no loss, node 0", \
     "$build/demo-0-frozen.dat" using 1:(100*\$2) with lines lw 2 title "no loss, frozen node", \
     "$build/demo-0.1-node0.dat" using 1:(100*\$2) with lines lw 2 title "10 % loss (emulated), node 0", \
     "$build/demo-0.1-frozen.dat" using 1:(100*\$2) with lines lw 2 title "10 % loss (emulated), frozen node"
EOF
}

code=0
for loss in 0.1 0; do
    [ "$loss" = 0 ] && what="no loss" || what="10 % of datagrams dropped (emulated in the daemons)"
    echo "$nodes nodes, $what; node $frozen is frozen for $freeze_s s after its first epoch"
    train $loss "$build/demo-$loss.jsonl" || code=1
done
for loss in 0.1 0; do
    echo
    [ "$loss" = 0 ] && echo "no loss" || echo "10 % loss (emulated)"
    table "$build/demo-$loss.jsonl"
done
echo
echo "sent, lost: datagrams; late: fragments that came after their round had closed"
plot && echo "accuracy against steps: $build/demo.png" || code=1
exit $code
