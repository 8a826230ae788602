/* The thin header over CUnit.  A test file defines its cases and one suite:
 *
 *   #include "sleet_test.h"
 *   static void adds_up(void) { CHECK_EQ(1 + 1, 2); }
 *   TEST_SUITE(sums) = { TEST(adds_up), TEST_END };
 *
 * and is named by X(sums) in the suites.h of its folder.  A failed check is
 * recorded with file and line, and the case goes on. */
#ifndef SLEET_TEST_H
#define SLEET_TEST_H
#include <CUnit/CUnit.h>
#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct sleet_test {
    const char *name; /* NULL ends a suite */
    void (*run)(void);
};

#define TEST(function) {#function, function}
#define TEST_END {NULL, NULL}
#define TEST_SUITE(name)                                                                    \
    extern const struct sleet_test name##_tests[];                                          \
    const struct sleet_test name##_tests[]

/* The seed of this run: $SLEET_TEST_SEED, else 1.  Printed at the start. */
uint64_t test_seed(void);

/* How many seeds or repetitions to run where `usual` is the full number:
 * a tenth, at least 1, when $SLEET_TEST_FAST is set (sanitizer builds). */
unsigned test_repeats(unsigned usual);

/* Record the outcome of one check; `text` describes it.  Returns `ok`. */
bool test_check(bool ok, const char *text, const char *file, unsigned line);
bool test_check_i64(int64_t a, int64_t b, const char *text, const char *file, unsigned line);
bool test_check_f64(double a, double b, double tolerance, const char *text, const char *file,
                    unsigned line);
bool test_check_str(const char *a, const char *b, const char *text, const char *file,
                    unsigned line);
bool test_check_mem(const void *a, const void *b, size_t bytes, const char *text, const char *file,
                    unsigned line);

#define CHECK(cond) test_check((cond) ? true : false, #cond, __FILE__, __LINE__)
/* Integers; both sides are compared as 64-bit values and printed. */
#define CHECK_EQ(a, b)                                                                      \
    test_check_i64((int64_t)(a), (int64_t)(b), #a " == " #b, __FILE__, __LINE__)
#define CHECK_NEAR(a, b, tolerance)                                                         \
    test_check_f64((double)(a), (double)(b), (double)(tolerance), #a " ~ " #b, __FILE__, __LINE__)
#define CHECK_STR(a, b) test_check_str((a), (b), #a " equals " #b, __FILE__, __LINE__)
#define CHECK_MEM(a, b, bytes)                                                              \
    test_check_mem((a), (b), (bytes), #a " equals " #b, __FILE__, __LINE__)
/* Leave the case when going on makes no sense. */
#define REQUIRE(cond)                                                                       \
    do {                                                                                    \
        if (!CHECK(cond))                                                                   \
            return;                                                                         \
    } while (0)
#endif
