#!/bin/bash
# learning.sh - what loss does to learning: runs of sleet-train in the simulator, paired by
# seed.  Finished cells are kept and not run again.
#
#   tools/learning.sh [-t SLEET_TRAIN] [-c CELLS_DIR] [-s SEEDS] [-j JOBS] [-r REGEX] [-x ARGUMENTS]
#                     [-n] TABLE
#
# TABLE is a text file, such as tools/learning.cells, with a thing a line:
#
#   task NAME UNIT ARGUMENTS...          how it is learned; UNIT: points (of accuracy, more is
#                                        better), or percent (of a score of which less is better)
#   payload NAME ARGUMENTS...            what is averaged
#   codec NAME ARGUMENTS...              how it travels
#   row TASKS PAYLOADS CODECS LOSSES BURSTS    lists by commas; a burst of 1: independent losses
#   bar TASKS CODECS LOSS ALLOWED        how much may be lost at most, up to that LOSS
#   against TASK OTHER                   without loss it is held against OTHER's first row
#
# -r: only rows of which "TASK PAYLOAD CODEC LOSS BURST" matches, and what they are held against;
# -x: arguments for all; -n: nothing is run, only what is there already is shown.
#
# Prints a Markdown table: score (mean of the last evaluations) of the worst node and of the
# averaged model, and their paired difference, in the task's unit, positive is better, to the
# task's first row with its 95 % interval.  What the trainer does not know, or fails at, says
# so.  A row meets its bar with its means, misses it when a whole interval lies below, and is
# undecided between; a bar is as its best payload.  With gnuplot the differences are drawn to CELLS_DIR/TABLE.png.
# Exit: 0 no bar is missed, 1 one is, 2 usage.
set -eu -o pipefail
here=$(dirname "$0")
train=build/sleet-train cells=learning-cells seeds=3 jobs=2 regex=. extra="" run=yes
usage() { sed -n '5,6s/^# *//p' "$0" >&2; exit 2; }
while getopts t:c:s:j:r:x:n option; do
    case $option in
    t) train=$OPTARG ;;
    c) cells=$OPTARG ;;
    s) seeds=$OPTARG ;;
    j) jobs=$OPTARG ;;
    r) regex=$OPTARG ;;
    x) extra=$OPTARG ;;
    n) run= ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || usage
[ -r "$1" ] || { echo "learning.sh: cannot read $1" >&2; exit 2; }
table=$1
[ -x "$train" ] || { echo "learning.sh: no program $train; build it or name it with -t" >&2; exit 2; }

# Rows as "task payload codec loss burst arguments...", a base before what is held against it.
rows=$(awk -v regex="$regex" -v extra="$extra" -f "$here/learning-rows.awk" "$table")

# A new program gets a folder of its own; a cell's name has the sum of its arguments.
binary=$train
[ -x "$(dirname "$train")/.libs/sleet-train" ] && binary=$(dirname "$train")/.libs/sleet-train
dir=$cells/$(cksum <"$binary" | tr ' ' '-')
mkdir -p "$dir"
export train dir

# "file seed arguments" of each cell, seed by seed, so that an interrupted run has all rows.
list() {
    local seed task payload codec loss burst arguments
    for seed in $(seq "$seeds"); do
        while read -r task payload codec loss burst arguments; do
            arguments="$arguments --loss $loss --seed $seed"
            [ "$burst" = 1 ] || arguments+=" --burst $burst"
            echo "$task,$payload,$codec,$loss,$burst,$seed,$(cksum <<<"$arguments" | cut -d' ' -f1) $arguments"
        done <<<"$rows"
    done
}
missing() {
    local file arguments
    while read -r file arguments; do
        [ -s "$dir/$file" ] || echo "$file $arguments"
    done < <(list)
}

# One cell: its file appears only when the run has ended, with the last line of the trainer, or
# with why there is none: a refusal (2) or a failure (1), not a kill.
cell() { # FILE ARGUMENTS...
    local file=$1 status=0
    shift
    "$train" "$@" --json 2>"$dir/$file.settings" | grep '"event":"done"' >"$dir/$file.part" || status=${PIPESTATUS[0]}
    [ $status -ne 0 ] || [ -s "$dir/$file.part" ] || status=255 # it ended and said nothing
    case $status in
    0) mv "$dir/$file.part" "$dir/$file" ;;
    1) echo "failed: $(tail -n 1 "$dir/$file.settings")" >"$dir/$file" ;;
    2) echo "refused: $(tail -n 1 "$dir/$file.settings")" >"$dir/$file" ;;
    *) echo "learning.sh: sleet-train $* ended with $status" >&2; return 255 ;;
    esac
    echo "learning.sh: ${file%,*}: $(cut -c 1-150 "$dir/$file")" >&2
}
export -f cell
if [ "$run" ]; then
    echo "learning.sh: $(missing | wc -l) cells to run, $jobs at a time, kept in $dir" >&2
    missing | xargs -r -P "$jobs" -L 1 bash -o pipefail -c 'cell "$@"' cell
fi

for task in $(cut -d' ' -f1 <<<"$rows" | uniq); do
    ran=$(grep -ls '"event":"done"' "$dir/$task,"* | head -n 1) || continue
    sed -n "s/^sleet-train: /$task: /; s/, [0-9]* shards.*//; 1p" "$ran.settings"
done
echo

# "task payload codec loss burst seed worst averaged coverage", or words instead of the numbers.
results() {
    local file arguments
    while read -r file arguments; do
        echo "$file" | cut -d, -f1-6 | tr '\n,' '  '
        if [ -s "$dir/$file" ]; then
            sed -E 's/.*"test_[a-z_]*":([-0-9.e+]+),"averaged_[a-z_]*":([-0-9.e+]+).*"coverage":([0-9.]+).*/\1 \2 \3/; t
                s/.*"test_[a-z_]*":([-0-9.e+]+),"averaged_[a-z_]*":([-0-9.e+]+).*/\1 \2 0/' "$dir/$file"
        else
            echo "not run yet"
        fi
    done < <(list)
}
name=$(basename "$table" .cells)
status=0
results | awk -v points="$cells/$name.dat" "$(cat "$here/paired.awk" "$here/learning-table.awk")" "$table" - || status=$?
if [ $status -le 1 ] && command -v gnuplot >/dev/null; then
    gnuplot -e "points='$cells/$name.dat'; image='$cells/$name.png'" "$here/learning.gp" &&
        echo "learning.sh: differences against loss: $cells/$name.png" >&2
fi
exit $status
