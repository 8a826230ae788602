/* Feeds a fuzz target, without a fuzzer, every file of its corpus and seeded mutations
 * of them, about 2,000 in all.
 *
 *   replay-NAME [FOLDER]       FOLDER: $SLEET_SRC/tests/fuzz/corpus/NAME
 *
 * Environment: SLEET_TEST_SEED (1), SLEET_TEST_FAST (a tenth of the mutations).
 * Prints "replay-NAME: N passed, N failed", counted in files; each runs in a process
 * of its own, and where that dies the input is left in replay-NAME-FILE.crash.
 * Exit: 0 all passed, 1 some failed, 2 there is no corpus. */
#include "base/rng.h"
#include <dirent.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define INPUT_MAX 4096
#define MUTATIONS 2000

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Shared with the child, so that the parent knows what killed it. */
struct input {
    unsigned mutation; /* 0: the file itself */
    size_t size;
    uint8_t data[INPUT_MAX];
};

static uint64_t seed = 1;

static void mutate_once(struct input *in, sleet_rng *rng)
{
    static const uint8_t special[] = {0, 1, 9, 10, 32, 37, 44, 45, 48, 57, 59, 61, 91, 127, 128, 255};
    uint32_t n = (uint32_t)in->size, at = n ? rng_below(rng, n) : 0, kind = rng_below(rng, 6);
    if (n == 0 || (kind == 0 && n < INPUT_MAX)) { /* insert */
        memmove(in->data + at + 1, in->data + at, n - at);
        in->data[at] = special[rng_below(rng, sizeof special)];
        in->size++;
    } else if (kind == 1) { /* flip a bit */
        in->data[at] ^= (uint8_t)(1u << rng_below(rng, 8));
    } else if (kind == 2) { /* cut out */
        uint32_t len = 1 + rng_below(rng, n - at < 16 ? n - at : 16);
        memmove(in->data + at, in->data + at + len, n - at - len);
        in->size -= len;
    } else if (kind == 3) { /* truncate */
        in->size = at;
    } else if (kind == 4) { /* repeat a part */
        uint32_t len = 1 + rng_below(rng, n - at);
        if (n + len <= INPUT_MAX) {
            memmove(in->data + at + len, in->data + at, n - at);
            in->size += len;
        }
    } else {
        in->data[at] = special[rng_below(rng, sizeof special)];
    }
}

/* An exact allocation, so that AddressSanitizer sees a read past the end. */
static void feed(const struct input *in)
{
    uint8_t *exact = malloc(in->size ? in->size : 1);
    if (!exact)
        abort();
    memcpy(exact, in->data, in->size);
    LLVMFuzzerTestOneInput(exact, in->size);
    free(exact);
}

static void run_child(struct input *in, uint64_t file, unsigned mutations)
{
    static uint8_t original[INPUT_MAX];
    size_t size = in->size;
    memcpy(original, in->data, size);
    feed(in);
    for (unsigned i = 1; i <= mutations; i++) {
        sleet_rng rng = {mix64(seed) ^ mix64(file * 1000003 + i)};
        memcpy(in->data, original, size);
        in->size = size;
        for (uint32_t k = 1 + rng_below(&rng, 4); k > 0; k--)
            mutate_once(in, &rng);
        in->mutation = i;
        feed(in);
    }
}

static void keep(const struct input *in, const char *file)
{
    char name[300];
    snprintf(name, sizeof name, "replay-%s-%.200s.crash", REPLAY_NAME, file);
    FILE *out = fopen(name, "wb");
    if (out) {
        fwrite(in->data, 1, in->size, out);
        fclose(out);
    }
    printf("%s, mutation %u, seed %llu: died; the input is in %s\n", file, in->mutation,
           (unsigned long long)seed, name);
}

static bool replay(struct input *in, const char *folder, const char *file, uint64_t number,
                   unsigned mutations)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, file);
    FILE *f = fopen(path, "rb");
    if (!f) {
        printf("%s cannot be read\n", path);
        return false;
    }
    in->size = fread(in->data, 1, sizeof in->data, f);
    in->mutation = 0;
    fclose(f);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        run_child(in, number, mutations);
        exit(0);
    }
    int status = -1;
    if (child > 0 && waitpid(child, &status, 0) == child && status == 0)
        return true;
    keep(in, file);
    return false;
}

static int visible(const struct dirent *d) { return d->d_name[0] != '.'; }

int main(int argc, char **argv)
{
    char folder[3072];
    const char *src = getenv("SLEET_SRC"), *text = getenv("SLEET_TEST_SEED");
    const char *fast = getenv("SLEET_TEST_FAST");
    struct dirent **files = NULL;
    unsigned passed = 0, failed = 0;
    snprintf(folder, sizeof folder, "%s/tests/fuzz/corpus/%s", src && *src ? src : ".", REPLAY_NAME);
    int n = scandir(argc > 1 ? argv[1] : folder, &files, visible, alphasort);
    struct input *in = mmap(NULL, sizeof *in, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (n <= 0 || in == MAP_FAILED) {
        fprintf(stderr, "replay-%s: no corpus in %s\n", REPLAY_NAME, argc > 1 ? argv[1] : folder);
        return 2;
    }
    if (text && *text)
        seed = strtoull(text, NULL, 0);
    unsigned all = fast && *fast && strcmp(fast, "0") != 0 ? MUTATIONS / 10 : MUTATIONS;
    for (int i = 0; i < n; i++) {
        bool ok = replay(in, argc > 1 ? argv[1] : folder, files[i]->d_name, (uint64_t)i,
                         (all + (unsigned)n - 1) / (unsigned)n);
        passed += ok;
        failed += !ok;
        free(files[i]);
    }
    free(files);
    printf("replay-%s: %u passed, %u failed\n", REPLAY_NAME, passed, failed);
    return failed ? 1 : 0;
}
