/* See edge_list.h. */
#define XXH_INLINE_ALL
#include "strategy/edge_list.h"
#include "base/bytes.h"
#include "strategy/strategy.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define ARCS_MAX (VIEW_MEMBERS_MAX * EDGES_IN_MAX)

static int compare_arcs(const void *a, const void *b)
{
    const struct arc *x = a, *y = b;
    int from = (x->from > y->from) - (x->from < y->from), to = (x->to > y->to) - (x->to < y->to);
    return from ? from : to ? to : (x->line > y->line) - (x->line < y->line);
}

static bool fail(struct edge_fault *f, uint32_t line, const char *why)
{
    *f = (struct edge_fault){line, why};
    return false;
}

/* ---- lines */

static bool blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

/* A node id and what is blank around it. */
static bool id_at(const char **p, const char *end, uint64_t *id)
{
    const char *at = *p;
    *id = 0;
    while (at < end && blank(*at))
        at++;
    const char *first = at;
    for (; at < end && *at >= '0' && *at <= '9'; at++) {
        uint64_t digit = (uint64_t)(*at - '0');
        if (*id > (UINT64_MAX - digit) / 10)
            return false;
        *id = *id * 10 + digit;
    }
    bool ends = at == end || blank(*at);
    while (at < end && blank(*at))
        at++;
    *p = at;
    return *id != 0 && at > first && ends;
}

static bool add(struct edge_list *l, uint64_t a, uint64_t b, uint32_t line, uint32_t *room, struct edge_fault *f)
{
    if (l->n == ARCS_MAX)
        return fail(f, line, "there are more edges than 1024 nodes with 16 neighbours each have");
    if (l->n + 2 > *room) {
        uint32_t more = *room ? 2 * *room : 64;
        struct arc *grown = realloc(l->arc, more * sizeof *grown);
        if (!grown)
            return fail(f, 0, "out of memory");
        l->arc = grown;
        *room = more;
    }
    l->arc[l->n++] = (struct arc){a, b, line};
    l->arc[l->n++] = (struct arc){b, a, line};
    return true;
}

static bool read_lines(struct edge_list *l, const char *text, size_t bytes, struct edge_fault *f)
{
    const char *stop = text + bytes;
    uint32_t room = 0, line = 1;
    for (const char *p = text; p < stop; line++) {
        const char *newline = memchr(p, '\n', (size_t)(stop - p)), *end = newline ? newline : stop;
        const char *hash = memchr(p, '#', (size_t)(end - p)), *at = p, *last = hash ? hash : end;
        uint64_t a, b;
        while (at < last && blank(*at))
            at++;
        p = newline ? newline + 1 : stop;
        if (at == last)
            continue;
        if (!id_at(&at, last, &a) || !id_at(&at, last, &b) || at < last)
            return fail(f, line, "an edge is the ids of two nodes, whole numbers from 1, as in: 3 7");
        if (a == b)
            return fail(f, line, "a node is no neighbour of its own: remove the line");
        if (!add(l, a, b, line, &room, f))
            return false;
    }
    return l->n > 0 || fail(f, 0, "there is no edge in it");
}

/* ---- the whole */

/* first[i]: where the arcs of the i-th node begin; how many nodes there are. */
static uint32_t find_nodes(const struct edge_list *l, uint32_t first[static VIEW_MEMBERS_MAX + 1], struct edge_fault *f)
{
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < l->n; i++) {
        bool other = i == 0 || l->arc[i].from != l->arc[i - 1].from;
        if (other && nodes == VIEW_MEMBERS_MAX)
            return fail(f, l->arc[i].line, "the list has more than 1024 nodes");
        if (other)
            first[nodes++] = i;
        if (!other && l->arc[i].to == l->arc[i - 1].to)
            return fail(f, l->arc[i].line, "the list has this edge twice, in this order or the other: remove the line");
    }
    first[nodes] = l->n;
    for (uint32_t k = 0; k < nodes; k++) {
        uint32_t line = 0; /* the last one */
        for (uint32_t i = first[k]; i < first[k + 1]; i++)
            line = l->arc[i].line > line ? l->arc[i].line : line;
        if (first[k + 1] - first[k] > EDGES_IN_MAX)
            return fail(f, line, "a node of this edge has more than 16 neighbours");
    }
    return nodes;
}

