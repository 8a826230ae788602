/* The bytes of docs/protocol.md: round trips, truncation, bounds, noise. */
#include "sleet_test.h"
#include "base/bitmap.h"
#include "base/bytes.h"
#include "base/rng.h"
#include "wire/parity.h"
#include "wire/wire.h"

#define FRAME_CAP 1400

union frame {
    struct wire_hello hello;
    struct wire_ping ping;
    struct wire_schema schema;
    struct wire_schema_ack ack;
    struct wire_data data;
    struct wire_summary summary;
    struct wire_group_req req;
    struct wire_group group;
    struct wire_close close;
};

static int decode(int type, union frame *f, const uint8_t *p, size_t n)
{
    switch (type) {
    case WIRE_HELLO:
    case WIRE_HELLO_ACK: return wire_hello_decode(&f->hello, p, n);
    case WIRE_SCHEMA: return wire_schema_decode(&f->schema, p, n);
    case WIRE_SCHEMA_ACK: return wire_schema_ack_decode(&f->ack, p, n);
    case WIRE_PING: return wire_ping_decode(&f->ping, p, n);
    case WIRE_DATA: return wire_data_decode(&f->data, p, n);
    case WIRE_SUMMARY: return wire_summary_decode(&f->summary, p, n);
    case WIRE_GROUP_REQ: return wire_group_req_decode(&f->req, p, n);
    case WIRE_GROUP: return wire_group_decode(&f->group, p, n);
    default: return wire_close_decode(&f->close, p, n);
    }
}

/* The frame's bytes; DATA includes its payload. */
static size_t encode(int type, union frame *f, uint8_t *out, size_t cap)
{
    switch (type) {
    case WIRE_HELLO:
    case WIRE_HELLO_ACK: return wire_hello_encode(out, cap, &f->hello);
    case WIRE_SCHEMA: return wire_schema_encode(out, cap, &f->schema);
    case WIRE_SCHEMA_ACK: return wire_schema_ack_encode(out, cap, &f->ack);
    case WIRE_PING: return wire_ping_encode(out, cap, &f->ping);
    case WIRE_DATA: {
        size_t n = wire_data_encode(out, cap, &f->data);
        if (!n || f->data.payload_len > cap - n)
            return 0;
        memcpy(out + n, f->data.payload, f->data.payload_len);
        return n + f->data.payload_len;
    }
    case WIRE_SUMMARY: return wire_summary_encode(out, cap, &f->summary);
    case WIRE_GROUP_REQ: return wire_group_req_encode(out, cap, &f->req);
    case WIRE_GROUP: return wire_group_encode(out, cap, &f->group);
    default: return wire_close_encode(out, cap, &f->close);
    }
}

/* ---- samples: one plain frame of each type ------------------------------ */

static const uint8_t some_bytes[1152] = {1, 2, 3, 4, 5, 6, 7, 8, 9};

static void fill_schema(struct wire_schema *s)
{
    *s = (struct wire_schema){.set = 0x11223344, .tensors = 5, .first = 3, .n = 2, .kind = {1, 1, 1, 1, 1},
                              .name = "net"};
    s->entries[0] = (struct wire_tensor){.count = 1u << 20, .rows = 1u << 10, .dtype = 1, .codec = 1, .name = "w"};
    s->entries[1] = (struct wire_tensor){.count = 7, .dtype = 1, .codec = 1, .name = "bias"};
}

static size_t sample(int type, uint8_t *out)
{
    union frame f;
    memset(&f, 0, sizeof(f));
    switch (type) {
    case WIRE_HELLO:
    case WIRE_HELLO_ACK:
        f.hello = (struct wire_hello){5, 6, 7, 288, "job"};
        break;
    case WIRE_SCHEMA: fill_schema(&f.schema); break;
    case WIRE_SCHEMA_ACK:
        f.ack = (struct wire_schema_ack){9, VERDICT_DIFFERS, 4, 1, {1, 1, 2, 1, 1}, {3, 0, 1, 1, "bias"}};
        break;
    case WIRE_PING:
        f.ping = (struct wire_ping){.time = 1, .echo = 2, .hold = 3, .request = true, .n = 2};
        f.ping.sets[0] = (struct wire_ping_set){4, PING_ATTACHED | PING_ESTABLISHED | PING_SKETCH, 1u << 31, 77, 0, 0, 3,
                                                {9, 8, 7, 2.5f, {1, -2, 0, 4}, {0, 1, 2, -3}}, {.version = 0}};
        f.ping.sets[1] = (struct wire_ping_set){.hash = 5, .flags = PING_DIFFERS,
                                                .change = {1u << 31, 11, 3, {1, {2, 3}}, {4, {0, 5}}}};
        break;
    case WIRE_DATA:
        f.data = (struct wire_data){.group = 1, .tensor = 2, .round = 3, .fragment = 4,
                                    .phase = PHASE_GATHER, .codec = 1, .packed = 1,
                                    .flags = DATA_YOURS, .weight = 2.5f,
                                    .mask = 0x8000000000000001u, .sender_round = 3,
                                    .payload = some_bytes, .payload_len = 12};
        break;
    case WIRE_SUMMARY:
        f.summary = (struct wire_summary){1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14,
                                          SUMMARY_CLOSED | SUMMARY_WITNESS, some_bytes, 0, 63,
                                          0x8000000000000001u};
        break;
    case WIRE_GROUP_REQ: f.req = (struct wire_group_req){1, 2}; break;
    case WIRE_GROUP:
        f.group = (struct wire_group){.set = 3, .n = 3, .members = {{1, 9, 1, 0}, {4, 8, 0, 0}, {6, 7, 1, 127}}};
        f.group.group = wire_group_hash(f.group.members, 3);
        break;
    default: f.close = (struct wire_close){CLOSE_ELEMENTS, 1, 288};
    }
    return encode(type, &f, out, FRAME_CAP);
}

