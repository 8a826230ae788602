#define XXH_INLINE_ALL
#include "strategy/share.h"
#include <xxhash.h>

#define UNIT ((uint64_t)1 << 24)
#define OCTAVE 6           /* grades */
#define LOWEST 64          /* kbit/s, grade 1 */
#define LEAST_OF_EQUAL 8   /* a share below an eighth of an equal one becomes 0 */

/* 2^(i / 6) of 2^16 */
static const uint32_t sixths[OCTAVE] = {65536, 73562, 82570, 92682, 104032, 116772};

/* In LOWEST / 65536 kbit/s; below 2^37. */
static uint64_t speed_of(uint8_t grade)
{
    return (uint64_t)sixths[(grade - 1) % OCTAVE] << (grade - 1) / OCTAVE;
}

uint8_t uplink_of(const struct declared *d)
{
    uint64_t speed = ((uint64_t)d->kbit << 16) / LOWEST;
    uint8_t grade = 1;
    if (d->role == ROLE_CLIENT)
        return UPLINK_CLIENT;
    if (!d->kbit)
        return UPLINK_UNSAID;
    while (grade < UPLINK_MOST && 2 * speed >= speed_of(grade) + speed_of(grade + 1))
        grade++;
    return grade;
}

uint64_t site_of(const struct declared *d)
{
    uint64_t h = d->site[0] ? XXH3_64bits(d->site, strlen(d->site)) : 0;
    return h || !d->site[0] ? h : 1;
}

/* Of a time x, in that which the fastest takes to send the vector once: what each can own in it, in UNIT.  The sum. */
static uint64_t owned_in(uint64_t x, const uint64_t *speed, uint32_t n, uint64_t *own)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t sends = x * speed[i] / UNIT;
        own[i] = sends > UNIT ? (sends - UNIT) / (n - 2) : 0;
        sum += own[i];
    }
    return sum;
}

/* The least time in which all of the vector is owned; n > 2, the highest speed is UNIT. */
static void fill(const uint64_t *speed, uint32_t n, uint64_t *own)
{
    uint64_t low = UNIT, high = UNIT * (n - 1); /* the fastest alone */
    while (low < high) {
        uint64_t mid = (low + high) / 2;
        if (owned_in(mid, speed, n, own) < UNIT)
            low = mid + 1;
        else
            high = mid;
    }
    owned_in(high, speed, n, own);
}

/* Those with the least share, if it is too little, own nothing.  False: there are none. */
static bool drop_least(uint64_t *speed, uint32_t n, const uint64_t *own)
{
    uint64_t least = UNIT / (LEAST_OF_EQUAL * n);
    bool any = false;
    for (uint32_t i = 0; i < n; i++)
        least = own[i] && own[i] < least ? own[i] : least;
    for (uint32_t i = 0; i < n; i++) {
        bool drop = own[i] && own[i] == least && least < UNIT / (LEAST_OF_EQUAL * n);
        speed[i] = drop ? 0 : speed[i];
        any |= drop;
    }
    return any;
}

void shares_of(const uint8_t *uplink, uint32_t n, uint16_t *share)
{
    static const struct declared usual = {.kbit = UPLINK_USUAL_KBIT};
    uint64_t speed[GROUP_MEMBERS_MAX], own[GROUP_MEMBERS_MAX], highest = 0;
    uint32_t owners = 0;
    for (uint32_t i = 0; i < n; i++)
        owners += uplink[i] != UPLINK_CLIENT;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t grade = uplink[i] == UPLINK_UNSAID ? uplink_of(&usual) : uplink[i];
        bool owns = !owners || grade != UPLINK_CLIENT;
        speed[i] = !owns ? 0 : owners && n > 2 ? speed_of(grade) : 1; /* of two each sends one vector anyway */
        highest = speed[i] > highest ? speed[i] : highest;
    }
    for (uint32_t i = 0; i < n; i++)
        speed[i] = own[i] = speed[i] * UNIT / highest;
    if (n > 2) {
        do
            fill(speed, n, own);
        while (drop_least(speed, n, own));
    }
    uint64_t all = 0;
    for (uint32_t i = 0; i < n; i++)
        all += own[i];
    for (uint32_t i = 0; i < n; i++)
        share[i] = (uint16_t)(own[i] * SHARE_WHOLE / all);
}

void group_share(struct group *g)
{
    uint8_t uplink[GROUP_MEMBERS_MAX];
    uint16_t share[GROUP_MEMBERS_MAX];
    uint32_t n = 0;
    bool differ = false;
    for (uint32_t i = 0; i < g->n; i++)
        if (g->members[i].contributes)
            uplink[n++] = g->members[i].uplink;
    for (uint32_t i = 0; i < n; i++)
        differ |= uplink[i] != uplink[0];
    g->uneven = false;
    if (!differ)
        return;
    shares_of(uplink, n, share);
    for (uint32_t i = 0, k = 0; i < g->n; i++)
        g->members[i].share = g->members[i].contributes ? share[k++] : 0;
    for (uint32_t i = 1; i < n; i++)
        g->uneven |= share[i] != share[0];
}
