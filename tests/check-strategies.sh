#!/bin/bash
# The strategies of lib/sleet.h, with their numbers, are those of the tables in docs/architecture.md and docs/protocol.md; each is in
# lib/core/strategy, and one that a paper describes has a recipe that runs it.
set -u
cd "${SLEET_SRC:?set SLEET_SRC to the source tree}" || exit 1
faults=0
fault() {
    echo "check-strategies: $*"
    faults=$((faults + 1))
}
same() { # WHERE LINES: what is on stdin, and what the map says
    diff <(sort) <(sort <<<"$2") || fault "$1 (<) is not what SLEET_STRATEGY_MAP of lib/sleet.h (>) says"
}
map=$(sed -n '/define SLEET_STRATEGY_MAP/,/^$/p' lib/sleet.h |
    sed -nE 's/^ +X\((SLEET_[A-Z_]+), ([0-9]+), "([a-z-]+)", "([A-Z,]*)"\).*/\1 \2 \3 \4/p')
words=$(awk '{ print $3 ($4 == "" ? "" : ":" $4) }' <<<"$map")
table=$(sed -n '/^## Strategies/,/^## Budgets/p' docs/architecture.md | grep '^| `')
[ "$(wc -l <<<"$map")" -ge 10 ] || fault "lib/sleet.h has no SLEET_STRATEGY_MAP that this script can read"
# shellcheck disable=SC2016
same docs/architecture.md "$words" < <(sed -E 's/^\| (`[^`]*`, )?`([^`]*)` .*/\2/' <<<"$table")
same docs/protocol.md "$(awk '{ print $2 " " $3 }' <<<"$map")" \
    < <(sed -n 's/.*strategy u8 (\(1 rps[^)]*\)).*/\1/p' docs/protocol.md | tr , '\n' | sed 's/^ *//')
same lib/core/strategy "$(awk '{ print $1 }' <<<"$map")" \
    < <(grep -ohE '\.id = SLEET_[A-Z_]+' lib/core/strategy/*.c | sed 's/.* //')
while read -r name; do
    grep -qE "^strategy = $name(:|\$)|sleet-bench average $name(:| |\$)" recipes/*.ini || fault "no recipe runs $name"
done < <(awk -F'|' '$3 ~ /[0-9]/ { print $2 }' <<<"$table" | sed -E 's/^ `([a-z-]+).*/\1/')
echo "check-strategies: $(wc -l <<<"$map") strategies, $faults faults"
[ $faults -eq 0 ]
