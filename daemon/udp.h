/* udp.h - the daemon's one UDP socket: batches in, bursts out.
 * Knows the engine for the bytes it carries, not for their meaning. */
#ifndef DAEMON_UDP_H
#define DAEMON_UDP_H
#include "base/rng.h"
#include "config.h"
#include "engine.h"
#include <sys/socket.h>

#define UDP_BATCH 16                   /* messages a system call */
#define UDP_MESSAGE_MAX 65536          /* bytes; coalesced by GRO */
#define UDP_SNDBUF (8 * 1024 * 1024)   /* bytes asked of the kernel */

struct udp {
    int fd;
    bool inet6, gso, gro;
    int rcvbuf; /* bytes granted, as setsockopt counts them */
    double loss;
    sleet_rng rng;
    uint64_t emulated_drops;  /* datagrams dropped on purpose */
    uint64_t send_errors;     /* datagrams the kernel refused */
    uint32_t overflow_seen;   /* last SO_RXQ_OVFL */
    sleet_addr bound;         /* to this really, with the port */
    char address[80];         /* the same as text */
    uint8_t *buffers;         /* UDP_BATCH * UDP_MESSAGE_MAX */
};

/* Open and bind; false after printing the reason to stderr. */
bool udp_open(struct udp *, const struct config *, uint64_t seed);
void udp_close(struct udp *);

/* Resolve one "host:port" of the peer list; NULL or the reason why not. */
const char *udp_resolve(const struct udp *, const char *text, sleet_addr *out);

/* Receive one batch into the engine.  Datagrams delivered or dropped; 0: none were there. */
uint32_t udp_receive(struct udp *, engine *, sleet_time now);

/* Send a burst.  False if the socket is full: try again when it is writable.
 * Refused datagrams are counted and gone, as if lost. */
bool udp_send(struct udp *, const engine_burst *);

/* From IPv4 or IPv6. */
void udp_from_sockaddr(sleet_addr *out, const struct sockaddr_storage *);
/* In the socket's family; the length. */
socklen_t udp_to_sockaddr(const struct udp *, const sleet_addr *, struct sockaddr_storage *out);
#endif
