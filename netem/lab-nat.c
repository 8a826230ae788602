/* lab-nat.c - a NAT before a node: a process in a namespace of its own that passes on what
 * the node sends from a port of its own choice, the same towards everybody, and lets in
 * what comes from where the node has sent to (RFC 4787: endpoint-independent mapping,
 * address and port-dependent filtering).
 *
 * The node's side is a TUN device.  Ports of mappings before stay bound and unread, so that
 * what still comes for them is lost without a word. */
#include "lab.h"
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if.h>
#include <linux/if_tun.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#define PORT_FIRST 20000
#define HEADERS 28 /* IPv4 and UDP */
#define PACKET_MAX 2048
#define TURN 64 /* packets from one side before the other has its turn */
#define BUFFER (4 << 20)
#define TUN_MAJOR 10
#define TUN_MINOR 200

static struct {
    pid_t pid;
    int orders; /* a byte: forget the mapping */
} routers[LAB_NODES];

struct nat {
    int tun, outside, orders;
    uint16_t port; /* of `outside` */
    struct in_addr inner, public;
    in_port_t inner_port;
    struct sockaddr_in sent_to[LAB_NODES];
    int sent_count;
};

void nat_router(int node, char out[24])
{
    snprintf(out, 24, LAB_PREFIX "r%d", node);
}

/* ---- the process ----------------------------------------------------------- */

static bool new_mapping(struct nat *n)
{
    const int bytes = BUFFER, none = 0;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons(++n->port),
                             .sin_addr = n->public};
    if (n->outside >= 0)
        setsockopt(n->outside, SOL_SOCKET, SO_RCVBUF, &none, sizeof none);
    n->outside = socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK, 0);
    n->sent_count = 0;
    setsockopt(n->outside, SOL_SOCKET, SO_RCVBUFFORCE, &bytes, sizeof bytes);
    return bind(n->outside, (const struct sockaddr *)&at, sizeof at) == 0;
}

static bool known(const struct nat *n, const struct sockaddr_in *who)
{
    for (int i = 0; i < n->sent_count; i++)
        if (n->sent_to[i].sin_port == who->sin_port &&
            n->sent_to[i].sin_addr.s_addr == who->sin_addr.s_addr)
            return true;
    return false;
}

static uint32_t sum16(const uint8_t *p, size_t n, uint32_t sum)
{
    for (size_t i = 0; i < n; i++)
        sum += i % 2 ? p[i] : (uint32_t)p[i] << 8;
    return sum;
}

static void put_sum(uint8_t *at, uint32_t sum)
{
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    uint16_t v = (uint16_t)~sum;
    at[0] = (uint8_t)(v >> 8);
    at[1] = (uint8_t)v;
}

/* A packet of the node: where to, and from which port; false for what is not UDP. */
static bool read_headers(struct nat *n, const uint8_t *p, size_t len, struct sockaddr_in *to)
{
    if (len < HEADERS || p[0] != 0x45 || p[9] != IPPROTO_UDP || (p[6] & 0x3f) || p[7])
        return false;
    *to = (struct sockaddr_in){.sin_family = AF_INET};
    memcpy(&to->sin_addr, p + 16, 4);
    memcpy(&n->inner_port, p + 20, 2);
    memcpy(&to->sin_port, p + 22, 2);
    return true;
}

/* Headers of a packet from `from` to the node, its payload in place behind them. */
static void write_headers(const struct nat *n, uint8_t *p, size_t payload,
                          const struct sockaddr_in *from)
{
    const uint16_t len = htons((uint16_t)(payload + HEADERS)), udp = htons((uint16_t)(payload + 8));
    memset(p, 0, HEADERS);
    p[0] = 0x45;
    memcpy(p + 2, &len, 2);
    p[8] = 64;
    p[9] = IPPROTO_UDP;
    memcpy(p + 12, &from->sin_addr, 4);
    memcpy(p + 16, &n->inner, 4);
    memcpy(p + 20, &from->sin_port, 2);
    memcpy(p + 22, &n->inner_port, 2);
    memcpy(p + 24, &udp, 2);
    put_sum(p + 10, sum16(p, 20, 0));
    put_sum(p + 26, sum16(p + 12, payload + 16, IPPROTO_UDP + (uint32_t)payload + 8));
}

static void pass_out(struct nat *n)
{
    uint8_t packet[PACKET_MAX];
    struct sockaddr_in to;
    for (int i = 0; i < TURN; i++) {
        ssize_t len = read(n->tun, packet, sizeof packet);
        if (len < 0)
            return;
        if (!read_headers(n, packet, (size_t)len, &to))
            continue;
        if (!known(n, &to) && n->sent_count < LAB_NODES)
            n->sent_to[n->sent_count++] = to;
        sendto(n->outside, packet + HEADERS, (size_t)len - HEADERS, 0,
               (const struct sockaddr *)&to, sizeof to);
    }
}

