#!/bin/bash
# install.sh - what `make install` leaves is enough: examples/average.c, copied away from the
# tree, is built by pkg-config against the installed files alone and averages over two
# installed daemons.  Nothing is written outside a temporary folder.
# Needs the build folder in SLEET_BUILD or BUILDDIR, the tree in SLEET_SRC; MAKE and
# SLEET_CC (cc) where they are not the usual ones.
# shellcheck source=tests/e2e/lib.sh
. "$(dirname "$0")/lib.sh" install
src=${SLEET_SRC:?set SLEET_SRC to the source tree}
read -ra compiler <<<"${SLEET_CC:-cc}"
tail_lines=12

# ---- the files -------------------------------------------------------------------

root=$work/root
install_all() {
    # The outer make's flags are not this one's: it may be checking in parallel.
    env -u MAKEFLAGS -u MFLAGS -u MAKELEVEL "${MAKE:-make}" -C "$build" install DESTDIR="$root" \
        >"$work/install.out" 2>"$work/install.err"
}
file() { find "$root" -path "*/$1" | head -n 1; } # END-OF-PATH
# No program looks for its libraries in the build folder.
no_run_path() {
    local program
    for program in "$bin"/* "$lib"/*.so*; do
        [ -f "$program" ] || continue
        ! readelf -d "$program" | grep -E "R(UN)?PATH" | grep -F "$build" || return 1
    done
}
version_of_header() {
    sed -n 's/^#define SLEET_VERSION_\(MAJOR\|MINOR\|PATCH\) \([0-9]*\)$/\2/p' "$include/sleet.h" | paste -sd.
}

ok "make install DESTDIR= succeeds" install_all
for name in bin/sleetd bin/sleetctl bin/sleet-train bin/sleet-sim bin/sleet-bench include/sleet.h pkgconfig/sleet.pc recipes/rps.ini; do
    ok "$name is installed" [ -s "$(file "$name")" ]
done
bin=$(dirname "$(file bin/sleetd)") include=$(dirname "$(file include/sleet.h)")
pc=$(dirname "$(file pkgconfig/sleet.pc)") lib=$(dirname "$(dirname "$(file pkgconfig/sleet.pc)")")
ok "no program or library has the build folder in its run path" no_run_path

export PKG_CONFIG_LIBDIR=$pc PKG_CONFIG_SYSROOT_DIR=$root LD_LIBRARY_PATH=$lib
version=$(pkg-config --modversion sleet)
ok "sleet.pc and sleet.h are of one version ($version)" [ "$version" = "$(version_of_header)" ]
ok "sleetd is of that version" [ "$("$bin/sleetd" --version)" = "sleetd $version" ]
ok "sleet-train finds the installed library" eval '"$bin/sleet-train" --help >"$work/help.out" 2>"$work/help.err"'

# ---- a program outside the tree -----------------------------------------------------

mkdir "$work/mine" && cp "$src/examples/average.c" "$work/mine/"
compile() { # OUTPUT LIBRARIES...
    local out=$1
    shift
    # shellcheck disable=SC2046 # a list of flags
    (cd "$work/mine" && "${compiler[@]}" -std=gnu17 -Wall -Wextra -Wpedantic -Werror $(pkg-config --cflags sleet) \
        -o "$out" average.c "$@") >"$work/$out.out" 2>"$work/$out.err"
}
# shellcheck disable=SC2046
ok "average.c compiles by pkg-config alone" compile average $(pkg-config --libs sleet)
if [ -e "$lib/libsleet.so" ]; then
    ok "it needs the library by its SONAME" \
        eval 'readelf -d "$work/mine/average" | grep -qE "NEEDED.*libsleet\.so\.[0-9]+\]"'
    if [ -e "$lib/libsleet.a" ]; then
        ok "it links with the archive as well" compile average-static "$lib/libsleet.a"
    fi
fi

# ---- two installed daemons ----------------------------------------------------------

daemon() { # NUMBER PORT PEERS
    "$bin/sleetd" --id "$1" --listen "127.0.0.1:$2" --peers "$3" --name "install$$" \
        --control "$work/$1.sock" >"$work/d$1.out" 2>"$work/d$1.err" &
    daemon=$!
    until_true 10 said "d$1.out" '^sleetd node=' || return 1
    port=$(sed -n 's/^sleetd node=.* listen=[^ ]*:\([0-9]*\) .*/\1/p' "$work/d$1.out")
}
# The second port is asked of the kernel first, so that the first daemon can list it.
two_daemons() {
    local first second
    daemon 2 0 '' && second=$port && kill "$daemon" && wait "$daemon" &&
        daemon 1 0 "127.0.0.1:$second" && first=$port && daemon 2 "$second" "127.0.0.1:$first"
}
ok "two installed daemons start" two_daemons
averages=()
for i in 1 2; do
    SLEET_CONTROL=$work/$i.sock "$work/mine/average" $((2 * i - 1)) 2 15 >"$work/a$i.out" 2>"$work/a$i.err" &
    averages+=($!)
done
for i in 1 2; do
    ok "average $i ends by itself" until_true 60 gone "${averages[i - 1]}"
    wait "${averages[i - 1]}"
    code=$?
    ok "average $i: exit code 0 (was $code)" [ $code -eq 0 ]
    ok "average $i: of 1 and 3 the mean of both nodes came out" \
        said "a$i.out" ': first 2 last 2, coverage 1\.000 of 2 nodes'
done

echo "install: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
