/* privilege.h - open as root, run as somebody without rights.
 *
 * Order: privilege_find() before anything is opened, for the owner of the files; sockets, control
 * socket and keys as root; privilege_drop() before the first datagram is read. */
#ifndef DAEMON_PRIVILEGE_H
#define DAEMON_PRIVILEGE_H
#include "config.h"
#include <sys/types.h>

struct privilege {
    bool drop;     /* another user than this one was asked for */
    uid_t uid;     /* that the daemon will run as */
    gid_t gid;
    bool shared;   /* node.group is set: its members use the control socket */
    gid_t trainers; /* this group */
};

/* Look up node.user and node.group.  False after printing why they cannot be used. */
bool privilege_find(struct privilege *, const struct config *);

/* Become that user, for good; with keys in memory, core dumps end as well.  False after
 * printing the reason: the process must then exit. */
bool privilege_drop(const struct privilege *, const struct config *);
#endif
