/* udp.c - recvmmsg with GRO, GSO with a fall-back to sendmmsg. */
#define _GNU_SOURCE 1
#include "udp.h"
#include "address.h"
#include "log.h"
#include "owner.h"
#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/udp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#ifndef UDP_SEGMENT
#define UDP_SEGMENT 103
#endif
#ifndef UDP_GRO
#define UDP_GRO 104
#endif

void udp_from_sockaddr(sleet_addr *out, const struct sockaddr_storage *from)
{
    memset(out, 0, sizeof *out);
    if (from->ss_family == AF_INET) {
        struct sockaddr_in a;
        memcpy(&a, from, sizeof a);
        out->ip[10] = out->ip[11] = 0xff;
        memcpy(out->ip + 12, &a.sin_addr, 4);
        out->port = ntohs(a.sin_port);
    } else {
        struct sockaddr_in6 a;
        memcpy(&a, from, sizeof a);
        memcpy(out->ip, &a.sin6_addr, 16);
        out->port = ntohs(a.sin6_port);
        out->scope = a.sin6_scope_id;
    }
}

socklen_t udp_to_sockaddr(const struct udp *u, const sleet_addr *to, struct sockaddr_storage *out)
{
    memset(out, 0, sizeof *out);
    if (u->inet6) {
        struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(to->port),
                                 .sin6_scope_id = to->scope};
        memcpy(&a.sin6_addr, to->ip, 16);
        memcpy(out, &a, sizeof a);
        return sizeof a;
    }
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(to->port)};
    memcpy(&a.sin_addr, to->ip + 12, 4);
    memcpy(out, &a, sizeof a);
    return sizeof a;
}

/* Look `text` up; family AF_UNSPEC, AF_INET or AF_INET6. */
static const char *look_up(const char *text, int family, int flags, struct sockaddr_storage *out,
                           socklen_t *len)
{
    char host[256], port[6];
    struct addrinfo hints = {.ai_family = family, .ai_socktype = SOCK_DGRAM,
                             .ai_flags = flags | AI_NUMERICSERV};
    struct addrinfo *list = NULL;
    if (!address_split(text, host, port))
        return "not host:port";
    int error = getaddrinfo(host[0] ? host : NULL, port, &hints, &list);
    if (error)
        return gai_strerror(error);
    memcpy(out, list->ai_addr, list->ai_addrlen);
    *len = list->ai_addrlen;
    freeaddrinfo(list);
    return NULL;
}

const char *udp_resolve(const struct udp *u, const char *text, sleet_addr *out)
{
    struct sockaddr_storage addr;
    socklen_t len;
    const char *why = look_up(text, u->inet6 ? AF_UNSPEC : AF_INET, 0, &addr, &len);
    if (why)
        return why;
    udp_from_sockaddr(out, &addr);
    return NULL;
}

