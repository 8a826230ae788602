# learning-rows.awk - the rows of a table of learning.sh, each with its arguments.
function fail(text)
{
    print "learning.sh: " FILENAME ":" FNR ": " text > "/dev/stderr"
    bad = 1
    exit 2
}
function rest(from,    i, s)
{
    for (i = from; i <= NF; i++)
        s = s " " $i
    return s
}
function know(kind, list,    i, n, name)
{
    n = split(list, name, ",")
    for (i = 1; i <= n; i++)
        if (!((kind, name[i]) in arguments))
            fail("there is no " kind " " name[i] " above")
}
function name(row) { return substr(row, 1, index(row, " ") - 1) }
function add(row,    key)
{
    split(row, key, " ")
    if (row in known)
        return
    known[row] = 1
    order[++rows] = row
    if (!(key[1] in first))
        first[key[1]] = row
}
function show(row,    key)
{
    split(row, key, " ")
    if (row in shown)
        return
    shown[row] = 1
    if (row != first[key[1]])
        show(first[key[1]])
    else if (key[1] in against)
        show(first[against[key[1]]])
    print row arguments["task", key[1]] arguments["payload", key[2]] arguments["codec", key[3]] " " extra
}
/^ *(#|$)/ { next }
$1 == "task" && NF >= 3 && $3 ~ /^(points|percent)$/ { arguments["task", $2] = rest(4); next }
($1 == "payload" || $1 == "codec") && NF >= 2 { arguments[$1, $2] = rest(3); next }
$1 == "bar" && NF == 5 { know("task", $2); know("codec", $3); next }
$1 == "against" && NF == 3 { know("task", $2 "," $3); against[$2] = $3; next }
$1 == "row" && NF == 6 {
    know("task", $2); know("payload", $3); know("codec", $4)
    T = split($2, task, ","); P = split($3, payload, ","); C = split($4, codec, ",")
    L = split($5, loss, ","); B = split($6, burst, ",")
    for (t = 1; t <= T; t++)
        for (p = 1; p <= P; p++)
            for (c = 1; c <= C; c++)
                for (b = 1; b <= B; b++)
                    for (l = 1; l <= L; l++)
                        add(task[t] " " payload[p] " " codec[c] " " loss[l] " " burst[b])
    next
}
{ fail("cannot read " $0) }
END {
    if (bad)
        exit 2
    for (r = 1; r <= rows; r++) # together, task by task
        for (i = r; i <= rows; i++)
            if (name(order[i]) == name(order[r]) && order[i] ~ regex)
                show(order[i])
}
