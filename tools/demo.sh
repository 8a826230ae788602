#!/bin/bash
# demo.sh - four nodes train while packets are dropped; called by `bootstrap demo`
# from the top of the source tree once build/ holds the programs.
#
# The lab plays netem/demo-loss.ini and netem/demo-clean.ini.  Leaves in demo/ of the build
# folder: demo.png, what each trainer printed and what the lab measured.
set -u
build=${SLEET_BUILD:-${BUILDDIR:-build}}
here=$(dirname "$0")/..
out=$build/demo

if [ ! -x "$build/lab" ]; then
    echo "demo: $build/lab is missing: run ./bootstrap first" >&2
    exit 1
fi
rm -rf "$out" && mkdir -p "$out" || exit 1

# "step accuracy" of node $2 in the run $1.
curve() {
    sed -n 's/.*"event":"step".*"step":\([0-9]*\).*"test_accuracy":\([0-9.]*\).*/\1 \2/p' \
        "$out/$1/node$2.jsonl" >"$out/$1-$2.dat"
    [ -s "$out/$1-$2.dat" ]
}

plot() {
    command -v gnuplot >/dev/null || { echo "demo: gnuplot is missing, no plot" >&2; return 1; }
    local run
    for run in demo-loss demo-clean; do
        curve $run 1 && curve $run 4 || return 1
    done
    gnuplot <<EOF2
set terminal pngcairo size 900,540
set output "$out/demo.png"
set title "Fashion-MNIST on 4 nodes, 5 ms each way, node 4 frozen for 5 s half way"
set xlabel "steps"
set ylabel "test accuracy, %"
set key bottom right
set grid
plot "$out/demo-clean-1.dat" using 1:(100*\$2) with lines lw 2 title "no loss, node 1", \
     "$out/demo-clean-4.dat" using 1:(100*\$2) with lines lw 2 title "no loss, frozen node", \
     "$out/demo-loss-1.dat" using 1:(100*\$2) with lines lw 2 title "10 % loss, node 1", \
     "$out/demo-loss-4.dat" using 1:(100*\$2) with lines lw 2 title "10 % loss, frozen node"
EOF2
}

"$build/lab" run "$here/netem/demo-loss.ini" "$here/netem/demo-clean.ini" \
    --keep "$out" --json "$out/demo.json" --wait 120
code=$?
[ $code -le 1 ] || exit $code # it did not play, and has said why
plot && echo "accuracy against steps: $out/demo.png" || code=1
exit $code
