#!/bin/bash
# lab.sh - the lab: its refusals, and scenarios on real links in one guest boot.
# Arguments: the cases to run, of faults scenarios twice user reap (all).
# Needs the build folder in SLEET_BUILD or BUILDDIR, dataset-fashion-mnist, and a kernel
# with netem or User-Mode Linux.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh" lab lab sleetd sleetctl sleet-bench sleet-train
data=${SLEET_DATA:-/usr/share/datasets/fashion-mnist}
lab=$build/lab tail_lines=30
export TMPDIR=$work # a guest of these tests does not wait for another lab's
[ -d "$data" ] || { echo "lab: no data in $data (package dataset-fashion-mnist)"; exit 77; }

says() { # CODE TEXT ARGUMENTS...: the lab ends with CODE and says TEXT
    local code=$1 text=$2
    shift 2
    "$lab" "$@" >"$work/lab.out" 2>&1
    [ $? -eq "$code" ] && grep -q -- "$text" "$work/lab.out"
}

# A run of a few seconds beyond the boot.
small() { # FILE EXPECTATION
    printf '%s\n' '[nodes]' 'count = 2' '[workload]' 'samples = 640' 'epochs = 1' '[expect]' "$2" >"$1"
}

faults_case() {
    printf '[nodes]\ncount = 4\n[expect]\nspeed >= 1\n' >"$work/bad.ini"
    ok "faults: no command" says 2 "a command is missing"
    ok "faults: unknown command" says 2 "unknown command" explode
    ok "faults: unknown scenario" says 2 "lab list shows the scenarios" run no-such-scenario
    ok "faults: unknown backend" says 2 "wrong value of an option" run clean --backend fast
    ok "faults: a bad scenario is named with its line" says 2 "bad.ini:4: " run "$work/bad.ini"
    printf '[nodes]\ncount = 2\n[event a]\nat_s = 1\ndo = clock 60\n[expect]\ndone = 1\n' >"$work/clock.ini"
    if [ "$(id -u)" -eq 0 ] && "$lab" run "$work/clock.ini" --backend loss >"$work/lab.out" 2>&1; [ $? -eq 1 ]; then
        ok "faults: the clock of this machine is not moved" grep -q "only a guest has" "$work/lab.out"
    fi
    printf '%s\n' '[recipe]' 'paper = A' 'claim = B' 'differs = C' '[reproduce one]' \
        'run = sleet-bench average rps --repetitions 1 --json' 'bar = consensus_1 <= 1e-12' >"$work/good.ini"
    sed 's/<=/>=/' "$work/good.ini" >"$work/missed.ini"
    sed 's/sleet-bench/rm/' "$work/good.ini" >"$work/other.ini"
    ok "faults: an experiment whose bar holds" says 0 "1 bars held, 0 missed" reproduce "$work/good.ini"
    ok "faults: one whose bar does not" says 1 "FAIL" reproduce "$work/missed.ini"
    ok "faults: one that would run something else" says 1 "not rm" reproduce "$work/other.ini"
    echo 'why = one is not none' >>"$work/missed.ini"
    ok "faults: a reason is told" says 1 "one is not none" reproduce "$work/missed.ini"
    printf '%s\n' '[recipe]' 'paper = A' 'claim = B' 'differs = C' '[reproduce right]' "of = $work/good.ini" \
        '[reproduce both]' "of = $work/good.ini: one" "of = $work/missed.ini" >"$work/rows.ini"
    ok "faults: a row of a matrix fails with one of its bars" says 1 "^FAIL  both  *1 of   2  consensus_1 >= 1e-12: .*(one is not none)$" \
        matrix "$work/rows.ini"
    ok "faults: the other does not, and there is no color in a file" grep -q "^pass  right  *1 of   1  consensus_1 <= 1e-12: 0$" "$work/lab.out"
    ok "faults: a matrix in colors on a terminal" eval \
        'script -qec "$lab matrix $work/rows.ini" /dev/null </dev/null | grep -q "^.\[32mpass  right .*.\[0m"'
    sed -i 's/: one/: two/' "$work/rows.ini"
    ok "faults: an experiment that is not there" says 2 "good.ini has no experiment two" matrix "$work/rows.ini"
    sed -i 's/: two/: one/' "$work/rows.ini"
    sed -i 's/^bar = .*/plot = consensus_/' "$work/good.ini"
    ok "faults: one that is drawn only holds no row" says 2 "good.ini has no experiment .* with bars" matrix "$work/rows.ini"
    ok "faults: unknown recipe" says 2 "there is no recipe none" reproduce none
    ok "faults: list names the scenarios" says 0 "^freeze-one " list
}

