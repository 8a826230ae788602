/* address.c - which of this machine's addresses others are told: arithmetic only. */
#define _GNU_SOURCE 1
#include "address.h"
#include <arpa/inet.h>
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool address_is_v4(const sleet_addr *a)
{
    static const uint8_t prefix[12] = {[10] = 0xff, [11] = 0xff};
    return memcmp(a->ip, prefix, 12) == 0;
}

bool address_is_loopback(const sleet_addr *a)
{
    static const uint8_t one[16] = {[15] = 1};
    return address_is_v4(a) ? a->ip[12] == 127 : memcmp(a->ip, one, 16) == 0;
}

bool address_is_unspecified(const sleet_addr *a)
{
    static const uint8_t zero[16];
    return memcmp(a->ip + 12, zero, 4) == 0 && (address_is_v4(a) || memcmp(a->ip, zero, 12) == 0);
}

bool address_is_link_local(const sleet_addr *a)
{
    return address_is_v4(a) ? a->ip[12] == 169 && a->ip[13] == 254
                            : a->ip[0] == 0xfe && (a->ip[1] & 0xc0) == 0x80;
}

static bool is_multicast(const sleet_addr *a)
{
    return address_is_v4(a) ? a->ip[12] >= 224 : a->ip[0] == 0xff;
}

/* ---- text ---------------------------------------------------------------------- */

bool address_split(const char *text, char host[256], char port[6])
{
    const char *colon = strrchr(text, ':');
    if (!colon || strlen(text) > ADDRESS_TEXT_MAX)
        return false;
    const char *begin = text, *end = colon;
    if (*begin == '[') {
        if (end == begin || end[-1] != ']')
            return false;
        begin++;
        end--;
    } else if (memchr(begin, ':', (size_t)(end - begin))) {
        return false;
    }
    for (const char *p = begin; p < end; p++) /* what host names and addresses are made of */
        if (!isalnum((unsigned char)*p) && !strchr(".-_:%", *p))
            return false;
    size_t n = (size_t)(end - begin), digits = strspn(colon + 1, "0123456789");
    if (n > 255 || digits < 1 || digits > 5 || colon[1 + digits] || atoi(colon + 1) > 65535)
        return false;
    memcpy(host, begin, n);
    host[n] = '\0';
    memcpy(port, colon + 1, digits + 1);
    return true;
}

void address_format_ip(const sleet_addr *a, char out[80])
{
    bool v4 = address_is_v4(a);
    if (!inet_ntop(v4 ? AF_INET : AF_INET6, v4 ? a->ip + 12 : a->ip, out, 80))
        out[0] = '\0';
    size_t used = strlen(out);
    if (!v4 && a->scope)
        snprintf(out + used, 80 - used, "%%%u", a->scope);
}

void address_format(const sleet_addr *a, char out[80])
{
    char ip[80];
    address_format_ip(a, ip);
    snprintf(out, 80, address_is_v4(a) ? "%.70s:%u" : "[%.70s]:%u", ip, a->port);
}

const char *address_unreachable(const sleet_addr *bound, const sleet_addr *peer)
{
    if (address_is_unspecified(peer))
        return "it is no address of a machine";
    if (is_multicast(peer))
        return "it is a multicast or broadcast address";
    if (address_is_link_local(peer) && !address_is_v4(peer) && !peer->scope)
        return "a link-local address needs its interface: [fe80::1%eth0]:7700";
    if (address_is_loopback(bound) && !address_is_loopback(peer))
        return "node.listen is a loopback address, which no other machine can answer: listen on "
               ":7700 or on an address of a network";
    return NULL;
}

/* ---- rules ------------------------------------------------------------------- */

static bool parse_prefix(struct address_rule *r, const char *item)
{
    char text[64], *end;
    const char *slash = strchr(item, '/');
    if ((size_t)(slash - item) >= sizeof text || !isdigit((unsigned char)slash[1]))
        return false;
    snprintf(text, sizeof text, "%.*s", (int)(slash - item), item);
    unsigned long bits = strtoul(slash + 1, &end, 10);
    bool v4 = inet_pton(AF_INET, text, r->ip + 12) == 1;
    if (*end || bits > (v4 ? 32 : 128) || (!v4 && inet_pton(AF_INET6, text, r->ip) != 1))
        return false;
    if (v4)
        r->ip[10] = r->ip[11] = 0xff;
    r->type = RULE_PREFIX;
    r->bits = (unsigned)bits + (v4 ? 96 : 0);
    return true;
}

