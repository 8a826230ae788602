# learning-table.awk - prints the table of learning.sh; behind paired.awk.  Input: the table's file, then
# results, a cell a line.
function listed(name, list) { return index("," list ",", "," name ",") > 0 }
# The bar of a row: how much it may lose, 0 where there is none, as where nothing is lost.
function bar_of(row,    i, key)
{
    split(row, key, " ")
    if (base_of(row) == "" || (key[4] == 0 && row != first[key[1]]))
        return 0
    for (i = 1; i <= bars; i++)
        if (listed(key[1], bar_task[i]) && listed(key[3], bar_codec[i]) && key[4] + 0 <= bar_loss[i])
            return bar_allowed[i]
    return 0
}
# What a row is held against; "" for nothing.
function base_of(row,    key)
{
    split(row, key, " ")
    if (row != first[key[1]])
        return first[key[1]]
    return key[1] in against ? first[against[key[1]]] : ""
}
# The paired difference of row to base in the task's unit, over the seeds that both have: sets
# mean and half; false without any.
function pair(value, row, base, unit,    i, d, n, sum, squares)
{
    sum = squares = n = 0
    for (i = 1; i <= seeds[row]; i++) {
        if (!((row, i) in value) || !((base, i) in value))
            continue
        d = unit == "points" ? 100 * (value[row, i] - value[base, i]) : 100 * (1 - value[row, i] / value[base, i])
        sum += d
        squares += d * d
        n++
    }
    if (!n)
        return 0
    mean = sum / n
    half = half95(sum, squares, n)
    return n
}
# The difference as text; worsens verdict where it lies below the bar.  One seed has no interval, and misses nothing.
function difference(value, row, base, unit, allowed,    n)
{
    n = base ? pair(value, row, base, unit) : 0
    if (!n)
        return ""
    if (allowed && n > 1 && mean + half < -allowed)
        verdict = "missed"
    else if (allowed && mean < -allowed && verdict == "met")
        verdict = "undecided"
    return n > 1 ? sprintf("%+.2f ± %.2f", mean, half) : sprintf("%+.2f", mean)
}
function score(value, row, unit,    i, n, sum)
{
    for (i = 1; i <= seeds[row]; i++)
        if ((row, i) in value) {
            sum += value[row, i]
            n++
        }
    return !n ? "" : unit == "points" ? sprintf("%.2f %%", 100 * sum / n) : sprintf("%.4f", sum / n)
}
FNR == 1 { file++ }
file == 1 && $1 == "task" { unit_of[$2] = $3 }
file == 1 && $1 == "bar" {
    bar_task[++bars] = $2; bar_codec[bars] = $3; bar_loss[bars] = $4; bar_allowed[bars] = $5
}
file == 1 && $1 == "against" { against[$2] = $3 }
file == 1 { next }
{
    row = $1 " " $2 " " $3 " " $4 " " $5
    if (!(row in seeds))
        order[++rows] = row
    if (!($1 in first))
        first[$1] = row
    i = $6
    if (i > seeds[row])
        seeds[row] = i
    if ($7 ~ /^[0-9]/) {
        worst[row, i] = $7; model[row, i] = $8; covered[row] += $9; runs[row]++
    } else if (!(row in why) || why[row] == "not run yet") {
        why[row] = $7
        for (i = 8; i <= NF; i++)
            if ($i != "sleet-train:")
                why[row] = why[row] " " $i
    }
}
END {
    split("missed open undecided met", words, " ")
    for (i = 1; i <= 4; i++)
        rank[words[i]] = i
    print "| task | payload | codec | loss | worst node | difference | averaged model | difference | coverage | seeds | bar |"
    print "|---|---|---|---|---|---|---|---|---|---|---|"
    printf "" > points
    for (r = 1; r <= rows; r++) {
        row = order[r]
        split(row, key, " ")
        unit = unit_of[key[1]]
        base = base_of(row)
        allowed = bar_of(row)
        verdict = "met"
        printf "| %s | %s | %s | %g %%%s | ", key[1], key[2], key[3], 100 * key[4], key[5] == 1 ? "" : " in bursts of " key[5]
        printf "%s | %s%s | ", score(worst, row, unit), difference(worst, row, base, unit, allowed),
            base && row == first[key[1]] ? " to " against[key[1]] : ""
        if (runs[row] && row != first[key[1]] && pair(worst, row, base, unit))
            print key[1], key[2] "/" key[3] (key[5] == 1 ? "" : "/bursts"), 100 * key[4], mean, half, unit > points
        printf "%s | %s | ", score(model, row, unit), difference(model, row, base, unit, allowed)
        printf "%s | %d | ", runs[row] ? sprintf("%.2f %%", 100 * covered[row] / runs[row]) : "", runs[row]
        if (why[row] ~ /^failed/)
            verdict = "missed"
        else if (!runs[row] || !pair(worst, row, base, unit))
            verdict = "open"
        printf "%s%s |\n", allowed ? verdict ", " allowed : "", why[row] ? (allowed ? "; " : "") why[row] : ""
        # A bar is met by the best of the payloads.
        group = key[1] " " key[3] " " key[4] " " key[5]
        if (allowed && (!(group in best) || rank[verdict] > rank[best[group]]))
            best[group] = verdict
    }
    for (group in best)
        count[best[group]]++
    printf "\nBars, each for the best of the payloads: %d met, %d undecided, %d missed, %d open.\n",
        count["met"], count["undecided"], count["missed"], count["open"]
    for (r = 1; r <= rows; r++) {
        split(order[r], key, " ")
        group = key[1] " " key[3] " " key[4] " " key[5]
        if (best[group] == "missed" || best[group] == "undecided") {
            printf "- %s: %s, %s, %g %%%s\n", best[group], key[1], key[3], 100 * key[4], key[5] == 1 ? "" : " in bursts of " key[5]
            best[group] = ""
        }
    }
    exit count["missed"] > 0
}
