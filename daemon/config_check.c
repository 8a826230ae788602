/* config_check.c - is each option's value allowed, and do they go together? */
#include "config_rows.h"
#include "address.h"
#include "engine.h"
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define ALLOW_MAX (ENGINE_PEERS_MAX + 1)
#define rows config_rows

static const char *const level_names[] = {"debug", "info", "warn", "error"};

bool config_wrong(const struct config *c, int id, const char *format, ...)
{
    char env[64];
    config_env_name(id, env);
    fprintf(stderr, "sleetd: %s: %s.%s = \"%s\": ", c->origin[id], rows[id].section, rows[id].key,
            c->text[id]);
    va_list args;
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fprintf(stderr, " (set it in the file, by %s or by --%s.%s=VALUE)\n", env, rows[id].section,
            rows[id].key);
    return false;
}

static bool check_number(struct config *c, int id)
{
    const char *t = c->text[id];
    char *end;
    errno = 0;
    if (id == CONFIG_ID && !*t)
        return true; /* the node's key gives it, or config_check_together() asks for it */
    if (id == CONFIG_ID || id == CONFIG_SEED) {
        uint64_t v = strtoull(t, &end, 10);
        if (!isdigit((unsigned char)*t) || *end || errno || (id == CONFIG_ID && v == 0))
            return config_wrong(c, id, id == CONFIG_ID
                                    ? "give each node of the job its own whole number from 1"
                                    : "a whole number from 0 is needed");
        *(id == CONFIG_ID ? &c->node_id : &c->seed) = v;
        return true;
    }
    double v = strtod(t, &end);
    if (end == t || isspace((unsigned char)*t) || *end || !isfinite(v) || v < rows[id].low || v > rows[id].high)
        return config_wrong(c, id, "a number from %g to %g is needed", rows[id].low, rows[id].high);
    double *const field[CONFIG_COUNT] = {[CONFIG_RATE] = &c->rate_mbit,
                                         [CONFIG_KEEP] = &c->keep_mib,
                                         [CONFIG_CLIP] = &c->clip,
                                         [CONFIG_LOSS] = &c->loss,
                                         [CONFIG_MERGE_ROUNDS] = &c->merge_rounds,
                                         [CONFIG_RECEIVE_BUFFER] = &c->receive_buffer};
    *field[id] = v;
    return true;
}

/* One of two words; the field is true with the second. */
static bool check_switch(struct config *c, int id)
{
    const struct { const char *words[2]; bool *field; } switches[CONFIG_COUNT] = {
        [CONFIG_GSO] = {{"off", "auto"}, &c->gso},
        [CONFIG_ON_PARTITION] = {{"park", "continue"}, &c->part_continue},
        [CONFIG_PARITY] = {{"auto", "off"}, &c->parity_off},
        [CONFIG_ON_ISOLATED] = {{"pause", "go-on"}, &c->go_on_isolated}};
    const char *const *words = switches[id].words;
    *switches[id].field = strcmp(c->text[id], words[1]) == 0;
    return *switches[id].field || strcmp(c->text[id], words[0]) == 0 ||
           config_wrong(c, id, "%s or %s is needed", words[0], words[1]);
}

static bool check_speed(struct config *c, int id)
{
    static const struct { char suffix; double times; } suffixes[] = {{'k', 1e3}, {'M', 1e6}, {'G', 1e9}, {'T', 1e12}};
    const char *t = c->text[id];
    char *end;
    c->declared.kbit = 0;
    if (!*t)
        return true;
    double v = strtod(t, &end);
    for (size_t i = 0; end != t && i < sizeof suffixes / sizeof *suffixes; i++)
        if (end[0] == suffixes[i].suffix && !end[1]) {
            v *= suffixes[i].times;
            end++;
        }
    if (end == t || isspace((unsigned char)*t) || *end || !isfinite(v) || v < rows[id].low || v > rows[id].high)
        return config_wrong(c, id, "bits a second are needed, 1k to 4T, as in 800k, 20M or 1.5G");
    c->declared.kbit = (uint32_t)(v / 1e3);
    return true;
}

static bool check_role(struct config *c, int id)
{
    for (c->declared.role = ROLE_NODE; c->declared.role < ROLES; c->declared.role++)
        if (strcmp(c->text[id], declared_role_text(c->declared.role)) == 0)
            return true;
    return config_wrong(c, id, "node, client or auxiliary is needed");
}

static bool check_site(struct config *c, int id)
{
    struct declared d = {.kbit = 0};
    if (strlen(c->text[id]) <= SITE_MAX)
        memcpy(d.site, c->text[id], strlen(c->text[id]));
    if (strlen(c->text[id]) > SITE_MAX || !declared_fits(&d) || strchr(d.site, ';'))
        return config_wrong(c, id, "a word of at most %d visible ASCII characters without ';' is needed", SITE_MAX);
    memcpy(c->declared.site, d.site, sizeof d.site);
    return true;
}

