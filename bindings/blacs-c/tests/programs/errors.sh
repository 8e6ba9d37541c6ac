#!/bin/sh
# Compares each case of errors.txt with what a library does.
# usage: errors.sh launcher ... program     e.g. errors.sh mpirun -n 4 ./errors
# Prints a line for each case that differs and the number of cases; ends with 1 if any did.
folder=$(dirname "$0")
out=$(mktemp) err=$(mktemp)
trap 'rm -f "$out" "$err"' EXIT
cases=0 differ=0
while read -r name outcome text; do
    case "$name" in '#'* | '') continue ;; esac
    cases=$((cases + 1))
    timeout 10 "$@" "$name" >"$out" 2>"$err" </dev/null
    code=$?
    survived=no
    grep -q '^survived' "$out" && survived=yes
    said=yes
    [ "$text" = - ] || grep -q "$text" "$err" || said=no
    good=no
    # Launchers report a signal as text, as 128 + its number, or both; 124 is
    # the time-out's.
    crashed=no
    grep -qi 'segmentation fault\|signal 11\|bus error' "$out" "$err" && crashed=yes
    [ "$code" = 139 ] && crashed=yes
    [ "$code" = 124 ] && crashed=hung
    case "$outcome" in
    abort) [ "$code" != 0 ] && [ "$survived$said$crashed" = noyesno ] && good=yes ;;
    abort:*) [ "$code" = "${outcome#abort:}" ] && [ "$survived$said" = noyes ] && good=yes ;;
    warning) [ "$code" = 0 ] && [ "$survived$said" = yesyes ] && good=yes ;;
    either) [ "$crashed" = no ] && good=yes ;;
    esac
    grep -q '^FAIL' "$out" && good=no
    [ $good = yes ] && continue
    differ=$((differ + 1))
    echo "$name: expected $outcome ($text); code $code, survived $survived, text $said," \
        "crashed $crashed $(grep -m1 '^FAIL' "$out")"
done <"$folder/errors.txt"
echo "cases $cases differ $differ"
[ "$differ" = 0 ]