static uint32_t node_at(const struct edge_list *l, const uint32_t *first, uint32_t nodes, uint64_t id)
{
    uint32_t low = 0, high = nodes;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (l->arc[first[mid]].from < id)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* From the first node ways lead to all others. */
static bool connected(const struct edge_list *l, const uint32_t *first, uint32_t nodes, struct edge_fault *f)
{
    uint16_t stack[VIEW_MEMBERS_MAX] = {0};
    bool seen[VIEW_MEMBERS_MAX] = {true};
    for (uint32_t depth = 1; depth;) {
        uint32_t k = stack[--depth];
        for (uint32_t i = first[k]; i < first[k + 1]; i++) {
            uint32_t other = node_at(l, first, nodes, l->arc[i].to);
            if (!seen[other])
                stack[depth++] = (uint16_t)other;
            seen[other] = true;
        }
    }
    for (uint32_t k = 0; k < nodes; k++)
        if (!seen[k])
            return fail(f, l->arc[first[k]].line,
                        "no way leads from this edge to the node with the lowest id: they would never agree");
    return true;
}

static bool digest(struct edge_list *l)
{
    uint8_t *bytes = malloc((size_t)l->n * 8);
    size_t n = 0;
    if (!bytes)
        return false;
    for (uint32_t i = 0; i < l->n; i++)
        if (l->arc[i].from < l->arc[i].to) {
            le_store(bytes + n, l->arc[i].from, 8);
            le_store(bytes + n + 8, l->arc[i].to, 8);
            n += 16;
        }
    uint64_t hash = XXH3_64bits(bytes, n);
    free(bytes);
    l->digest[0] = (uint16_t)(1 + (uint32_t)hash % UINT16_MAX);
    l->digest[1] = (uint16_t)(1 + (uint32_t)(hash >> 32) % UINT16_MAX);
    return true;
}

bool edge_list_parse(struct edge_list *l, const char *text, size_t bytes, struct edge_fault *f)
{
    uint32_t first[VIEW_MEMBERS_MAX + 1], nodes = 0;
    *l = (struct edge_list){0};
    *f = (struct edge_fault){0};
    bool ok = read_lines(l, text, bytes, f);
    if (ok) {
        qsort(l->arc, l->n, sizeof *l->arc, compare_arcs);
        nodes = find_nodes(l, first, f);
        ok = nodes && connected(l, first, nodes, f) && (digest(l) || fail(f, 0, "out of memory"));
    }
    if (!ok)
        edge_list_free(l);
    return ok;
}

void edge_list_free(struct edge_list *l)
{
    free(l->arc);
    *l = (struct edge_list){0};
}

const struct arc *edge_list_of(const struct edge_list *l, uint64_t node_id, uint32_t *n)
{
    uint32_t low = 0, high = l->n;
    while (low < high) {
        uint32_t mid = (low + high) / 2;
        if (l->arc[mid].from < node_id)
            low = mid + 1;
        else
            high = mid;
    }
    for (*n = 0; low + *n < l->n && l->arc[low + *n].from == node_id;)
        ++*n;
    return *n ? &l->arc[low] : NULL;
}

static bool among(uint64_t id, const uint64_t *ids, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (ids[i] == id)
            return true;
    return false;
}

uint32_t edge_list_stranger(const struct edge_list *l, const uint64_t *ids, uint32_t n)
{
    uint32_t line = 0;
    bool known = false;
    for (uint32_t i = 0; i < l->n; i++) {
        if (i == 0 || l->arc[i].from != l->arc[i - 1].from)
            known = among(l->arc[i].from, ids, n);
        if (!known && (!line || l->arc[i].line < line))
            line = l->arc[i].line;
    }
    return line;
}

const char *edge_list_fit(const struct edge_list *l, uint64_t self, struct set_kind *k)
{
    uint32_t n;
    if (k->strategy != SLEET_GRAPH)
        return NULL;
    if (!l)
        return "strategy graph needs a list of edges: give all nodes the same one, sleetd --job.edges=FILE";
    if (!edge_list_of(l, self, &n))
        return "this node is in no edge of its list: strategy graph would leave it alone";
    if (!k->numbers[0] && !k->numbers[1])
        memcpy(k->numbers, l->digest, sizeof k->numbers);
    return memcmp(k->numbers, l->digest, sizeof k->numbers) == 0 ?
               NULL :
               "this node has another list of edges than strategy graph names by its numbers: give all nodes the same one";
}
