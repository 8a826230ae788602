/* privilege.c - setgroups, setgid, setuid, and proof that there is no way back. */
#define _GNU_SOURCE 1
#include "privilege.h"
#include "log.h"
#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

bool privilege_find(struct privilege *p, const struct config *c)
{
    const char *user = c->text[CONFIG_USER], *group = c->text[CONFIG_GROUP];
    *p = (struct privilege){.uid = geteuid(), .gid = getegid()};
    if (user[0]) {
        const struct passwd *pw = getpwnam(user);
        if (!pw)
            return config_wrong(c, CONFIG_USER, "there is no such user on this machine");
        if (pw->pw_uid == 0)
            return config_wrong(c, CONFIG_USER, "root keeps all its rights: name a user without any, or "
                                                "leave it empty");
        p->drop = pw->pw_uid != geteuid();
        if (p->drop && geteuid() != 0)
            return config_wrong(c, CONFIG_USER, "only root can become another user: start sleetd as "
                                                "root or as %s", user);
        p->uid = pw->pw_uid;
        p->gid = pw->pw_gid;
    }
    if (group[0]) {
        const struct group *gr = getgrnam(group);
        if (!gr)
            return config_wrong(c, CONFIG_GROUP, "there is no such group on this machine");
        p->shared = true;
        p->trainers = gr->gr_gid;
    }
    return true;
}

static bool failed(const struct config *c, const char *what)
{
    return config_wrong(c, CONFIG_USER, "cannot give up root: %s: %s", what, strerror(errno));
}

/* Whoever could come back has given up nothing. */
static bool no_way_back(const struct privilege *p, const struct config *c)
{
    uid_t r, e, s;
    gid_t rg, eg, sg;
    if (getresuid(&r, &e, &s) != 0 || getresgid(&rg, &eg, &sg) != 0 || r != p->uid || e != p->uid ||
        s != p->uid || rg != p->gid || eg != p->gid || sg != p->gid)
        return failed(c, "the ids did not all change");
    if (setuid(0) == 0 || seteuid(0) == 0 || setgroups(0, NULL) == 0)
        return config_wrong(c, CONFIG_USER, "cannot give up root: it could be taken back");
    return true;
}

bool privilege_drop(const struct privilege *p, const struct config *c)
{
    static const struct rlimit none = {0, 0};
    if (p->drop) {
        if (setgroups(1, &p->gid) != 0)
            return failed(c, "setgroups");
        if (setresgid(p->gid, p->gid, p->gid) != 0)
            return failed(c, "setgid");
        if (setresuid(p->uid, p->uid, p->uid) != 0)
            return failed(c, "setuid");
        if (!no_way_back(p, c))
            return false;
    }
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); /* set-user-id programs give nothing either */
    if (c->sealed)
        setrlimit(RLIMIT_CORE, &none); /* keys must not end up in a file */
    if (geteuid() == 0)
        SAY(LOG_INFO, FAULT_LOCAL, "runs-as-root", F_S("fix", "node.user"));
    return true;
}
