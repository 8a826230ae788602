/* sleet-train-memory.c - what a node keeps of a model, and what its process takes. */
#include "sleet-train.h"
#include <stdlib.h>
#include <string.h>

/* What the line of that name says in this process's status, in bytes; 0 where there is none. */
static double resident(const char *name)
{
    char line[128];
    unsigned long long kib = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (strncmp(line, name, strlen(name)) == 0)
            kib = strtoull(line + strlen(name), NULL, 10);
    if (f)
        fclose(f);
    return (double)kib * 1024;
}

struct train_memory memory_of(const struct train_node *n)
{
    const struct learner *l = n->learner;
    bool whole = n->options->average != AVERAGE_OWNER;
    double moments = whole ? (double)(l->optimizer.kind->moments * l->params * sizeof(float)) : 0;
    return (struct train_memory){.parameters = (double)(l->params * sizeof(float)),
                                 .moments = moments + (double)keeper_bytes(&n->keeper),
                                 .own = resident("RssAnon:"),
                                 .shared = resident("RssShmem:")};
}