static const size_t sample_bytes[] = {0, 88, 88, 20 + 3 + 16 + 19, 18 + 19, 20 + 96 + 56 + 32, 52, 70, 8,
                                      12 + 51, 4};

static void every_frame_round_trips(void)
{
    for (int t = WIRE_HELLO; t <= WIRE_CLOSE; t++) {
        uint8_t a[FRAME_CAP], b[FRAME_CAP];
        union frame f;
        size_t n = sample(t, a);
        CHECK_EQ(n, sample_bytes[t]);
        CHECK_EQ(decode(t, &f, a, n), SLEET_OK);
        CHECK_EQ(encode(t, &f, b, sizeof(b)), n);
        CHECK_MEM(a, b, n);
    }
}

static void fields_arrive(void)
{
    uint8_t b[FRAME_CAP];
    union frame f;
    CHECK_EQ(decode(WIRE_DATA, &f, b, sample(WIRE_DATA, b)), SLEET_OK);
    CHECK(f.data.mask == 0x8000000000000001u && f.data.weight == 2.5f && f.data.time == 0);
    CHECK(f.data.payload == b + WIRE_DATA_BYTES && f.data.payload_len == 12);
    b[16] = PHASE_SCATTER_REPAIR;
    CHECK_EQ(decode(WIRE_DATA, &f, b, 52), SLEET_OK);
    CHECK(f.data.time == 1 && f.data.remaining == 0x80000000u && f.data.mask == 0);
    CHECK_EQ(decode(WIRE_SUMMARY, &f, b, sample(WIRE_SUMMARY, b)), SLEET_OK);
    CHECK(f.summary.owner == 63 && f.summary.digest == 0x8000000000000001u);
    CHECK(f.summary.hold == 10 && f.summary.first == 11 && f.summary.bits == 12);
    CHECK(bytemap_test(f.summary.bitmap, 0) && !bytemap_test(f.summary.bitmap, 8) &&
          bytemap_test(f.summary.bitmap, 9));
    CHECK_EQ(decode(WIRE_SCHEMA, &f, b, sample(WIRE_SCHEMA, b)), SLEET_OK);
    CHECK_STR(f.schema.entries[1].name, "bias");
    CHECK_EQ(f.schema.entries[0].count, 1 << 20);
    CHECK_EQ(f.schema.entries[0].rows, 1 << 10);
}

/* A frame cut anywhere, or with a byte more, is malformed.  (DATA may be cut within
 * its payload: the set decides.) */
static void every_truncation_is_rejected(void)
{
    for (int t = WIRE_HELLO; t <= WIRE_CLOSE; t++) {
        uint8_t a[FRAME_CAP] = {0}, small[FRAME_CAP];
        union frame f;
        size_t n = sample(t, a);
        for (size_t cut = 0; cut < n; cut++) {
            bool payload = t == WIRE_DATA && cut > WIRE_DATA_BYTES;
            CHECK_EQ(decode(t, &f, a, cut) == SLEET_OK, payload);
            CHECK_EQ(decode(t, &f, a, n), SLEET_OK);
            if (t != WIRE_SCHEMA) /* which packs fewer entries */
                CHECK_EQ(encode(t, &f, small, cut), 0);
        }
        a[n] = 0;
        CHECK_EQ(decode(t, &f, a, n + 1) == SLEET_OK, t == WIRE_DATA);
    }
}

