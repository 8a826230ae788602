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
    if (!d->kbit && d->role == ROLE_AUXILIARY)
        speed = (uint64_t)UPLINK_USUAL_KBIT * 65536 / LOWEST;
    else if (!d->kbit)
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

/* Members by what they can send, in UNIT of the highest; the first `givers` contribute. */
struct senders {
    uint64_t speed[GROUP_MEMBERS_MAX];
    uint32_t n, givers;
};

/* Of a time x, in that which the fastest takes to send the vector once: what each can own in it, in UNIT.  The sum. */
static uint64_t owned_in(uint64_t x, const struct senders *s, uint64_t *own)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < s->n; i++) {
        uint64_t sends = x * s->speed[i] / UNIT, values = i < s->givers ? UNIT : 0;
        uint64_t times = i >= s->givers ? s->givers : s->givers > 3 ? s->givers - 2 : 1;
        own[i] = sends > values ? (sends - values) / times : 0;
        sum += own[i];
    }
    return sum;
}

/* The least time in which all of the vector is owned; the highest speed is UNIT. */
static void fill(const struct senders *s, uint64_t *own)
{
    uint64_t low = 0, high = UNIT * (s->givers + 1); /* enough for the fastest alone */
    while (low < high) {
        uint64_t mid = (low + high) / 2;
        if (owned_in(mid, s, own) < UNIT)
            low = mid + 1;
        else
            high = mid;
    }
    owned_in(high, s, own);
}

/* Those with the least share, if it is too little, own nothing.  False: there are none. */
static bool drop_least(struct senders *s, const uint64_t *own)
{
    uint64_t worth = UNIT / (LEAST_OF_EQUAL * s->n), least = worth;
    for (uint32_t i = 0; i < s->n; i++)
        least = own[i] && own[i] < least ? own[i] : least;
    for (uint32_t i = 0; i < s->n; i++)
        s->speed[i] = own[i] && own[i] == least && least < worth ? 0 : s->speed[i];
    return least < worth;
}

void shares_of(const uint8_t *uplink, uint32_t n, uint32_t givers, uint16_t *share)
{
    static const struct declared usual = {.kbit = UPLINK_USUAL_KBIT};
    struct senders s = {.n = n, .givers = givers};
    uint64_t own[GROUP_MEMBERS_MAX], highest = 0, all = 0;
    uint32_t owners = 0;
    bool alike = n == givers && n <= 2; /* of two each sends one vector anyway */
    for (uint32_t i = 0; i < n; i++)
        owners += uplink[i] != UPLINK_CLIENT;
    for (uint32_t i = 0; i < n; i++) {
        uint8_t grade = uplink[i] == UPLINK_UNSAID ? uplink_of(&usual) : uplink[i];
        s.speed[i] = !owners ? 1 : grade == UPLINK_CLIENT ? 0 : alike ? 1 : speed_of(grade);
        highest = s.speed[i] > highest ? s.speed[i] : highest;
    }
    for (uint32_t i = 0; i < n; i++)
        s.speed[i] = own[i] = s.speed[i] * UNIT / highest;
    if (!alike)
        do
            fill(&s, own);
        while (drop_least(&s, own));
    for (uint32_t i = 0; i < n; i++)
        all += own[i];
    for (uint32_t i = 0; i < n; i++)
        share[i] = (uint16_t)(own[i] * SHARE_WHOLE / all);
}

void group_share(struct group *g)
{
    uint8_t uplink[GROUP_MEMBERS_MAX], who[GROUP_MEMBERS_MAX];
    uint16_t share[GROUP_MEMBERS_MAX];
    uint32_t n = 0, givers = 0;
    for (int auxiliaries = 0; auxiliaries < 2; auxiliaries++) {
        for (uint32_t i = 0; i < g->n; i++)
            if (auxiliaries ? group_auxiliary(&g->members[i]) : g->members[i].contributes)
                who[n++] = (uint8_t)i;
        givers = auxiliaries ? givers : n;
    }
    g->uneven = givers && n > givers;
    for (uint32_t i = 0; i < g->n; i++)
        g->members[i].share = 0;
    for (uint32_t k = 0; k < n; k++) {
        uplink[k] = g->members[who[k]].uplink;
        g->uneven |= givers && uplink[k] != uplink[0];
    }
    if (!g->uneven)
        return;
    shares_of(uplink, n, givers, share);
    g->uneven = false;
    for (uint32_t k = 0; k < n; k++) {
        g->members[who[k]].share = share[k];
        g->uneven |= k >= givers || share[k] != share[0];
    }
}
