/* edges.h - lists of edges in files (strategy/edge_list.h), for sleetd, sleet-train, sleet-sim and sleet-bench. */
#ifndef EDGES_EDGES_H
#define EDGES_EDGES_H
#include "strategy/edge_list.h"

struct edges_file {
    const char *path; /* borrowed; NULL: none is named */
    struct edge_list list;
    char why[512];
};

/* Read `path`.  NULL, or in one sentence why it cannot be: "FILE:LINE: what" (in `why`). */
const char *edges_read(struct edges_file *);
/* NULL, or in one sentence which line of the list has a node that is none of `ids`, as `where` puts it. */
const char *edges_among(struct edges_file *, const uint64_t *ids, uint32_t n, const char *where);
void edges_free(struct edges_file *);

/* As kind_strategy_of(), or "graph:FILE"; the file is not looked at yet. */
bool edges_strategy_of(struct edges_file *, struct set_kind *, const char *word);
/* Read the file, if one is named, for nodes 1 to `nodes` of a simulation (0: for a daemon, which
 * has its own), and give the kind the numbers of it.  NULL, or one sentence. */
const char *edges_settle(struct edges_file *, struct set_kind *, uint32_t nodes);
/* What engines are to go by; NULL: none. */
const struct edge_list *edges_in_force(const struct edges_file *);
#endif
