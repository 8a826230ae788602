#!/bin/bash
# privilege.sh - a daemon that is started as root and does not stay it; who may use its socket.
# Arguments: the cases to run, of drop group refuse (all).  Needs root, and the build folder in
# SLEET_BUILD or BUILDDIR.
# shellcheck source=lib.sh disable=SC2034,SC2154
. "$(dirname "$0")/lib.sh" privilege sleetd sleetctl
[ "$(id -u)" -eq 0 ] || { echo "privilege: not root"; exit 77; }
capabilities=$(sed -n 's/^CapEff:[[:space:]]*//p' /proc/self/status)
[ $((0x$capabilities >> 1 & 1)) -eq 1 ] ||
    { echo "privilege: root without CAP_DAC_OVERRIDE, as in distcheck: no folder of another user opens"; exit 77; }
user=nobody group=daemon stranger=54321
uid=$(id -u $user) gid=$(id -g $user) group_id=$(getent group $group | cut -d : -f 3)
[ -n "$uid" ] && [ -n "$group_id" ] || { echo "privilege: no user $user or group $group here"; exit 77; }
chmod 711 "$work"
mkdir -m 711 "$work/run"
chown $user "$work/run"
socket=$work/run/d.sock

up() { # OPTIONS...: a daemon d on $socket
    keep d "$d" --id 1 --listen 127.0.0.1:0 --control "$socket" "$@"
    until_true 10 said d.out '^sleetd node='
}
kept() { awk -v key="$1:" '$1 == key { $1 = ""; print substr($0, 2) }' "/proc/${pid[d]}/status"; }
can() { # UID GROUPS COMMAND: sleetctl, its sentence in c.err
    setpriv --reuid "$1" --regid "$1" "${2:---clear-groups}" timeout 10 "$ctl" -s "$socket" "$3" \
        >"$work/c.out" 2>"$work/c.err"
}
refused() { # CODE PATTERN OPTIONS...
    local want=$1 pattern=$2
    shift 2
    timeout 10 "$d" --id 1 --listen 127.0.0.1:0 --control "$socket" "$@" >"$work/r.out" 2>"$work/r.err"
    [ $? -eq "$want" ] && said r.err "$pattern" && [ ! -s "$work/r.out" ]
}

drop_case() {
    ok "drop: a daemon of root becomes $user" up --node.user $user
    ok "drop: in all four ids ($(kept Uid))" [ "$(kept Uid)" = "$uid $uid $uid $uid" ]
    ok "drop: and groups" [ "$(kept Gid)" = "$gid $gid $gid $gid" ]
    ok "drop: of which it has no others ($(kept Groups))" [ "$(kept Groups)" = "$gid" ]
    ok "drop: with no capability left" eval '[ "$(kept CapEff)" = 0000000000000000 ] && [ "$(kept CapPrm)" = 0000000000000000 ]'
    ok "drop: and none to come" [ "$(kept NoNewPrivs)" = 1 ]
    ok "drop: its socket is its own" [ "$(stat -c '%U %a' "$socket")" = "$user 600" ]
    ok "drop: it serves itself" can "$uid" --clear-groups status
    ok "drop: and root" can 0 --clear-groups status
    ok "drop: nobody else" eval '! can $stranger --clear-groups status && said c.err "Permission denied"'
    ok "drop: it has root's receive buffer" eval '! said d.err rcvbuf-small'
    stop d
    ok "drop: its socket file is gone with it" [ ! -e "$socket" ]
}

group_case() {
    ok "group: a daemon with one" up --node.user $user --node.group $group
    ok "group: its socket is the group's" [ "$(stat -c '%U %G %a' "$socket")" = "$user $group 660" ]
    ok "group: a member is served" can $stranger --groups=$group_id status
    ok "group: a stranger is not" eval '! can $stranger --clear-groups status'
    ok "group: a member cannot end it" eval '! can $stranger --groups=$group_id shutdown && said c.err "403 shutdown"'
    ok "group: nor make it leave" eval '! can $stranger --groups=$group_id leave && said c.err "403 leave"'
    ok "group: it stays" can "$uid" --clear-groups status
    ok "group: its own user can" eval 'can "$uid" --clear-groups shutdown && ended d 5'
}

refuse_case() {
    ok "refuse: a user that there is not" refused 2 'node\.user = "no-such-user": there is no such user' --node.user no-such-user
    ok "refuse: root itself" refused 2 'root keeps all its rights' --node.user root
    ok "refuse: a group that there is not" refused 2 'node\.group.*no such group' --node.group no-such-group
    ok "refuse: to become another without being root" eval \
        '! setpriv --reuid '$stranger' --regid '$stranger' --clear-groups "$d" --id 1 --listen 127.0.0.1:0 \
            --control /nonexistent/x.sock --node.user $user 2>"$work/r.err" && said r.err "only root can become"'
    ok "refuse: to run where the ids cannot change" eval \
        '! setpriv --bounding-set -setuid,-setgid --inh-caps -all unshare -r --map-root-user "$d" --id 1 \
            --listen 127.0.0.1:0 --control "$work/u.sock" --node.user $user >"$work/r.out" 2>"$work/r.err" &&
            said r.err "cannot give up root|cannot listen on the control socket"'
    ok "refuse: without a socket file" eval '[ ! -e "$socket" ] && [ ! -e "$work/u.sock" ]'
}

[ $# -gt 0 ] || set -- drop group refuse
run_cases "$@"