scenarios_case() {
    local line code
    "$lab" run clean loss-10 freeze-one kill-one clock --wait 200 >"$work/lab.out" 2>&1
    code=$?
    if [ $code -eq 3 ]; then
        tail -n 1 "$work/lab.out"
        exit 77
    fi
    cat "$work/lab.out"
    line=$(grep -aE '^lab: [0-9]+ passed, [0-9]+ failed$' "$work/lab.out" | tail -n 1)
    : >"$work/lab.out"
    if [ -n "$line" ]; then
        set -- $line
        passed=$((passed + $2)) failed=$((failed + $4))
    fi
    ok "scenarios: the lab came to its end and its exit code is $code" [ -n "$line" -a $code -eq $((${4:-1} > 0)) ]
}

# What is expected wrongly fails; one lab keeps another out.
twice_case() {
    local run code
    small "$work/wrong.ini" "steps = 1000"
    "$lab" run "$work/wrong.ini" --wait 200 >"$work/first.out" 2>&1 &
    run=$!
    until_true 200 said first.out "^lab: backend"
    ok "twice: a second lab is refused with a sentence" says 4 "another lab runs" run clean
    wait $run
    code=$?
    cp "$work/first.out" "$work/lab.out"
    ok "twice: the first fails as its expectation does" \
        grep -q "FAILED: steps = 1000 (10)" "$work/lab.out"
    ok "twice: with exit code 1 (was $code)" [ $code -eq 1 ]
}

user_case() {
    local home=$work/home code
    if [ "$(id -u)" -ne 0 ] || ! setpriv --reuid=65534 --regid=65534 --clear-groups test -x "$lab"; then
        echo "user: left out: needs root, and a build folder that everybody may read"
        return
    fi
    # All before it changes hands: root may have no power over others' files here.
    mkdir -m 777 "$home" && chmod 711 "$work"
    small "$home/small.ini" "done = 1"
    chown 65534:65534 "$home"
    setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$home" TMPDIR="$home" \
        "$lab" run "$home/small.ini" --wait 200 >"$work/lab.out" 2>&1
    code=$?
    ok "user: an ordinary user runs a scenario (exit code $code)" [ $code -eq 0 ]
    ok "user: nothing is left of it" [ "$(ls "$home" | grep -v lock$)" = small.ini ]
}

# A lab that is killed cannot tidy up; reap does.
reap_case() {
    local run
    small "$work/small.ini" "done = 1"
    "$lab" run "$work/small.ini" --wait 200 >"$work/killed.out" 2>&1 &
    run=$!
    until_true 250 said killed.out "^small: "
    kill -KILL $run
    wait $run 2>/dev/null
    ok "reap: ends with 0" "$lab" reap --wait 100
    ok "reap: no guest, namespace or folder is left" nothing_left
}
nothing_left() {
    ! pgrep -f "uml_dir=$work" >/dev/null && [ ! -e /run/netns/sleetlab1 ] &&
        ! compgen -G "$work/sleet-lab-*-*" >/dev/null
}

[ $# -gt 0 ] || set -- faults scenarios twice user reap
run_cases "$@"