static void set_options(struct udp *u, const struct config *c)
{
    int on = 1, off = 0, want = (int)c->receive_buffer, send = UDP_SNDBUF;
    socklen_t len = sizeof u->rcvbuf;
    if (u->inet6)
        setsockopt(u->fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    setsockopt(u->fd, SOL_SOCKET, SO_RXQ_OVFL, &on, sizeof on);
    if (setsockopt(u->fd, SOL_SOCKET, SO_RCVBUFFORCE, &want, sizeof want))
        setsockopt(u->fd, SOL_SOCKET, SO_RCVBUF, &want, sizeof want);
    if (setsockopt(u->fd, SOL_SOCKET, SO_SNDBUFFORCE, &send, sizeof send))
        setsockopt(u->fd, SOL_SOCKET, SO_SNDBUF, &send, sizeof send);
    getsockopt(u->fd, SOL_SOCKET, SO_RCVBUF, &u->rcvbuf, &len);
    if (u->rcvbuf < 2 * want) {
        char fix[64];
        snprintf(fix, sizeof fix, "sysctl -w net.core.rmem_max=%d", want);
        SAY(LOG_WARN, FAULT_LOCAL, "rcvbuf-small", F_U("bytes", u->rcvbuf / 2), F_U("wanted", want),
            F_S("fix", fix));
    }
    u->gro = setsockopt(u->fd, IPPROTO_UDP, UDP_GRO, &on, sizeof on) == 0;
    len = sizeof off;
    u->gso = c->gso && getsockopt(u->fd, IPPROTO_UDP, UDP_SEGMENT, &off, &len) == 0;
}

static bool open_socket(struct udp *u, const struct config *c, const struct sockaddr_storage *addr,
                        socklen_t len)
{
    u->inet6 = addr->ss_family == AF_INET6;
    u->fd = socket(addr->ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (u->fd < 0)
        return false;
    set_options(u, c);
    return bind(u->fd, (const struct sockaddr *)addr, len) == 0;
}

bool udp_open(struct udp *u, const struct config *c, uint64_t seed)
{
    struct sockaddr_storage addr;
    socklen_t len;
    const char *text = c->text[CONFIG_LISTEN];
    *u = (struct udp){.fd = -1, .loss = c->loss, .rng = {seed}};
    int family = text[0] == ':' ? AF_INET6 : AF_UNSPEC;
    const char *why = look_up(text, family, AI_PASSIVE, &addr, &len);
    bool ok = !why && open_socket(u, c, &addr, len);
    if (!ok && text[0] == ':' && (why || errno == EAFNOSUPPORT || errno == EADDRNOTAVAIL)) {
        if (u->fd >= 0)
            close(u->fd);
        why = look_up(text, AF_INET, AI_PASSIVE, &addr, &len);
        ok = !why && open_socket(u, c, &addr, len);
    }
    if (!ok) {
        char owner[128] = "";
        sleet_addr at;
        int error = errno;
        if (!why) {
            udp_from_sockaddr(&at, &addr);
            if (error == EADDRINUSE)
                owner_of_address(&at, owner, sizeof owner);
        }
        fprintf(stderr, "sleetd: cannot listen on %s (from %s): %s%s\n", text,
                c->origin[CONFIG_LISTEN], why ? why : strerror(error), owner);
        if (u->fd >= 0)
            close(u->fd);
        return false;
    }
    len = sizeof addr;
    getsockname(u->fd, (struct sockaddr *)&addr, &len);
    udp_from_sockaddr(&u->bound, &addr);
    address_format(&u->bound, u->address);
    u->buffers = malloc((size_t)UDP_BATCH * UDP_MESSAGE_MAX);
    if (!u->buffers)
        fprintf(stderr, "sleetd: out of memory\n");
    return u->buffers != NULL;
}

void udp_close(struct udp *u)
{
    if (u->fd >= 0)
        close(u->fd);
    free(u->buffers);
}

/* ---- in ------------------------------------------------------------------- */

union in_control {
    struct cmsghdr align;
    char bytes[CMSG_SPACE(sizeof(int)) + CMSG_SPACE(sizeof(uint32_t))];
};

/* Segment size (0: one datagram) and overflow out of the control messages. */
static size_t read_control(struct udp *u, struct msghdr *msg, engine *e, sleet_time now)
{
    size_t segment = 0;
    for (struct cmsghdr *c = CMSG_FIRSTHDR(msg); c; c = CMSG_NXTHDR(msg, c)) {
        if (c->cmsg_level == IPPROTO_UDP && c->cmsg_type == UDP_GRO) {
            int v;
            memcpy(&v, CMSG_DATA(c), sizeof v);
            segment = v > 0 ? (size_t)v : 0;
        } else if (c->cmsg_level == SOL_SOCKET && c->cmsg_type == SO_RXQ_OVFL) {
            uint32_t total;
            memcpy(&total, CMSG_DATA(c), sizeof total);
            if (total != u->overflow_seen)
                engine_overflow(e, total - u->overflow_seen, now);
            u->overflow_seen = total;
        }
    }
    return segment;
}

static void deliver(struct udp *u, engine *e, const sleet_addr *from, const uint8_t *p, size_t len,
                    sleet_time now)
{
    if (u->loss > 0 && rng_double(&u->rng) < u->loss)
        u->emulated_drops++;
    else
        engine_recv(e, from, p, len, now);
}

uint32_t udp_receive(struct udp *u, engine *e, sleet_time now)
{
    struct mmsghdr messages[UDP_BATCH];
    struct iovec iov[UDP_BATCH];
    struct sockaddr_storage from[UDP_BATCH];
    union in_control control[UDP_BATCH];
    uint32_t total = 0;
    memset(messages, 0, sizeof messages);
    for (size_t i = 0; i < UDP_BATCH; i++) {
        iov[i] = (struct iovec){u->buffers + i * UDP_MESSAGE_MAX, UDP_MESSAGE_MAX};
        messages[i].msg_hdr = (struct msghdr){
            .msg_name = &from[i], .msg_namelen = sizeof from[i], .msg_iov = &iov[i],
            .msg_iovlen = 1, .msg_control = control[i].bytes,
            .msg_controllen = sizeof control[i].bytes};
    }
    int n = recvmmsg(u->fd, messages, UDP_BATCH, MSG_DONTWAIT, NULL);
    for (int i = 0; i < n; i++) {
        sleet_addr addr;
        const uint8_t *p = iov[i].iov_base;
        size_t left = messages[i].msg_len;
        size_t segment = read_control(u, &messages[i].msg_hdr, e, now);
        if (segment == 0 || segment > left)
            segment = left;
        udp_from_sockaddr(&addr, &from[i]);
        do {
            size_t len = left < segment ? left : segment;
            deliver(u, e, &addr, p, len, now);
            total++;
            p += len;
            left -= len;
        } while (left);
    }
    return total;
}

/* ---- out ------------------------------------------------------------------ */

static bool try_gso(struct udp *u, const engine_burst *b, struct sockaddr_storage *to, socklen_t len)
{
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof(uint16_t))];
    } control = {.bytes = {0}};
    struct iovec iov = {(void *)(uintptr_t)b->data, b->len};
    struct msghdr msg = {.msg_name = to, .msg_namelen = len, .msg_iov = &iov, .msg_iovlen = 1,
                         .msg_control = control.bytes, .msg_controllen = sizeof control.bytes};
    struct cmsghdr *c = CMSG_FIRSTHDR(&msg);
    uint16_t segment = (uint16_t)b->segment;
    c->cmsg_level = IPPROTO_UDP;
    c->cmsg_type = UDP_SEGMENT;
    c->cmsg_len = CMSG_LEN(sizeof segment);
    memcpy(CMSG_DATA(c), &segment, sizeof segment);
    return sendmsg(u->fd, &msg, MSG_DONTWAIT) >= 0;
}

