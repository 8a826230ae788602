#!/bin/bash
# Every test that tests/scenarios.md names is there: cases of unit and simtest, of the scripts of
# tests/e2e, scenarios of the lab, parts of check-long.
set -u
build=${SLEET_BUILD:?set SLEET_BUILD to the build folder}
cd "${SLEET_SRC:?set SLEET_SRC to the source tree}" || exit 1
for program in unit simtest; do
    [ -x "$build/$program" ] || { echo "check-scenarios: $build/$program is not built"; exit 77; }
done
cases=$("$build/unit" --list; "$build/simtest" --list)
parts=$(sed -n 's/^long_parts = //p' Makefile.am)
named=0 missing=0
there() { # NAME as it stands between backquotes
    case $1 in
    *.ini) [ -e "netem/scenarios/$1" ] ;;
    *.sh\ *) grep -q "^${1#* }_case()" "tests/e2e/${1% *}" ;;
    *.sh) [ -e "tests/e2e/$1" ] || [ -e "$1" ] ;;
    *.\*) grep -q "^${1%\*}" <<<"$cases" ;;
    *.*) grep -qx "$1" <<<"$cases" ;;
    *) return 0 ;; # no test
    esac
}
while read -r name; do
    named=$((named + 1))
    there "$name" && continue
    echo "tests/scenarios.md: no test $name"
    missing=$((missing + 1))
done < <(sed 1,6d tests/scenarios.md | grep -oE '`[a-z_]+\.[a-z_0-9*]+( [a-z]+)?`|`[a-z/-]+\.(ini|sh)`' | tr -d '`' | sort -u)
while read -r part; do
    case " $parts " in *" $part "*) ;; *) echo "tests/scenarios.md: no part $part"; missing=$((missing + 1)) ;; esac
done < <(grep -oE 'long (`[a-z]+`(, )?)+' tests/scenarios.md | grep -oE '`[a-z]+`' | tr -d '`' | sort -u)
echo "check-scenarios: $named tests named, $missing missing"
[ $missing -eq 0 ] && [ $named -gt 100 ]
