#!/bin/bash
# No file of lib/core includes a header of a later layer, or one outside the
# core other than sleet.h and the C library's.  The order is docs/architecture.md's.
#   check-layers.sh [CORE-FOLDER]
set -u
cd "${1:-${srcdir:-.}/lib/core}" || exit 1

# Later layers may include earlier ones; layers of one rank may include each other.
declare -A rank=([base]=0 [wire]=1 [codec]=2 [tensor]=2 [session]=3 [path]=3 [protect]=3
    [member]=4 [strategy]=5 [round]=5 [state]=6 [engine]=7)

layer_of() { # PATH below lib/core
    case $1 in
    */*) echo "${1%%/*}" ;;
    *) echo engine ;; # engine.[ch] and its parts lie at the top
    esac
}

faults=0 files=0
fault() { echo "$1: $2"; faults=$((faults + 1)); }

while IFS= read -r file; do
    file=${file#./} files=$((files + 1))
    layer=$(layer_of "$file")
    if [ -z "${rank[$layer]:-}" ]; then
        fault "$file" "the layer $layer is not in tests/check-layers.sh"
        continue
    fi
    while IFS= read -r header; do
        [ "$header" = sleet.h ] && continue
        if [ -e "$header" ]; then
            target=$header
        elif [ -e "$(dirname "$file")/$header" ]; then
            target=$(realpath --relative-to=. "$(dirname "$file")/$header")
        else
            fault "$file" "includes \"$header\", which is not in the core"
            continue
        fi
        case $target in ../sleet.h) continue ;; ../*) fault "$file" "includes $target, outside the core" ; continue ;; esac
        other=$(layer_of "$target")
        if [ "${rank[$other]:-99}" -gt "${rank[$layer]}" ]; then
            fault "$file" "layer $layer includes $target of the later layer $other"
        fi
    done < <(sed -n 's/^[[:space:]]*#[[:space:]]*include[[:space:]]*"\([^"]*\)".*/\1/p' "$file")
done < <(find . -name '*.[ch]' | sort)

[ "$files" -gt 0 ] || fault lib/core "no source found"
echo "check-layers: $files files, $faults faults"
[ "$faults" -eq 0 ]
