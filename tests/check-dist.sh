#!/bin/bash
# Every file under version control is in the tarball of `make dist`, but for those of a
# clone alone.  A file that is forgotten in Makefile.am is named.
# Needs the build folder in SLEET_BUILD and a clone in SLEET_SRC; elsewhere it is skipped.
set -u
build=${SLEET_BUILD:?set SLEET_BUILD to the build folder}
src=${SLEET_SRC:?set SLEET_SRC to the source tree}
clone_only='\.ci/.*|\.clang-format|\.git[^/]*'

if ! [ -e "$src/.git" ] || ! kept=$(git -C "$src" ls-files 2>/dev/null); then
    echo "check-dist: not a clone"
    exit 77
fi
unset MAKEFLAGS MFLAGS MAKELEVEL
make=("${MAKE:-make}" -s --no-print-directory -C "$build")
"${make[@]}" Makefile >/dev/null && shipped=$("${make[@]}" list-dist) || exit 1
prefix=$(head -n 1 <<<"$shipped")/
shipped=$(while IFS= read -r file; do echo "${file#"$prefix"}"; done <<<"$shipped")

faults=0
while IFS= read -r file; do
    [ -e "$src/$file" ] || continue # removed, not committed yet
    under=$file
    until grep -qxF -- "$under" <<<"$shipped"; do # the file itself, or a folder it is in
        case $under in
        */*) under=${under%/*} ;;
        *)
            echo "check-dist: $file is not in the tarball: add it to EXTRA_DIST in Makefile.am"
            faults=$((faults + 1))
            break
            ;;
        esac
    done
done < <(grep -Evx -- "$clone_only" <<<"$kept")
echo "check-dist: $(wc -l <<<"$kept") files, $faults faults"
[ "$faults" -eq 0 ]
