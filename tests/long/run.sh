#!/bin/bash
# run.sh - the parts of `make check-long`; its arguments are their names.
# A part that ended well leaves the stamp check-long/NAME in the build folder, and every
# part its output in check-long/NAME.log.  The last lines, one a part, are
# "check-long NAME: ok, 12 s", "... FAILED" or "... SKIPPED: REASON"; a skipped part leaves no stamp.
# Exit: 0 all ok or skipped, 1 some failed, 2 usage.
# Environment: SLEET_SRC, SLEET_BUILD; MAKE; JOBS (2); SLEET_RESUME (programs: a part
# whose stamp is newer than all of them is not run again).
set -u
src=${SLEET_SRC:?set SLEET_SRC to the source tree}
build=${SLEET_BUILD:?set SLEET_BUILD to the build folder}
jobs=${JOBS:-2}
make=${MAKE:-make}
state=$build/check-long

# Build the tree once more in check-long/NAME, with its checks, and stay there.
other_build() { # NAME CONFIGURE-ARGUMENTS...
    local folder=$state/$1.build
    shift
    mkdir -p "$folder" && cd "$folder" || return 1
    if [ ! -e Makefile ] || [ "$src/configure" -nt config.status ]; then
        "$src/configure" -q --enable-werror "$@" || return 1
    fi
    if ! "$make" -s --no-print-directory -j"$jobs" all check TESTS= >build.log 2>&1; then
        tail -n 40 build.log
        return 1
    fi
}
last_line() { # COMMAND...: the output only where it fails
    local log=$state/${FUNCNAME[1]}.out status=0
    "$@" >"$log" 2>&1 || status=$?
    case $status in
    0 | 77) grep -a '[[:alnum:]]' "$log" | tail -n 1 ;;
    *) grep -avE '^(ok|PASS)' "$log" | tail -n 60 ;;
    esac
    return $status
}

# The tarball holds all that a build and `make check` need, in read-only sources.  root is
# stopped by file modes only without the capability to override them.
part_distcheck() {
    local drop=()
    [ "$(id -u)" -ne 0 ] || drop=(setpriv "--bounding-set=-dac_override,-dac_read_search" --)
    last_line "${drop[@]}" "$make" -C "$build" --no-print-directory distcheck
}

# The unit and simulator tests as clang builds them.
part_clang() {
    other_build clang CC=clang --disable-shared && last_line ./unit && last_line ./simtest
}

# The memory of engines, and of three daemons, stays flat over 10,000 rounds.
part_memory() {
    local nodes status=0
    for nodes in 2 3 4; do
        "$build/memory" $nodes 10000 || status=1
    done
    "$src/tests/long/memory.sh" 10000 || status=1
    return $status
}

# The table of test accuracy under loss; finished cells are kept.
part_accuracy() {
    "$src/tools/learning.sh" -t "$build/sleet-train" -c "$state/accuracy-cells" -j "$jobs" -s 5 \
        "$src/tools/accuracy.cells"
}

# What loss does to five tasks, by what is averaged and how it travels; finished cells are kept.
part_learning() {
    "$src/tools/learning.sh" -t "$build/sleet-train" -c "$state/learning-cells" -j "$jobs" \
        "$src/tools/learning.cells"
}

# Three cells of that table with real daemons agree with the simulator; finished runs are kept.
part_daemons() {
    "$src/tools/accuracy-daemons.sh" -b "$build" -c "$state/accuracy-cells"
}

# What a cut of 1,000 steps leaves of the model: within a point of the better side, also where the
# sides never met, while their plain mean is more than ten points worse.
part_apart() {
    local policy seed bar
    for seed in 1 2 3; do
        for policy in park continue strangers; do
            bar=0
            [ $policy != strangers ] || bar=-10
            "$build/apart" $policy $seed | tee -a "$state/apart.out" | awk -v bar=$bar '{ print }
                { healed = $0; sub(/.*healed, [^:]*: [0-9.]* %, /, "", healed)
                  mean = $0; sub(/.*their mean: [0-9.]* %, /, "", mean) }
                END { exit !(NR == 1 && healed + 0 >= -1 && (bar == 0 || mean + 0 < bar)) }' || return 1
        done
    done
}

# Strategies of 2 to 16 daemons leave of the variance what their matrices leave.
part_strategies() { SLEET_BUILD=$build SLEET_ALL_NODES=1 timeout -k 10 3600 bash "$src/tests/e2e/strategies.sh"; }

# A node that joins, and kills every 20 s: the accuracy of the undisturbed run, within a point.
part_state() { SLEET_BUILD=$build timeout -k 10 10800 bash "$src/tests/e2e/state.sh" joined churned; }

# Likewise behind netem, in the lab; an hour and more where that is a guest.
part_netem() {
    local status=0
    "$src/tools/accuracy-daemons.sh" -n -b "$build" -c "$state/accuracy-cells" || status=$?
    [ $status -ne 3 ] || return 77 # neither netem nor a guest
    return $status
}

# 64 daemons on one machine; 16 that are starved of processor time.
part_crowd() { SLEET_BUILD=$build timeout -k 10 900 bash "$src/tests/long/crowd.sh"; }

# 50 daemons killed in the middle of rounds.
part_crashes() { SLEET_BUILD=$build SLEET_CRASHES=50 timeout -k 10 1800 bash "$src/tests/e2e/crash.sh" kill; }

# A tensor of more than 2^29 elements between two daemons; at most 15 minutes.
part_big() { timeout -k 10 900 "$src/tests/long/big.sh"; }

