/* nogso.c - preloaded into sleetd: a kernel that takes UDP_SEGMENT but cannot cut a burst
 * on this path, as on a device without checksum offload.  sendmsg() with that control
 * message fails with EIO. */
#define _GNU_SOURCE 1
#include <errno.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif

ssize_t sendmsg(int fd, const struct msghdr *msg, int flags)
{
    const struct cmsghdr *c = CMSG_FIRSTHDR(msg);
    if (c && c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_SEGMENT) {
        errno = EIO;
        return -1;
    }
    return syscall(SYS_sendmsg, fd, msg, flags);
}
