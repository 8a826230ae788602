/* parse.c - values of the scenario file: numbers, nodes, actions, expectations. */
#include "scenario/parse.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const scenario_action_names[SCENARIO_ACTIONS] = {
#define X(id, text, ...) text,
    SCENARIO_ACTION_MAP(X)
#undef X
};
static const enum scenario_takes action_takes[SCENARIO_ACTIONS] = {
#define X(id, text, takes, help) takes,
    SCENARIO_ACTION_MAP(X)
#undef X
};
const char *const scenario_metric_names[METRIC_COUNT] = {
#define X(id, text, help) text,
    SCENARIO_METRIC_MAP(X)
#undef X
};

bool parse_number(struct reader *r, const char *key, const char *text, double low, double high,
                  bool whole, double *out)
{
    char *end;
    double v = strtod(text, &end);
    if (end == text || isspace((unsigned char)*text) || *end || !isfinite(v) || v < low ||
        v > high || (whole && v != floor(v)))
        return reader_wrong(r, r->line, "%s = \"%s\": a %snumber from %g to %g is needed", key,
                            text, whole ? "whole " : "", low, high);
    *out = v;
    return true;
}

int parse_key(struct reader *r, const struct scenario_key *known, size_t count, const char *key,
              const char *value, void *section)
{
    for (size_t i = 0; i < count; i++) {
        const struct scenario_key *k = &known[i];
        double v;
        if (strcmp(k->name, key) != 0)
            continue;
        if (!parse_number(r, key, value, k->low, k->high, k->whole, &v))
            return -1;
        memcpy((char *)section + k->offset, &v, sizeof v);
        return 1;
    }
    return 0;
}

bool parse_nodes(struct reader *r, const char *key, const char *text, const char *end,
                 uint32_t *nodes)
{
    *nodes = 0;
    for (const char *p = text; *p;) {
        p += strspn(p, ", \t");
        size_t n = strcspn(p, ", \t");
        if (n == 0 || *p == '|' || (n == 1 && *end && strchr(end, *p)))
            break;
        char *rest;
        long node = strtol(p, &rest, 10);
        if (n == 1 && *p == '*') {
            *nodes = UINT32_MAX;
        } else if (!isdigit((unsigned char)*p) || rest != p + n || node < 1 ||
                   node > SCENARIO_NODES_MAX) {
            return reader_wrong(r, r->line,
                                "%s: \"%.*s\" is not a node; nodes are numbered from 1 "
                                "to %d, * is all",
                                key, (int)n, p, SCENARIO_NODES_MAX);
        } else {
            *nodes |= 1u << (node - 1);
        }
        p += n;
    }
    if (*nodes == 0)
        return reader_wrong(r, r->line, "%s needs nodes, e.g. %s 2 3, or %s *", key, key, key);
    return true;
}

static bool parse_groups(struct reader *r, const char *text, struct scenario_event *e)
{
    uint8_t group = 1;
    e->nodes = 0;
    for (const char *p = text; p; group++) {
        uint32_t nodes;
        if (!parse_nodes(r, "partition", p, "|", &nodes))
            return false;
        if (nodes & e->nodes || nodes == UINT32_MAX)
            return reader_wrong(r, r->line, "partition: a node can be in one group only");
        e->nodes |= nodes;
        for (int i = 0; i < SCENARIO_NODES_MAX; i++)
            if (nodes & 1u << i)
                e->group[i] = group;
        p = strchr(p, '|');
        p = p ? p + 1 : NULL;
    }
    return group > 2 || reader_wrong(r, r->line,
                                     "partition needs two groups divided by |, e.g. "
                                     "partition 1 2 3 | 4");
}

static bool parse_clock(struct reader *r, const char *text, struct scenario_event *e)
{
    if (!parse_number(r, "clock", text, -1e6, 1e6, false, &e->seconds))
        return false;
    return e->seconds != 0 || reader_wrong(r, r->line, "clock 0 moves nothing; e.g. clock -3600");
}

static bool parse_operands(struct reader *r, const char *text, struct scenario_event *e)
{
    const char *name = scenario_action_names[e->action];
    switch (action_takes[e->action]) {
    case TAKES_GROUPS:
        return parse_groups(r, text, e);
    case TAKES_NODES:
        return parse_nodes(r, name, text, "", &e->nodes);
    case TAKES_SECONDS:
        return parse_clock(r, text, e);
    default:
        return !*text || reader_wrong(r, r->line, "%s takes nothing more, not \"%s\"", name, text);
    }
}

bool parse_action(struct reader *r, const char *text, struct scenario_event *e)
{
    size_t n = strcspn(text, " \t"), used = 0;
    const char *rest = text + n + strspn(text + n, " \t");
    char list[256] = "";
    for (int i = 0; i < SCENARIO_ACTIONS; i++) {
        const char *name = scenario_action_names[i];
        if (strlen(name) == n && memcmp(name, text, n) == 0) {
            e->action = (enum scenario_action)i;
            return parse_operands(r, rest, e);
        }
        used += (size_t)snprintf(list + used, sizeof list - used, used ? ", %s" : "%s", name);
    }
    return reader_wrong(r, r->line, "do = \"%s\": use one of %s", text, list);
}

static int find_metric(const char *text, size_t n)
{
    for (int i = 0; i < METRIC_COUNT; i++)
        if (strlen(scenario_metric_names[i]) == n && memcmp(scenario_metric_names[i], text, n) == 0)
            return i;
    return -1;
}

static bool unknown_metric(struct reader *r, const char *key)
{
    char list[512] = "";
    size_t used = 0;
    for (int i = 0; i < METRIC_COUNT && used < sizeof list; i++)
        used += (size_t)snprintf(list + used, sizeof list - used, " %s", scenario_metric_names[i]);
    return reader_wrong(r, r->line,
                        "\"%s\": a line of [expect] is METRIC [NODES] and >=, <= or = "
                        "a number; metrics are%s",
                        key, list);
}

/* The file says "loss_gap 1 2 <= 0.02": the key ends at the '='. */
bool parse_expect(struct reader *r, const char *key, const char *value)
{
    size_t n = strcspn(key, " \t<>");
    const char *rest = key + n + strspn(key + n, " \t");
    int metric = find_metric(key, n);
    struct scenario_expect e = {.line = r->line, .op = '='};
    if (metric < 0)
        return unknown_metric(r, key);
    if (r->s->expects == SCENARIO_EXPECTS_MAX)
        return reader_wrong(r, r->line, "more than %d expectations", SCENARIO_EXPECTS_MAX);
    e.metric = (enum scenario_metric)metric;
    if (*rest && *rest != '<' && *rest != '>' &&
        !parse_nodes(r, scenario_metric_names[metric], rest, "<>", &e.nodes))
        return false;
    const char *op = strpbrk(rest, "<>");
    if (op) {
        if (op[1])
            return unknown_metric(r, key);
        e.op = *op;
    }
    if (!parse_number(r, key, value, -1e12, 1e12, false, &e.value))
        return false;
    r->s->expect[r->s->expects++] = e;
    return true;
}
