/* lab-nat.c - a router of its own before a node: the node's addresses are private, what it
 * sends leaves with the router's address and a port of the router's choice, and only
 * answers come in (masquerade of nftables). */
#include "lab.h"
#include <stdlib.h>
#include <unistd.h>

#define TABLE LAB_PREFIX
#define PORTS 1000 /* in a range */
#define PORT_FIRST 20000
#define RANGES 40

static int range_of[LAB_NODES]; /* of the mapping now */

void nat_router(int node, char out[24])
{
    snprintf(out, 24, LAB_PREFIX "r%d", node);
}

/* In the guest its modules are loaded only when they are needed. */
bool nat_available(bool guest)
{
    static const char *const modules[] = {"nf_tables", "nft_chain_nat", "nft_masq"};
    static bool loaded;
    if (!lab_find("nft")) {
        lab_say("[nodes] nat needs nft (package nftables)");
        return false;
    }
    for (size_t i = 0; guest && !loaded && i < sizeof modules / sizeof *modules; i++)
        if (!uml_module(modules[i]))
            return false;
    loaded = guest;
    return true;
}

/* Another range is another mapping, also for a sender that was seen before. */
static bool translate(int node)
{
    char name[24];
    struct lab_text t = {0};
    int first = PORT_FIRST + PORTS * (range_of[node - 1]++ % RANGES);
    nat_router(node, name);
    const char *argv[] = {"ip", "netns", "exec", name, "nft", "-f", "-", NULL};
    lab_add(&t,
            "add table ip " TABLE "\n"
            "add chain ip " TABLE " out { type nat hook postrouting priority 100; }\n"
            "flush chain ip " TABLE " out\n"
            "add rule ip " TABLE " out oifname e0 meta l4proto udp masquerade to :%d-%d\n",
            first, first + PORTS - 1);
    bool ok = lab_must(argv, t.text);
    free(t.text);
    return ok;
}

/* Of the node's side (2) and the router's (1) of the link between them. */
static void inner_mac(int node, unsigned side, char out[24])
{
    snprintf(out, 24, "02:00:00:78:%02x:%02x", side, (unsigned)node);
}

/* Addresses, neighbours and routes: the node's side is e0 of its namespace, the router's e1. */
static bool wire(int node, int nodes)
{
    struct lab_text in = {0}, out = {0}, make = {0};
    char name[24], router[24], mac[24], near[24], far[24];
    snprintf(name, sizeof name, LAB_PREFIX "%d", node);
    nat_router(node, router);
    inner_mac(node, 1, near);
    inner_mac(node, 2, far);
    lab_add(&make, "link add e1 address %s netns %s type veth peer name e0 address %s netns %s\n",
            near, router, far, name);
    bool ok = net_batch("ip", &make, NULL);
    for (int i = 0; net_has_ipv6() && i < 3; i++)
        lab_add(i < 2 ? &out : &in, "link set e%d addrgenmode none\n", i % 2);
    lab_add(&out,
            "link set lo up\naddr add " LAB_SUBNET ".%d/24 dev e0\nlink set e0 up\n"
            "addr add " LAB_INSIDE ".%d.1/24 dev e1\nlink set e1 up\n"
            "neigh add " LAB_INSIDE ".%d.2 lladdr %s dev e1 nud permanent\n",
            node, node, node, far);
    for (int k = 1; k <= nodes; k++) {
        net_mac(k, mac);
        if (k != node)
            lab_add(&out, "neigh add " LAB_SUBNET ".%d lladdr %s dev e0 nud permanent\n", k, mac);
    }
    lab_add(&in,
            "link set lo up\naddr add " LAB_INSIDE ".%d.2/24 dev e0\nlink set e0 up\n"
            "neigh add " LAB_INSIDE ".%d.1 lladdr %s dev e0 nud permanent\n"
            "route add default via " LAB_INSIDE ".%d.1\n",
            node, node, near, node);
    ok = ok && net_batch("ip", &out, router) && net_batch("ip", &in, name);
    free(make.text);
    free(out.text);
    free(in.text);
    return ok;
}

bool nat_up(int node, int nodes)
{
    char name[24], router[24], port[24];
    snprintf(name, sizeof name, LAB_PREFIX "%d", node);
    nat_router(node, router);
    net_port(node, port);
    const char *forward[] = {"ip", "netns", "exec", router, "sh", "-c",
                             "echo 1 >/proc/sys/net/ipv4/ip_forward", NULL};
    range_of[node - 1] = 0;
    return wire(node, nodes) && net_plain(NULL, port, false) && net_plain(router, "e0", false) &&
           net_plain(router, "e1", false) && net_plain(name, "e0", true) &&
           lab_must(forward, NULL) && translate(node);
}

/* Masquerade forgets what an address was used for as soon as it is gone. */
bool nat_rebind(int node)
{
    struct lab_text ip = {0};
    char router[24];
    nat_router(node, router);
    lab_add(&ip, "addr del " LAB_SUBNET ".%d/24 dev e0\naddr add " LAB_SUBNET ".%d/24 dev e0\n",
            node, node);
    bool ok = translate(node) && net_batch("ip", &ip, router);
    free(ip.text);
    return ok;
}
