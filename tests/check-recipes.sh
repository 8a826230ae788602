#!/bin/bash
# Every recipe runs: `sleet-train --recipe NAME` takes a few steps of it, in a simulation of two nodes, and
# `sleet-sim --recipe NAME` a few rounds where there is something for it.
# Tests that its experiments name are there. Each is in the tarball and installed, and docs/papers.md has what its experiments measured.
# Needs the build folder in SLEET_BUILD, the tree in SLEET_SRC, dataset-fashion-mnist.
set -u
build=${SLEET_BUILD:?set SLEET_BUILD to the build folder}
src=${SLEET_SRC:?set SLEET_SRC to the source tree}
data=${SLEET_DATA:-/usr/share/datasets/fashion-mnist}
[ -x "$build/sleet-train" ] && [ -x "$build/sleet-sim" ] || { echo "check-recipes: $build/sleet-train or sleet-sim is not built"; exit 77; }
[ -d "$data" ] || { echo "check-recipes: no data in $data (package dataset-fashion-mnist)"; exit 77; }
export SLEET_RECIPES=$src/recipes

faults=0
fault() {
    echo "check-recipes: $*"
    faults=$((faults + 1))
}
listed=$(sed -n '/^dist_recipes_DATA/,/[^\\]$/p' "$src/Makefile.am" | grep -oE '[a-z0-9-]+\.ini' | sed 's|\.ini||')
for file in "$src"/recipes/*.ini; do
    name=$(basename "$file" .ini)
    grep -qx "$name" <<<"$listed" || fault "$name is not in dist_recipes_DATA of Makefile.am"
    grep -q "^## $name\$" "$src/docs/papers.md" || fault "docs/papers.md has no section $name: lab reproduce all writes it"
    out=$("$build/sleet-train" --recipe "$name" --sim 2 --epochs 4 --limit 200 --hidden 8 --json 2>&1) &&
        grep -q '"event":"done"' <<<"$out" || fault "$name does not run: $(tail -n 1 <<<"$out")"
    grep -q '^\[sim\]' "$file" || continue
    out=$("$build/sleet-sim" --recipe "$name" -n 4 --rounds 2 2>&1) || fault "$name is not simulated: $(tail -n 1 <<<"$out")"
done
if [ -x "$build/simtest" ]; then
    cases=$("$build/simtest" --list)
    for test in $(sed -n 's/^run.*= simtest //p' "$src"/recipes/*.ini "$src/netem/matrix.ini"); do
        grep -qx "$test" <<<"$cases" || fault "an experiment runs simtest $test, which is not there"
    done
fi
echo "check-recipes: $(wc -w <<<"$listed") recipes, $faults faults"
[ $faults -eq 0 ]