/* Send the burst from datagram `first` on, one message each. */
static bool send_each(struct udp *u, const engine_burst *b, struct sockaddr_storage *to, socklen_t len)
{
    struct mmsghdr messages[ENGINE_BURST_MAX];
    struct iovec iov[ENGINE_BURST_MAX];
    unsigned count = b->count, done = 0;
    memset(messages, 0, sizeof messages);
    for (unsigned i = 0; i < count; i++) {
        uint32_t at = i * b->segment;
        iov[i] = (struct iovec){(void *)(uintptr_t)(b->data + at),
                                i + 1 < count ? b->segment : b->len - at};
        messages[i].msg_hdr = (struct msghdr){.msg_name = to, .msg_namelen = len,
                                              .msg_iov = &iov[i], .msg_iovlen = 1};
    }
    while (done < count) {
        int n = sendmmsg(u->fd, messages + done, count - done, MSG_DONTWAIT);
        if (n > 0) {
            done += (unsigned)n;
        } else if (errno == EAGAIN && done == 0) {
            return false;
        } else if (errno != EINTR) { /* this one is lost, the rest may go */
            if (errno != EAGAIN)
                SAY(LOG_WARN, FAULT_LOCAL, "send-refused", F_S("error", strerror(errno)));
            u->send_errors++;
            done++;
        }
    }
    return true;
}

bool udp_send(struct udp *u, const engine_burst *b)
{
    struct sockaddr_storage to;
    if (!u->inet6 && !address_is_v4(&b->to)) {
        u->send_errors += b->count;
        return true;
    }
    socklen_t len = udp_to_sockaddr(u, &b->to, &to);
    if (u->gso && b->count > 1) {
        if (try_gso(u, b, &to, len))
            return true;
        if (errno == EAGAIN || errno == EINTR)
            return false;
        bool for_good = errno == EIO || errno == EOPNOTSUPP;
        if (errno != EIO && errno != EMSGSIZE && errno != EINVAL && !for_good) {
            SAY(LOG_WARN, FAULT_LOCAL, "send-refused", F_S("error", strerror(errno)));
            u->send_errors += b->count;
            return true;
        }
        if (for_good) {
            u->gso = false;
            SAY(LOG_INFO, FAULT_LOCAL, "gso-off", F_S("error", strerror(errno)));
        }
    }
    return send_each(u, b, &to, len);
}
