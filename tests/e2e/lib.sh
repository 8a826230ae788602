# lib.sh - what the scripts of this folder share: checks, waiting, programs in the background.
# Sourced with the script's name and the programs it needs, where the build folder is in
# SLEET_BUILD or BUILDDIR.  Waits poll a condition with a deadline; nothing sleeps for a guessed time.
# shellcheck shell=bash disable=SC2034,SC2154 # some names are for the scripts, or theirs
set -u
build=${SLEET_BUILD:-${BUILDDIR:?set SLEET_BUILD or BUILDDIR to the build folder}}
script=$1 d=$build/sleetd ctl=$build/sleetctl
for program in "${@:2}"; do
    [ -x "$build/$program" ] || { echo "$script: $build/$program is not built"; exit 77; }
done
unset "${!SLEET_NODE@}" "${!SLEET_JOB_@}" "${!SLEET_EMULATE_@}" "${!SLEET_LOG_@}" SLEET_CONTROL
# What is tested here is mostly not the sealing; where it is, the script says so.
export SLEET_JOB_SECURITY=none

work=$(mktemp -d) || exit 1
passed=0 failed=0
tail_lines=5 # of each output, after a failure
declare -A pid
finish() {
    local left
    left=$(jobs -pr)
    # shellcheck disable=SC2086 # a list of numbers
    [ -z "$left" ] || kill -KILL $left 2>/dev/null # sleetctl takes its children along
    wait 2>/dev/null
    rm -rf "$work"
}
trap finish EXIT
trap 'exit 1' INT TERM

ok() { # WHAT CONDITION...
    local what=$1
    shift
    if "$@"; then
        echo "ok: $what"
        passed=$((passed + 1))
    else
        echo "FAILED: $what"
        tail -n $tail_lines "$work"/*.out "$work"/*.err 2>/dev/null | cut -c 1-200 | sed 's/^/    /'
        failed=$((failed + 1))
    fi
}
# run_cases NAME...: the functions NAME_case, then the sum; the script's exit status.
run_cases() {
    local name
    for name in "$@"; do
        "${name}_case"
    done
    echo "$script: $passed passed, $failed failed"
    [ "$failed" -eq 0 ]
}

until_true() { # SECONDS COMMAND...: true as soon as COMMAND is; false at the deadline
    local limit=$((SECONDS + $1))
    shift
    until "$@"; do
        [ $SECONDS -lt $limit ] || return 1
        sleep 0.02
    done
}
said() { grep -sqE -- "$2" "$work/$1"; }             # FILE PATTERN
lines() { [ "$(wc -l <"$work/$1")" -eq "$2" ]; }     # FILE COUNT
gone() { ! kill -0 "$1" 2>/dev/null; }
at_most() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a <= b) }'; }
at_least() { awk -v a="$1" -v b="$2" 'BEGIN { exit !(a != "" && a >= b) }'; }
now_ms() { echo $(($(date +%s%N) / 1000000)); }

# keep NAME COMMAND...: run it in the background, its output in NAME.out and NAME.err.
keep() {
    local name=$1
    shift
    : >"$work/$name.out" # here, not in the child: an earlier life's output must not be read
    : >"$work/$name.err"
    "$@" >"$work/$name.out" 2>"$work/$name.err" &
    pid[$name]=$!
}
# ended NAME SECONDS: it ended by itself; its exit code in $code.
ended() {
    code=none
    until_true "$2" gone "${pid[$1]}" || return 1
    wait "${pid[$1]}"
    code=$?
}
# stop NAME...: end them and wait.
stop() {
    local name
    for name in "$@"; do
        kill -TERM "${pid[$name]}" 2>/dev/null
        until_true 5 gone "${pid[$name]}" || kill -KILL "${pid[$name]}"
        wait "${pid[$name]}" 2>/dev/null
    done
}

# boot NAME OPTIONS...: a daemon, up and answering; its port in $port.  $wrap comes before it.
wrap=()
boot() {
    local name=$1
    shift
    keep "$name" "${wrap[@]}" "$d" --control "$work/$name.sock" "$@"
    until_true 10 said "$name.out" '^sleetd node=' || return 1
    port=$(sed -n 's/^sleetd node=.* listen=[^ ]*:\([0-9]*\) .*/\1/p' "$work/$name.out")
}
status() { "$ctl" -s "$work/$1.sock" --json status 2>/dev/null; } # NAME
alive() { status "$1" | grep -q "\"nodes_alive\":$2,"; }           # NAME COUNT
# pair OPTIONS-OF-A -- OPTIONS-OF-B with HOST set: daemons a and b that list each other.
pair() {
    local one=() port_a port_b
    while [ "$1" != -- ]; do one+=("$1"); shift; done
    shift
    boot a --id 1 --listen "$host:0" || return 1
    port_a=$port
    boot b --id 2 --listen "$host:0" || return 1
    port_b=$port
    stop a b
    boot a --id 1 --listen "$host:$port_a" --peers "$host:$port_b" "${one[@]}" &&
        boot b --id 2 --listen "$host:$port_b" --peers "$host:$port_a" "$@"
}
