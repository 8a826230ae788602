/* See edges.h. */
#include "edges/edges.h"
#include "strategy/strategy.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_MAX (1u << 20) /* bytes */

static const char *read_whole(struct edges_file *f, char **text, size_t *n)
{
    FILE *in = fopen(f->path, "re");
    *text = in ? malloc(FILE_MAX + 1) : NULL;
    if (*text)
        *n = fread(*text, 1, FILE_MAX + 1, in);
    bool bad = !*text || ferror(in);
    int error = errno;
    if (in)
        fclose(in);
    if (bad)
        snprintf(f->why, sizeof f->why, "cannot read the edges in %.300s: %s", f->path, strerror(error));
    else if (*n > FILE_MAX)
        snprintf(f->why, sizeof f->why, "%.300s: more than %u bytes are no list of edges", f->path, FILE_MAX);
    return bad || *n > FILE_MAX ? f->why : NULL;
}

const char *edges_read(struct edges_file *f)
{
    struct edge_fault fault;
    char *text = NULL;
    size_t n = 0;
    const char *wrong = read_whole(f, &text, &n);
    if (!wrong && !edge_list_parse(&f->list, text, n, &fault)) {
        wrong = f->why;
        if (fault.line)
            snprintf(f->why, sizeof f->why, "%.300s:%u: %s", f->path, fault.line, fault.why);
        else
            snprintf(f->why, sizeof f->why, "%.300s: %s", f->path, fault.why);
    }
    free(text);
    return wrong;
}

const char *edges_among(struct edges_file *f, const uint64_t *ids, uint32_t n, const char *where)
{
    uint32_t line = edge_list_stranger(&f->list, ids, n);
    if (!line)
        return NULL;
    snprintf(f->why, sizeof f->why, "%.300s:%u: a node of this edge is not %s", f->path, line, where);
    return f->why;
}

void edges_free(struct edges_file *f)
{
    edge_list_free(&f->list);
}

bool edges_strategy_of(struct edges_file *f, struct set_kind *k, const char *word)
{
    const char *name = strategy_text(SLEET_GRAPH);
    size_t n = strlen(name);
    f->path = NULL;
    if (kind_strategy_of(k, word))
        return true;
    if (strncmp(word, name, n) != 0 || word[n] != ':' || !word[n + 1])
        return false;
    k->strategy = SLEET_GRAPH;
    memset(k->numbers, 0, sizeof k->numbers);
    f->path = word + n + 1;
    return true;
}

/* Nodes 1 to n, and all of them. */
static const char *whole_job(struct edges_file *f, uint32_t n)
{
    uint64_t ids[VIEW_MEMBERS_MAX];
    char where[64];
    uint32_t arcs;
    for (uint32_t i = 0; i < n && i < VIEW_MEMBERS_MAX; i++)
        ids[i] = i + 1;
    snprintf(where, sizeof where, "among the %u of the job, 1 to %u", n, n);
    const char *wrong = edges_among(f, ids, n, where);
    for (uint32_t i = 1; i <= n && !wrong; i++)
        if (!edge_list_of(&f->list, i, &arcs)) {
            snprintf(f->why, sizeof f->why, "%.300s: node %u of %u is in no edge", f->path, i, n);
            wrong = f->why;
        }
    return wrong;
}

const char *edges_settle(struct edges_file *f, struct set_kind *k, uint32_t nodes)
{
    if (k->strategy != SLEET_GRAPH || (!f->path && !nodes))
        return NULL;
    if (!f->path)
        return "strategy graph needs a list of edges here: graph:FILE, a line each with the numbers of two nodes";
    const char *wrong = edges_read(f);
    if (!wrong && nodes)
        wrong = whole_job(f, nodes);
    if (!wrong)
        memcpy(k->numbers, f->list.digest, sizeof k->numbers);
    return wrong;
}

const struct edge_list *edges_in_force(const struct edges_file *f)
{
    return f->list.n ? &f->list : NULL;
}