/* A sample with `width` bytes at `off` replaced is accepted or not. */
static const struct bound {
    int type;
    unsigned off, width;
    uint64_t value;
    bool fine;
} bounds[] = {
    {WIRE_HELLO, 0, 8, 0, false},      {WIRE_HELLO, 8, 8, 0, false},
    {WIRE_HELLO, 16, 4, 0, false},     {WIRE_HELLO, 20, 2, 100, true},
    {WIRE_HELLO, 22, 1, 1, false},     {WIRE_HELLO, 23, 1, 1, false},
    {WIRE_HELLO, 24, 1, 0, false},     {WIRE_HELLO, 24, 8, 0, false},
    {WIRE_HELLO, 28, 1, 'x', false},   {WIRE_HELLO, 87, 1, 'x', false},
    {WIRE_PING, 16, 1, 0, true},       {WIRE_PING, 16, 1, 2, false},
    {WIRE_PING, 17, 1, 1, false},      {WIRE_PING, 17, 1, 3, false},
    {WIRE_PING, 17, 1, 9, false},      {WIRE_PING, 17, 1, 255, false},
    {WIRE_PING, 18, 1, 1, false},      {WIRE_PING, 19, 1, 1, false},
    {WIRE_PING, 24, 1, 255, true},     {WIRE_PING, 24, 1, 127, false},
    {WIRE_PING, 24, 1, 129, false},    {WIRE_PING, 25, 1, 1, false},
    {WIRE_PING, 27, 1, 1, false},      {WIRE_PING, 140, 1, 1, false},
    {WIRE_PING, 148, 1, 1, false},     {WIRE_PING, 156, 1, 1, false},
    {WIRE_PING, 164, 1, 1, false},     {WIRE_PING, 84, 4, 0, true},
    {WIRE_PING, 84, 4, 0x7fc00000, false}, {WIRE_PING, 84, 4, 0xbf800000, false},
    {WIRE_PING, 88, 4, 0xff800000, false}, {WIRE_PING, 100, 4, 0x7fc00000, false},
    {WIRE_PING, 104, 4, 0x7fc00000, false}, {WIRE_PING, 116, 4, 0xff800000, false},
    {WIRE_PING, 120, 1, 1, false},     {WIRE_PING, 128, 1, 136, false},
    {WIRE_PING, 129, 1, 0, false},     {WIRE_PING, 129, 1, 3, false},
    {WIRE_PING, 130, 1, 1, false},     {WIRE_PING, 179, 1, 128, false},
    {WIRE_PING, 180, 8, 0, false},     {WIRE_PING, 188, 4, 0, false},
    {WIRE_PING, 188, 4, UINT32_MAX, true}, {WIRE_PING, 192, 1, 0, false},
    {WIRE_PING, 192, 1, 255, true},    {WIRE_PING, 197, 1, 0, false},
    {WIRE_PING, 202, 1, 1, false},     {WIRE_PING, 203, 1, 1, false},
    {WIRE_SCHEMA, 4, 2, 0, false},     {WIRE_SCHEMA, 4, 2, 4, false},
    {WIRE_SCHEMA, 4, 2, 1024, true},   {WIRE_SCHEMA, 4, 2, 1025, false},
    {WIRE_SCHEMA, 6, 2, 4, false},     {WIRE_SCHEMA, 6, 2, 0, true},
    {WIRE_SCHEMA, 6, 2, 65535, false}, {WIRE_SCHEMA, 8, 1, 0, false},
    {WIRE_SCHEMA, 8, 1, 1, false},     {WIRE_SCHEMA, 8, 1, 17, false},
    {WIRE_SCHEMA, 9, 1, 0, false},     {WIRE_SCHEMA, 9, 1, 64, false},
    {WIRE_SCHEMA, 20, 1, 0, false},    {WIRE_SCHEMA_ACK, 4, 1, 4, false},
    {WIRE_SCHEMA, 37, 1, 0, false},    {WIRE_SCHEMA, 37, 1, 64, false},
    {WIRE_SCHEMA, 38, 1, 0, false},    {WIRE_SCHEMA_ACK, 4, 1, 3, false},
    {WIRE_SCHEMA_ACK, 4, 1, 0, false}, {WIRE_SCHEMA_ACK, 4, 1, 1, false},
    {WIRE_SCHEMA_ACK, 5, 1, 0, false}, {WIRE_SCHEMA_ACK, 6, 2, 1025, false},
    {WIRE_SCHEMA_ACK, 5, 1, 2, false}, {WIRE_SCHEMA_ACK, 32, 1, 0, false},
    {WIRE_DATA, 16, 1, 0, false},      {WIRE_DATA, 16, 1, 1, true},
    {WIRE_DATA, 16, 1, 3, true},       {WIRE_DATA, 16, 1, 4, true},
    {WIRE_DATA, 16, 1, 5, false},      {WIRE_DATA, 16, 1, 7, true},
    {WIRE_DATA, 16, 1, 8, true},       {WIRE_DATA, 16, 1, 9, false}, /* without a tag */
    {WIRE_DATA, 16, 1, 10, false},     {WIRE_DATA, 16, 1, 11, true},
    {WIRE_DATA, 16, 1, 12, false},
    {WIRE_DATA, 17, 1, 0, false},
    {WIRE_DATA, 17, 1, 32, false},     {WIRE_DATA, 18, 1, 0, false},
    {WIRE_DATA, 18, 1, 9, false},      {WIRE_DATA, 19, 1, 15, true},
    {WIRE_DATA, 19, 1, 16, false},     {WIRE_DATA, 20, 4, 0, true},
    {WIRE_DATA, 20, 4, 1, false},      {WIRE_DATA, 20, 4, 0x40000000, false},
    {WIRE_DATA, 20, 4, 0x08000001, true}, {WIRE_DATA, 20, 4, 0xe0ffffff, true},
    {WIRE_DATA, 20, 4, 0x21000000, false}, {WIRE_DATA, 20, 4, 0x3f800000, false},
    {WIRE_DATA, 20, 4, 0x7fc00000, false}, {WIRE_DATA, 24, 4, 0, false},
    {WIRE_DATA, 24, 4, 0x80000000, false}, {WIRE_DATA, 24, 4, 0xbf800000, false},
    {WIRE_DATA, 24, 4, 0x7f800000, false}, {WIRE_DATA, 24, 4, 0x7fc00000, false},
    {WIRE_DATA, 24, 4, 1, true},       {WIRE_DATA, 28, 8, 0, false},
    /* the highest bit set in the sample is 9 */
    {WIRE_SUMMARY, 48, 2, 11, true},   {WIRE_SUMMARY, 48, 2, 16, true},
    {WIRE_SUMMARY, 48, 2, 9, false},   {WIRE_SUMMARY, 48, 2, 10, true},
    {WIRE_SUMMARY, 48, 2, 17, false},  {WIRE_SUMMARY, 48, 2, 8, false},
    {WIRE_SUMMARY, 48, 2, 8193, false}, {WIRE_SUMMARY, 50, 1, 31, true},
    {WIRE_SUMMARY, 50, 1, 15, false},  {WIRE_SUMMARY, 50, 1, 127, true},
    {WIRE_SUMMARY, 50, 1, 144, false}, {WIRE_SUMMARY, 50, 1, 152, false}, {WIRE_SUMMARY, 50, 1, 154, true},
    {WIRE_SUMMARY, 51, 1, 1, false},   {WIRE_SUMMARY, 54, 2, 65535, true},
    {WIRE_SUMMARY, 56, 1, 0, true},    {WIRE_SUMMARY, 56, 1, 64, false},
    {WIRE_SUMMARY, 57, 1, 1, false},   {WIRE_SUMMARY, 59, 1, 1, false},
    {WIRE_SUMMARY, 69, 1, 16, false},
    {WIRE_GROUP, 4, 4, 1, false},      {WIRE_GROUP, 8, 1, 0, false},
    {WIRE_GROUP, 8, 1, 2, false},      {WIRE_GROUP, 8, 1, 65, false},
    {WIRE_GROUP, 8, 1, 255, false},    {WIRE_GROUP, 9, 1, 1, false},
    {WIRE_GROUP, 11, 1, 1, false},     {WIRE_GROUP, 20, 8, 1, false},
    {WIRE_CLOSE, 0, 1, 0, false},      {WIRE_CLOSE, 0, 1, 1, true},
    {WIRE_CLOSE, 0, 1, 6, true},       {WIRE_CLOSE, 0, 1, 7, false},
    {WIRE_CLOSE, 1, 1, 9, true},
};

