/* Bounded little-endian writing and reading.  A cursor that would pass its end
 * stops and stays failed: writers then write nothing, readers return zeros.
 * Check `ok` once, at the end. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

static inline void le_store(uint8_t *p, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> (8 * i));
}
static inline uint64_t le_load(const uint8_t *p, unsigned bytes)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < bytes; i++)
        v |= (uint64_t)p[i] << (8 * i);
    return v;
}

typedef struct {
    uint8_t *p;
    size_t cap, len; /* len bytes are written */
    bool ok;
} byte_writer;

static inline byte_writer writer_of(uint8_t *p, size_t cap)
{
    return (byte_writer){p, cap, 0, true};
}
/* Room for n bytes, or NULL. */
static inline uint8_t *put_space(byte_writer *w, size_t n)
{
    if (!w->ok || n > w->cap - w->len) {
        w->ok = false;
        return NULL;
    }
    w->len += n;
    return w->p + w->len - n;
}
static inline void put_int(byte_writer *w, uint64_t v, unsigned bytes)
{
    uint8_t *p = put_space(w, bytes);
    if (p)
        le_store(p, v, bytes);
}
static inline void put_u8(byte_writer *w, uint8_t v) { put_int(w, v, 1); }
static inline void put_u16(byte_writer *w, uint16_t v) { put_int(w, v, 2); }
static inline void put_u32(byte_writer *w, uint32_t v) { put_int(w, v, 4); }
static inline void put_u64(byte_writer *w, uint64_t v) { put_int(w, v, 8); }
static inline void put_f32(byte_writer *w, float v)
{
    uint32_t u;
    memcpy(&u, &v, 4);
    put_u32(w, u);
}
static inline void put_zeros(byte_writer *w, size_t n)
{
    uint8_t *p = put_space(w, n);
    if (p)
        memset(p, 0, n);
}
static inline void put_bytes(byte_writer *w, const void *src, size_t n)
{
    uint8_t *p = put_space(w, n);
    if (p && n)
        memcpy(p, src, n);
}
/* Bytes written, or 0 if they did not fit. */
static inline size_t put_done(const byte_writer *w) { return w->ok ? w->len : 0; }

typedef struct {
    const uint8_t *p;
    size_t left;
    bool ok;
} byte_reader;

static inline byte_reader reader_of(const uint8_t *p, size_t n) { return (byte_reader){p, n, true}; }
/* The next n bytes, or NULL. */
static inline const uint8_t *get_bytes(byte_reader *r, size_t n)
{
    if (!r->ok || n > r->left) {
        r->ok = false;
        return NULL;
    }
    const uint8_t *p = r->p;
    r->p += n;
    r->left -= n;
    return p;
}
static inline uint64_t get_int(byte_reader *r, unsigned bytes)
{
    const uint8_t *p = get_bytes(r, bytes);
    return p ? le_load(p, bytes) : 0;
}
static inline uint8_t get_u8(byte_reader *r) { return (uint8_t)get_int(r, 1); }
static inline uint16_t get_u16(byte_reader *r) { return (uint16_t)get_int(r, 2); }
static inline uint32_t get_u32(byte_reader *r) { return (uint32_t)get_int(r, 4); }
static inline uint64_t get_u64(byte_reader *r) { return get_int(r, 8); }
static inline float get_f32(byte_reader *r)
{
    uint32_t u = get_u32(r);
    float v;
    memcpy(&v, &u, 4);
    return v;
}
/* Fails unless the next n bytes are all 0. */
static inline void get_zeros(byte_reader *r, size_t n)
{
    const uint8_t *p = get_bytes(r, n);
    for (size_t i = 0; p && i < n; i++)
        if (p[i])
            r->ok = false;
}
/* Everything read, nothing left over. */
static inline bool get_done(const byte_reader *r) { return r->ok && r->left == 0; }
#endif
