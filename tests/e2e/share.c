/* share.c - one call of state a run, for state.sh: prints its error, what it gave and how long it took.
 *
 *   share SOCKET publish VERSION SEED BLOB     tensors from the seed
 *   share SOCKET fetch NEWER_THAN LIMIT_S      prints the seed that the tensors are of
 *   share SOCKET blob NODE LIMIT_S
 *   share SOCKET refused                       calls with wrong arguments; prints how many were not refused
 * The line: error=E version=V newest=N donors=D seed=S text=BLOB coverage=C took_ms=T: DETAIL */
#include "sleet.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define COUNT 1000000 /* elements */

static float values[COUNT], moments[3000];

/* Noise, which does not compress. */
static void fill(uint32_t seed)
{
    uint32_t x = seed * 2654435761u + 1;
    for (uint32_t i = 0; i < COUNT; i++) {
        x = x * 1664525u + 1013904223u;
        values[i] = i == 0 ? (float)seed : (float)(x >> 8) * 0x1p-24f;
    }
}

static int seed_of(void)
{
    static float got[COUNT];
    int seed = (int)values[0];
    memcpy(got, values, sizeof got);
    fill((uint32_t)seed);
    return memcmp(got, values, sizeof got) == 0 ? seed : -1;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static int refused(sleet_set *set)
{
    char text[4];
    size_t n;
    int wrong = 0;
    static char large[SLEET_BLOB_MAX + 1];
    wrong += sleet_state_publish(NULL, 1, NULL, 0) != SLEET_EINVAL;
    wrong += sleet_state_publish(set, 0, NULL, 0) != SLEET_EINVAL;
    wrong += sleet_state_publish(set, 1, NULL, 5) != SLEET_EINVAL;
    wrong += sleet_state_publish(set, 1, large, sizeof large) != SLEET_ELIMIT;
    wrong += sleet_state_fetch(NULL, 0, 1, NULL) != SLEET_EINVAL;
    wrong += sleet_state_fetch(set, 0, 0, NULL) != SLEET_EINVAL;
    wrong += sleet_state_fetch(set, 0, INT64_MAX, NULL) != SLEET_EINVAL;
    wrong += sleet_state_blob(set, 0, 1, text, sizeof text, &n, NULL) != SLEET_EINVAL;
    wrong += sleet_state_blob(set, 1, 1, NULL, 5, &n, NULL) != SLEET_EINVAL;
    return wrong;
}

int main(int argc, char **argv)
{
    sleet *ctx;
    sleet_set *set;
    sleet_state_report r = {0};
    static char text[SLEET_BLOB_MAX + 1];
    size_t bytes = 0;
    if (argc < 3 || sleet_open(&ctx, argv[1]) != SLEET_OK) {
        fprintf(stderr, "share: %s\n", sleet_detail(NULL));
        return 1;
    }
    int error = sleet_set_new(&set, ctx, "shared", SLEET_MODEL);
    if (!error)
        error = sleet_set_add(set, "values", SLEET_F32, COUNT, values);
    if (!error)
        error = sleet_set_add(set, "moments", SLEET_F32_STATE, 3000, moments);
    if (!error)
        error = sleet_set_register(set);
    int64_t begun = now_ms();
    if (!error && strcmp(argv[2], "publish") == 0 && argc == 6) {
        fill((uint32_t)atoi(argv[4]));
        error = sleet_state_publish(set, strtoull(argv[3], NULL, 10), argv[5], strlen(argv[5]));
    } else if (!error && strcmp(argv[2], "fetch") == 0 && argc == 5) {
        values[0] = -2;
        error = sleet_state_fetch(set, strtoull(argv[3], NULL, 10), (int64_t)(atof(argv[4]) * 1e9), &r);
    } else if (!error && strcmp(argv[2], "blob") == 0 && argc == 5) {
        error = sleet_state_blob(set, strtoull(argv[3], NULL, 10), (int64_t)(atof(argv[4]) * 1e9), text,
                                 sizeof text - 1, &bytes, &r.version);
    } else if (!error && strcmp(argv[2], "refused") == 0) {
        error = refused(set);
    }
    int64_t took = now_ms() - begun;
    printf("error=%d version=%" PRIu64 " newest=%" PRIu64 " donors=%u seed=%d text=%s coverage=%.3f took_ms=%"
           PRId64 ": %s\n",
           error, r.version, r.newest, r.donors, values[0] < -1 ? -2 : seed_of(), text, r.coverage, took,
           sleet_detail(ctx));
    sleet_close(ctx);
    return 0;
}
