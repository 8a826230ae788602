#include "sim/nat.h"
#include <stdlib.h>

void nat_rebind(struct sim_nat *t, const sleet_addr *outside)
{
    t->on = true;
    t->outside = *outside;
    t->n = 0;
}

bool nat_lets_in(const struct sim_nat *t, const sleet_addr *from)
{
    for (uint32_t i = 0; i < t->n; i++)
        if (addr_equal(&t->sent_to[i], from))
            return true;
    return false;
}

bool nat_note_sent(struct sim_nat *t, const sleet_addr *to)
{
    if (nat_lets_in(t, to))
        return true;
    if (t->n == t->room) {
        uint32_t room = t->room ? 2 * t->room : 16;
        sleet_addr *more = realloc(t->sent_to, room * sizeof *more);
        if (!more)
            return false;
        t->sent_to = more;
        t->room = room;
    }
    t->sent_to[t->n++] = *to;
    return true;
}

void nat_fini(struct sim_nat *t)
{
    free(t->sent_to);
    *t = (struct sim_nat){0};
}
