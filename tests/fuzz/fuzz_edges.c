/* Any bytes as a list of edges.  What is accepted has each edge both ways, in order, within what a plan has
 * room for, and its nodes' plans have weights that leave each something of its own. */
#include "strategy/edge_list.h"
#include "strategy/strategy.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_arcs(const struct edge_list *l)
{
    for (uint32_t i = 0; i < l->n; i++) {
        const struct arc *a = &l->arc[i];
        uint32_t n = 0, back = 0;
        const struct arc *of = edge_list_of(l, a->to, &n);
        for (uint32_t k = 0; k < n; k++)
            back += of[k].to == a->from && of[k].line == a->line;
        bool ordered = i == 0 || a->from > a[-1].from || (a->from == a[-1].from && a->to > a[-1].to);
        if (back != 1 || n > EDGES_IN_MAX || !ordered || a->from == a->to || !a->from || !a->line)
            abort();
    }
}

static void check_plans(const struct edge_list *l)
{
    static struct group_member view[VIEW_MEMBERS_MAX];
    static struct plan plan;
    uint32_t nodes = 0;
    for (uint32_t i = 0; i < l->n; i++)
        if (i == 0 || l->arc[i].from != l->arc[i - 1].from)
            view[nodes++] = (struct group_member){.node_id = l->arc[i].from, .contributes = 1};
    for (uint32_t i = 0; i < nodes; i++) {
        double taken = 0;
        bool ok = strategy_plan(&strategy_graph, l->digest, l, view, nodes, view[i].node_id, 1, &plan);
        for (uint32_t k = 0; k < plan.group.n; k++)
            taken += plan.edge[k].weight;
        if (!ok || taken >= 1 || plan.group.n < 2 || plan.beyond)
            abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct edge_list l;
    struct edge_fault f;
    if (edge_list_parse(&l, (const char *)data, size, &f)) {
        check_arcs(&l);
        check_plans(&l);
    } else if (!f.why || l.arc || l.n) {
        abort();
    }
    edge_list_free(&l);
    return 0;
}
