/* Lists of edges, given by the user: what strategy graph goes by (graph.c).
 *
 * Text: an edge a line, the ids of two nodes, whole numbers from 1; '#' begins a comment.  All nodes
 * have to have the same one: its digest is part of a set's kind. */
#ifndef STRATEGY_EDGE_LIST_H
#define STRATEGY_EDGE_LIST_H
#include "tensor/kind.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arc {
    uint64_t from, to; /* node ids */
    uint32_t line;     /* of the text, from 1 */
};

struct edge_list {
    struct arc *arc; /* owned; each edge both ways, ascending by `from`, then by `to` */
    uint32_t n;      /* arcs */
    uint16_t digest[2]; /* neither is 0; docs/protocol.md, "Edges that are given" */
};

struct edge_fault {
    uint32_t line;   /* 0: of the whole list */
    const char *why; /* one sentence, static */
};

/* False with the fault, and nothing to free: no edge, a line that is none, a node with itself, an edge
 * twice, more neighbours or nodes than a plan has room for, nodes that no way leads to; no memory. */
bool edge_list_parse(struct edge_list *, const char *text, size_t bytes, struct edge_fault *);
void edge_list_free(struct edge_list *);

/* The arcs from that node: the first one, and how many; NULL: it has none. */
const struct arc *edge_list_of(const struct edge_list *, uint64_t node_id, uint32_t *n);
/* The least line of a node that is none of `ids`; 0: there is none. */
uint32_t edge_list_stranger(const struct edge_list *, const uint64_t *ids, uint32_t n);

/* Of a kind with strategy graph: that list's numbers, where it has none.  NULL, or in one sentence why
 * node `self` cannot average so: it has no list (NULL), is not in it, or another list is meant. */
const char *edge_list_fit(const struct edge_list *, uint64_t self, struct set_kind *);
#endif