static void every_bound_is_kept(void)
{
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        const struct bound *c = &bounds[i];
        uint8_t b[FRAME_CAP];
        union frame f;
        size_t n = sample(c->type, b);
        le_store(b + c->off, c->value, c->width);
        int got = decode(c->type, &f, b, n);
        char text[96];
        snprintf(text, sizeof(text), "type %d, offset %u = %" PRIu64, c->type, c->off, c->value);
        test_check((got == SLEET_OK) == c->fine, text, __FILE__, __LINE__);
    }
}

/* Bounds between fields, under a right group hash. */
static void groups_are_ordered(void)
{
    struct wire_group g = {.set = 1, .n = 2, .members = {{2, 1, 1, 9}, {3, 1, 0, 0}}}, back;
    uint8_t b[FRAME_CAP];
    g.group = wire_group_hash(g.members, g.n);
    size_t n = wire_group_encode(b, sizeof(b), &g);
    CHECK_EQ(n, 12 + 34);
    g.members[1].uplink = 126; /* an auxiliary */
    g.group = wire_group_hash(g.members, g.n);
    CHECK_EQ(wire_group_decode(&back, b, wire_group_encode(b, sizeof(b), &g)), SLEET_OK);
    CHECK(back.members[1].contributes == 0 && back.members[1].uplink == 126);
    g.members[1].uplink = 0;
    g.group = wire_group_hash(g.members, g.n);
    CHECK_EQ(wire_group_encode(b, sizeof(b), &g), n);
    const struct { unsigned off; uint8_t value; } bad[] = {
        {29, 2}, {29, 1}, {12, 0}, {12, 9}, {20, 0}, {28, 254}, {45, 254}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        uint8_t c[FRAME_CAP];
        memcpy(c, b, n);
        c[bad[i].off] = bad[i].value;
        struct wire_member m[2];
        for (unsigned k = 0; k < 2; k++)
            m[k] = (struct wire_member){le_load(c + 12 + 17 * k, 8), le_load(c + 20 + 17 * k, 8),
                                        c[28 + 17 * k], 0};
        le_store(c + 4, wire_group_hash(m, 2), 4);
        CHECK_EQ(wire_group_decode(&back, c, n), SLEET_EMALFORMED);
    }
    g.n = SLEET_GROUP_MAX;
    for (unsigned i = 0; i < g.n; i++)
        g.members[i] = (struct wire_member){i + 1, 1, 1, (uint8_t)(2 * i)};
    CHECK_EQ(wire_group_encode(b, sizeof(b), &g), 0); /* stale hash */
    g.group = wire_group_hash(g.members, g.n);
    n = wire_group_encode(b, sizeof(b), &g);
    CHECK_EQ(n, 1100);
    CHECK_EQ(wire_group_decode(&back, b, n), SLEET_OK);
    CHECK(back.members[63].contributes == 1 && back.members[63].uplink == 126);
}

