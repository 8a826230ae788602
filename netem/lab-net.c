/* lab-net.c - a namespace a node, one veth each, bridges between them; for a node behind a
 * NAT the veth leads there (lab-nat.c).
 *
 * Nothing but the nodes' datagrams passes: neighbours and forwarding entries are
 * static, so the links' counters count what sleetd sends. */
#include "lab.h"
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define GROUPS_MAX LAB_NODES

void net_port(int node, char out[24])
{
    snprintf(out, 24, LAB_PREFIX "-%d", node);
}

static void namespace_name(int node, char out[24])
{
    snprintf(out, 24, LAB_PREFIX "%d", node);
}

static void node_mac(int node, char out[24])
{
    snprintf(out, 24, "02:00:00:77:00:%02x", (unsigned)node);
}

int net_namespace(int node)
{
    char name[24], path[64];
    namespace_name(node, name);
    snprintf(path, sizeof path, "/run/netns/%s", name);
    return open(path, O_RDONLY | O_CLOEXEC);
}

bool net_has_ipv6(void)
{
    return access("/proc/sys/net/ipv6", F_OK) == 0;
}

/* Feed lines to one of iproute2's programs. */
bool net_batch(const char *program, struct lab_text *lines, const char *namespace)
{
    const char *plain[] = {program, "-batch", "-", NULL};
    const char *inside[] = {program, "-n", namespace, "-batch", "-", NULL};
    bool ok = lab_must(namespace ? inside : plain, lines->text);
    lines->len = 0;
    return ok;
}

/* Ports of a bridge do not flood: it is told where each node is. */
static bool join_bridges(int nodes, const uint8_t *group, uint32_t down)
{
    struct lab_text ip = {0}, fdb = {0};
    for (int i = 1; i <= nodes; i++) {
        char port[24], mac[24];
        net_port(i, port);
        node_mac(i, mac);
        lab_add(&ip, "link set %s master " LAB_PREFIX "-b%d %s\n", port, group[i - 1],
                down & 1u << (i - 1) ? "down" : "up");
        lab_add(&ip, "link set %s type bridge_slave flood off mcast_flood off\n", port);
        lab_add(&fdb, "fdb replace %s dev %s master static\n", mac, port);
    }
    bool ok = net_batch("ip", &ip, NULL) && net_batch("bridge", &fdb, NULL);
    free(ip.text);
    free(fdb.text);
    return ok;
}

bool net_link(int node, bool up)
{
    char port[24];
    net_port(node, port);
    const char *argv[] = {"ip", "link", "set", port, up ? "up" : "down", NULL};
    return lab_must(argv, NULL);
}

bool net_partition(int nodes, const uint8_t *group, uint32_t down)
{
    struct lab_text ip = {0};
    bool ok = true;
    for (int g = 0; g <= GROUPS_MAX && ok; g++) {
        char path[64];
        bool used = false;
        for (int i = 0; i < nodes; i++)
            used |= group[i] == g;
        snprintf(path, sizeof path, "/sys/class/net/" LAB_PREFIX "-b%d", g);
        if (!used || access(path, F_OK) == 0)
            continue;
        lab_add(&ip, "link add " LAB_PREFIX "-b%d type bridge mcast_snooping 0\n", g);
        if (net_has_ipv6())
            lab_add(&ip, "link set " LAB_PREFIX "-b%d addrgenmode none\n", g);
        lab_add(&ip, "link set " LAB_PREFIX "-b%d up\n", g);
        ok = net_batch("ip", &ip, NULL);
    }
    free(ip.text);
    return ok && join_bridges(nodes, group, down);
}

/* One datagram is one packet, and the receiver verifies its checksum. */
static bool offloads_off(int node, const char *namespace)
{
    char port[24];
    net_port(node, port);
    const char *outside[] = {"ethtool", "-K",  port,  "tso", "off",
                             "gso",     "off", "gro", "off", "tx-udp-segmentation",
                             "off",     NULL};
    const char *inside[] = {"ip",  "netns", "exec", namespace, "ethtool", "-K",  "e0",
                            "tso", "off",   "gso",  "off", "gro",     "off", "tx-udp-segmentation",
                            "off", "rx",    "off",  NULL};
    return lab_must(outside, NULL) && lab_must(inside, NULL);
}