bool address_rule_parse(struct address_rule *r, const char *item)
{
    char host[256], port[6];
    *r = (struct address_rule){.type = RULE_AUTO};
    if (!*item || strlen(item) >= sizeof r->text)
        return false;
    strcpy(r->text, item);
    if (strcmp(item, "auto") == 0)
        return true;
    if (strchr(item, '/'))
        return parse_prefix(r, item);
    if (strchr(item, ':')) {
        r->type = RULE_EXACT;
        return address_split(item, host, port) && host[0] && atoi(port) != 0;
    }
    r->type = RULE_INTERFACE;
    for (const char *p = item; *p; p++)
        if (!isalnum((unsigned char)*p) && !strchr(".-_@", *p))
            return false;
    return strlen(item) < sizeof((struct local_address *)0)->name;
}

static bool in_prefix(const struct address_rule *r, const sleet_addr *a)
{
    unsigned bytes = r->bits / 8, rest = r->bits % 8;
    if (memcmp(r->ip, a->ip, bytes) != 0)
        return false;
    return rest == 0 || (r->ip[bytes] ^ a->ip[bytes]) >> (8 - rest) == 0;
}

/* ---- the choice ----------------------------------------------------------------- */

/* Why nobody elsewhere could use the address, or NULL. */
static const char *useless(const sleet_addr *a, const struct address_scene *s)
{
    if (address_is_loopback(a))
        return "loopback";
    if (address_is_unspecified(a) || is_multicast(a))
        return "no address of a machine";
    if (address_is_link_local(a))
        return "link-local, others need a scope id of their own for it";
    return !s->inet6 && !address_is_v4(a) ? "IPv6, the daemon listens on IPv4" : NULL;
}

/* Why the rule does not take the interface's address, or NULL. */
static const char *unfit(const struct address_rule *r, const struct local_address *l,
                         const struct address_scene *s)
{
    const char *why = useless(&l->addr, s);
    bool same = memcmp(l->addr.ip, s->bound.ip, 16) == 0;
    if (r->type == RULE_INTERFACE && strcmp(r->text, l->name) != 0)
        return "another interface";
    if (r->type == RULE_PREFIX && !in_prefix(r, &l->addr))
        return "outside the prefix";
    if (!l->up)
        return "the interface is down";
    if (why || (l->loopback && r->type == RULE_AUTO))
        return why ? why : "of the loopback interface";
    if (address_is_unspecified(&s->bound) || same)
        return NULL;
    return "the daemon does not listen on it";
}

static void reject(struct address_choice *c, const char *name, const sleet_addr *a, const char *why)
{
    char text[80];
    size_t used = strlen(c->why);
    address_format_ip(a, text);
    snprintf(c->why + used, sizeof c->why - used, "%s%s %s: %s", used ? "; " : "", name, text, why);
}

static void take(struct address_choice *c, const struct address_scene *s, const sleet_addr *a,
                 uint16_t port)
{
    unsigned family = address_is_v4(a) ? ADDRESS_V4 : ADDRESS_V6;
    bool hinted = memcmp(a->ip, s->hint[family].ip, 16) == 0;
    if (c->at[family].port && !hinted)
        return; /* the first, unless this is how others are reached */
    c->at[family] = *a;
    c->at[family].port = port;
    c->at[family].scope = 0;
}

/* One rule, for the families that the rules before it left open. */
static void apply(struct address_choice *c, const struct address_rule *r, const sleet_addr *exact,
                  const struct address_scene *s)
{
    const bool had[ADDRESS_FAMILIES] = {c->at[ADDRESS_V4].port != 0, c->at[ADDRESS_V6].port != 0};
    if (r->type == RULE_EXACT) {
        const char *why = useless(exact, s);
        if (why)
            reject(c, "node.advertise", exact, why);
        else if (!had[address_is_v4(exact) ? ADDRESS_V4 : ADDRESS_V6])
            take(c, s, exact, exact->port);
        return;
    }
    for (uint32_t i = 0; i < s->locals_n; i++) {
        const struct local_address *l = &s->locals[i];
        const char *why = unfit(r, l, s);
        if (why)
            reject(c, l->name, &l->addr, why);
        else if (!had[address_is_v4(&l->addr) ? ADDRESS_V4 : ADDRESS_V6])
            take(c, s, &l->addr, s->bound.port);
    }
}

void address_choose(struct address_choice *c, const struct address_rule *rules,
                    const sleet_addr *exact, uint32_t n, const struct address_scene *s)
{
    memset(c, 0, sizeof *c);
    for (uint32_t i = 0; i < n; i++)
        apply(c, &rules[i], &exact[i], s);
}
