/* address_local.c - what this machine's interfaces and routes are; then the choice. */
#define _GNU_SOURCE 1
#include "address.h"
#include "log.h"
#include "udp.h"
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define RULES_MAX 16

static uint32_t list_locals(struct local_address *out)
{
    struct ifaddrs *all = NULL;
    uint32_t n = 0;
    if (getifaddrs(&all) != 0)
        return 0;
    for (const struct ifaddrs *i = all; i && n < ADDRESS_LOCALS_MAX; i = i->ifa_next) {
        int family = i->ifa_addr ? i->ifa_addr->sa_family : AF_UNSPEC;
        struct sockaddr_storage from = {.ss_family = AF_UNSPEC};
        if (family != AF_INET && family != AF_INET6)
            continue;
        memcpy(&from, i->ifa_addr,
               family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
        struct local_address *l = &out[n++];
        *l = (struct local_address){.up = i->ifa_flags & IFF_UP, .loopback = i->ifa_flags & IFF_LOOPBACK};
        snprintf(l->name, sizeof l->name, "%s", i->ifa_name);
        udp_from_sockaddr(&l->addr, &from);
    }
    freeifaddrs(all);
    return n;
}

/* The source address that the kernel would take towards the peer; connecting sends nothing. */
static bool source_towards(const struct udp *u, const sleet_addr *peer, sleet_addr *out)
{
    struct sockaddr_storage addr;
    socklen_t len = udp_to_sockaddr(u, peer, &addr);
    int fd = socket(addr.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool ok = fd >= 0 && connect(fd, (struct sockaddr *)&addr, len) == 0;
    len = sizeof addr;
    ok = ok && getsockname(fd, (struct sockaddr *)&addr, &len) == 0;
    if (ok)
        udp_from_sockaddr(out, &addr);
    if (fd >= 0)
        close(fd);
    return ok;
}

static void find_hints(struct address_scene *s, const struct udp *u, const sleet_addr *peers, uint32_t n)
{
    bool found[ADDRESS_FAMILIES] = {false, false};
    for (uint32_t i = 0; i < n; i++) {
        unsigned family = address_is_v4(&peers[i]) ? ADDRESS_V4 : ADDRESS_V6;
        if (!found[family] && !address_is_loopback(&peers[i]) && !address_is_link_local(&peers[i]))
            found[family] = source_towards(u, &peers[i], &s->hint[family]);
    }
}

/* The rules of node.advertise; their number, or -1 after printing what is wrong. */
static int read_rules(const struct config *c, const struct udp *u, struct address_rule *rules,
                      sleet_addr *exact, bool *chosen)
{
    char item[256];
    int n = 0;
    for (const char *p = c->text[CONFIG_ADVERTISE]; (p = config_next_item(p, item, sizeof item)); n++) {
        if (n == RULES_MAX) {
            config_wrong(c, CONFIG_ADVERTISE, "at most %d items", RULES_MAX);
            return -1;
        }
        if (!address_rule_parse(&rules[n], item)) {
            config_wrong(c, CONFIG_ADVERTISE, "\"%s\" cannot be read", item);
            return -1;
        }
        *chosen |= rules[n].type != RULE_AUTO;
        const char *why = rules[n].type == RULE_EXACT ? udp_resolve(u, item, &exact[n]) : NULL;
        if (why) {
            config_wrong(c, CONFIG_ADVERTISE, "%s: %s", item, why);
            return -1;
        }
    }
    return n;
}

bool address_advertise(struct address_choice *choice, const struct config *c, const struct udp *u,
                       const sleet_addr *peers, uint32_t peer_count)
{
    static struct local_address locals[ADDRESS_LOCALS_MAX];
    struct address_rule rules[RULES_MAX];
    sleet_addr exact[RULES_MAX];
    struct address_scene s = {.locals = locals, .bound = u->bound, .inet6 = u->inet6};
    bool chosen = false, remote = false;
    int n = read_rules(c, u, rules, exact, &chosen);
    if (n < 0)
        return false;
    s.locals_n = list_locals(locals);
    find_hints(&s, u, peers, peer_count);
    address_choose(choice, rules, exact, (uint32_t)n, &s);
    for (uint32_t i = 0; i < peer_count; i++)
        remote |= !address_is_loopback(&peers[i]);
    for (unsigned f = 0; f < ADDRESS_FAMILIES; f++) {
        char text[80];
        address_format(&choice->at[f], text);
        if (choice->at[f].port)
            SAY(LOG_INFO, FAULT_NONE, "advertised", F_S("address", text));
    }
    if (choice->at[ADDRESS_V4].port || choice->at[ADDRESS_V6].port)
        return true;
    if (chosen)
        return config_wrong(c, CONFIG_ADVERTISE, "no address is left to tell others: %s",
                            choice->why[0] ? choice->why : "this machine has none");
    if (remote)
        SAY(LOG_WARN, FAULT_LOCAL, "nothing-advertised", F_S("rejected", choice->why));
    return true;
}