/* The other end of a node's link. */
static bool end_up(int node, int nodes, const char *namespace)
{
    struct lab_text ip = {0};
    char mac[24];
    lab_add(&ip, "link set lo up\n");
    if (net_has_ipv6())
        lab_add(&ip, "link set e0 addrgenmode none\n");
    lab_add(&ip, "addr add " LAB_SUBNET ".%d/24 dev e0\nlink set e0 up\n", node);
    for (int k = 1; k <= nodes; k++) {
        node_mac(k, mac);
        if (k != node)
            lab_add(&ip, "neigh add " LAB_SUBNET ".%d lladdr %s dev e0 nud permanent\n", k, mac);
    }
    bool ok = net_batch("ip", &ip, namespace);
    free(ip.text);
    return ok;
}

/* A node's namespace; its link leads there, or to the NAT before it. */
static void add_node(struct lab_text *ip, int node, bool nat)
{
    char port[24], name[24], router[24], mac[24];
    net_port(node, port);
    namespace_name(node, name);
    nat_router(node, router);
    node_mac(node, mac);
    lab_add(ip, "netns add %s\n", name);
    if (nat)
        lab_add(ip, "netns add %s\n", router);
    lab_add(ip, "link add %s type veth peer name e0 address %s netns %s\n", port, mac,
            nat ? router : name);
    if (net_has_ipv6())
        lab_add(ip, "link set %s addrgenmode none\n", port);
}

bool net_up(int nodes, uint32_t nat)
{
    static const uint8_t together[LAB_NODES];
    struct lab_text ip = {0};
    for (int i = 1; i <= nodes; i++)
        add_node(&ip, i, nat & 1u << (i - 1));
    bool ok = net_batch("ip", &ip, NULL);
    free(ip.text);
    for (int i = 1; i <= nodes && ok; i++) {
        char name[24];
        bool behind = nat & 1u << (i - 1);
        if (behind)
            nat_router(i, name);
        else
            namespace_name(i, name);
        ok = offloads_off(i, name) && end_up(i, nodes, name) && (!behind || nat_up(i));
    }
    return ok && net_partition(nodes, together, 0);
}

/* Processes that a killed lab left in a namespace. */
static void kill_inside(const char *name)
{
    const char *argv[] = {"ip", "netns", "pids", name, NULL};
    char *pids = NULL;
    if (lab_exec(argv, NULL, &pids) == 0)
        for (char *p = pids, *end; p && *p; p = end) {
            long pid = strtol(p, &end, 10);
            if (end == p)
                break;
            if (pid > 1)
                kill((pid_t)pid, SIGKILL);
        }
    free(pids);
}

void net_down(void)
{
    struct lab_text ip = {0};
    char path[64];
    nat_down();
    for (int i = 1; i <= LAB_NODES; i++) {
        char name[2][24];
        namespace_name(i, name[0]);
        nat_router(i, name[1]);
        for (int k = 0; k < 2; k++) {
            snprintf(path, sizeof path, "/run/netns/%s", name[k]);
            if (access(path, F_OK) != 0)
                continue;
            kill_inside(name[k]);
            lab_add(&ip, "netns del %s\n", name[k]);
        }
        snprintf(path, sizeof path, "/sys/class/net/" LAB_PREFIX "-%d", i);
        if (access(path, F_OK) == 0)
            lab_add(&ip, "link del " LAB_PREFIX "-%d\n", i);
    }
    for (int g = 0; g <= GROUPS_MAX; g++) {
        snprintf(path, sizeof path, "/sys/class/net/" LAB_PREFIX "-b%d", g);
        if (access(path, F_OK) == 0)
            lab_add(&ip, "link del " LAB_PREFIX "-b%d\n", g);
    }
    if (ip.len) {
        const char *argv[] = {"ip", "-force", "-batch", "-", NULL};
        lab_exec(argv, ip.text, NULL);
    }
    free(ip.text);
    link_clear();
}