static bool check_peer(struct config *c, int id, const char *item)
{
    char host[256], port[6];
    if (address_split(item, host, port) && host[0] && atoi(port) != 0)
        return true;
    return config_wrong(c, id, "\"%s\" is not host:port or [host]:port of at most %d bytes", item,
                        ADDRESS_TEXT_MAX);
}

static bool check_node_id(struct config *c, int id, const char *item)
{
    char *end;
    errno = 0;
    uint64_t v = strtoull(item, &end, 10);
    if (!isdigit((unsigned char)*item) || *end || errno || v == 0)
        return config_wrong(c, id, "\"%s\" is not a node id, a whole number that sleetctl keygen "
                                   "prints", item);
    if (c->allow_count == ALLOW_MAX)
        return config_wrong(c, id, "at most %d nodes can be listed", ALLOW_MAX);
    uint64_t *grown = realloc(c->allow, (c->allow_count + 1) * sizeof *grown);
    if (!grown)
        return config_wrong(c, id, "out of memory");
    c->allow = grown;
    c->allow[c->allow_count++] = v;
    return true;
}

static bool check_advertised(struct config *c, int id, const char *item)
{
    struct address_rule rule;
    return address_rule_parse(&rule, item) ||
           config_wrong(c, id, "\"%s\" is neither auto, host:port, an interface's name nor prefix/bits",
                        item);
}

const char *config_next_item(const char *p, char *item, size_t cap)
{
    p += strspn(p, ", \t");
    size_t n = strcspn(p, ", \t");
    snprintf(item, cap, "%.*s", (int)n, p);
    return n ? p + n : NULL;
}

static bool check_list(struct config *c, int id,
                       bool (*check)(struct config *, int id, const char *item))
{
    char item[512];
    for (const char *p = c->text[id]; (p = config_next_item(p, item, sizeof item));)
        if (!check(c, id, item))
            return false;
    return true;
}

/* Small-order and other points nobody can sign with are found out here, not by each notice. */
static bool check_public_key(struct config *c, int id)
{
    c->has_operator = c->text[id][0] != '\0';
    if (!c->has_operator)
        return true;
    if (!key_parse(c->operator_key, c->text[id]))
        return config_wrong(c, id, "%d lower-case hexadecimal digits are needed, the public key that "
                                   "sleetctl keygen --operator prints", KEY_DIGITS);
    return crypto_core_ed25519_is_valid_point(c->operator_key) == 1 ||
           config_wrong(c, id, "this is no ed25519 public key; sleetctl keygen --operator prints one");
}

bool config_check(struct config *c, int id)
{
    const char *t = c->text[id];
    char host[256], port[6];
    size_t n = strlen(t);
    switch (rows[id].type) {
    case NUMBER:
        return check_number(c, id);
    case ADDRESS:
        return address_split(t, host, port) ||
               config_wrong(c, id, "host:port, [host]:port or :port of at most %d bytes is needed, "
                                "e.g. 127.0.0.1:7700", ADDRESS_TEXT_MAX);
    case TEXT:
        for (size_t i = 0; i < n; i++)
            if ((unsigned char)t[i] < ' ' || t[i] == ';')
                return config_wrong(c, id, "control characters and ';' are not allowed");
        if (n && (t[0] == ' ' || t[n - 1] == ' '))
            return config_wrong(c, id, "it must not begin or end with a space");
        return (double)n >= rows[id].low && (double)n <= rows[id].high
                   ? true
                   : config_wrong(c, id, "%g to %g bytes are needed", rows[id].low, rows[id].high);
    case SECURITY:
        c->sealed = strcmp(t, "sealed") == 0;
        return c->sealed || strcmp(t, "none") == 0 || config_wrong(c, id, "sealed or none is needed");
    case SWITCH:
        return check_switch(c, id);
    case ROLE_NAME:
        return check_role(c, id);
    case SPEED:
        return check_speed(c, id);
    case SITE_NAME:
        return check_site(c, id);
    case PEERS:
        return check_list(c, id, check_peer);
    case IDS:
        return check_list(c, id, check_node_id);
    case ADVERTISED:
        return check_list(c, id, check_advertised);
    case PUBLIC_KEY:
        return check_public_key(c, id);
    case LEVEL:
        for (int i = 0; i < 4; i++)
            if (strcmp(t, level_names[i]) == 0) {
                c->level = (log_level)i;
                return true;
            }
        return config_wrong(c, id, "debug, info, warn or error is needed");
    }
    return false;
}

bool config_check_together(const struct config *c)
{
    static const int for_sealed[] = {CONFIG_NODE_KEY, CONFIG_JOB_KEY, CONFIG_ALLOW, CONFIG_OPERATOR};
    if (c->sealed)
        return true; /* keys_load() goes on */
    if (!c->node_id)
        return config_wrong(c, CONFIG_ID, "give each node of the job its own whole number from 1");
    for (size_t i = 0; i < sizeof for_sealed / sizeof *for_sealed; i++)
        if (c->text[for_sealed[i]][0])
            return config_wrong(c, for_sealed[i],
                                "job.security = none (from %s) makes no use of it: remove one of them",
                                c->origin[CONFIG_SECURITY]);
    return true;
}
