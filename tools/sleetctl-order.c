/* sleetctl-order.c - an operator's orders: evict and rekey.
 *
 * The order is signed here, with a key that no node has, and handed to one daemon, which spreads
 * it; then this waits until every member has it, and says whether the order will last. */
#include "keyfile/keyfile.h"
#include "member/orders.h"
#include "sleetctl.h"
#include <inttypes.h>
#include <sodium.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define REQUEST_MS 5000
#define SPREAD_MS 10000 /* to wait for all members */
#define LOOK_MS 100

struct order {
    const char *socket, *key_file;
    bool json, rekey;
    struct wire_record record;
    uint32_t members, told, refused;
    double allowed; /* nodes on the daemon's list; 0: it has none */
    bool saved;     /* the daemon's own key file has the new key */
};

static bool fail(const char *format, ...) __attribute__((format(printf, 1, 2)));
static bool fail(const char *format, ...)
{
    va_list args;
    fputs("sleetctl: ", stderr);
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
    return false;
}

static const char *text_of(const cJSON *o, const char *key)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(o, key));
    return text ? text : "";
}

static double number_of(const cJSON *o, const char *key)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(o, key);
    return cJSON_IsNumber(item) ? item->valuedouble : 0;
}

static bool is_true(const cJSON *o, const char *key)
{
    return cJSON_IsTrue(cJSON_GetObjectItemCaseSensitive(o, key));
}

/* ---- the record ---------------------------------------------------------------- */

static bool read_key(const struct order *o, uint8_t seed[KEY_BYTES])
{
    char path[KEYFILE_PATH], why[KEYFILE_WHY];
    if (!o->key_file && !keyfile_default_path(KEYFILE_OPERATOR, path))
        return fail("neither HOME nor XDG_CONFIG_HOME is set: name the operator's key by --operator");
    return keyfile_read(KEYFILE_OPERATOR, o->key_file ? o->key_file : path, geteuid(), seed, why) ||
           fail("%s", why);
}

/* Does that daemon take orders of this key, and does the order make sense for it? */
static bool may_order(const struct order *o, const cJSON *job, const uint8_t seed[KEY_BYTES])
{
    uint8_t public_key[KEY_BYTES];
    char digits[KEY_DIGITS + 1];
    keyfile_public(KEYFILE_OPERATOR, seed, public_key);
    key_format(digits, public_key);
    if (strcmp(text_of(job, "security"), "sealed") != 0)
        return fail("the job runs with job.security = none: nothing keeps a node out of it");
    if (!text_of(job, "operator")[0])
        return fail("the daemon takes nobody's orders: set job.operator = %s on all nodes", digits);
    if (strcmp(text_of(job, "operator"), digits) != 0)
        return fail("the daemon's job.operator is %s, the key in the file is that of %s", text_of(job, "operator"),
                    digits);
    if (!o->rekey && strtoull(text_of(job, "node_id"), NULL, 10) == o->record.subject)
        return fail("node %s is the one that answers here: sleetctl shutdown ends it, another node evicts it",
                    text_of(job, "node_id"));
    return true;
}

/* Above all orders before, also where this machine's clock is behind. */
static uint64_t next_serial(const cJSON *job)
{
    struct timespec t;
    uint64_t last = strtoull(text_of(job, "serial"), NULL, 10);
    clock_gettime(CLOCK_REALTIME, &t);
    uint64_t now = (uint64_t)t.tv_sec * 1000000 + (uint64_t)t.tv_nsec / 1000;
    return now > last ? now : last + 1;
}

static bool hand_over(struct order *o)
{
    uint8_t bytes[WIRE_RECORD_BYTES];
    char line[8 + 2 * WIRE_RECORD_BYTES + 1] = "order ", why[512];
    wire_record_encode(bytes, sizeof bytes, &o->record);
    sodium_bin2hex(line + 6, sizeof line - 6, bytes, sizeof bytes);
    cJSON *answer = ctl_request(o->socket, line, REQUEST_MS, why, sizeof why);
    sodium_memzero(bytes, sizeof bytes);
    sodium_memzero(line, sizeof line);
    cJSON_Delete(answer);
    return answer || fail("%s", why);
}

static bool give(struct order *o)
{
    uint8_t seed[KEY_BYTES];
    char why[512];
    if (!read_key(o, seed))
        return false;
    cJSON *job = ctl_request(o->socket, "orders", REQUEST_MS, why, sizeof why);
    bool ok = job ? may_order(o, job, seed) : fail("%s", why);
    if (ok) {
        o->record.serial = next_serial(job);
        o->record.job = job_tag(text_of(job, "job"));
        if (o->rekey)
            keyfile_generate(o->record.value);
        ok = record_sign(&o->record, seed) && hand_over(o);
    }
    sodium_memzero(seed, sizeof seed);
    sodium_memzero(o->record.value, sizeof o->record.value);
    cJSON_Delete(job);
    return ok;
}