# All scenarios on real links; what each node said is kept.
part_lab() {
    mkdir -p "$state/lab-nodes" && rm -f "$state/lab.json"
    "$build/lab" run all --wait 1800 --json "$state/lab.json" --keep "$state/lab-nodes"
    case $? in
    3) return 77 ;; # neither netem nor a guest
    0) return 0 ;;
    *) return 1 ;;
    esac
}

# The simulator's tests under 20 more seeds.
part_seeds() {
    local seed status=0
    for seed in $(seq 2 21); do
        printf 'seed %d: ' "$seed"
        SLEET_TEST_SEED=$seed last_line "$build/simtest" || {
            echo "seed $seed: FAILED: SLEET_TEST_SEED=$seed simtest"
            status=1
        }
    done
    return $status
}

# Replicas that add results do not drift apart in 2,000 rounds, and do without repair; those of AdamW have equal bits in 5,000.
part_drift() { SLEET_TEST_LONG=1 last_line "$build/simtest" late && SLEET_TEST_LONG=1 last_line "$build/simtest" nonlinear; }

# The unit and simulator tests under ASan and UBSan, all repeats; then real daemons.
part_sanitizers() {
    other_build sanitizers --enable-asan --enable-ubsan --disable-shared &&
        last_line ./unit && last_line ./simtest && end_to_end
}

# The same under ThreadSanitizer, a tenth of the repeats.
part_threads() {
    other_build threads --enable-tsan --disable-shared && export SLEET_TEST_FAST=1 &&
        last_line ./unit && last_line ./simtest && end_to_end
}

# Daemons and trainers of the build in this folder; a report of a sanitizer fails it.
end_to_end() {
    local reports=$PWD/reports status=0
    rm -f "$reports".*
    export SLEET_BUILD=$PWD OPENBLAS_NUM_THREADS=1 ASAN_OPTIONS=log_path=$reports \
        TSAN_OPTIONS=log_path=$reports UBSAN_OPTIONS=print_stacktrace=1
    last_line bash "$src/tests/e2e/loopback.sh" || status=$?
    if compgen -G "$reports.*" >/dev/null; then
        head -n 60 "$reports".*
        return 1
    fi
    return $status
}

# Each fuzz target searches for a minute, from its corpus on; finds are kept.
part_fuzz() {
    local name found status=0
    other_build fuzz CC=clang --enable-fuzz --enable-asan --enable-ubsan --disable-shared || return 1
    for name in codec datagram edges config idx control scenario handshake member recipe state; do
        found=$state/fuzz.build/found/$name
        mkdir -p "$found"
        printf 'fuzz_%s: ' "$name"
        last_line ./fuzz_$name -max_total_time="${SLEET_FUZZ_SECONDS:-60}" -timeout=10 \
            -artifact_prefix="$found-" "$found" "$src/tests/fuzz/corpus/$name" || status=1
    done
    return $status
}

# 1,000 nodes in one process: the time it took and the most memory it held, below 3 GiB.
part_scale() {
    local user system kib status
    [ -x /usr/bin/time ] || { echo "scale: GNU time is missing (Debian: time)"; return 77; }
    /usr/bin/time -o "$state/scale.times" -f '%U %S %M' \
        timeout -k 10 900 "$build/sleet-sim" --nodes 1000 --elements 2000 --rounds 10
    status=$?
    read -r user system kib < <(tail -n 1 "$state/scale.times")
    echo "1000 nodes: processor time $user s, of the system $system s, $((kib / 1024)) MiB at most"
    [ $status -eq 0 ] && [ "$kib" -gt 0 ] && [ "$kib" -lt $((3 << 20)) ]
}

# What is done against loss is as good as theory says, and how fast it is.
part_reconstruct() { "$build/sleet-bench" reconstruct; }

# Every wilful fault put into the sources is found by a test.
part_mutants() { "$make" -C "$build" --no-print-directory mutants; }

# Was the part done since the programs were built?
done_already() { # NAME
    local program
    [ -n "${SLEET_RESUME:-}" ] && [ -e "$state/$1" ] || return 1
    for program in $SLEET_RESUME; do
        [ ! "$build/$program" -nt "$state/$1" ] || return 1
    done
}

run() { # NAME: adds to $summary
    local name=$1 status start=$SECONDS
    if done_already "$name"; then
        summary+=("check-long $name: ok, kept of $(cat "$state/$name")")
        return
    fi
    echo "check-long $name: starts"
    rm -f "$state/$name"
    (unset MAKEFLAGS MFLAGS MAKELEVEL && "part_$name") 2>&1 | tee "$state/$name.log"
    status=${PIPESTATUS[0]}
    case $status in
    0)
        date -u +%FT%TZ >"$state/$name" || exit 1
        summary+=("check-long $name: ok, $((SECONDS - start)) s")
        ;;
    77) summary+=("check-long $name: SKIPPED: $(tail -n 1 "$state/$name.log")") ;;
    *)
        summary+=("check-long $name: FAILED, see $state/$name.log")
        failed=1
        ;;
    esac
}

set -o pipefail
summary=() failed=0
for name in "$@"; do
    declare -F "part_$name" >/dev/null || set --
done
if [ $# -eq 0 ]; then
    echo "usage: run.sh PART..., of $(declare -F | sed -n 's/.* part_//p' | paste -sd' ')" >&2
    exit 2
fi
mkdir -p "$state" || exit 1
for name in "$@"; do
    run "$name"
done
printf '%s\n' "${summary[@]}"
exit $failed
