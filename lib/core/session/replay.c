#include "session/replay.h"

bool replay_check_and_set(struct replay *r, uint64_t counter)
{
    uint64_t block = counter / 64, top = r->highest / 64;
    uint64_t bit = (uint64_t)1 << (counter % 64);
    uint64_t *word = &r->words[block % REPLAY_WORDS];

    if (counter == 0 || (counter < r->highest && r->highest - counter >= REPLAY_WINDOW))
        return false;
    if (block > top) { /* clear the words that the window moves onto */
        uint64_t steps = block - top < REPLAY_WORDS ? block - top : REPLAY_WORDS;
        for (uint64_t i = 0; i < steps; i++)
            r->words[(block - i) % REPLAY_WORDS] = 0;
    }
    if (*word & bit)
        return false;
    *word |= bit;
    if (counter > r->highest)
        r->highest = counter;
    return true;
}
