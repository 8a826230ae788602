/* lab-net.c - a namespace a node, one veth each, bridges between them.
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

static bool has_ipv6(void)
{
    return access("/proc/sys/net/ipv6", F_OK) == 0;
}

/* Feed lines to one of iproute2's programs. */
static bool batch(const char *program, struct lab_text *lines, const char *namespace)
{
    const char *plain[] = {program, "-batch", "-", NULL};
    const char *inside[] = {program, "-n", namespace, "-batch", "-", NULL};
    bool ok = lab_must(namespace ? inside : plain, lines->text);
    lines->len = 0;
    return ok;
}

/* Ports of a bridge do not flood: it is told where each node is. */
static bool join_bridges(int nodes, const uint8_t *group)
{
    struct lab_text ip = {0}, fdb = {0};
    for (int i = 1; i <= nodes; i++) {
        char port[24], mac[24];
        net_port(i, port);
        node_mac(i, mac);
        lab_add(&ip, "link set %s master " LAB_PREFIX "-b%d up\n", port, group[i - 1]);
        lab_add(&ip, "link set %s type bridge_slave flood off mcast_flood off\n", port);
        lab_add(&fdb, "fdb replace %s dev %s master static\n", mac, port);
    }
    bool ok = batch("ip", &ip, NULL) && batch("bridge", &fdb, NULL);
    free(ip.text);
    free(fdb.text);
    return ok;
}

bool net_partition(int nodes, const uint8_t *group)
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
        if (has_ipv6())
            lab_add(&ip, "link set " LAB_PREFIX "-b%d addrgenmode none\n", g);
        lab_add(&ip, "link set " LAB_PREFIX "-b%d up\n", g);
        ok = batch("ip", &ip, NULL);
    }
    free(ip.text);
    return ok && join_bridges(nodes, group);
}

/* One datagram is one packet, and the receiver verifies its checksum. */
static bool offloads_off(int node)
{
    char port[24], name[24];
    net_port(node, port);
    namespace_name(node, name);
    const char *outside[] = {"ethtool", "-K",  port,  "tso", "off",
                             "gso",     "off", "gro", "off", "tx-udp-segmentation",
                             "off",     NULL};
    const char *inside[] = {"ip",  "netns", "exec", name,  "ethtool", "-K",  "e0",
                            "tso", "off",   "gso",  "off", "gro",     "off", "tx-udp-segmentation",
                            "off", "rx",    "off",  NULL};
    return lab_must(outside, NULL) && lab_must(inside, NULL);
}

static bool inside_up(int node, int nodes)
{
    struct lab_text ip = {0};
    char name[24], mac[24];
    namespace_name(node, name);
    lab_add(&ip, "link set lo up\n");
    if (has_ipv6())
        lab_add(&ip, "link set e0 addrgenmode none\n");
    lab_add(&ip, "addr add " LAB_SUBNET ".%d/24 dev e0\nlink set e0 up\n", node);
    for (int k = 1; k <= nodes; k++) {
        node_mac(k, mac);
        if (k != node)
            lab_add(&ip, "neigh add " LAB_SUBNET ".%d lladdr %s dev e0 nud permanent\n", k, mac);
    }
    bool ok = batch("ip", &ip, name);
    free(ip.text);
    return ok;
}

bool net_up(int nodes)
{
    static const uint8_t together[LAB_NODES];
    struct lab_text ip = {0};
    for (int i = 1; i <= nodes; i++) {
        char port[24], name[24], mac[24];
        net_port(i, port);
        namespace_name(i, name);
        node_mac(i, mac);
        lab_add(&ip, "netns add %s\n", name);
        lab_add(&ip, "link add %s type veth peer name e0 address %s netns %s\n", port, mac, name);
        if (has_ipv6())
            lab_add(&ip, "link set %s addrgenmode none\n", port);
    }
    bool ok = batch("ip", &ip, NULL);
    free(ip.text);
    for (int i = 1; i <= nodes && ok; i++)
        ok = offloads_off(i) && inside_up(i, nodes);
    return ok && net_partition(nodes, together);
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
    for (int i = 1; i <= LAB_NODES; i++) {
        char name[24];
        namespace_name(i, name);
        snprintf(path, sizeof path, "/run/netns/%s", name);
        if (access(path, F_OK) == 0) {
            kill_inside(name);
            lab_add(&ip, "netns del %s\n", name);
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
