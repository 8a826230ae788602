#include "session/replay.h"
#include <stdlib.h>

static uint64_t *word_of(struct replay *r, uint64_t block)
{
    if (!r->words && block > 0) {
        r->words = calloc(REPLAY_WORDS, sizeof *r->words);
        if (r->words)
            r->words[0] = r->few;
    }
    return r->words ? &r->words[block % REPLAY_WORDS] : block > 0 ? NULL : &r->few;
}

bool replay_check_and_set(struct replay *r, uint64_t counter)
{
    uint64_t block = counter / 64, top = r->highest / 64;
    uint64_t bit = (uint64_t)1 << (counter % 64);
    uint64_t *word;

    if (counter == 0 || (counter < r->highest && r->highest - counter >= REPLAY_WINDOW) ||
        (counter > r->highest && counter - r->highest > REPLAY_JUMP_MAX) ||
        !(word = word_of(r, block)))
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

void replay_fini(struct replay *r)
{
    free(r->words);
    *r = (struct replay){0};
}
