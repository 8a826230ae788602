/* protocol.h - what libsleet and sleetd agree on; docs/control.md in C.
 * Shared by both sides and by sleetctl; static functions, no state. */
#ifndef CLIENT_PROTOCOL_H
#define CLIENT_PROTOCOL_H
#include "sleet.h"
#include "tensor/kind.h"
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CONTROL_LINE_MAX 512 /* bytes of a client's line, LF included */
#define CONTROL_NAME_MAX (3 * SLEET_NAME_MAX + 1)
#define CONTROL_ALIGN 64u  /* bytes; of each buffer in the shared memory */
#define CONTROL_PAGE 4096u /* bytes; unit of the shared memory's size */

/* X(code, error): replies and the errors they stand for; the first row of an
 * error is the one the daemon uses. */
#define CONTROL_CODE_MAP(X)                                                                 \
    X(200, SLEET_OK)                                                                        \
    X(400, SLEET_EINVAL)                                                                    \
    X(403, SLEET_EPERM)                                                                     \
    X(425, SLEET_ESTATE)                                                                    \
    X(404, SLEET_ESTATE)                                                                    \
    X(409, SLEET_EBUSY)                                                                     \
    X(410, SLEET_ELEFT)                                                                     \
    X(413, SLEET_ELIMIT)                                                                    \
    X(503, SLEET_ELIMIT)                                                                    \
    X(422, SLEET_ESCHEMA)                                                                   \
    X(423, SLEET_EEXIST)                                                                    \
    X(426, SLEET_EAGAIN)                                                                    \
    X(427, SLEET_ENOSTATE)                                                                  \
    X(507, SLEET_ENOMEM)                                                                    \
    X(500, SLEET_EPROTO)

static inline int control_code_of(int error)
{
#define SLEET_X(code, err)                                                                  \
    if (error == (err))                                                                     \
        return code;
    CONTROL_CODE_MAP(SLEET_X)
#undef SLEET_X
    return 500;
}

static inline int control_error_of(int code)
{
    if (code >= 200 && code < 300)
        return SLEET_OK;
#define SLEET_X(number, err)                                                                \
    if (code == (number))                                                                   \
        return err;
    CONTROL_CODE_MAP(SLEET_X)
#undef SLEET_X
    return SLEET_EPROTO;
}

/* The sentence of an error code; never NULL. */
static inline const char *control_error_text(int error)
{
    switch (error) {
#define SLEET_X(name, value, text)                                                          \
    case name:                                                                              \
        return text;
        SLEET_ERROR_MAP(SLEET_X)
#undef SLEET_X
    default:
        return "unknown error";
    }
}

/* The default socket path of a user's daemon, NUL-terminated within `cap` bytes. */
static inline void control_default_path(char *out, size_t cap, uid_t user)
{
    const char *dir = getenv("XDG_RUNTIME_DIR");
    if (dir && dir[0] == '/')
        snprintf(out, cap, "%s/sleet.sock", dir);
    else
        snprintf(out, cap, "/tmp/sleet-%u.sock", (unsigned)user);
}

/* The word of an element type and back; NULL, 0 where there is none. */
static inline const char *control_dtype_text(sleet_dtype dtype)
{
#define SLEET_X(name, value, text, bytes)                                                   \
    if (dtype == name)                                                                      \
        return text;
    SLEET_DTYPE_MAP(SLEET_X)
#undef SLEET_X
    return NULL;
}

static inline int control_dtype_of(const char *word)
{
#define SLEET_X(name, value, text, bytes)                                                   \
    if (strcmp(word, text) == 0)                                                            \
        return name;
    SLEET_DTYPE_MAP(SLEET_X)
#undef SLEET_X
    return 0;
}

/* Percent-encode `name` into CONTROL_NAME_MAX bytes. */
static inline void control_encode(char out[CONTROL_NAME_MAX], const char *name)
{
    static const char digits[] = "0123456789ABCDEF";
    size_t n = 0;
    for (; *name && n + 4 <= CONTROL_NAME_MAX; name++) {
        unsigned char c = (unsigned char)*name;
        if (c > ' ' && c < 127 && c != '%') {
            out[n++] = (char)c;
        } else {
            out[n++] = '%';
            out[n++] = digits[c >> 4];
            out[n++] = digits[c & 15];
        }
    }
    out[n] = '\0';
}

static inline int control_hex(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The reverse; false if it is malformed, empty or longer than SLEET_NAME_MAX. */
static inline bool control_decode(char out[SLEET_NAME_MAX + 1], const char *word)
{
    size_t n = 0;
    while (*word) {
        if (n == SLEET_NAME_MAX)
            return false;
        char c = *word++;
        if (c == '%') {
            int hi = control_hex(word[0]);
            int lo = hi < 0 ? -1 : control_hex(word[1]);
            if (lo < 0 || hi * 16 + lo == 0)
                return false;
            c = (char)(hi * 16 + lo);
            word += 2;
        }
        out[n++] = c;
    }
    out[n] = '\0';
    return n > 0;
}

static inline uint64_t control_align(uint64_t bytes, uint64_t unit)
{
    return (bytes + unit - 1) / unit * unit;
}

/* The shared memory of a set's state: two halves and room for a blob. */
static inline uint64_t control_state_half(uint64_t half) { return control_align(half, CONTROL_PAGE); }
static inline uint64_t control_state_bytes(uint64_t half)
{
    return 2 * control_state_half(half) + SLEET_BLOB_MAX;
}

/* Where the parts of a set's shared memory begin, in bytes; send at 0.  A part that a set of its
 * kind does not have is at 0 as well. */
struct control_shared {
    uint64_t result;
    uint64_t residual; /* estimator carry: what waits to be sent, as send */
    uint64_t owned;    /* exchange other than all-reduce: a bit a run, in words of 64 */
    uint64_t bytes;    /* of it all */
};

/* `half`: bytes of the send part; `fragments`: of the set. */
static inline struct control_shared control_shared_of(const struct set_kind *k, uint64_t half,
                                                      uint64_t fragments)
{
    struct control_shared s = {.result = half};
    uint64_t end = 2 * half, runs = (fragments + RUN_FRAGMENTS - 1) / RUN_FRAGMENTS;
    if (k->estimator == SLEET_CARRY) {
        s.residual = end;
        end += half;
    }
    if (k->exchange != SLEET_ALL_REDUCE) {
        s.owned = end;
        end += control_align((runs + 63) / 64 * 8, CONTROL_ALIGN);
    }
    s.bytes = end ? control_align(end, CONTROL_PAGE) : CONTROL_PAGE;
    return s;
}
#endif
