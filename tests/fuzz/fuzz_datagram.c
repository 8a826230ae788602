/* Any bytes as a datagram, as the body of one with a right tag, and as a frame
 * of every type.  Accepted frames must encode to the bytes they came from. */
#include "again.h"
#include "base/bytes.h"
#include "wire/notice.h"
#include "wire/parity.h"
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_frame(uint8_t type, const uint8_t *p, size_t n)
{
    static uint8_t out[WIRE_BODY_MAX];
    switch (type) {
    case WIRE_HELLO:
    case WIRE_HELLO_ACK: AGAIN(hello); break;
    case WIRE_SCHEMA_ACK: AGAIN(schema_ack); break;
    case WIRE_PING: AGAIN(ping); break;
    case WIRE_SUMMARY: AGAIN(summary); break;
    case WIRE_GROUP_REQ: AGAIN(group_req); break;
    case WIRE_GROUP: AGAIN(group); break;
    case WIRE_CLOSE: AGAIN(close); break;
    case WIRE_NOTICE: AGAIN(notice); break;
    case WIRE_SCHEMA: {
        struct wire_schema s;
        if (wire_schema_decode(&s, p, n) == SLEET_OK && n <= WIRE_SCHEMA_MAX)
            same(p, n, out, wire_schema_encode(out, sizeof(out), &s));
        break;
    }
    case WIRE_DATA: {
        struct wire_data d;
        AGAIN(parity);
        if (wire_data_decode(&d, p, n) != SLEET_OK)
            break;
        same(p, WIRE_DATA_BYTES, out, wire_data_encode(out, sizeof(out), &d));
        same(p + WIRE_DATA_BYTES, n - WIRE_DATA_BYTES, d.payload, d.payload_len);
        break;
    }
    default: break;
    }
}

/* What is rebuilt is a block of any bytes. */
static void try_block(const uint8_t *p, size_t n)
{
    static uint8_t out[WIRE_BLOCK_MAX];
    for (uint8_t phase = PHASE_REPAIR; phase <= PHASE_SCATTER_REPAIR; phase++) {
        struct wire_data d;
        if (n > WIRE_BLOCK_MAX || wire_block_decode(&d, phase, p, n) != SLEET_OK)
            continue;
        same(p, WIRE_BLOCK_BYTES + d.payload_len, out,
             wire_block_encode(out, d.fragment, &d, d.payload, d.payload_len));
    }
}

static void try_datagram(const uint8_t *p, size_t n)
{
    struct wire_header h;
    const uint8_t *body;
    size_t len;
    if (datagram_open(p, n, &h, &body, &len) == SLEET_OK)
        try_frame(h.type, body, len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t dgram[WIRE_DATAGRAM_MAX];
    try_datagram(data, size);
    for (uint8_t type = WIRE_HELLO; type <= WIRE_NOTICE; type++)
        try_frame(type, data, size);
    try_block(data, size);
    if (size < WIRE_HEADER_BYTES || size > WIRE_HEADER_BYTES + WIRE_BODY_MAX)
        return 0;
    struct wire_header h = {data[0] >> 4, data[0] & 15, (uint32_t)le_load(data + 4, 4),
                            le_load(data + 8, 8)};
    memcpy(dgram, data, size);
    try_datagram(dgram, datagram_seal(dgram, size - WIRE_HEADER_BYTES, &h));
    return 0;
}