/* What a node says of itself, and nothing but that. */
static void declarations_are_bounded(void)
{
    struct wire_ping p = {.time = 1, .request = true, .declared = {.kbit = 20000, .role = ROLE_CLIENT, .site = "berlin"}}, back;
    uint8_t b[FRAME_CAP];
    size_t n = wire_ping_encode(b, sizeof b, &p);
    CHECK_EQ(n, 20 + WIRE_DECLARED_BYTES);
    CHECK_EQ(wire_ping_decode(&back, b, n), SLEET_OK);
    CHECK_EQ(back.declared.kbit, 20000);
    CHECK_EQ(back.declared.role, ROLE_CLIENT);
    CHECK_STR(back.declared.site, "berlin");
    CHECK_EQ(wire_ping_decode(&back, b, n - 1), SLEET_EMALFORMED);
    const struct { unsigned off; uint8_t value; bool fine; } bytes[] = {
        {16, 2, true},   {16, 1, false},  {16, 7, false},   {20, 0, true},  {24, ROLES, false}, {24, 255, false},
        {25, 1, false},  {27, 1, false},  {28, 0, false},   {28, ' ', false}, {28, 0x80, false}, {28, '~', true},
        {30, '\n', false}, {30, 0, false}, {34, 'x', true}, {35, 'x', false}, {43, 'x', false}};
    for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
        uint8_t c[FRAME_CAP];
        memcpy(c, b, n);
        c[bytes[i].off] = bytes[i].value;
        CHECK_EQ(wire_ping_decode(&back, c, n) == SLEET_OK, bytes[i].fine);
    }
    memset(b + 20, 0, WIRE_DECLARED_BYTES); /* said, but nothing is */
    CHECK_EQ(wire_ping_decode(&back, b, n), SLEET_EMALFORMED);
    memset(p.declared.site, 'x', sizeof p.declared.site);
    CHECK_EQ(wire_ping_encode(b, sizeof b, &p), 0);
    p.declared.site[SITE_MAX] = '\0';
    CHECK_EQ(wire_ping_decode(&back, b, wire_ping_encode(b, sizeof b, &p)), SLEET_OK);
}

/* Where parity has its place vectors of low rank have their tag, all of it. */
static void tags_go_with_low_rank(void)
{
    struct wire_data d = {.phase = PHASE_LOW, .codec = 1, .packed = 1, .weight = 1, .tag = 0x7f123456u}, back;
    uint8_t b[FRAME_CAP] = {0};
    size_t n = wire_data_encode(b, sizeof b, &d);
    CHECK_EQ(n, WIRE_DATA_BYTES);
    CHECK_EQ(wire_data_decode(&back, b, n + 4), SLEET_OK);
    CHECK(back.tag == d.tag && back.number == 0 && back.rows == 0 && back.depth == 0);
    b[16] = PHASE_LOW_REPAIR;
    CHECK_EQ(wire_data_decode(&back, b, n + 4), SLEET_OK);
    memset(b + 20, 0, 4);
    CHECK_EQ(wire_data_decode(&back, b, n + 4), SLEET_EMALFORMED);
    d.phase = PHASE_EDGE;
    CHECK_EQ(wire_data_encode(b, sizeof b, &d), 0);
}

