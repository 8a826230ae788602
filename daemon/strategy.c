/* strategy.c - the command that gives a set another strategy, on all nodes of the job. */
#include "command.h"
#include "log.h"
#include "loop.h"

/* The set of that name, or the only one where it is "-"; -1: there is none. */
static int named_set(struct daemon *d, const char *name)
{
    engine_set e;
    int found = -1, n = 0;
    for (int i = 0; i < ENGINE_SETS_MAX; i++)
        if (engine_get_set(d->engine, i, &e, d->now) && (strcmp(name, "-") == 0 || strcmp(name, e.name) == 0)) {
            found = i;
            n++;
        }
    return n == 1 ? found : -1;
}

void strategy_do(const struct call *a)
{
    struct daemon *d = a->k->d;
    const char *why = NULL;
    char name[SLEET_NAME_MAX + 1];
    if (!control_decode(name, a->argv[0])) {
        command_fail(a->c, SLEET_EINVAL, "strategy NAME STRATEGY: bad name");
        return;
    }
    int handle = named_set(d, name);
    if (handle < 0) {
        control_say(a->c, "404 %s", strcmp(name, "-") == 0 ? "which set? this node has none, or several" :
                                                             "no trainer of this node has registered a set of that name");
        return;
    }
    int error = engine_set_strategy(d->engine, handle, a->argv[1], &why, d->now);
    if (error) {
        command_fail(a->c, error, why);
        return;
    }
    SAY(LOG_WARN, FAULT_NONE, "strategy-asked", F_S("strategy", a->argv[1]), F_U("pid", a->c->pid));
    command_say_json(a, status_strategy_json(a->k, handle));
}