static void pass_in(struct nat *n)
{
    uint8_t packet[PACKET_MAX];
    for (int i = 0; i < TURN; i++) {
        struct sockaddr_in from;
        socklen_t size = sizeof from;
        ssize_t len = recvfrom(n->outside, packet + HEADERS, sizeof packet - HEADERS, 0,
                               (struct sockaddr *)&from, &size);
        if (len < 0)
            return;
        if (!known(n, &from))
            continue;
        write_headers(n, packet, (size_t)len, &from);
        if (write(n->tun, packet, (size_t)len + HEADERS) < 0)
            return;
    }
}

/* Does not return. */
static void translate(struct nat *n, int ns, pid_t parent)
{
    char order;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || setns(ns, CLONE_NEWNET) != 0)
        _exit(1);
    n->port = LAB_PORT - 1; /* what comes for the node's own port is lost likewise */
    bool ok = new_mapping(n);
    n->port = PORT_FIRST;
    if (!ok || !new_mapping(n))
        _exit(1);
    for (;;) {
        struct pollfd fds[] = {{n->tun, POLLIN, 0}, {n->outside, POLLIN, 0}, {n->orders, POLLIN, 0}};
        if (poll(fds, 3, -1) < 0)
            _exit(1);
        if (fds[2].revents && (read(n->orders, &order, 1) != 1 || !new_mapping(n)))
            _exit(0);
        pass_out(n);
        pass_in(n);
    }
}

/* ---- the lab's side ---------------------------------------------------------- */

/* A guest has the device when its module is loaded; the host's folder may lack its file. */
static int open_tun(void)
{
    static const char own[] = "/run/" LAB_PREFIX "-tun";
    int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0 && (mknod(own, S_IFCHR | 0600, makedev(TUN_MAJOR, TUN_MINOR)) == 0 || errno == EEXIST))
        fd = open(own, O_RDWR | O_NONBLOCK | O_CLOEXEC);
    return fd;
}

bool nat_available(bool guest)
{
    static bool loaded;
    if (guest && !loaded && !uml_module("tun"))
        return false;
    loaded = guest;
    int fd = open_tun();
    if (fd < 0)
        lab_say("[nodes] nat needs a TUN device: %s (module tun)", strerror(errno));
    else
        close(fd);
    return fd >= 0;
}

/* The device e0 in the node's namespace; its descriptor, or -1 after saying why. */
static int tun_in(int ns)
{
    struct ifreq r = {.ifr_name = "e0", .ifr_flags = IFF_TUN | IFF_NO_PI};
    int home = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC), fd = -1;
    if (home >= 0 && setns(ns, CLONE_NEWNET) == 0) {
        fd = open_tun();
        if (fd >= 0 && ioctl(fd, TUNSETIFF, &r) != 0) {
            close(fd);
            fd = -1;
        }
        if (fd < 0)
            lab_say("cannot make a TUN device: %s", strerror(errno));
        if (setns(home, CLONE_NEWNET) != 0)
            abort(); /* nothing would be where it is looked for */
    }
    if (home >= 0)
        close(home);
    return fd;
}

static bool inside_up(int node)
{
    char name[24];
    struct lab_text ip = {0};
    snprintf(name, sizeof name, LAB_PREFIX "%d", node);
    lab_add(&ip, "link set lo up\n");
    if (net_has_ipv6())
        lab_add(&ip, "link set e0 addrgenmode none\n");
    lab_add(&ip, "addr add " LAB_INSIDE ".%d.2/24 dev e0\nlink set e0 up\nroute add default dev e0\n",
            node);
    bool ok = net_batch("ip", &ip, name);
    free(ip.text);
    return ok;
}

bool nat_up(int node)
{
    char text[24], router[64];
    struct nat n = {.outside = -1};
    int fds[2], inner = net_namespace(node), outer;
    pid_t self = getpid();
    nat_router(node, text);
    snprintf(router, sizeof router, "/run/netns/%s", text);
    outer = open(router, O_RDONLY | O_CLOEXEC);
    snprintf(text, sizeof text, LAB_INSIDE ".%d.2", node);
    inet_pton(AF_INET, text, &n.inner);
    snprintf(text, sizeof text, LAB_SUBNET ".%d", node);
    inet_pton(AF_INET, text, &n.public);
    n.tun = inner >= 0 && outer >= 0 ? tun_in(inner) : -1;
    bool ok = n.tun >= 0 && inside_up(node) && pipe2(fds, O_CLOEXEC) == 0;
    if (ok) {
        n.orders = fds[0];
        pid_t pid = fork();
        if (pid == 0)
            translate(&n, outer, self);
        ok = pid > 0;
        routers[node - 1].pid = pid;
        routers[node - 1].orders = fds[1];
        close(fds[0]);
    }
    for (int i = 0; i < 3; i++) {
        const int fd = i == 0 ? inner : i == 1 ? outer : n.tun;
        if (fd >= 0)
            close(fd);
    }
    return ok;
}

bool nat_rebind(int node)
{
    return write(routers[node - 1].orders, "", 1) == 1;
}

void nat_down(void)
{
    for (int i = 0; i < LAB_NODES; i++) {
        if (routers[i].pid <= 0)
            continue;
        kill(routers[i].pid, SIGKILL);
        waitpid(routers[i].pid, NULL, 0);
        close(routers[i].orders);
        routers[i].pid = 0;
    }
}
