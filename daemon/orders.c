/* orders.c - the commands around an operator's orders, and what they do to this node's files. */
#include "command.h"
#include "keyfile/keyfile.h"
#include "log.h"
#include "loop.h"
#include "member/orders.h"
#include <cjson/cJSON.h>
#include <inttypes.h>
#include <sodium.h>

static const char *const refusals[] = {
    [-SLEET_EINVAL] = "order: a record has 256 hexadecimal digits, as sleetctl makes them",
    [-SLEET_ESTATE] = "order: not with job.security = none, nor once the node has left",
    [-SLEET_EPERM] = "order: it is not signed by this node's job.operator for this job",
    [-SLEET_EEXIST] = "order: a newer one of its kind is in force",
    [-SLEET_ELIMIT] = "order: no room for more evictions; sleetctl rekey settles those before it",
};

void orders_do_order(const struct call *a)
{
    struct daemon *d = a->k->d;
    uint8_t record[WIRE_RECORD_BYTES];
    const char *word = a->argv[0];
    size_t got = 0;
    bool digits = strlen(word) == 2 * sizeof record &&
                  sodium_hex2bin(record, sizeof record, word, strlen(word), NULL, &got, NULL) == 0 &&
                  got == sizeof record;
    int error = digits ? engine_order(d->engine, record, sizeof record, d->now) : SLEET_EINVAL;
    sodium_memzero(record, sizeof record);
    if (error) {
        command_fail(a->c, error, -error < (int)(sizeof refusals / sizeof *refusals) ? refusals[-error] : NULL);
        return;
    }
    SAY(LOG_WARN, FAULT_NONE, "order-taken", F_U("pid", a->c->pid));
    control_say(a->c, "200 taken");
}

static void add_u64(cJSON *to, const char *key, uint64_t v)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRIu64, v);
    cJSON_AddStringToObject(to, key, text);
}

static char *orders_json(const struct control *k)
{
    engine_order_info info[ORDERS_MAX];
    const struct daemon *d = k->d;
    const struct config *c = d->config;
    uint64_t serial = 0;
    cJSON *root = cJSON_CreateObject(), *list = cJSON_AddArrayToObject(root, "orders");
    uint32_t n = engine_get_orders(d->engine, info, ORDERS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        cJSON *o = cJSON_CreateObject();
        cJSON_AddStringToObject(o, "kind", info[i].kind == RECORD_EVICT ? "evict" : "rekey");
        add_u64(o, "serial", info[i].serial);
        add_u64(o, "node_id", info[i].subject);
        cJSON_AddNumberToObject(o, "members", info[i].members);
        cJSON_AddNumberToObject(o, "told", info[i].told);
        cJSON_AddNumberToObject(o, "refused", info[i].refused);
        cJSON_AddItemToArray(list, o);
        serial = info[i].serial > serial ? info[i].serial : serial;
    }
    add_u64(root, "serial", serial);
    add_u64(root, "node_id", c->node_id);
    cJSON_AddStringToObject(root, "job", c->text[CONFIG_NAME]);
    cJSON_AddStringToObject(root, "security", c->text[CONFIG_SECURITY]);
    cJSON_AddStringToObject(root, "operator", c->text[CONFIG_OPERATOR]);
    cJSON_AddNumberToObject(root, "allowed", c->allow_count);
    cJSON_AddStringToObject(root, "job_key", d->keys->job_fingerprint);
    cJSON_AddBoolToObject(root, "job_key_saved", !d->keys->unsaved);
    cJSON_AddBoolToObject(root, "evicted", d->evicted);
    char *text = cJSON_PrintUnformatted(root);
    cJSON_Delete(root);
    return text;
}

void orders_do_show(const struct call *a) { command_say_json(a, orders_json(a->k)); }

void orders_event(struct control *k, const engine_event *ev)
{
    struct daemon *d = k->d;
    if (ev->type == EVENT_EVICTED) {
        SAY(LOG_ERROR, FAULT_NONE, "evicted",
            F_S("text", "an operator of the job has put this node out of it for good"));
        d->evicted = true;
        loop_leave(d, false);
        return;
    }
    char why[KEYFILE_WHY];
    if (keys_new_job(d->keys, d->config, ev->job_key, why))
        SAY(LOG_WARN, FAULT_NONE, "job-key-saved", F_S("file", d->config->text[CONFIG_JOB_KEY]),
            F_S("fingerprint", d->keys->job_fingerprint));
    else
        SAY(LOG_ERROR, FAULT_LOCAL, "job-key-unsaved", F_S("error", why),
            F_S("text", "after a restart this node cannot join: copy the key file from another node"));
}