static void schemas_pack_what_fits(void)
{
    struct wire_schema s = {.set = 1, .tensors = 1024, .first = 1008, .n = 16, .kind = {1, 1, 1, 1, 1}}, back;
    uint8_t b[FRAME_CAP];
    memset(s.name, 'n', SLEET_NAME_MAX);
    for (unsigned i = 0; i < 16; i++) {
        s.entries[i] = (struct wire_tensor){.count = i, .dtype = 1};
        memset(s.entries[i].name, 'a' + (int)i, SLEET_NAME_MAX);
    }
    size_t n = wire_schema_encode(b, sizeof(b), &s);
    CHECK_EQ(s.n, 14);
    CHECK_EQ(n, 20 + 63 + 14 * 78);
    CHECK(n <= WIRE_SCHEMA_MAX);
    CHECK_EQ(wire_schema_decode(&back, b, n), SLEET_OK);
    CHECK_EQ(back.n, 14);
    CHECK_STR(back.entries[13].name, s.entries[13].name);
    CHECK_EQ(wire_schema_encode(b, 14 + 63 + 77, &s), 0);
    s.n = 17;
    CHECK_EQ(wire_schema_encode(b, sizeof(b), &s), 0);
}

static void largest_frames(void)
{
    static uint8_t b[FRAME_CAP];
    union frame f;
    sample(WIRE_DATA, b);
    CHECK_EQ(decode(WIRE_DATA, &f, b, WIRE_DATA_BYTES + WIRE_PAYLOAD_MAX), SLEET_OK);
    CHECK_EQ(decode(WIRE_DATA, &f, b, WIRE_DATA_BYTES + WIRE_PAYLOAD_MAX + 4), SLEET_EMALFORMED);
    CHECK_EQ(decode(WIRE_DATA, &f, b, WIRE_DATA_BYTES), SLEET_EMALFORMED);
    struct wire_summary s = {.bits = WIRE_SUMMARY_BITS_MAX, .bitmap = some_bytes};
    CHECK_EQ(wire_summary_encode(b, sizeof(b), &s), WIRE_SUMMARY_BYTES + 1024);
    CHECK_EQ(decode(WIRE_SUMMARY, &f, b, WIRE_SUMMARY_BYTES + 1024), SLEET_OK);
    le_store(b + 48, 8193, 2);
    CHECK_EQ(decode(WIRE_SUMMARY, &f, b, WIRE_SUMMARY_BYTES + 1025), SLEET_EMALFORMED);
    s.bits = 8193;
    CHECK_EQ(wire_summary_encode(b, sizeof(b), &s), 0);
    s = (struct wire_summary){0};
    CHECK_EQ(wire_summary_encode(b, sizeof(b), &s), WIRE_SUMMARY_BYTES);
    const uint8_t ones[1] = {0xff};
    s = (struct wire_summary){.bits = 3, .bitmap = ones};
    CHECK_EQ(wire_summary_encode(b, sizeof(b), &s), WIRE_SUMMARY_BYTES + 1);
    CHECK_EQ(b[WIRE_SUMMARY_BYTES], 7);
    s.of = 64;
    s.flags = SUMMARY_CLOSED;
    CHECK_EQ(wire_summary_encode(b, sizeof(b), &s), WIRE_SUMMARY_BYTES + 1);
    CHECK_EQ(decode(WIRE_SUMMARY, &f, b, WIRE_SUMMARY_BYTES + 1), SLEET_OK);
    CHECK(f.summary.of == 64 && f.summary.bits == 3);
    b[51] = 65; /* no rank */
    CHECK_EQ(decode(WIRE_SUMMARY, &f, b, WIRE_SUMMARY_BYTES + 1), SLEET_EMALFORMED);
    b[51] = 64;
    b[50] |= SUMMARY_COMMITS_FINAL; /* the sender's own commits are another matter */
    CHECK_EQ(decode(WIRE_SUMMARY, &f, b, WIRE_SUMMARY_BYTES + 1), SLEET_EMALFORMED);
}

/* ---- datagrams ---------------------------------------------------------- */

static int opened(const uint8_t *d, size_t n, struct wire_header *h)
{
    const uint8_t *body;
    size_t len;
    return datagram_open(d, n, h, &body, &len);
}

