#include "member/member.h"

struct member_rounds members_rounds(const struct member *m, uint32_t n, uint32_t set, uint64_t lineage)
{
    struct member_rounds r = {0};
    for (uint32_t i = 1; i < n; i++) {
        const struct member_set *s = &m[i].sets[set];
        if (!m[i].alive || !s->matches || !s->attached || !s->established || s->lineage != lineage)
            continue;
        uint64_t open = member_open_round(s);
        r.n++;
        r.joined = s->round > r.joined ? s->round : r.joined;
        if (open >= r.highest) {
            r.second = r.highest;
            r.highest = open;
        } else if (open > r.second) {
            r.second = open;
        }
    }
    if (r.n == 1)
        r.second = r.highest;
    return r;
}

uint64_t members_joining_round(const struct member *m, uint32_t n, uint32_t set)
{
    uint64_t highest = 0;
    for (uint32_t i = 1; i < n; i++) {
        const struct member_set *s = &m[i].sets[set];
        if (m[i].alive && s->matches && s->attached && !s->established &&
            member_open_round(s) > highest)
            highest = member_open_round(s);
    }
    return highest;
}
