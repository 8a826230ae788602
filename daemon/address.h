/* address.h - where others may reach this node, and whether it can reach them.
 *
 * Others are told at most one address of each family.  Never told: loopback and unspecified
 * addresses, and link-local ones, whose scope id means something on this machine only (a peer
 * on the link sees such an address for itself, with its own scope id). */
#ifndef DAEMON_ADDRESS_H
#define DAEMON_ADDRESS_H
#include "base/addr.h"
#include <stddef.h>

#define ADDRESS_LOCALS_MAX 256
#define ADDRESS_WHY 4096
#define ADDRESS_TEXT_MAX 180 /* bytes of host and port; it must fit a line of the configuration */

enum { ADDRESS_V4, ADDRESS_V6, ADDRESS_FAMILIES };

/* One address of an interface of this machine. */
struct local_address {
    char name[16];
    sleet_addr addr; /* port 0 */
    bool up, loopback;
};

/* One item of node.advertise. */
struct address_rule {
    enum { RULE_AUTO, RULE_EXACT, RULE_INTERFACE, RULE_PREFIX } type;
    char text[256];  /* as written; RULE_INTERFACE: the name, RULE_EXACT: host:port */
    uint8_t ip[16];  /* RULE_PREFIX */
    unsigned bits;   /* of it, IPv4 counted behind its mapped prefix of 96 */
};

/* What is decided on. */
struct address_scene {
    const struct local_address *locals;
    uint32_t locals_n;
    sleet_addr bound;                   /* of the socket, with its port */
    bool inet6;                         /* of the socket; unspecified and inet6: both families */
    sleet_addr hint[ADDRESS_FAMILIES];  /* source towards the others, preferred; port ignored */
};

/* What others are told: port 0 where there is none.  `why` names every candidate that was not
 * taken, and the reason: "lo 127.0.0.1: loopback; ...". */
struct address_choice {
    sleet_addr at[ADDRESS_FAMILIES];
    char why[ADDRESS_WHY];
};

/* "auto", "host:port", an interface's name or "prefix/bits"; false when it is none of these. */
bool address_rule_parse(struct address_rule *, const char *item);

/* Apply the rules in their order, of RULE_EXACT the address being in `exact` (same index). */
void address_choose(struct address_choice *, const struct address_rule *, const sleet_addr *exact,
                    uint32_t rules, const struct address_scene *);

/* NULL, or why the peer cannot be reached from a socket bound to `bound`. */
const char *address_unreachable(const sleet_addr *bound, const sleet_addr *peer);

bool address_is_v4(const sleet_addr *);
bool address_is_loopback(const sleet_addr *);
bool address_is_unspecified(const sleet_addr *);
bool address_is_link_local(const sleet_addr *);

/* Split "host:port", "[host]:port", ":port"; false if malformed. */
bool address_split(const char *text, char host[256], char port[6]);
/* "a.b.c.d:port" or "[v6]:port"; without brackets and port. */
void address_format(const sleet_addr *, char out[80]);
void address_format_ip(const sleet_addr *, char out[80]);

struct config;
struct udp;
/* node.advertise for an open socket; the peers are asked for routes only, nothing is sent.
 * False after printing the reason: a rule that names something else than `auto` gave nothing. */
bool address_advertise(struct address_choice *, const struct config *, const struct udp *,
                       const sleet_addr *peers, uint32_t peer_count);
#endif