static void datagrams_are_sealed(void)
{
    uint8_t d[WIRE_DATAGRAM_MAX], e[WIRE_DATAGRAM_MAX + 1] = {0};
    const uint8_t *body;
    size_t len;
    struct wire_header h = {WIRE_VERSION, WIRE_CLOSE, 0x01020304, 0x1122334455667788}, back;
    size_t frame = sample(WIRE_CLOSE, d + WIRE_HEADER_BYTES);
    size_t n = datagram_seal(d, frame, &h);
    CHECK_EQ(n, 36);
    REQUIRE(datagram_open(d, n, &back, &body, &len) == SLEET_OK);
    CHECK(back.index == h.index && back.counter == h.counter && back.type == WIRE_CLOSE);
    CHECK(d[0] == 0x1a && d[4] == 4 && d[8] == 0x88);
    CHECK(body == d + 16 && len == 4);
    for (size_t bit = 0; bit < 8 * n; bit++) {
        memcpy(e, d, n);
        e[bit / 8] ^= (uint8_t)(1u << bit % 8);
        CHECK_EQ(opened(e, n, &back), SLEET_EMALFORMED);
    }
    for (size_t cut = 0; cut < n; cut++)
        CHECK_EQ(opened(d, cut, &back), SLEET_EMALFORMED);
    memset(e, 0, sizeof(e));
    CHECK_EQ(datagram_seal(e, WIRE_BODY_MAX + 1, &h), 0);
    CHECK_EQ(datagram_seal(e, WIRE_BODY_MAX, &h), WIRE_DATAGRAM_MAX);
    CHECK_EQ(opened(e, WIRE_DATAGRAM_MAX, &back), SLEET_OK);
    CHECK_EQ(opened(e, sizeof(e), &back), SLEET_EMALFORMED);
}

static void headers_are_checked(void)
{
    const struct { struct wire_header h; int want; } cases[] = {
        {{1, WIRE_HELLO, 0, 1}, SLEET_OK},           {{1, WIRE_HELLO, 1, 1}, SLEET_EMALFORMED},
        {{1, WIRE_HELLO_ACK, 1, 1}, SLEET_OK},       {{1, WIRE_HELLO_ACK, 0, 1}, SLEET_EMALFORMED},
        {{1, WIRE_DATA, 0, 1}, SLEET_EMALFORMED},    {{1, WIRE_DATA, 9, 0}, SLEET_EMALFORMED},
        {{1, WIRE_DATA, 9, UINT64_MAX}, SLEET_OK},   {{1, WIRE_CLOSE, 0, 1}, SLEET_OK},
        {{1, 0, 1, 1}, SLEET_EMALFORMED},            {{1, WIRE_HELLO_DONE, 1, 1}, SLEET_OK},
        {{2, WIRE_HELLO, 0, 1}, SLEET_EPROTO},       {{0, 15, 7, 0}, SLEET_EPROTO},
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint8_t d[WIRE_DATAGRAM_MAX] = {0};
        struct wire_header back = {0};
        size_t n = datagram_seal(d, 4, &cases[i].h);
        CHECK_EQ(opened(d, n, &back), cases[i].want);
        CHECK(back.version == cases[i].h.version && back.type == cases[i].h.type);
    }
}

static void rounds_expand_to_the_nearest(void)
{
    const uint64_t top = UINT64_C(1) << 32;
    CHECK_EQ(round_expand(5, 7), 7);
    CHECK_EQ(round_expand(7, 5), 5);
    CHECK_EQ(round_expand(top + 1, 0xffffffff), top - 1);
    CHECK_EQ(round_expand(top - 1, 1), top + 1);
    CHECK_EQ(round_expand(3, 0xfffffff0), 0xfffffff0); /* nothing below 0 */
    CHECK(round_expand(UINT64_MAX, 0) == UINT64_MAX - 0xffffffff);
    sleet_rng r = {test_seed()};
    for (unsigned i = 0; i < test_repeats(1000); i++) {
        uint64_t near = (rng_next(&r) >> (i % 30)) | top;
        uint64_t far = near + rng_below(&r, 2000) - 1000;
        CHECK(round_expand(near, (uint32_t)far) == far || near > UINT64_MAX - 2000);
    }
}

/* Whatever a decoder accepts encodes to the same bytes. */
static void noise_is_harmless(void)
{
    sleet_rng r = {test_seed()};
    unsigned accepted = 0;
    for (unsigned i = 0; i < test_repeats(50000); i++) {
        uint8_t a[FRAME_CAP], b[FRAME_CAP];
        union frame f;
        int t = 1 + (int)(i % WIRE_CLOSE);
        size_t n = sample(t, a);
        if (i % 3 == 0)
            n = rng_below(&r, 200);
        unsigned changes = i % 3 == 0 ? (unsigned)n : rng_below(&r, 4);
        for (unsigned k = 0; k < changes; k++)
            a[rng_below(&r, (uint32_t)n)] = (uint8_t)rng_next(&r);
        if (decode(t, &f, a, n) != SLEET_OK)
            continue;
        accepted++;
        if (encode(t, &f, b, sizeof(b)) != n || memcmp(a, b, n) != 0)
            CHECK(!"accepted bytes do not encode to themselves");
    }
    CHECK(accepted > 0);
}