/* ---- what came of it ----------------------------------------------------------------- */

static bool look(struct order *o)
{
    char why[512];
    const cJSON *item;
    cJSON *job = ctl_request(o->socket, "orders", REQUEST_MS, why, sizeof why);
    if (!job)
        return fail("%s", why);
    o->allowed = number_of(job, "allowed");
    o->saved = is_true(job, "job_key_saved");
    cJSON_ArrayForEach(item, cJSON_GetObjectItemCaseSensitive(job, "orders"))
    {
        if (strtoull(text_of(item, "serial"), NULL, 10) != o->record.serial)
            continue;
        o->members = (uint32_t)number_of(item, "members");
        o->told = (uint32_t)number_of(item, "told");
        o->refused = (uint32_t)number_of(item, "refused");
    }
    cJSON_Delete(job);
    return true;
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool wait_for_all(struct order *o)
{
    const struct timespec nap = {.tv_nsec = LOOK_MS * 1000000};
    int64_t until = now_ms() + SPREAD_MS;
    while (look(o)) {
        if (o->told + o->refused >= o->members || now_ms() > until)
            return true;
        nanosleep(&nap, NULL);
    }
    return false;
}

static int verdict(const struct order *o)
{
    bool all = o->told == o->members, lasts = o->rekey || o->allowed > 0;
    if (o->json)
        printf("{\"order\":\"%s\",\"serial\":\"%" PRIu64 "\",\"members\":%u,\"told\":%u,\"refused\":%u,"
               "\"saved\":%s,\"lasts\":%s}\n",
               o->rekey ? "rekey" : "evict", o->record.serial, o->members, o->told, o->refused,
               o->saved ? "true" : "false", lasts ? "true" : "false");
    else if (o->rekey)
        printf("the job has a new key; %u of %u other members have it\n", o->told, o->members);
    else
        printf("node %" PRIu64 " is evicted; %u of %u other members know it\n", o->record.subject, o->told,
               o->members);
    if (o->refused)
        fprintf(stderr, "sleetctl: %u members have another job.operator, or none: they go on as before\n", o->refused);
    if (o->told + o->refused < o->members)
        fprintf(stderr, "sleetctl: %u members have not answered yet; they are told as long as this job runs\n",
                o->members - o->told - o->refused);
    if (o->rekey && !o->saved)
        fputs("sleetctl: the daemon could not save the new key into its job.key file, see its log\n", stderr);
    if (!lasts)
        fputs("sleetctl: this does not last: whoever has the job's key can come back under a new key of its own; "
              "sleetctl rekey gives all others a new job key (or list who may join in job.allow)\n", stderr);
    return fflush(stdout) == 0 && all && lasts && (!o->rekey || o->saved) ? CTL_OK : CTL_FAILED;
}

/* ---- the command line ------------------------------------------------------------------ */

static bool take_word(struct order *o, int argc, char **argv, int *i)
{
    const char *word = argv[*i];
    char *end;
    if (strncmp(word, "--operator=", 11) == 0 && word[11]) {
        o->key_file = word + 11;
    } else if (strcmp(word, "--operator") == 0 && *i + 1 < argc) {
        o->key_file = argv[++*i];
    } else if (strcmp(word, "--json") == 0) {
        o->json = true;
    } else if (!o->rekey && !o->record.subject && word[0] >= '0' && word[0] <= '9') {
        o->record.subject = strtoull(word, &end, 10);
        return *end == '\0' && o->record.subject;
    } else {
        return false;
    }
    return true;
}

int order_main(const char *socket_path, int argc, char **argv, bool json)
{
    struct order o = {.socket = socket_path, .json = json, .rekey = strcmp(argv[0], "rekey") == 0};
    o.record.kind = o.rekey ? RECORD_REKEY : RECORD_EVICT;
    bool words = true;
    for (int i = 1; words && i < argc; i++)
        words = take_word(&o, argc, argv, &i);
    if (!words || (!o.rekey && !o.record.subject)) {
        fprintf(stderr, "usage: sleetctl %s [--operator FILE]\n", o.rekey ? "rekey" : "evict NODEID");
        return CTL_USAGE;
    }
    if (sodium_init() < 0 || !give(&o) || !wait_for_all(&o))
        return CTL_FAILED;
    return verdict(&o);
}
