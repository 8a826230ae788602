/* The members in an order that the round alone decides (docs/protocol.md, "Strategies"). */
#include "base/rng.h"
#include "strategy/strategy.h"

#define PHI 0x9e3779b97f4a7c15u

uint32_t round_shuffle(uint64_t round, uint64_t which, uint32_t n, uint32_t self, uint16_t *at)
{
    uint64_t seed = mix64(round * PHI - which);
    uint32_t mine = 0;
    for (uint32_t i = 0; i < n; i++) {
        seed = mix64(seed + PHI);
        uint32_t j = (uint32_t)(seed % (i + 1)); /* Fisher and Yates, from the inside out */
        at[i] = at[j];
        at[j] = (uint16_t)i;
    }
    while (mine < n && at[mine] != self)
        mine++;
    return mine;
}
