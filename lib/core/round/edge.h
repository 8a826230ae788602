/* edge.h - a round among neighbours: no owners, each node makes its own result.
 *
 * x += sum of weight * (theirs - x), over the neighbours whose values of a fragment are here.  What is
 * missing leaves the node's own values in its place (keep-own), after it was asked for again while the
 * round is open.  Where edges are atomic a fragment counts only once both know that both have it:
 * then the mean of all nodes stays what it is, whatever is lost (gossip, PowerGossip: arXiv 2008.01425).
 *
 * Fragments are numbered through those that are due in the round, the same on all nodes.  Who has
 * what is told in SUMMARY frames: cumulative, so a lost one costs nothing.
 *
 * What came before the trainer did, or before the word that the other has ours, is kept beside.  A node
 * that closes the round without that word holds on to the difference for as long as the round is in the window: if
 * the other did take ours, its part of the exchange is added to the next result.
 *
 * Over an edge of low rank another vector goes in the place of the values; see low.h. */
#ifndef ROUND_EDGE_H
#define ROUND_EDGE_H
#include "round/low.h"
#include "strategy/strategy.h"
#include "tensor/layout.h"

struct edge_lane {
    struct low_lane *low;  /* of low rank; NULL: the values themselves go */
    uint32_t n;            /* numbers there are: those of the round, or of the vector of low rank */
    uint32_t in, out;      /* fragments that come, that go */
    uint64_t *got, *told;  /* by number: it is here; ours is there, by its word */
    uint64_t *again;       /* ours, asked for again */
    float **kept;          /* its values that wait, later the difference */
    uint32_t got_n, told_n, again_n, kept_n;
    uint32_t next, sent, again_at; /* places in the order to send next; numbers sent once */
    uint32_t whole;          /* nothing of it is missing before this number */
    sleet_time sent_at;
    bool apart; /* by its list the way between them is of another kind: of low rank, or not */
    bool end;   /* it has sent all it will */
    bool final; /* it takes nothing more: it has closed the round, or this node is no neighbour of its */
};

struct edges {
    bool atomic, done;
    uint8_t segments;
    struct edge edge[SLEET_GROUP_MAX];
    struct edge_lane lane[SLEET_GROUP_MAX];
    double **change; /* by number: what is added to the node's own values */
    uint64_t *who;   /* by number: ranks that are in it */
    uint32_t closed; /* numbers whose result is made */
    struct low_lane *late; /* steps of older rounds that go into it */
};

/* What was decided after its round had closed; of a set. */
struct edge_late {
    float **sum; /* by fragment; NULL: none */
    uint32_t n;  /* fragments */
    uint64_t added, dropped; /* fragments; dropped: nobody knows whether the other took ours */
};
#endif