static void bitmaps_count(void)
{
    uint64_t map[3] = {0};
    CHECK(bitmap_words(0) == 0 && bitmap_words(64) == 1 && bitmap_words(65) == 2);
    bitmap_set(map, 0);
    bitmap_set(map, 63);
    bitmap_set(map, 64);
    bitmap_set(map, 191);
    CHECK(bitmap_test(map, 63) && bitmap_test(map, 64) && !bitmap_test(map, 65));
    CHECK_EQ(bitmap_count(map, 192), 4);
    CHECK_EQ(bitmap_count(map, 191), 3);
    CHECK_EQ(bitmap_count(map, 64), 2);
    bitmap_clear(map, 63);
    CHECK(!bitmap_test(map, 63));
    CHECK_EQ(bitmap_count(map, 64), 1);
}

/* The parity form of DATA, its bounds, and blocks that come back as the frame they were made of. */
static void parity_and_its_blocks(void)
{
    static uint8_t bytes[WIRE_BLOCK_MAX], block[WIRE_BLOCK_MAX], again[WIRE_BODY_MAX + 1], out[WIRE_BODY_MAX + 1];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(i * i);
    struct wire_data d = {.phase = PHASE_GATHER, .codec = 1, .packed = 2, .weight = 0.5f, .mask = 9}, back;
    size_t len = wire_block_encode(block, 1234, &d, bytes, WIRE_PAYLOAD_MAX);
    CHECK_EQ(len, WIRE_BLOCK_MAX);
    CHECK_EQ(wire_block_decode(&back, PHASE_REPAIR, block, len), SLEET_OK);
    CHECK(back.fragment == 1234 && back.codec == 1 && back.packed == 2 && back.weight == 0.5f &&
          back.mask == 9 && back.payload_len == WIRE_PAYLOAD_MAX && back.phase == PHASE_REPAIR);
    CHECK_MEM(back.payload, bytes, WIRE_PAYLOAD_MAX);
    for (size_t n = 0; n < len; n++)
        CHECK_EQ(wire_block_decode(&back, PHASE_REPAIR, block, n), SLEET_EMALFORMED);
    memset(block + 12, 0, 8); /* no contributors */
    CHECK_EQ(wire_block_decode(&back, PHASE_REPAIR, block, len), SLEET_EMALFORMED);
    CHECK_EQ(wire_block_decode(&back, PHASE_SCATTER_REPAIR, block, len), SLEET_OK);
    memset(block, 0, sizeof block);
    CHECK_EQ(wire_block_decode(&back, PHASE_SCATTER_REPAIR, block, len), SLEET_EMALFORMED);

    struct wire_parity p = {1, 2, 3, 4, PHASE_GATHER_PARITY, 8, 4, 7, 64, bytes, WIRE_BLOCK_MAX}, q;
    len = wire_parity_encode(out, sizeof out, &p);
    CHECK_EQ(len, WIRE_BODY_MAX);
    CHECK(wire_is_parity(out, len) && !wire_is_parity(out, 16));
    CHECK_EQ(wire_data_decode(&d, out, len), SLEET_EMALFORMED);
    CHECK_EQ(wire_parity_decode(&q, out, len), SLEET_OK);
    CHECK_EQ(wire_parity_encode(again, sizeof again, &q), len);
    CHECK_MEM(again, out, len);
    for (size_t n = 0; n <= len + 1; n++)
        CHECK_EQ(wire_parity_decode(&q, out, n) == SLEET_OK, n > WIRE_PARITY_BYTES && n <= len);
    static const struct { uint8_t at, value; } bad[] = {
        {16, 4}, {16, 7}, {17, 0}, {17, 33}, {17, 0x40}, {18, 8}, {19, 0}, {19, 65}};
    for (uint32_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memcpy(again, out, len);
        again[bad[i].at] = bad[i].value;
        CHECK_EQ(wire_parity_decode(&q, again, len), SLEET_EMALFORMED);
    }
}

TEST_SUITE(wire) = {
    TEST(parity_and_its_blocks),
    TEST(every_frame_round_trips),  TEST(fields_arrive),        TEST(every_truncation_is_rejected),
    TEST(every_bound_is_kept),      TEST(groups_are_ordered),   TEST(declarations_are_bounded),
      TEST(tags_go_with_low_rank), TEST(schemas_pack_what_fits),
    TEST(largest_frames),           TEST(datagrams_are_sealed), TEST(headers_are_checked),
    TEST(rounds_expand_to_the_nearest), TEST(noise_is_harmless), TEST(bitmaps_count),
    TEST_END};
